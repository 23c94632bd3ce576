"""Why a match is a match: conditions with the values of its events."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from chainlake.cep.library import from_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.report.reasons import reasons_of

#: 2024-03-14 15:00 UTC, in microseconds.
_AT = int(datetime(2024, 3, 14, 15, tzinfo=UTC).timestamp()) * 1_000_000


def two(name: str) -> pa.Table:
    """Two readings, five minutes and a half second apart."""
    rows = [
        {"id": one, "type": "Reading", "ts": _AT + after, "attrs": {"who": name}}
        for one, after in (("e0", 0), ("e1", 300_500_000))
    ]
    table = from_dicts(rows)[0]
    stamped = table.set_column(table.column_names.index("ts"), "ts", table["ts"].cast(pa.timestamp("us", tz="UTC")))
    return stamped.rename_columns(["event_id" if name == "id" else name for name in stamped.column_names])


def test_times_and_texts_stand_in_conditions_as_they_are() -> None:
    pattern = compile_pattern("PATTERN AND(Reading a, Reading b) WHERE a.ts < b.ts AND a.who = b.who WITHIN 10 min")
    found = reasons_of(pattern, two("Tom O'Toole"), {"a": ["e0"], "b": ["e1"]})
    assert {one.values for one in found} == {
        "2024-03-14 15:00:00 UTC < 2024-03-14 15:05:00.500000 UTC",
        "Tom O'Toole = Tom O'Toole",
    }
    assert all(one.holds for one in found)


def test_values_in_a_condition_have_only_the_parentheses_that_they_need() -> None:
    pattern = compile_pattern(
        "PATTERN SEQ(Reading a, Reading b) WHERE -(b.x - a.x) * 2 > -a.x AND b.x IN {-5, 7} WITHIN 9 s"
    )
    rows = [
        {"id": one, "type": "Reading", "ts": ts, "attrs": {"x": x}} for one, ts, x in (("e0", 1, -2), ("e1", 2, -5))
    ]
    found = reasons_of(pattern, from_dicts(rows)[0], {"a": ["e0"], "b": ["e1"]})
    assert [(one.condition, one.values) for one in found] == [
        ("-(b.x - a.x) * 2 > -a.x", "-(-5 - -2) * 2 > -(-2), that is 6 > 2"),
        ("b.x IN {-5, 7}", "-5 IN {-5, 7}"),
    ]
