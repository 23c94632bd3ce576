"""A sample of the handed cases through Spark; ``python -m tests.run_cases --engine spark FILE`` runs all of a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cep.test_cases import CASES
from tests.run_cases import pattern_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: One of each kind, with ties, sets, several negations, alternatives and Corr among them.
SAMPLE = [case for number, case in enumerate(CASES) if number % 13 == 5 or "Corr" in json.dumps(case)][:7]


@pytest.mark.parametrize("case", SAMPLE, ids=[case["name"] for case in SAMPLE])
def test_handed_case_through_spark(spark: SparkSession, case: dict) -> None:
    assert pattern_case(case, engine="spark").differences == []
