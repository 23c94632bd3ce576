"""Values of earlier events are those of a plain loop, whatever the order of the rows and however a run is cut."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainlake.cep.conditions.computed import add_computed
from chainlake.cep.events.previous import add_previous, positions
from chainlake.cep.language import ast
from chainlake.cep.language.computed import shown
from chainlake.cep.library import as_dicts, match
from chainlake.cep.matches.day_limit import DayLimit
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.find import find
from chainlake.cep.search.statistics import Statistics
from chainlake.definitions.derived import Series
from chainlake.detect.feed import Feed, KeyShare
from chainlake.detect.matcher import Matcher, needed
from chainlake.errors import InfrastructureError, InputError
from chainlake.schemas.matches import matches_table
from tests.cep.distributed import texts
from tests.cep.memory_events import MemoryEvents
from tests.cep.series_rows import DAY, rows_of_series, table_of_series
from tests.cep.sources import with_plant


def plain(rows: list[dict[str, Any]], one: ast.Prev, keyed: bool) -> dict[str, Any]:
    """Event id to the earlier value, from the definition."""
    found: dict[str, Any] = {}
    for row in rows:
        stream = sorted(
            (r["ts"], r["seq"] or 0, r["event_id"], r["x"])
            for r in rows
            if (one.of_any_type or r["type"] == row["type"])
            and (not keyed or (r["key"] == row["key"] and r["key"] is not None))
        )  # fmt: skip
        at = next((i for i, r in enumerate(stream) if r[2] == row["event_id"]), -1)
        way = stream[at - one.steps : at + 1] if at >= one.steps else []
        good = way and all(b[0] - a[0] <= one.ticks for a, b in zip(way, way[1:], strict=False))
        found[row["event_id"]] = way[0][3] if good else None
    return found


@st.composite
def drawn(draw: st.DrawFn) -> tuple[list[dict[str, Any]], ast.Prev, bool]:
    rows = draw(rows_of_series(st.sampled_from([None, 0, 1, 2]), st.integers(0, 99)))
    node = ast.Prev("@", "x", draw(st.integers(1, 3)), draw(st.integers(0, 4)), draw(st.booleans()))
    return rows, node, draw(st.booleans())


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(drawn(), st.randoms(use_true_random=False))
def test_values_are_those_of_a_plain_loop(
    given_rows: tuple[list[dict[str, Any]], ast.Prev, bool], rng: random.Random
) -> None:
    rows, one, keyed = given_rows
    wanted = plain(rows, one, keyed)
    rng.shuffle(rows)
    found = add_previous(table_of_series(rows, pa.int64()), "key" if keyed else None, [("p", one)])
    assert found["event_id"].to_pylist() == [row["event_id"] for row in rows]
    assert dict(zip(found["event_id"].to_pylist(), found["p"].to_pylist(), strict=True)) == wanted


@pytest.mark.slow
@settings(max_examples=60)
@given(drawn(), st.integers(1, 4), st.lists(st.integers(DAY - 4, DAY + 7), min_size=2, max_size=4))
def test_neither_chunks_nor_spans_show(
    given_rows: tuple[list[dict[str, Any]], ast.Prev, bool], chunk_rows: int, bounds: list[int]
) -> None:
    """Also where a span begins behind events that are looked back to."""
    rows, one, _ = given_rows
    spans = list(zip(sorted(bounds), sorted(bounds)[1:], strict=False))[::2]
    kind = ast.ANY_TYPE if one.of_any_type else "A"
    pattern = compile_pattern(
        f"PATTERN SEQ({kind} a, A b) WHERE PREV(a.x, {one.steps}, {one.gap / 1000} ms) > 3 AND b.x > 0 WITHIN 1 s",
        series=Series("key"),
    )
    (column,) = pattern.carried
    feed = Feed.of(MemoryEvents(table_of_series(rows, pa.int64())), "key", [pattern], {"event_id", "type", "ts"})
    feed = replace(feed, chunk_rows=chunk_rows)
    found = [row for chunk in feed.chunks(spans) for row in chunk.to_pylist()]
    inside = [row for row in rows if any(lo <= row["ts"] < hi for lo, hi in spans)]
    inside = [row for row in inside if one.of_any_type or row["type"] == "A"]
    wanted = plain(rows, one, True)
    assert [row["ts"] for row in found] == sorted(row["ts"] for row in found)
    assert {row["event_id"]: row[column] for row in found} == {
        row["event_id"]: wanted[row["event_id"]] for row in inside
    }
    assert column in feed.empty().column_names


def test_values_of_every_kind_of_column() -> None:
    ts = pa.array([5, 1, 3], pa.int64())
    columns = {
        "event_id": ["c", "a", "b"],
        "type": pa.array(["A"] * 3).dictionary_encode(),
        "ts": ts,
        "s": pa.array(["z", None, "y"]).dictionary_encode(),
        "f": pa.array([True, False, None]),
        "l": pa.array([[1.0], [2.0, 3.0], None]),
    }
    wanted = {"s": ["y", None, None], "f": [None, None, False], "l": [None, None, [2.0, 3.0]], "none": [None] * 3}
    wanted |= {"ts": [3, None, 1], "id": ["b", None, "a"], "type": ["A", None, "A"]}
    asked = [(f"p{attr}", ast.Prev("@", attr, 1, 2)) for attr in wanted]
    found = add_previous(pa.table(columns), None, asked, strict=False)
    assert {attr: found[f"p{attr}"].to_pylist() for attr in wanted} == wanted
    # Ticks are times where durations have units.
    strict = add_previous(pa.table(columns), None, [("p", ast.Prev("@", "ts", 1, 2))])
    assert strict["p"].cast(pa.int64()).to_pylist() == [3, None, 1]


def test_keys_that_are_equal_numbers_are_one_and_nan_is_none() -> None:
    columns = {"event_id": list("abcdef"), "type": ["A"] * 6, "ts": range(6), "x": range(6)}
    key = pa.array([0.0, -0.0, float("nan"), float("nan"), 0.0, None])
    one = [("p", ast.Prev("@", "x", 1, 9))]
    assert add_previous(pa.table({**columns, "k": key}), "k", one)["p"].to_pylist() == [None, 0, None, None, 1, None]
    assert add_previous(pa.table(columns), "k", one)["p"].to_pylist() == [None] * 6


def test_what_orders_events_of_one_time_is_a_whole_number() -> None:
    columns = {"event_id": ["a", "b"], "type": ["A"] * 2, "ts": [1, 1], "x": [1, 2]}
    one = [("p", ast.Prev("@", "x", 1, 9))]
    assert add_previous(pa.table({**columns, "seq": [2, 1]}), None, one)["p"].to_pylist() == [2, None]
    with pytest.raises(InputError, match="seq holds string"):
        add_previous(pa.table({**columns, "seq": ["2", "1"]}), None, one)


def test_a_column_that_is_there_is_not_computed_again() -> None:
    pattern = compile_pattern("PATTERN A a WHERE PREV(a.x) > 1 WITHIN 1 s")
    table = pa.table({"event_id": ["a", "b"], "type": ["A"] * 2, "ts": [1, 2], "x": [5, 2]})
    once = add_computed(table, pattern.extras.computed, None)
    assert add_computed(once.slice(1), pattern.extras.computed, None).to_pydict() == once.slice(1).to_pydict()


def test_two_windows_are_two_columns_also_inside_of_functions() -> None:
    text = "PATTERN A a WHERE Floor(PREV(a.x)) > 1 WITHIN {} s"
    one, two = (compile_pattern(text.format(seconds)) for seconds in (1, 2))
    assert not one.carried & two.carried
    assert one.carried == compile_pattern("PATTERN A b WHERE Floor(PREV(b.x, 1, 1 s)) > 1 WITHIN 9 s").carried


def test_events_of_dicts_are_ordered_by_seq() -> None:
    rows = [
        {"id": "a", "type": "A", "ts": 1, "seq": 2, "attrs": {"x": 1}},
        {"id": "b", "type": "A", "ts": 1, "attrs": {"x": 2}},
        {"id": "c", "type": "A", "ts": 1, "seq": 1},
    ]
    assert [m["a"] for m in match("PATTERN A a WHERE PREV(a.x) = 2 WITHIN 1", rows)] == ["c"]
    assert [m["a"] for m in match("PATTERN A a WHERE PREV(a.x, 2) = 2 WITHIN 1", rows)] == ["a"]
    with pytest.raises(InputError, match="cannot be called seq"):
        list(match("PATTERN A a WITHIN 1", [{**rows[0], "attrs": {"seq": 1}}]))


def test_the_read_range_reaches_back_and_the_columns_are_read() -> None:
    columns = {"x": pa.int64(), "k": pa.string()}
    text = "PATTERN SEQ(A a, B b) WHERE b.x > PREV(b.x, 3, 2 s) WITHIN 10 s"
    pattern = compile_pattern(text, columns=columns, series=Series("k"))
    assert pattern.source_range(DAY, 2 * DAY) == (DAY - 16_000_000, 2 * DAY)
    assert {"k", "seq", "x"} <= pattern.columns_needed and pattern.mentioned == {"x"}
    other = compile_pattern(text, columns=columns, series=Series("x"))
    assert other.definition_hash != pattern.definition_hash
    assert json.dumps(sorted(pattern.searched)) != json.dumps(sorted(pattern.mentioned))


def lake_rows(rng: random.Random, n: int) -> list[dict[str, Any]]:
    kinds = {"key": ["p", "P", "q", None], "x": [None, 1, 2, 3, 4, 5], "s": ["u", "U", "v", None]}
    return [
        {
            "event_id": f"{i:02}",
            "type": rng.choice("AB"),
            "ts": DAY - 20_000_000 + 1_000_000 * rng.randrange(40),
            "seq": rng.choice([None, 0, 1]),
            **{name: rng.choice(values) for name, values in kinds.items()},
        }
        for i in range(n)
    ]


CUT = [
    "SEQ(A a, B b) WHERE b.x > PREV(b.x, 1, 9 s) WITHIN 8 s",
    "SEQ(A a, B b) WHERE PREV(a.x, 2, 9 s) <= b.x AND Lower(a.s) = Lower(b.s) WITHIN 8 s",
    "SEQ(A a, NOT(B n), A b) WHERE n.x > PREV(n.x, 1, 20 s) AND a.s = b.s AND a.s = n.s WITHIN 8 s",
    "SEQ(A a, B b) WHERE PREV(a.x, 1, 30 s) > 0 AND b.x >= 3 AND Round(b.x / PREV(a.x, 1, 30 s), 1) > 1.2 WITHIN 8 s",
    "SEQ(* a, B b) WHERE PREV(a.id, 1, 9 s) > '1' AND b.x IN {1, 2} WITHIN 8 s",
]


@pytest.mark.few(2)
@pytest.mark.parametrize("query", CUT)
@pytest.mark.parametrize("seed", [pytest.param(n, marks=pytest.mark.slow if n > 1 else ()) for n in range(6)])
def test_slices_keys_pieces_and_chunks_never_show(query: str, seed: int) -> None:
    """What conditions leave out is still the event before, whatever a run is cut into, days among it."""
    rng = random.Random(seed)
    rows = lake_rows(rng, 90)
    table = table_of_series(rows, pa.int64()).append_column("s", pa.array([row["s"] for row in rows], pa.string()))
    columns = {f.name: f.type for f in table.schema if f.name != "event_id"}
    pattern = compile_pattern(f"PATTERN {query}", columns=columns, series=Series("key"))
    wanted = sorted(texts_of(pattern, table))
    schema = matches_table(match_shape(pattern, types=columns)).arrow()
    read = needed(pattern, matches_table(match_shape(pattern, types=columns)))
    feed = Feed.of(MemoryEvents(table), "key", [pattern], read)
    matcher = Matcher(pattern, schema, None, rng.randrange(1, 6))
    cuts = sorted(rng.sample(range(DAY - 30_000_000, DAY + 30_000_000), 3)) + [DAY]
    bounds = [DAY - 60_000_000, *sorted(cuts), DAY + 60_000_000]
    shares = [KeyShare(n, 2) for n in range(2)] if pattern.partition_key is not None else [None]
    found: list[str] = []
    for own in itertools.pairwise(bounds):
        for share in shares:
            slice_search = matcher.slice_search(own, Statistics(), DayLimit(pattern), share)
            small = replace(feed, chunk_rows=rng.randrange(1, 30))
            for chunk in small.chunks([pattern.read_range(*own)]):
                found += texts(pattern, slice_search.add(chunk))
            found += texts(pattern, slice_search.finish())
    assert sorted(found) == wanted and wanted


def texts_of(pattern: Pattern, table: pa.Table) -> list[str]:
    ids = table["event_id"].to_pylist()
    return [json.dumps(m, sort_keys=True) for batch in find(pattern, table) for m in as_dicts(pattern, batch, ids)]


def test_events_without_what_is_computed_of_them_are_refused() -> None:
    rows = lake_rows(random.Random(1), 10)
    table = table_of_series(rows, pa.int64())
    pattern = compile_pattern("PATTERN A a WHERE PREV(a.x) = 1 WITHIN 1 s", series=Series("key"))
    schema = matches_table(match_shape(pattern, types={"x": pa.int64()})).arrow()
    with pytest.raises(InfrastructureError, match="arrived without what is computed"):
        Matcher(pattern, schema, None).wanted(table)


def test_a_computed_key_is_shown_as_it_is_written() -> None:
    pattern = compile_pattern("PATTERN SEQ(A a, B b) WHERE Lower(a.s) = Lower(b.s) WITHIN 1 s")
    key = pattern.partition_key
    assert key is not None and shown(key) == "lower(s)" and shown("s") == "s"


def test_match_on_files_looks_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    from chainlake.cli.main import main

    with_plant(tmp_path, monkeypatch)
    rows = [("p", 0, 1), ("q", 0, 7), ("p", 1, 2), ("q", 3, 8), ("p", 3, 4), ("p", 4, 5), ("q", 9, 9)]
    (tmp_path / "a.csv").write_text("k,t,x\n" + "".join(f"{k},{1700000000 + t},{x}\n" for k, t, x in rows))
    query = "PATTERN A a WHERE a.x = PREV(a.x) + 1 WITHIN 5 s"
    assert main(["match", query, str(tmp_path / "a.csv"), "--source", "plant"]) == 0
    assert capsys.readouterr().out == '{"a": "a.csv:4"}\n{"a": "a.csv:5"}\n{"a": "a.csv:7"}\n'
    (tmp_path / "b.csv").write_text("id,type,ts,k,x\n1,A,0,p,1\n2,A,1,q,2\n3,A,2,p,2\n")
    assert main(["match", query, str(tmp_path / "b.csv"), "--key", "k"]) == 0
    assert capsys.readouterr().out == '{"a": 3}\n'
    assert main(["match", query, str(tmp_path / "b.csv"), "--key", "nix"]) != 0


def test_places_among_events_of_one_time() -> None:
    columns = {"type": list("AABAAA"), "k": ["p", "q", "p", "p", None, "p"], "ts": [1, 1, 1, 1, 1, 2]}
    assert positions(pa.table(columns), "k").to_pylist() == [0, 0, 0, 1, 0, 0]
    assert positions(pa.table(columns).slice(0, 0), "k").to_pylist() == []


EARLIER = json.loads((Path(__file__).parent.parent / "cases" / "earlier-cases.json").read_text(encoding="utf-8"))


@pytest.mark.few(2)
@pytest.mark.parametrize("case", EARLIER, ids=[case["name"] for case in EARLIER])
@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_handed_case(case: dict[str, Any], backend: str) -> None:
    found = match(case["pattern"], case["events"], key=case.get("key"), backend=backend)
    wanted = sorted(json.dumps(m, sort_keys=True) for m in case["expected"])
    assert sorted(json.dumps(m, sort_keys=True) for m in found) == wanted
