"""What a step prints: a line per phase, and at last its counts, or that there was nothing to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from chainlake.cli.main import main
from chainlake.days import Days
from chainlake.lake.records.runs import phase
from chainlake.paths import Home


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ({"patterns": 0, "days": 0, "added": 0}, "detect stock [2013-10-07, 2013-10-08): nothing to do"),
        ({"days": [], "published": None}, "detect stock [2013-10-07, 2013-10-08): nothing to do"),
        (
            {"patterns": 1, "days": 1, "added": 0, "changed": 0, "withdrawn": 2},
            "detect stock [2013-10-07, 2013-10-08): patterns 1, days 1, added 0, changed 0, withdrawn 2 rows of "
            "matches, episodes and rankings",
        ),
    ],
)
def test_last_line(
    result: dict[str, Any], line: str, home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setattr("chainlake.detect.step.detect", lambda *_, **__: result)
    assert main(["detect", "stock", "2013-10-07", "2013-10-08", "--result", str(tmp_path / "result.json")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == line
    assert (tmp_path / "result.json").read_text().startswith("{")


def test_a_line_per_phase(home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def step(home: Home, source: str, days: Days, *, run_id: str, **options: Any) -> dict[str, Any]:
        with phase(home, run_id, source=source, step="detect", phase="plan", days=days) as row:
            row.status, row.reason = "nothing", "no pattern"
        with phase(
            home, run_id, source=source, step="detect", phase="publish", definition="pattern/x", days=days
        ) as row:
            row.rows_in, row.rows_out = 1, 76
        with pytest.raises(ZeroDivisionError), phase(home, run_id, source=source, step="detect", phase="audit"):
            1 / 0  # noqa: B018
        return {"patterns": 1}

    monkeypatch.setattr("chainlake.detect.step.detect", step)
    assert main(["detect", "stock", "2013-10-07", "2013-10-08", "--run-id", "r1"]) == 0
    first, *lines, _ = capsys.readouterr().out.splitlines()
    assert first.startswith("detect stock [2013-10-07, 2013-10-08): run r1, chainlake ")
    lines = [re.sub(r"\d\.\d s(?=$|,)", "S", line) for line in lines]
    assert lines == [
        "publish pattern/x [2013-10-07, 2013-10-08): ok, 1 row in, 76 rows out, S",
        "audit: S, failed: ZeroDivisionError: division by zero",
    ]
