"""What killed attempts leave behind is removed after a week, and nothing else is."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from jobs.paths import Home
from jobs.steps.common import sweep_leftovers

WEEK_S = 7 * 86_400


def test_only_folders_that_nobody_has_touched_for_a_week_go(home: Home) -> None:
    old, young = [], []
    for parent, name in ((Path(home.staging), "run.1"), (home.temporary, "blockmgr-1"), (home.airflow, "result-1")):
        for kept, age in ((old, WEEK_S + 60), (young, WEEK_S - 60)):
            folder = parent / f"{name}-{age}"
            folder.mkdir(parents=True)
            (folder / "file").touch()
            os.utime(folder, (time.time() - age,) * 2)
            kept.append(folder)
    for other in (home.temporary / "chainlake-1.zip", home.airflow / "logs"):
        other.touch()
        os.utime(other, (0, 0))
        young.append(other)
    sweep_leftovers(home)
    assert not [path for path in old if path.exists()]
    assert all(path.exists() for path in young)


def test_another_step_may_sweep_at_the_same_time(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    (Path(home.staging) / "run.1").mkdir(parents=True)
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter([self / "gone"]))
    sweep_leftovers(home)


def test_nothing_was_ever_run(home: Home) -> None:
    sweep_leftovers(home)
