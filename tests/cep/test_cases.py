"""The handed pattern cases in every binding order, and the command that runs handed cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.cep import match
from tests.run_cases import main, pattern_case

FILE = Path(__file__).parent.parent / "cases" / "pattern-cases.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_handed_case(case: dict) -> None:
    assert pattern_case(case, all_orders=True).differences == []


def test_all_cases_are_here() -> None:
    assert len(CASES) == 75


def test_command_counts_and_shows_differences(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    wrong = [{**CASES[0], "expected": CASES[0]["expected"][:1]}, CASES[1]]
    file = tmp_path / "some.json"
    file.write_text(json.dumps(wrong))
    assert main([str(file)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert "not expected" in out[0] and "a2" in out[0]
    assert out[-1] == "2 cases, 1 different, 0 not supported yet"
    file.write_text(json.dumps({"cases": [{"events": [], "query": {}, "expect": [], "id": "T"}]}))
    assert main([str(file)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 cases, 0 different, 1 not supported yet"
    file.write_text("{}")
    assert main([str(file)]) == 4


def test_no_match_is_given_twice() -> None:
    for case in CASES:
        found = [json.dumps(m, sort_keys=True) for m in match(case["pattern"], case["events"], case.get("params"))]
        assert len(found) == len(set(found)), case["name"]
