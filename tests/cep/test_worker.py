"""The part of a run that Python workers do: whatever slices, batches and pieces, the matches are the definition's."""

from __future__ import annotations

import hashlib
import itertools
import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainlake.detect.tasks.worker as worker
from chainlake.cep import compile_pattern
from chainlake.cep.library import from_dicts
from chainlake.cep.pattern_shape import match_shape
from chainlake.detect.tasks.slices import Layout, Slice
from tests.cep.brute_force import brute_force
from tests.cep.distributed import distributed
from tests.cep.strategies import queries, streams, text_of
from tests.cep.test_differential import SLOW, compiled

FAR = (-100, 5_000)


def layout(pattern, cuts: list[int], hot: dict[str, list[int]]) -> Layout:  # type: ignore[no-untyped-def]
    """Slices cut at the given ticks; keys of ``hot`` have slices of their own."""
    numbers = itertools.count()

    def cut(at: list[int]) -> tuple[Slice, ...]:
        bounds = [FAR[0], *sorted(set(at)), FAR[1]]
        return tuple(Slice(next(numbers), own, pattern.read_range(*own)) for own in itertools.pairwise(bounds))

    return Layout(cut(cuts), {key: cut(at) for key, at in hot.items()}, 1, {})


CUTS = st.lists(st.integers(-3, 16), max_size=3)


@settings(max_examples=120, deadline=None, suppress_health_check=SLOW)
@given(
    queries(), streams(), CUTS, CUTS, st.integers(1, 4), st.integers(1, 5), st.booleans(),
    st.sampled_from(["any", "lake", "both"]),
)  # fmt: skip
def test_same_matches_as_the_definition(
    query: tuple,
    events: list[dict],
    cuts: list[int],
    hot: list[int],
    batch_rows: int,
    piece_rows: int,
    keyed: bool,
    ids: str,
) -> None:
    events = [_renamed(event, ids) for event in events]
    if keyed:
        query = _keyed(query)
    pattern = compiled(query)
    if pattern is None:
        return
    wanted = sorted(json.dumps(m, sort_keys=True) for m in brute_force(query, events))
    table, _ = from_dicts(events)
    if "k" not in table.column_names:
        table = table.append_column("k", pa.nulls(len(table), pa.string()))
    plan = layout(pattern, cuts, {"p": hot} if pattern.partition_key == "k" else {})
    found, reports = distributed(pattern, table, plan, batch_rows=batch_rows, piece_rows=piece_rows)
    assert found == wanted, (text_of(query), plan)
    assert not any("error" in report for report in reports)


def _renamed(event: dict, ids: str) -> dict:
    """With an id of 32 hex digits, if all are to have one, or a half."""
    digest = hashlib.sha256(str(event["id"]).encode()).hexdigest()[:32]
    return {**event, "id": digest} if ids == "lake" or ids == "both" and digest < "8" else event


def _keyed(query: tuple) -> tuple:
    """The query with equalities of ``k`` between the names of each branch, so that it can be spread by key."""

    def names(structure: tuple) -> list[str]:
        return [structure[2]] if structure[0] in ("EVENT", "NOT") else [n for s in structure[1] for n in names(s)]

    def positive(structure: tuple) -> list[str]:
        if structure[0] in ("EVENT", "NOT"):
            return [structure[2]] if structure[0] == "EVENT" else []
        return [n for s in structure[1] for n in positive(s)]

    branches, shared, window = query
    linked = []
    for structure, condition in branches:
        first = positive(structure)[0]
        same = [("cmp", "=", ("ref", first, "k"), ("ref", n, "k")) for n in names(structure) if n != first]
        parts = [*same, *([condition] if condition else [])]
        linked.append((structure, ("and", parts) if len(parts) > 1 else parts[0] if parts else None))
    return linked, shared, window


def test_equalities_make_a_partition_key() -> None:
    query = ([(("SEQ", [("EVENT", "A", "a", False), ("NOT", "B", "n"), ("EVENT", "C", "c", False)]), None)], None, 3)
    pattern = compiled(_keyed(query))
    assert pattern is not None and pattern.partition_key == "k"


def stream(n: int, **columns: list) -> pa.Table:
    """n events of type A, one per tick."""
    ids = [f"e{i:03}" for i in range(n)]
    return pa.table({"event_id": ids, "type": ["A"] * n, "ts": list(range(n)), **columns})


def test_a_group_keeps_what_a_window_needs_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    honest = worker.find

    def watched(pattern, events, **how):  # type: ignore[no-untyped-def]
        seen.append(len(events))
        return honest(pattern, events, **how)

    monkeypatch.setattr(worker, "find", watched)
    pattern = compile_pattern("PATTERN SEQ(A a, A b) WITHIN 3", strict_units=False)
    found, reports = distributed(pattern, stream(200), layout(pattern, [], {}), batch_rows=5, piece_rows=10)
    assert len(found) == 199 + 198 + 197
    assert len(seen) > 15 and max(seen) <= 15


def test_pieces_grow_where_a_window_holds_many(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    honest = worker.find

    def watched(pattern, events, **how):  # type: ignore[no-untyped-def]
        seen.append(len(events))
        return honest(pattern, events, **how)

    monkeypatch.setattr(worker, "find", watched)
    pattern = compile_pattern("PATTERN SEQ(A a, A b) WHERE b.ts - a.ts > 990 WITHIN 1000", strict_units=False)
    distributed(pattern, stream(1_000), layout(pattern, [], {}), batch_rows=10, piece_rows=10)
    assert sum(seen) < 4_000


def test_events_out_of_order_are_an_error_and_not_a_wrong_result() -> None:
    pattern = compile_pattern("PATTERN SEQ(A a, A b) WITHIN 3", strict_units=False)
    events = stream(6)
    rows = events.take(pa.array([0, 1, 4, 3, 2, 5])).add_column(0, worker.SLICE, pa.array([0] * 6, pa.int32()))
    from chainlake.schemas.matches import matches_table

    schema = matches_table(match_shape(pattern, types={"type": pa.string()})).arrow()
    for batch_rows in (6, 1):
        found = list(worker.Matcher(pattern, schema, {0: FAR}, None).run(rows.to_batches(max_chunksize=batch_rows)))
        report = json.loads(found[-1]["#report"][0].as_py())
        assert report["error"] == "InfrastructureError" and "order" in report["what"]


def test_a_limit_counts_over_slices_and_pieces_and_ends_the_run() -> None:
    text = "---\nlimits: {matches_per_day: 50}\n---\nPATTERN SEQ(A a, A b) WITHIN 3"
    pattern = compile_pattern(text, strict_units=False)
    _, reports = distributed(pattern, stream(18), layout(pattern, [], {}), batch_rows=3, piece_rows=4)
    assert [report.get("error") for report in reports] == [None]
    _, reports = distributed(pattern, stream(30), layout(pattern, [], {}), batch_rows=3, piece_rows=4)
    assert reports[0]["error"] == "LimitExceeded" and "50 matches" in reports[0]["what"]
