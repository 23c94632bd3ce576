"""The example of docs/monitors.md does what it says."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "monitors.md"


def test_the_example_of_the_three_kinds_holds() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert "assert " in code
    exec(compile(code, str(PAGE), "exec"), {})
