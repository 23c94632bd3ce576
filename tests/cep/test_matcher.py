"""What a task searches: whatever slices, batches, pieces and shares of keys, the matches are the definition's."""

from __future__ import annotations

import hashlib
import itertools
import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainlake.detect.matcher as matcher
from chainlake.cep.library import from_dicts
from chainlake.cep.matches.day_limit import DayLimit
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.statistics import Statistics
from chainlake.detect.division.cut import Slice, slice_of
from chainlake.errors import InfrastructureError, LimitExceeded
from chainlake.schemas.matches import matches_table
from tests.cep.brute_force import brute_force
from tests.cep.distributed import distributed
from tests.cep.strategies import queries, streams, text_of
from tests.cep.test_differential import SLOW, compiled

pytestmark = pytest.mark.slow

FAR = (-100, 5_000)


def slices(pattern, cuts: list[int]) -> list[Slice]:  # type: ignore[no-untyped-def]
    """Slices cut at the given ticks."""
    bounds = [FAR[0], *sorted(set(cuts)), FAR[1]]
    return [slice_of(pattern, own) for own in itertools.pairwise(bounds)]


CUTS = st.lists(st.integers(-3, 16), max_size=3)


@settings(max_examples=120, deadline=None, suppress_health_check=SLOW)
@given(
    queries(), streams(), CUTS, st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.booleans(),
    st.sampled_from(["any", "lake", "both"]),
)  # fmt: skip
def test_same_matches_as_the_definition(
    query: tuple,
    events: list[dict],
    cuts: list[int],
    keys: int,
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
    plan = slices(pattern, cuts)
    found, errors = distributed(pattern, table, plan, batch_rows=batch_rows, piece_rows=piece_rows, keys=keys)
    assert found == wanted, (text_of(query), plan)
    assert not errors


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


def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events each search of a piece gets, as they come."""
    seen: list[int] = []
    honest = matcher.find

    def watched(pattern, events, **how):  # type: ignore[no-untyped-def]
        seen.append(len(events))
        return honest(pattern, events, **how)

    monkeypatch.setattr(matcher, "find", watched)
    return seen


def test_a_group_keeps_what_a_window_needs_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = searched(monkeypatch)
    pattern = compile_pattern("PATTERN SEQ(A a, A b) WITHIN 3", strict_units=False)
    found, errors = distributed(pattern, stream(200), slices(pattern, []), batch_rows=5, piece_rows=10)
    assert len(found) == 199 + 198 + 197
    assert len(seen) > 15 and max(seen) <= 15


def test_pieces_grow_where_a_window_holds_many(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = searched(monkeypatch)
    pattern = compile_pattern("PATTERN SEQ(A a, A b) WHERE b.ts - a.ts > 990 WITHIN 1000", strict_units=False)
    distributed(pattern, stream(1_000), slices(pattern, []), batch_rows=10, piece_rows=10)
    assert sum(seen) < 4_000


def test_events_out_of_order_are_an_error_and_not_a_wrong_result() -> None:
    pattern = compile_pattern("PATTERN SEQ(A a, A b) WITHIN 3", strict_units=False)
    rows = stream(6).take(pa.array([0, 1, 4, 3, 2, 5]))
    schema = matches_table(match_shape(pattern, types={"type": pa.string()})).arrow()
    for batch_rows in (6, 1):
        slice_search = matcher.Matcher(pattern, schema, None).slice_search(FAR, Statistics(), DayLimit(pattern))
        with pytest.raises(InfrastructureError, match="in time order"):
            for begin in range(0, 6, batch_rows):
                list(slice_search.add(rows.slice(begin, batch_rows)))


def test_a_limit_counts_over_pieces_and_ends_the_run() -> None:
    text = "---\nlimits: {matches_per_day: 50}\n---\nPATTERN SEQ(A a, A b) WITHIN 3"
    pattern = compile_pattern(text, strict_units=False)
    _, errors = distributed(pattern, stream(18), slices(pattern, []), batch_rows=3, piece_rows=4)
    assert not errors
    _, errors = distributed(pattern, stream(30), slices(pattern, []), batch_rows=3, piece_rows=4)
    assert isinstance(errors[0], LimitExceeded) and "50 matches" in errors[0].what


def test_a_keyed_slice_keeps_what_a_window_needs_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one key as of many: a slice is never in memory as a whole."""
    seen = searched(monkeypatch)
    pattern = compile_pattern("PATTERN SEQ(A a, A b) WHERE a.k = b.k WITHIN 3", strict_units=False)
    assert pattern.partition_key == "k"
    for keys in (["k"] * 200, [f"k{n % 2}" for n in range(200)]):
        seen.clear()
        found, _ = distributed(pattern, stream(200, k=keys), slices(pattern, []), batch_rows=5, piece_rows=10)
        assert len(found) == (199 + 198 + 197 if keys[0] == "k" else 198)
        assert len(seen) > 15 and max(seen) <= 15


def test_shares_of_keys_are_disjoint_and_whole() -> None:
    """Also of keys that are null, zeros of either sign, and NaN, which no equality takes for equal."""
    pattern = compile_pattern("PATTERN SEQ(A a, A b) WHERE a.k = b.k WITHIN 500", strict_units=False)
    values = [0.0, -0.0, None, float("nan"), 1.5, *map(float, range(20))]
    events = stream(100, k=pa.array([values[n % len(values)] for n in range(100)], pa.float64()))
    plan = slices(pattern, [30, 60])
    whole, _ = distributed(pattern, events, plan, batch_rows=7, piece_rows=9)
    by_shares, errors = distributed(pattern, events, plan, batch_rows=7, piece_rows=9, keys=4)
    assert whole == by_shares and not errors
    zeros, once, others = 12 * 11 // 2, 6, 19 * 6
    assert len(whole) == zeros + once + others
