"""The engine against the definition: random patterns and streams, every binding order, every cut of history."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chainlake.cep.library import as_dicts, from_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import DefinitionError, LimitExceeded
from tests.cep.brute_force import brute_force
from tests.cep.strategies import Random, queries, query, stream, streams, text_of

pytestmark = pytest.mark.slow

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]


def canonical(matches: list[dict]) -> list[str]:
    """Matches as sorted texts, duplicates kept."""
    return sorted(json.dumps(m, sort_keys=True) for m in matches)


def compiled(query: tuple):  # type: ignore[no-untyped-def]
    """The pattern, or None if it is one that the language refuses (a clause over names that no branch has)."""
    try:
        return compile_pattern(text_of(query), strict_units=False)
    except DefinitionError as error:
        assert error.what.startswith(("a condition may mention one negated", "MIN needs", "MAX needs", "AVG needs",
                                      "SUM needs", "COUNT needs")), error  # fmt: skip
        return None


def orders_of(pattern) -> list[list[str]]:  # type: ignore[no-untyped-def]
    """All binding orders that differ; with many names a sample."""
    names = [name.name for name in pattern.names]
    return [list(order) for order in itertools.islice(itertools.permutations(names), 24)]


def test_same_matches_as_the_definition_on_two_thousand_random_pairs() -> None:
    """``make fuzz`` goes on with others, as long as it is told to."""
    pairs = with_matches = seed = 0
    while pairs < 2000:
        pick = Random(f"pairs {seed}")
        seed += 1
        made = query(pick)
        pattern = compiled(made)
        if pattern is None:
            continue
        order = pick.shuffled([name.name for name in pattern.names])
        for _ in range(10):
            events = stream(pick, 8)
            wanted = canonical(brute_force(made, events))
            table, ids = from_dicts(events)
            options = SearchOptions(block_rows=pick.one((1, 3, 1 << 17)))
            batches = find(pattern, table, order=order, backend="numpy", options=options)
            found = canonical([m for b in batches for m in as_dicts(pattern, b, ids)])
            assert found == wanted, (seed - 1, text_of(made), order, events)
            pairs += 1
            with_matches += bool(wanted)
    assert with_matches > 280


@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(queries(), streams(), st.integers(1, 9))
def test_same_matches_as_the_definition_in_every_order(query: tuple, events: list[dict], block_rows: int) -> None:
    pattern = compiled(query)
    if pattern is None:
        return
    wanted = canonical(brute_force(query, events))
    table, ids = from_dicts(events)
    options = SearchOptions(block_rows=block_rows)
    for order in [None, *orders_of(pattern)]:
        found = [m for b in find(pattern, table, order=order, options=options) for m in as_dicts(pattern, b, ids)]
        assert canonical(found) == wanted, (text_of(query), order)


@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(queries(), streams(), st.lists(st.integers(-3, 16), min_size=1, max_size=4))
def test_any_cut_of_history_gives_the_same_union(query: tuple, events: list[dict], cuts: list[int]) -> None:
    pattern = compiled(query)
    if pattern is None:
        return
    wanted = canonical(brute_force(query, events))
    bounds = [-100, *sorted(cuts), 100]
    union = []
    for own in itertools.pairwise(bounds):
        lo, hi = pattern.read_range(*own)
        table, ids = from_dicts([e for e in events if lo <= e["ts"] < hi])
        for batch in find(pattern, table, own=own):
            assert ((batch.decision_us >= own[0]) & (batch.decision_us < own[1])).all()
            union += as_dicts(pattern, batch, ids)
    assert canonical(union) == wanted, (text_of(query), bounds)


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(queries(), streams())
def test_evaluations_do_not_depend_on_blocks(query: tuple, events: list[dict]) -> None:
    pattern = compiled(query)
    if pattern is None:
        return
    table, _ = from_dicts(events)
    counted = set()
    for block_rows in (1, 3, 1 << 16):
        statistics = Statistics()
        options = SearchOptions(block_rows=block_rows)
        assert sum(b.n for b in find(pattern, table, statistics=statistics, options=options)) == statistics.matches
        counted.add((statistics.evaluations, statistics.evaluations_neg, statistics.evaluations_pre))
    assert len(counted) == 1


@pytest.mark.parametrize("seed", range(3))
def test_row_order_never_shows(seed: int) -> None:
    import random

    rows = [{"id": f"e{i}", "type": "AB"[i % 2], "ts": i // 4, "attrs": {"x": float(i % 3)}} for i in range(24)]
    pattern = compile_pattern("PATTERN SEQ(A a, B* b, NOT(A n)) WHERE AVG(b.x) < 1.2 WITHIN 2", strict_units=False)
    table, ids = from_dicts(rows)
    wanted = canonical([m for b in find(pattern, table) for m in as_dicts(pattern, b, ids)])
    random.Random(seed).shuffle(rows)
    table, ids = from_dicts(rows)
    assert canonical([m for b in find(pattern, table) for m in as_dicts(pattern, b, ids)]) == wanted != []


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(queries(most=3), streams())
def test_limits_do_not_depend_on_the_order(query: tuple, events: list[dict]) -> None:
    if compiled(query) is None:
        return
    text = f"---\nlimits: {{kleene_members: 2}}\n---\n{text_of(query)}"
    pattern = compile_pattern(text, strict_units=False)
    table, ids = from_dicts(events)
    outcomes = set()
    for order in [None, *orders_of(pattern)]:
        try:
            found = [m for b in find(pattern, table, order=order) for m in as_dicts(pattern, b, ids)]
            outcomes.add(str(canonical(found)))
        except LimitExceeded:
            outcomes.add("limit")
    assert len(outcomes) == 1, text_of(query)
