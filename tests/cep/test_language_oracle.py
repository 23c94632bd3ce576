"""The definition-level evaluator of the language on the worked cases: it is right before it judges the engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cep.language_oracle.matches import matches
from tests.cep.language_oracle.reading import query_of
from tests.cep.language_oracle.text import text_of

FILE = Path(__file__).parent.parent / "cases" / "language-cases.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))["cases"]


def canonical(found: list[dict]) -> list[str]:
    """Matches as sorted texts, duplicates kept."""
    return sorted(json.dumps(m, sort_keys=True) for m in found)


def test_all_cases_are_here() -> None:
    assert len(CASES) == 45


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_definition_gives_the_worked_case(case: dict) -> None:
    query = query_of(case["pattern"])
    assert canonical(matches(query, case["events"], case.get("key"))) == canonical(case["expected"])


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_is_written_is_read_again(case: dict) -> None:
    query = query_of(case["pattern"])
    assert query_of(text_of(query)) == query
