"""Patterns of many names: no stage takes a time that doubles with each of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from chainlake.cep.estimate.cost import linear_extensions
from chainlake.cep.explain.report import chosen_orders, explain
from chainlake.cep.language.normal_form import MAX_CLAUSES, MAX_NAMES
from chainlake.cep.library import as_dicts, from_dicts, match
from chainlake.cep.lint.report import lint
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.errors import DefinitionError
from tests.cep.brute_force import brute_force
from tests.cep.strategies import Random, query, stream, text_of
from tests.cep.test_differential import canonical, compiled
from tests.spent import within

pytestmark = pytest.mark.slow

STRUCTURES = {
    "sequence": lambda events: f"SEQ({', '.join(events)})",
    "two sequences": lambda events: f"AND(SEQ({', '.join(events[::2])}), SEQ({', '.join(events[1::2])}))",
    "halves in any order": lambda events: (
        f"SEQ(AND({', '.join(events[: len(events) // 2])}), AND({', '.join(events[len(events) // 2 :])}))"
    ),
}


def events(number: int) -> list[dict]:
    return [{"id": i, "type": "A", "ts": 10 * i, "attrs": {"x": i, "k": "p"}} for i in range(number)]


@pytest.mark.parametrize("number", [26, 40])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_chain_of_equal_types_is_compiled_explained_and_looked_through_soon(structure: str, number: int) -> None:
    names = [f"n{i}" for i in range(number)]
    where = " AND ".join(f"{one}.k = {other}.k" for one, other in zip(names, names[1:], strict=False))
    text = f"PATTERN {STRUCTURES[structure]([f'A {name}' for name in names])} WHERE {where} WITHIN 60 s"
    with within(4):
        pattern = compile_pattern(text)
        assert lint(text).errors == ()
        table, _ = from_dicts(events(60))
        list(explain(pattern, chosen_orders(pattern, None, None)))
        assert sum(batch.n for batch in find(compile_pattern(text, strict_units=False), table)) == 0


@pytest.mark.parametrize("number", [9, 26, 40])
def test_as_many_events_as_names_are_one_match_and_found_soon(number: int) -> None:
    names = [f"n{i}" for i in range(number)]
    rising = " AND ".join(f"{one}.x < {other}.x" for one, other in zip(names, names[1:], strict=False))
    text = f"PATTERN SEQ({', '.join(f'A {name}' for name in names)}) WHERE {rising} WITHIN 10000"
    with within(3):
        found = list(match(text, events(number)))
        assert found == [{name: i for i, name in enumerate(names)}]
        assert list(match(text, events(number - 1))) == []
        assert len(list(match(text, events(number + 1)))) == number + 1


def test_leaving_out_events_beyond_reach_leaves_out_no_match(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of a random pattern and stream, with every pattern taken for a long one."""
    monkeypatch.setattr("chainlake.cep.search.choosing.reach.EXACT_NAMES", 1)
    with_matches = 0
    for seed in range(200):
        pick = Random(f"reach {seed}")
        made = query(pick)
        pattern = compiled(made)
        if pattern is None:
            continue
        for _ in range(3):
            rows = stream(pick, 8)
            wanted = canonical(brute_force(made, rows))
            table, ids = from_dicts(rows)
            found = [m for b in find(pattern, table, backend="numpy") for m in as_dicts(pattern, b, ids)]
            assert canonical(found) == wanted, (text_of(made), rows)
            with_matches += bool(wanted)
    assert with_matches > 50


def test_sequences_of_names_are_counted_without_listing_them() -> None:
    (branch,) = compile_pattern("PATTERN AND(SEQ(A a, AND(A b, A c)), SEQ(A d, A e), A f) WITHIN 1 s").branches
    # a before b and c: 2 of 6 orders of three; d before e: 1 of 2; 6! / (3 * 2) sequences
    assert linear_extensions(branch, frozenset("abcdef")) == 720 // 6
    halves = STRUCTURES["halves in any order"]([f"A n{i}" for i in range(6)])
    (branch,) = compile_pattern(f"PATTERN {halves} WITHIN 1 s").branches
    assert linear_extensions(branch, frozenset(branch.positive)) == 6 * 6


def test_alternatives_that_multiply_are_refused_before_they_are_written_out() -> None:
    part = " AND ".join(f"a.x > {i}" for i in range(4000))
    text = f"PATTERN A a WHERE ({part}) OR ({part}) WITHIN 1 s"
    with within(4):
        with pytest.raises(DefinitionError, match=f"more than {MAX_CLAUSES} clauses"):
            compile_pattern(text)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_branch_has_at_most_64_names(structure: str) -> None:
    names = [f"A n{i}" for i in range(64)]
    text = f"PATTERN {STRUCTURES[structure](names)} WITHIN 5 min"
    with within(10):
        pattern = compile_pattern(text)
        assert lint(text).errors == ()
        table, _ = from_dicts([{**event, "ts": datetime.fromtimestamp(event["ts"], UTC)} for event in events(2)])
        assert sum(batch.n for batch in find(pattern, table)) == 0
    two = f"PATTERN OR({STRUCTURES[structure](names)}, A other) WITHIN 5 min"
    assert len(compile_pattern(two).branches) == 2


@pytest.mark.parametrize("number", [65, 300, 2000])
@pytest.mark.parametrize("event", ["A {}", "NOT(A {})"])
def test_more_names_are_refused_soon_and_where_the_first_of_them_is(number: int, event: str) -> None:
    names = ["A n0", *(event.format(f"n{i}") for i in range(1, number))]
    where = " AND ".join(f"n0.k = n{i}.k" for i in range(1, number))
    text = f"PATTERN OR(A a, SEQ({', '.join(names)})) WHERE {where} WITHIN 5 min"
    with within(10):
        with pytest.raises(DefinitionError, match=f"a branch has at most {MAX_NAMES} events") as caught:
            compile_pattern(text)
        assert (caught.value.line, caught.value.column) == (1, text.index(event.format("n64")) + 1)
        assert caught.value.hint is not None
        found = lint(text).errors
        assert [(one.what, one.column) for one in found] == [(caught.value.what, caught.value.column)]
