"""The handed cases through files and tasks; ``python -m tests.run_cases --engine tasks FILE`` runs all of a file."""

from __future__ import annotations

import pytest

from tests.cep.test_cases import CASES
from tests.cep.test_language_oracle import CASES as LANGUAGE
from tests.run_cases import pattern_case

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_handed_case_through_tasks(case: dict) -> None:
    assert pattern_case(case, engine="tasks").differences == []


@pytest.mark.parametrize("case", LANGUAGE, ids=[case["name"] for case in LANGUAGE])
def test_case_of_the_language_through_tasks(case: dict) -> None:
    result = pattern_case(case, engine="tasks")
    assert (result.differences, result.skipped) == ([], None)
