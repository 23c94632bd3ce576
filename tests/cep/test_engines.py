"""Every engine against the definition and against the kernel: matches, evaluations, states."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings

from chainlake.cep.automata import simulate as simulation
from chainlake.cep.automata.meter import Costs
from chainlake.cep.automata.simulate import ENGINES, NEGATIONS, simulate, unfit_for
from chainlake.cep.automata.tree import Tree
from chainlake.cep.library import as_dicts, from_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.statistics import Statistics
from tests.cep.brute_force import brute_force
from tests.cep.strategies import queries, streams, text_of
from tests.cep.test_differential import SLOW, canonical, compiled, orders_of
from tests.cep.test_evaluations import RISING, stream
from tests.run_cases import main

pytestmark = pytest.mark.slow

FILE = Path(__file__).parent.parent / "cases" / "pattern-cases.json"


def counts(of: Statistics | Costs) -> tuple[int, int, int]:
    """E, E_neg and E_pre."""
    return of.evaluations, of.evaluations_neg, of.evaluations_pre


@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(queries(), streams())
def test_chain_and_kernel_make_the_same_evaluations_and_every_engine_finds_the_matches(
    query: tuple, events: list[dict]
) -> None:
    pattern = compiled(query)
    if pattern is None:
        return
    wanted = canonical(brute_force(query, events))
    table, ids = from_dicts(events)
    for order in [None, *orders_of(pattern)[:6]]:
        batch = Statistics()
        found = [m for b in find(pattern, table, order=order, statistics=batch) for m in as_dicts(pattern, b, ids)]
        assert canonical(found) == wanted
        for negation in NEGATIONS:
            run = simulate(pattern, table, order=order, negation=negation)
            assert canonical(list(run.matches(pattern, ids))) == wanted, (text_of(query), order, negation)
            assert run.orders == batch.order
            if negation == "first-chance":
                assert counts(run.costs) == counts(batch), (text_of(query), order)
    for engine in ENGINES:
        if engine != "chain" and unfit_for(engine, pattern) is None:
            run = simulate(pattern, table, engine=engine)
            assert canonical(list(run.matches(pattern, ids))) == wanted, (text_of(query), engine)


@pytest.mark.parametrize(("engine", "skipped"), [("eager", 20), ("chain", 0), ("tree", 37)])
def test_handed_cases_in_every_engine(engine: str, skipped: int, capsys: pytest.CaptureFixture) -> None:
    assert main([str(FILE), "--engine", engine, "--orders", "all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "75 cases, 0 different, 0 not supported yet"
    assert lines[-2].endswith(f"runs of the engine {engine}, {skipped} cases skipped")
    reasons = ("AND with", "a repeated event", "NOT: ")
    said = [line for line in lines[:-2] if any(f": skipped, {reason}" in line for reason in reasons)]
    assert len(said) == skipped == len(lines) - 2


def test_cases_show_what_an_engine_finds_wrongly(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    case = next(c for c in json.loads(FILE.read_text(encoding="utf-8")) if c["name"] == "neg-middle")
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps([{**case, "expected": []}]))
    assert main([str(file), "--engine", "chain"]) == 1
    assert "neg-middle: post-processing: missing none, not expected" in capsys.readouterr().out
    file.write_text(json.dumps({"cases": [{"events": [], "query": {}, "expect": [], "id": "T"}]}))
    assert main([str(file), "--engine", "tree"]) == 4


def test_cases_without_sets_and_negation_in_tree_chain_and_eager_whatever_the_order_of_rows() -> None:
    draw = random.Random(4)
    for case in json.loads(FILE.read_text(encoding="utf-8")):
        pattern = compile_pattern(case["pattern"], params=case.get("params"), strict_units=False)
        first = {}
        for _ in range(3):
            draw.shuffle(case["events"])
            table, ids = from_dicts(case["events"])
            for engine in ENGINES:
                if unfit_for(engine, pattern) is None:
                    run = simulate(pattern, table, engine=engine)
                    assert canonical(list(run.matches(pattern, ids))) == canonical(case["expected"]), case["name"]
                    assert first.setdefault(engine, run.costs) == run.costs, (case["name"], engine)


@pytest.mark.parametrize("seed", range(3))
def test_the_eager_automaton_of_a_sequence_is_the_chain_in_its_order(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    events = stream(*(f"{draw.choice('abc')}{draw.randrange(20)}" for _ in range(60)))
    pattern = compile_pattern(RISING.replace("1000", "20"), strict_units=False)
    table, _ = from_dicts(events)
    chain = simulate(pattern, table, engine="eager")
    monkeypatch.setattr(simulation, "is_sequence", lambda branch: False)
    sets = simulate(pattern, table, engine="eager")
    assert sets.orders == [] and chain.orders == [("a", "b", "c")]
    assert sets.costs == chain.costs and sets.costs.evaluations > 100
    assert sorted(map(str, sets.bindings)) == sorted(map(str, chain.bindings))


def test_an_eager_conjunction_binds_in_any_order_of_arrival() -> None:
    pattern = compile_pattern("PATTERN AND(A a, B b, C c) WITHIN 100", strict_units=False)
    table, _ = from_dicts(stream("c", "a", "b"))
    costs = simulate(pattern, table, engine="eager").costs
    # every subset of the events is bound once: 3 of one, 3 of two, 1 of all
    assert (costs.evaluations, costs.resting) == (7, 6)


# ---- the tree


@pytest.fixture
def trees(monkeypatch: pytest.MonkeyPatch) -> list[Tree]:
    """The trees of the runs that follow."""
    made: list[Tree] = []

    class Kept(Tree):
        def __init__(self, *args) -> None:  # type: ignore[no-untyped-def]
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(simulation, "Tree", Kept)
    return made


def test_tree_states_are_made_on_demand_and_freed_after_a_window_of_silence(trees: list[Tree]) -> None:
    pattern = compile_pattern("PATTERN SEQ(A a, B b, C c) WITHIN 10", strict_units=False)
    draw = random.Random(0)
    busy = stream(*(draw.choice("abc") for _ in range(100)))
    table, _ = from_dicts(busy)
    peak = simulate(pattern, table, engine="tree").costs.states
    assert len(trees[0].states) > 1 and 4 < peak <= 10
    table, _ = from_dicts([*busy, {"id": "late", "type": "A", "ts": 99 + 11, "attrs": {}}])
    assert simulate(pattern, table, engine="tree").costs.states == peak
    assert trees[1].states == {(): 1}


def test_the_tree_waits_until_every_name_has_an_event() -> None:
    pattern = compile_pattern(RISING, strict_units=False)
    table, _ = from_dicts(stream("a1", "b2", "a3", "b4", "b5"))
    costs = simulate(pattern, table, engine="tree").costs
    assert (costs.evaluations, costs.resting, costs.states) == (0, 0, 1)


def test_tree_instances_end_when_nothing_can_arrive_for_them() -> None:
    pattern = compile_pattern(RISING, strict_units=False)
    table, _ = from_dicts(stream("b1", "b1", "a2", "a2", "c3"))
    costs = simulate(pattern, table, engine="tree").costs
    # c, then both b's, before which there is no a
    assert (costs.evaluations, costs.depth_first, costs.resting) == (3, 2, 0)


@pytest.mark.parametrize(
    ("clause", "evaluations"),
    [("b.price < c.price", 1 + 2 + 1 * 2), ("a.price < c.price", 1 + 2 + 2 * 2), ("c.price > 0", 1 + 2 + 2 * 2)],
)
def test_of_equally_rare_names_the_tree_takes_the_connected_one(clause: str, evaluations: int) -> None:
    # c comes alone and is taken first; then two a's and two b's are left. Of the b's one passes, of the a's both.
    pattern = compile_pattern(f"PATTERN SEQ(A a, B b, C c) WHERE {clause} WITHIN 100", strict_units=False)
    table, _ = from_dicts(stream("a1", "a2", "b3", "b99", "c9"))
    assert simulate(pattern, table, engine="tree").costs.evaluations == evaluations
