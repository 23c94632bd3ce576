"""The last line of a step: its counts, or that there was nothing to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chainlake.cli.main import main
from chainlake.paths import Home


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ({"patterns": 0, "days": 0, "added": 0}, "detect stock [2013-10-07, 2013-10-08): nothing to do"),
        ({"days": [], "published": None}, "detect stock [2013-10-07, 2013-10-08): nothing to do"),
        ({"patterns": 1, "days": 1, "added": 0}, "detect stock [2013-10-07, 2013-10-08): patterns 1, days 1, added 0"),
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
