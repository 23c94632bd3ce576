"""A lake on a disk that can only be read: it is checked as any other, and what would change it says why it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from chainlake.paths import PROJECT, Home
from tests.check.damage import opened

pytestmark = pytest.mark.slow

#: Verbs in a namespace of mounts of their own, in which a folder is mounted once more, to be read only.
INSIDE = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


def on_a_read_only_disk(home: Home, *words: str) -> tuple[int, str]:
    """Exit code and output of a verb."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can mount a folder to be read only")
    env = {**os.environ, "PYTHONPATH": str(PROJECT / "jobs"), "CHAINLAKE_HOME": str(home.root)}
    env |= {"CHAINLAKE_LAKE": home.lake, "CHAINLAKE_CONFIG": str(home.config)}
    command = ["unshare", "-m", "bash", "-c", INSIDE, str(home.root), sys.executable, "-m", "chainlake", *words]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    if "mount" in ran.stderr:
        pytest.skip(f"no folder can be mounted here: {ran.stderr}")
    return ran.returncode, ran.stdout + ran.stderr


def test_a_lake_that_can_only_be_read_is_no_damage(copy: Home) -> None:
    code, said = on_a_read_only_disk(copy, "check")
    assert code == 0 and "no damage" in said
    assert on_a_read_only_disk(copy, "status")[0] == 0
    # Damage of it is found, too.
    opened(copy, "events.lab").delete("sensor = 'k2' AND event_date = '2025-03-02'")
    code, said = on_a_read_only_disk(copy, "check")
    assert code == 1 and "events.lab: 2025-03-02" in said and "lock" not in said


def test_who_would_change_it_is_told_why_that_cannot_be(copy: Home) -> None:
    code, said = on_a_read_only_disk(copy, "maintain", "--table", "events.lab")
    assert code == 5 and "cannot be used as a lock: its disk is read-only" in said and "somebody else" not in said
