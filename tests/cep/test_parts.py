"""Histories that never meet, searched as one: the matches and counts of each by itself."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainlake.detect.matcher as matcher
from chainlake.cep.events.clock import Clock
from chainlake.cep.library import as_dicts, from_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import InputError, LimitExceeded, UsageError
from tests.cep.brute_force import brute_force
from tests.cep.distributed import distributed
from tests.cep.interpreted import no_compiler
from tests.cep.shapes import PATTERNS, pair
from tests.cep.strategies import queries, streams, text_of
from tests.cep.test_differential import SLOW, canonical, compiled
from tests.cep.test_matcher import slices

BACKENDS = ("numpy", "compiled")


def searched(
    pattern: Any, table: pa.Table, ids: list, parts: Any = None, **how: Any
) -> tuple[list[str], tuple[int, int, int]]:
    """The matches as sorted texts, and the counts."""
    statistics = Statistics()
    batches = find(pattern, table, statistics=statistics, options=SearchOptions(parts=parts), **how)
    found = [m for b in batches for m in as_dicts(pattern, b, ids)]
    return canonical(found), (statistics.evaluations, statistics.evaluations_neg, statistics.evaluations_pre)


def each(events: list[dict], parts: list[int]) -> Iterator[list[dict]]:
    """The events of each part."""
    for part in sorted(set(parts)):
        yield [event for event, of in zip(events, parts, strict=True) if of == part]


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(queries(), streams(), st.data(), st.sampled_from([None, (2, 7), (-9, 4)]))
def test_all_parts_at_a_time_are_each_by_itself(
    query: tuple, events: list[dict], data: st.DataObject, own: tuple[int, int] | None
) -> None:
    pattern = compiled(query)
    if pattern is None:
        return
    parts = data.draw(st.lists(st.integers(0, 3), min_size=len(events), max_size=len(events)))
    order = [name.name for name in pattern.names]
    table, ids = from_dicts(events)
    wanted, counts = [], np.zeros(3, int)
    for some in each(events, parts):
        alone, counted = searched(pattern, *from_dicts(some), order=order, own=own, backend="numpy")
        assert own is not None or alone == canonical(brute_force(query, some))
        wanted += alone
        counts += counted
    with no_compiler():
        for backend in BACKENDS:
            found, counted = searched(
                pattern, table, ids, order=order, own=own, backend=backend, parts=np.array(parts, np.int64)
            )
            assert found == sorted(wanted), (backend, text_of(query), parts)
            assert counted == tuple(counts), (backend, text_of(query), parts)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["sequence", "negation at both ends", "set"])
def test_as_machine_code(name: str) -> None:
    with_matches = 0
    for number in range(10):
        one = pair(next(n for n in PATTERNS if n.startswith(name)), f"parts {name} {number}", False)
        # The stream three times over, as three parts that lie in each other.
        table = pa.concat_tables([one.table] * 3)
        ids = [f"{part} {i}" for part in range(3) for i in one.ids]
        wanted = sorted(
            json.dumps({k: [f"{p} {i}" for i in v] if isinstance(v, list) else f"{p} {v}" for k, v in m.items()},
                       sort_keys=True)
            for p in range(3) for m in map(json.loads, one.wanted)
        )  # fmt: skip
        parts = np.repeat(np.arange(3), len(one.table))
        found, _ = searched(one.pattern, table, ids, order=one.names, backend="compiled", parts=parts)
        assert found == wanted, text_of(one.query)
        with_matches += bool(wanted)
    assert with_matches


@pytest.mark.parametrize("backend", BACKENDS)
def test_times_are_the_events_own_in_conditions_and_in_results(backend: str) -> None:
    text = "PATTERN SEQ(A a, B b, NOT(C c)) WHERE b.ts < 13 AND a.ts > 9 WITHIN 5"
    pattern = compile_pattern(text, strict_units=False)
    rows = [("A", 9), ("A", 10), ("B", 12), ("B", 13)]
    table, _ = from_dicts([{"id": f"{p} {k}{t}", "type": k, "ts": t, "attrs": {}} for p in (0, 1) for k, t in rows])
    with no_compiler():
        (batch,) = find(
            pattern, table, backend=backend, options=SearchOptions(parts=np.array([0] * 4 + [7] * 4)), own=(15, 16)
        )
    times = [found.tolist() for found in (batch.start_us, batch.end_us, batch.decision_us)]
    assert times == [[10, 10], [12, 12], [15, 15]]
    assert sorted(batch.single["a"].tolist()) == [1, 5]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_limit_of_a_set_holds_in_owned_time_of_each_part(backend: str) -> None:
    text = "---\nlimits: {kleene_members: 3}\n---\nPATTERN SEQ(A* a, B b) WITHIN 5"
    pattern = compile_pattern(text, strict_units=False)
    crowd = [("A", 20), ("A", 21), ("A", 22), ("A", 23), ("B", 24)]
    rows = [(0, "A", 1), (0, "B", 2), *((1, *one) for one in crowd)]
    table, _ = from_dicts([{"id": f"{p} {k}{t}", "type": k, "ts": t, "attrs": {}} for p, k, t in rows])
    parts = np.array([p for p, *_ in rows])
    with no_compiler():
        options = SearchOptions(parts=parts)
        assert sum(b.n for b in find(pattern, table, backend=backend, options=options, own=(0, 24))) == 1
        with pytest.raises(LimitExceeded, match="4 events of one window"):
            list(find(pattern, table, backend=backend, options=options, own=(0, 25)))


def test_parts_whose_times_do_not_fit_are_an_error() -> None:
    pattern = compile_pattern("PATTERN SEQ(A a, A b) WITHIN 3", strict_units=False)
    far = pa.table({"event_id": ["x", "y"], "type": ["A", "A"], "ts": [1 << 62, (1 << 62) + 1]})
    for parts in (None, np.array([0, 1])):
        with pytest.raises(InputError, match=r"timestamps must be within"):
            list(find(pattern, far, options=SearchOptions(parts=parts)))
    table = pa.table({"event_id": ["x", "y"], "type": ["A", "A"], "ts": [0, 1 << 60]})
    assert Clock.over(0, 1 << 60, 3).most_parts == 3
    assert list(find(pattern, table, options=SearchOptions(parts=np.array([0, 2])))) == []
    with pytest.raises(UsageError, match="4 parts cannot be searched at once"):
        list(find(pattern, table, options=SearchOptions(parts=np.array([0, 3]))))


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.uint64])
def test_parts_may_be_whole_numbers_of_any_width(kind: type) -> None:
    pattern = compile_pattern("PATTERN SEQ(A a, B b) WITHIN 5000000", strict_units=False)
    parts = np.repeat(np.arange(1000), 2)
    ids = [f"{number}" for number in range(len(parts))]
    table = pa.table({"event_id": ids, "type": ["A", "B"] * 1000, "ts": [0, 15_000_000] * 500 + [0, 4] * 500})
    found = find(pattern, table, options=SearchOptions(parts=parts.astype(kind)), backend="numpy")
    assert sorted(row for batch in found for row in batch.single["a"].tolist()) == list(range(1000, 2000, 2))


PAIRS = "PATTERN SEQ(A a, A b) WHERE a.k = b.k WITHIN 3"


@pytest.mark.few(1)
@pytest.mark.parametrize(("most", "searches"), [(1 << 62, 1), (4 * (39 + 3 + 1), 31), (13, 121)])
def test_keys_with_few_events_are_searched_together_as_far_as_their_times_fit(
    most: int, searches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainlake.cep.events.clock.MOST_TICKS", most)
    seen: list[int] = []
    honest = matcher.find

    def watched(pattern: Any, events: pa.Table, **how: Any) -> Any:
        seen.append(len(events))
        return honest(pattern, events, **how)

    monkeypatch.setattr(matcher, "find", watched)
    pattern = compile_pattern(PAIRS, strict_units=False)
    assert pattern.partition_key == "k"
    sizes = [3] * 60 + [40] + [2] * 60
    keys = [f"k{number:03}" for number, size in enumerate(sizes) for _ in range(size)]
    ts = list(itertools.chain.from_iterable(range(size) for size in sizes))
    table = pa.table({"event_id": [f"{i:032x}" for i in range(len(ts))], "type": ["A"] * len(ts), "ts": ts, "k": keys})
    found, errors = distributed(pattern, table, slices(pattern, []), batch_rows=25, piece_rows=1_000)
    assert len(found) == 60 * 3 + (39 + 38 + 37) + 60
    assert not errors
    assert len(seen) == searches and sum(seen) == len(ts)


@pytest.mark.parametrize(
    ("query", "wanted"), [("SEQ(A a, B b) WHERE a.k = b.k", []), ("SEQ(A a, NOT(B n)) WHERE a.k = n.k", ["e0", "e2"])]
)
def test_shares_of_a_key_that_the_events_do_not_have_yet(query: str, wanted: list[str]) -> None:
    """An attribute that was added to a source is missing in its events until the next ingest."""
    pattern = compile_pattern(f"PATTERN {query} WITHIN 9", strict_units=False)
    assert pattern.partition_key == "k"
    table, _ = from_dicts([{"id": f"e{i}", "type": "AB"[i % 2], "ts": i, "attrs": {}} for i in range(4)])
    found, errors = distributed(pattern, table, slices(pattern, [-9, 99]), batch_rows=9, piece_rows=9, keys=3)
    assert errors == [] and [json.loads(one)["a"] for one in found] == wanted
