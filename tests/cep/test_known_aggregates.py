"""An aggregate is a line of one table and its computation: what else speaks of aggregates asks these two."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.automata.simulate import simulate
from chainlake.cep.language.ast import AGGREGATES
from chainlake.cep.language.ast.aggregates import AggregateRule
from chainlake.cep.language.layout import format_text
from chainlake.cep.language.parsing.lexer import misspelt
from chainlake.cep.library import as_dicts, from_dicts, match
from chainlake.cep.lint.report import lint
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.find import find
from chainlake.cep.values import aggregates
from chainlake.cep.values.aggregates import Function, Members, aggregate
from chainlake.cep.values.values import Value, arithmetic
from chainlake.errors import DefinitionError
from chainlake.starter.editors.grammar import grammar
from tests.cep.test_differential import canonical

BEGIN = datetime(2025, 3, 1, tzinfo=UTC)
#: Two sets with two values of each kind, and a set without.
COLUMNS = {
    "number": Value(np.array([1, 3, 2, 8]), None, "number"),
    "duration": Value(np.array([1, 3, 2, 8]), None, "duration"),
    "time": Value(np.array([1, 3, 2, 8]), None, "time"),
    "string": Value(np.array([0, 1, 2, 0], np.int64), None, "string"),
    "bool": Value(np.array([True, False, True, True]), None, "bool"),
    "null": Value(0, None, "null"),
}  # fmt: skip
SETS = Members(np.array([0, 2, 4, 4]))


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("name", AGGREGATES)
def test_the_value_is_of_the_kind_that_the_table_says(name: str, kind: str) -> None:
    known = AGGREGATES[name]
    share = 0.5 if known.share else None
    if known.gives(kind) is None:
        return
    found = aggregate(Function(name, share=share), COLUMNS[kind], SETS)
    assert found.kind == known.gives(kind)
    if kind == "null":
        assert known.counts == (found.kind == "number")
        return
    whole = {"whole": True, "same": COLUMNS[kind].values.dtype.kind != "f", "double": False}[known.numbers]
    assert (found.values.dtype.kind != "f") == whole
    empty = found.values[2] if found.valid is None or found.valid[2] else None
    assert (empty == 0) if known.counts else empty is None or empty != empty


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_goes_by_the_order_of_the_stream_if_the_table_says_so(name: str) -> None:
    some = Value(np.array([1.0, 2.0, 4.0, 16.0]), None, "number")
    of = Function(name, share=0.3 if AGGREGATES[name].share else None)
    found = [
        aggregate(of, some, Members(np.array([0, 4]), np.array(places))).values[0]
        for places in ([0, 1, 2, 3], [2, 1, 3, 0])
    ]
    assert (found[0] != found[1]) == AGGREGATES[name].by_place


@pytest.fixture
def with_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """``RANGE``, the largest minus the smallest value, as somebody would add it: a line, and its computation."""

    def computed(function: Function, value: Value, members: Members) -> Value:
        most, least = (aggregate(Function(name), value, members) for name in ("MAX", "MIN"))
        return arithmetic("-", most, least)

    kinds = {"number": "number", "duration": "duration", "time": "duration", "any": "any", "null": "null"}
    monkeypatch.setitem(AGGREGATES, "RANGE", AggregateRule(kinds, "same"))
    monkeypatch.setitem(aggregates._OF_VALUES, "RANGE", computed)


def made() -> list[dict[str, Any]]:
    rng = random.Random(5)
    return [
        {
            "id": f"e{n}",
            "type": rng.choice("ABBC"),
            "ts": BEGIN + timedelta(milliseconds=500 * n),
            "attrs": {
                "n": rng.choice([None, 0, 3, 2**60, 2**60 + 1]),
                "x": rng.choice([None, 0.5, 1.25, -7.0]),
                "at": rng.choice([None, BEGIN, BEGIN + timedelta(milliseconds=1500)]),
                "s": rng.choice(["one", "two"]),
                "h": rng.choice([None, [1.0, 4.5], [2.0], []]),
            },
        }
        for n in range(60)
    ]


def spread(values: list[Any]) -> Any:
    known = [one for one in values if one is not None]
    return max(known) - min(known) if known else None


QUERY = (
    "PATTERN SEQ(A a, B+ b, C c) WHERE RANGE(b.n) >= 1 WITHIN 5 s "
    "MEASURES RANGE(b.n) AS n, RANGE(b.at) AS took, RANGE(b.x + 1) AS x, RANGE(c.h) AS held"
)


@pytest.mark.usefixtures("with_range")
@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_another_aggregate_is_found_with_its_measures(backend: str) -> None:
    events = made()
    by_id = {one["id"]: one["attrs"] for one in events}
    found = list(match(QUERY, events, backend=backend))
    assert len(found) > 10 and any(one["n"] == 2**60 + 1 for one in found)
    for one in found:
        b = [by_id[name] for name in one["b"]]
        took, held = spread([each["at"] for each in b]), by_id[one["c"]]["h"]
        assert one["n"] == spread([each["n"] for each in b]) >= 1
        assert one["took"] == (None if took is None else took.total_seconds())
        assert one["x"] == spread([each["x"] for each in b])
        assert one["held"] == (None if held is None else spread(held))
    every = {canonical([one])[0] for one in match(QUERY[: QUERY.index(" MEASURES")], events)}
    without = match(QUERY[: QUERY.index(" MEASURES")].replace("WHERE RANGE(b.n) >= 1 ", ""), events)
    wanted = {canonical([one])[0] for one in without if (spread([by_id[name]["n"] for name in one["b"]]) or 0) >= 1}
    assert every == wanted


@pytest.mark.usefixtures("with_range")
def test_another_aggregate_costs_the_same_matches_event_by_event() -> None:
    table, ids = from_dicts(made())
    columns = {field.name: field.type for field in table.schema}
    for condition in ("RANGE(b.n) >= 1", "RANGE(b.at) > 1 s", "RANGE(c.h) > 1"):
        text = f"PATTERN SEQ(A a, B+ b, C c) WHERE {condition} WITHIN 5 s"
        pattern = compile_pattern(text, columns=columns)
        found = [one for batch in find(pattern, table) for one in as_dicts(pattern, batch, ids)]
        run = simulate(pattern, table)
        assert len(found) > 5 and canonical(list(run.matches(pattern, ids))) == canonical(found)


@pytest.mark.usefixtures("with_range")
def test_another_aggregate_is_a_word_of_the_language() -> None:
    table, _ = from_dicts(made())
    columns = {field.name: field.type for field in table.schema}
    types = {one.name: one.type for one in _measures(QUERY, columns)}
    assert types == {"n": pa.int64(), "took": pa.float64(), "x": pa.float64(), "held": pa.float64()}
    assert format_text(QUERY.replace("RANGE", "range"), 0) == format_text(QUERY, 0)
    assert lint(QUERY).errors == ()
    assert misspelt("rangee") == "RANGE"
    patterns = grammar()["repository"]["query"]["patterns"]
    assert "|RANGE|" in next(one["match"] for one in patterns if one["name"] == "keyword.control.sase")
    for wrong, says in (
        ("RANGE(b.s) > 1", "RANGE of a string is not defined"),
        ("RANGE(b.at) > 1", "a time difference is compared with a duration"),
        ("RANGE(b) > 1", "RANGE needs an attribute"),
        ("RANGE(DISTINCT b.n) > 1", "DISTINCT can be used only with COUNT"),
        ("RANGE(b.n, 0.5) > 1", "after the argument of RANGE"),
    ):
        with pytest.raises(DefinitionError, match=says):
            compile_pattern(f"PATTERN SEQ(A a, B+ b, C c) WHERE {wrong} WITHIN 5 s", columns=columns)
    declared = "---\nfunctions:\n  Range: {call: 'numbers:f'}\n---\n"
    with pytest.raises(DefinitionError, match="Range"):
        compile_pattern(f"{declared}{QUERY}", columns=columns)


def _measures(text: str, columns: dict[str, pa.DataType]) -> list[pa.Field]:
    shape = match_shape(compile_pattern(text, columns=columns))
    return [pa.field(name, kind) for name, kind in shape.measures]


def test_another_aggregate_knows_of_each_value_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """``NEWEST``, the last known value in the order of the stream, where nulls have been left out before."""

    def computed(function: Function, value: Value, members: Members) -> Value:
        assert members.places is not None
        ends = zip(members.offsets[:-1], members.offsets[1:], strict=True)
        at = [lo + int(np.argmax(members.places[lo:hi])) for lo, hi in ends]
        return Value(value.values[at], None, value.kind)

    monkeypatch.setitem(AGGREGATES, "NEWEST", AggregateRule({"number": "number"}, "same", by_place=True))
    monkeypatch.setitem(aggregates._OF_VALUES, "NEWEST", computed)
    some = Value(np.array([1.0, np.nan, 3.0, 4.0, 5.0]), None, "number")
    # Of the first three the last is null; of the other two the first is the later one.
    sets = Members(np.array([0, 3, 5]), np.array([2, 9, 1, 7, 6]))
    assert aggregate(Function("NEWEST"), some, sets).values.tolist() == [1.0, 4.0]
