"""MEASURES: typed columns that are computed of each match, in the library and in rows of the match table."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from chainlake.cep.library import match
from chainlake.cep.matches.rows import match_rows
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.errors import DefinitionError
from chainlake.schemas.table import TIMESTAMP

BEGIN = datetime(2025, 3, 1, tzinfo=UTC)
TYPES = {"x": pa.float64(), "n": pa.int64(), "s": pa.string(), "up": pa.bool_(), "seen": TIMESTAMP}
MEASURES = (
    "MEASURES c.x / a.x AS ratio, c.n - a.n AS more, COUNT(b) AS members, MIN(b.n) AS least, c.s AS who, "
    "c.ts - a.ts AS took, c.up AS up, c.seen AS seen, c.n AS n, AVG(b.x) + 1 AS mean, SUM(b.n) AS total, 7 AS seven"
)
QUERY = f"PATTERN SEQ(A a, B+ b, C c) WITHIN 60 s {MEASURES}"


def made(seed: int, size: int) -> list[dict[str, Any]]:
    """Random events, with nulls among their values."""
    rng = random.Random(seed)
    events = []
    for number in range(size):
        attrs = {
            "x": rng.choice([None, 0.0, 1.5, -2.25, 4.0]),
            "n": rng.choice([None, 0, 3, -4, 2**60]),
            "s": rng.choice([None, "", "é", "north"]),
            "up": rng.choice([None, True, False]),
            "seen": rng.choice([None, BEGIN + timedelta(microseconds=rng.randrange(10**9))]),
        }
        at = BEGIN + timedelta(seconds=rng.randrange(40), microseconds=rng.randrange(3))
        events.append({"id": f"e{number}", "type": rng.choice("AABBC"), "ts": at, "attrs": attrs})
    return events


def expected(one: dict[str, Any], by_id: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The measures of a match by their definition."""
    a, c, b = by_id[one["a"]], by_id[one["c"]], [by_id[name]["attrs"] for name in one["b"]]
    xs = [member["x"] for member in b if member["x"] is not None]
    ns = [member["n"] for member in b if member["n"] is not None]
    first, last = a["attrs"], c["attrs"]
    known = first["x"] is not None and last["x"] is not None and first["x"] != 0
    return {
        "ratio": last["x"] / first["x"] if known else None,
        "more": None if first["n"] is None or last["n"] is None else last["n"] - first["n"],
        "members": len(b),
        "least": min(ns, default=None),
        "who": last["s"],
        "took": (c["ts"] - a["ts"]) / timedelta(seconds=1),
        "up": last["up"],
        "seen": last["seen"],
        "n": last["n"],
        "mean": sum(xs) / len(xs) + 1 if xs else None,
        "total": sum(ns) if ns else None,
        "seven": 7,
    }


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_measures_are_those_of_a_plain_loop(backend: str) -> None:
    matches = 0
    for seed in range(12):
        events = made(seed, 12)
        by_id = {event["id"]: event for event in events}
        for one in match(QUERY, events, backend=backend):
            wanted = expected(one, by_id)
            for name, value in wanted.items():
                found = one[name]
                if isinstance(value, float) and found is not None:
                    assert math.isclose(found, value, rel_tol=1e-12, abs_tol=1e-12), (seed, name)
                else:
                    assert found == value and isinstance(found, type(value)) or name == "total", (seed, name, found)
            matches += 1
    assert matches > 300


def table(events: list[dict[str, Any]]) -> pa.Table:
    """The events as a table with typed columns."""
    columns = {name: pa.array([event["attrs"][name] for event in events], kind) for name, kind in TYPES.items()}
    return pa.table(
        {
            "event_id": [event["id"] for event in events],
            "type": [event["type"] for event in events],
            "ts": pa.array([event["ts"] for event in events], TIMESTAMP),
            **columns,
        }
    )


def test_columns_of_the_match_table_have_one_type_whatever_the_values() -> None:
    pattern = compile_pattern(QUERY, columns={"type": pa.string(), "ts": TIMESTAMP, **TYPES})
    wanted = {
        "ratio": pa.float64(), "more": pa.float64(), "members": pa.int64(), "least": pa.int64(), "who": pa.string(),
        "took": pa.float64(), "up": pa.bool_(), "seen": TIMESTAMP, "n": pa.int64(), "mean": pa.float64(),
        "total": pa.float64(), "seven": pa.int64(),
    }  # fmt: skip
    seen = 0
    for seed in range(4):
        events = made(seed, 12)
        by_id = {event["id"]: event for event in events}
        for batch in find(pattern, table(events)):
            rows = match_rows(pattern, table(events), batch)
            assert {field.name: field.type for field in list(rows.schema)[7:]} == wanted
            assert [field.name for field in list(rows.schema)[4:7]] == ["a", "b", "c"]
            for row in rows.to_pylist():
                ids = {"a": row["a"]["event_id"], "b": [b["event_id"] for b in row["b"]], "c": row["c"]["event_id"]}
                assert row["took"] == expected(ids, by_id)["took"] and row["who"] == expected(ids, by_id)["who"]
                seen += 1
    assert seen > 50


def test_a_branch_without_the_events_of_a_measure_gives_null() -> None:
    events = [
        {"id": "a", "type": "A", "ts": 0, "attrs": {"x": 2}},
        {"id": "b", "type": "B", "ts": 1, "attrs": {"x": 5}},
        {"id": "c", "type": "C", "ts": 2, "attrs": {"x": 9}},
    ]
    text = (
        "PATTERN OR(SEQ(A a, B b), SEQ(A a, C+ c)) WITHIN 5 MEASURES b.x - a.x AS rise, a.x AS x, COUNT(c) AS cs, "
        "CASE WHEN b.x IS NULL THEN MAX(c.x) ELSE b.x END AS either"
    )
    found = [(one["rise"], one["x"], one["cs"], one["either"]) for one in match(text, events)]
    assert sorted(found, key=str) == [(3, 2, 0, 5), (None, 2, 1, 9)]


def test_a_set_can_be_kept_as_its_size() -> None:
    text = "---\noutput: [COUNT(b), a.x]\n---\nPATTERN SEQ(A a, B+ b) WITHIN 60 s"
    pattern = compile_pattern(text, columns={"type": pa.string(), "ts": TIMESTAMP, **TYPES})
    events = made(3, 10)
    plain = compile_pattern("PATTERN SEQ(A a, B+ b) WITHIN 60 s", columns=TYPES)
    sizes = {row["match_id"]: len(row["b"]) for b in find(plain, table(events))
             for row in match_rows(plain, table(events), b).to_pylist()}  # fmt: skip
    counts = {row["match_id"]: row["b"] for b in find(pattern, table(events))
              for row in match_rows(pattern, table(events), b).to_pylist()}  # fmt: skip
    assert counts == sizes and max(sizes.values()) > 1


@pytest.mark.parametrize(
    ("tail", "what"),
    [
        ("MEASURES a.x", "AS and a name are expected"),
        ("MEASURES a.x AS a", "a is the event a already"),
        ("MEASURES a.x AS Match_Id", "Match_Id is a column of every match table already"),
        ("MEASURES a.x AS y, a.n AS Y", "Y is the measure y already"),
        ("MEASURES b.x AS y", "b is a set"),
        ("MEASURES AVG(a.x) AS y", "AVG needs a repeated event"),
        ("MEASURES z.x AS y", "there is no event named z"),
        ("MEASURES n.x AS y", "there is no event named n"),
        ("MEASURES a.nil AS y", "the events have no attribute nil"),
        ("MEASURES a.s + 1 AS y", "'+' takes numbers, not a string"),
        ("MEASURES a.x > 1 AS y", "AS and a name are expected"),
        ("MEASURES a.x AS y MAXIMAL", "MAXIMAL does not belong here"),
    ],
)
def test_measures_that_are_wrong_are_told_before_anything_runs(tail: str, what: str) -> None:
    text = f"PATTERN SEQ(A a, B+ b, NOT(C n), C c) WITHIN 60 s {tail}"
    with pytest.raises(DefinitionError) as error:
        compile_pattern(text, columns=TYPES)
    assert what in error.value.what and error.value.line == 1


def test_an_edited_measure_is_another_definition() -> None:
    texts = ["", " MEASURES c.x AS y", " MEASURES c.x AS z", " MEASURES c.n AS y"]
    hashes = {compile_pattern(f"PATTERN SEQ(A a, C c) WITHIN 5 s{tail}").definition_hash for tail in texts}
    assert len(hashes) == 4
