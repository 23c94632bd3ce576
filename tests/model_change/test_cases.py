"""The golden cases of the specification."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.monitor_cases import run_monitor_case

_FILE = json.loads((Path(__file__).parent.parent / "cases" / "monitor-cases.json").read_text())


@pytest.mark.parametrize("case", _FILE["cases"], ids=lambda case: case["id"])
def test_case(case):
    assert run_monitor_case(case, _FILE["tolerance"]) == []


def test_a_wrong_expectation_is_reported():
    case = json.loads(json.dumps(next(c for c in _FILE["cases"] if c["id"] == "step-residual")))
    case["expect"]["values"][3][1] += 1e-5
    case["expect"]["sync_rounds"][0] += 1
    found = run_monitor_case(case, _FILE["tolerance"])
    assert [line.split(":")[0].split("[")[0] for line in found] == ["values", "sync_rounds"]
