"""The pattern cases of tests/cases in every binding order, and the command that runs such files."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest

from chainlake.cep.library import as_dicts, from_dicts, match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from tests.run_cases import main, pattern_case

FILE = Path(__file__).parent.parent / "cases" / "pattern-cases.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_handed_case(case: dict) -> None:
    assert pattern_case(case).differences == []


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_handed_case_in_every_order(case: dict) -> None:
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


@pytest.mark.slow
def test_no_match_is_given_twice() -> None:
    for case in CASES:
        found = [json.dumps(m, sort_keys=True) for m in match(case["pattern"], case["events"], case.get("params"))]
        assert len(found) == len(set(found)), case["name"]


def texts(matches: object) -> list[str]:
    return sorted(json.dumps(m, sort_keys=True) for m in matches)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_order_of_rows_never_shows() -> None:
    draw = random.Random(3)
    for case in CASES:
        for _ in range(2):
            shuffled = draw.sample(case["events"], len(case["events"]))
            assert texts(match(case["pattern"], shuffled, case.get("params"))) == texts(case["expected"]), case["name"]


@pytest.mark.slow
def test_loads_that_know_nothing_of_what_comes_later_find_each_match_once_and_not_before_it_is_decided() -> None:
    """Random cuts of time; each load has only the events of its read range, none from its end on."""
    draw = random.Random(9)
    waited = 0
    for case in CASES:
        pattern = compile_pattern(case["pattern"], params=case.get("params"), strict_units=False)
        times = sorted({event["ts"] for event in case["events"]}) or [0]
        span = range(times[0] - 1, times[-1] + pattern.window_us + 2)
        for _ in range(2):
            cuts = sorted(draw.choices(span, k=draw.randrange(1, 4)))
            union = []
            for own in itertools.pairwise([span[0] - 1, *cuts, span[-1] + 1]):
                lo, hi = pattern.read_range(*own)
                table, ids = from_dicts([event for event in case["events"] if lo <= event["ts"] < hi])
                for batch in find(pattern, table, own=own):
                    union += as_dicts(pattern, batch, ids)
                    assert (batch.decision_us < own[1]).all() and (batch.end_us <= batch.decision_us).all()
                    waited += int((batch.end_us < own[0]).sum())
            assert texts(union) == texts(case["expected"]), (case["name"], cuts)
    assert waited > 2  # matches whose events were all there a load earlier, while a forbidden one could still come
