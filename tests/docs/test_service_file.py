"""The unit file of docs/deploy.md is one that systemd takes, and starts what ``make airflow`` starts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from chainlake.paths import PROJECT

PAGE = (PROJECT / "docs" / "deploy.md").read_text(encoding="utf-8")
(UNIT,) = re.findall(r"^```ini\n(\[Unit\].*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_it_starts_what_make_airflow_starts() -> None:
    (started,) = re.findall(r"^ExecStart=/srv/chainlake/\.venv/bin/python (.*)$", UNIT, re.MULTILINE)
    assert f"\n\t@$(PY) {started} $(ARGS)\n" in (PROJECT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_it(tmp_path: Path) -> None:
    """Here the checkout is elsewhere, and no user is called like that."""
    file, here = tmp_path / "chainlake.service", tmp_path / "here"
    here.symlink_to(PROJECT)

    def said(text: str) -> tuple[int, str]:
        file.write_text(text.replace("/srv/chainlake", str(here)).replace("User=chainlake", "User=root"))
        done = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True, timeout=60)
        return done.returncode, "\n".join(line for line in done.stderr.splitlines() if str(file) in line)

    assert said(UNIT) == (0, "")
    assert "'KilMode'" in said(UNIT.replace("KillMode", "KilMode"))[1]
