"""Aggregates of lists are what a line of Python says, one value of each member of a set."""

from __future__ import annotations

import math
from datetime import timedelta

import pyarrow as pa
import pytest

from chainlake.cep.library import from_dicts, match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.errors import DefinitionError
from tests.cep.test_functions import NAN, START

LISTS = [None, [], [1.0], [None, NAN], [3.0, 1.0, 2.0, 2.0], [1e308, 1e308], [5.0, None, -5.0]]


def of_list(function: str, values: list[float | None] | None) -> float | None:
    if values is None:
        return None
    there = [v for v in values if v is not None and v == v]
    if function in ("FIRST", "LAST"):
        return (values[0] if function == "FIRST" else values[-1]) if values else None
    if function == "COUNT":
        return len(there)
    if function == "COUNT DISTINCT":
        return len(set(there))
    if not there or function == "STDDEV" and len(there) < 2:
        return None
    ordered, mean = sorted(there), sum(there) / len(there)
    middle = ordered[(len(ordered) - 1) // 2] / 2 + ordered[len(ordered) // 2] / 2
    return {
        "SUM": sum(there), "AVG": mean, "MIN": ordered[0], "MAX": ordered[-1], "MEDIAN": middle,
        "STDDEV": math.sqrt(sum((v - mean) ** 2 for v in there if math.isfinite(mean)) / max(1, len(there) - 1)),
    }[function]  # fmt: skip


@pytest.mark.parametrize(
    "function", ["AVG", "SUM", "MIN", "MAX", "COUNT", "COUNT DISTINCT", "FIRST", "LAST", "STDDEV", "MEDIAN"]
)
def test_aggregates_of_lists(function: str) -> None:
    lists = [one for one in LISTS if function not in ("SUM", "AVG", "STDDEV") or one != [1e308, 1e308]]
    rows = [
        {"id": str(i), "type": "A", "ts": START + timedelta(seconds=i), "attrs": {"h": h}} for i, h in enumerate(lists)
    ]
    word, distinct = function.split()[0], "DISTINCT " if " " in function else ""
    text = f"PATTERN A a WITHIN 1 s MEASURES {word}({distinct}a.h) AS v"
    found = {m["a"]: m.get("v") for m in match(text, rows)}
    assert found == {str(i): None if (v := of_list(function, h)) != v else v for i, h in enumerate(lists)}


def test_an_aggregate_of_a_list_is_one_value_of_each_member_also_of_a_set() -> None:
    rows = [
        {"id": "a", "type": "A", "ts": 0, "attrs": {"x": 9}},
        {"id": "b", "type": "B", "ts": 1, "attrs": {"x": 7, "h": [1.0, 2.0]}},
        {"id": "c", "type": "B", "ts": 2, "attrs": {"x": 2, "h": [1.0, 2.0]}},
        {"id": "d", "type": "B", "ts": 3, "attrs": {"x": 8, "h": [2.0, 1.5]}},
    ]
    text = "PATTERN SEQ(A a, B+ b) WHERE b.x > 3 * AVG(b.h) AND SUM(b.x) > 8 WITHIN 5"
    for backend in ("numpy", "compiled"):
        found = sorted(m["b"] for m in match(text, rows, backend=backend))
        assert found == [["b", "d"]]
    # Where the columns are not known, the first run decides.
    pattern = compile_pattern("PATTERN SEQ(A a, B b) WHERE AVG(b.x) > 1 WITHIN 5", strict_units=False)
    with pytest.raises(DefinitionError, match="AVG needs a repeated event, and b is a single one") as error:
        list(find(pattern, from_dicts(rows)[0]))
    assert "B* b" in str(error.value.hint)
    columns = {"h": pa.list_(pa.float64()), "x": pa.int64()}
    known_columns = compile_pattern("PATTERN B b WHERE b.x > MAX(b.h) WITHIN 5", columns=columns, strict_units=False)
    assert sum(batch.n for batch in find(known_columns, from_dicts(rows)[0])) == 2
