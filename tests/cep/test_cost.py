"""The cost model: exact over all orders, close to the evaluations it predicts, and safe where frequency is not."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from chainlake.cep.estimate.cost import Density, Model, linear_extensions
from chainlake.cep.estimate.selectivity import density, measure
from chainlake.cep.library import from_dicts
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.search.find import candidates_of, dataset, find
from chainlake.cep.search.hindsight import sample_of
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import UsageError

Events = list[dict[str, Any]]


def compiled(query: str) -> Pattern:
    return compile_pattern(f"PATTERN {query}", strict_units=False)


def run(pattern: Pattern, events: Events, **options: Any) -> tuple[Statistics, set[tuple]]:
    """Counts, and the matches as row numbers."""
    table, _ = from_dicts(events)
    statistics, found = Statistics(), set()
    for batch in find(pattern, table, statistics=statistics, **options):
        found |= {tuple(sorted((n, int(rows[i])) for n, rows in batch.single.items())) for i in range(batch.n)}
    return statistics, found


def model_of(pattern: Pattern, events: Events) -> Model:
    data = dataset(pattern, from_dicts(events)[0])
    return measure(pattern.branches[0], data, candidates_of(pattern, pattern.branches[0], data), pattern.window_us)


def paper(f_c: float, seed: int = 1, n: int = 2500) -> Events:
    """A load like the papers': one event per second, x uniform."""
    draw = random.Random(seed)
    return [
        {
            "id": str(ts),
            "type": "C" if draw.random() < f_c else draw.choice("AB"),
            "ts": ts,
            "attrs": {"x": draw.random()},
        }
        for ts in range(n)
    ]


def stock(f_c: float, shift: float, seed: int = 5, n: int = 2000) -> Events:
    """Five events per second (ts in ms) at random times; prices such that a pair rises with probability 0.1 or 0.5."""
    draw = random.Random(seed)
    ts, events = 0, []
    for number in range(n):
        ts += max(1, int(1000 * draw.expovariate(5)))
        u = draw.random()
        kind = "C" if u < f_c else "A" if u < f_c + (1 - f_c) / 2 else "B"
        price = round(100 - shift * "ABC".index(kind) + draw.gauss(0, 1), 4)
        events.append({"id": str(number), "type": kind, "ts": ts, "attrs": {"price": price}})
    return events


NEAR = "WHERE Abs(a.x - b.x) < 0.2 AND Abs(b.x - c.x) < 0.2 WITHIN 40"
RISING = "SEQ(A a, B b, C c) WHERE a.price < b.price AND b.price < c.price WITHIN 12000"
LOADS = [
    *((f"{sequence} {NEAR}", partial(paper, f_c)) for sequence in ("SEQ(A a, B b, C c)", "SEQ(A a, C c, B b)")
      for f_c in (0.02, 0.005, 0.1, 1 / 3)),
    *((RISING, partial(stock, f_c, shift)) for shift in (1.8, 0.0) for f_c in (0.1, 0.01, 0.33)),
]  # fmt: skip


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("query", "load"),
    [pytest.param(*one, marks=() if n in (0, 4, 8, 11) else pytest.mark.slow) for n, one in enumerate(LOADS)],
)
def test_the_chosen_order_is_at_most_a_fifth_worse_than_the_best(query: str, load: Callable[[], Events]) -> None:
    pattern, events = compiled(query), load()
    orders = list(permutations("abc"))
    counted = {order: run(pattern, events, order=order) for order in orders}
    chosen, matches = run(pattern, events)
    assert chosen.how == "estimated"
    assert chosen.evaluations <= 1.2 * min(s.evaluations for s, _ in counted.values())
    assert all(found == matches for _, found in counted.values())
    # The estimates themselves are close, also of the orders not taken.
    model = model_of(pattern, events)
    for order in orders:
        assert model.cost(order) == pytest.approx(counted[order][0].evaluations, rel=0.25)


def test_frequency_joins_names_without_a_condition_and_cost_does_not() -> None:
    """a and c are rarer than b, but only b ties them together."""
    draw = random.Random(3)
    events = [
        {"id": str(ts), "type": draw.choice("AAACCCBBBBB"), "ts": ts, "attrs": {"k": draw.randrange(50)}}
        for ts in range(3000)
    ]
    pattern = compiled("SEQ(A a, B b, C c) WHERE a.k = b.k AND b.k = c.k WITHIN 300")
    by_cost, matches = run(pattern, events)
    unconnected, same = run(pattern, events, order="acb")
    assert set(by_cost.order[0][:2]) != {"a", "c"} and by_cost.evaluations * 5 < unconnected.evaluations
    assert matches == same
    # Ten times rarer than the connected name: now the rule of frequency takes the unconnected one second.
    rare = [event for event in events if event["type"] != "A" or event["ts"] % 16 == 0]
    rare = [event for event in rare if event["type"] != "C" or event["ts"] % 12 == 0]
    by_frequency, _ = run(pattern, rare, options=SearchOptions(by="frequency"))
    by_cost, _ = run(pattern, rare)
    assert by_frequency.how == "measured" and set(by_frequency.order[0][:2]) == {"a", "c"}
    assert by_cost.evaluations <= min(run(pattern, rare, order=o)[0].evaluations for o in permutations("abc")) * 1.2


def test_bursts_count_where_they_are() -> None:
    """Per day as many a as b; but c only comes while b is dense."""
    draw = random.Random(8)
    events: Events = []
    for ts in range(4000):
        busy = ts < 400
        kind = draw.choices("ABC-", (1, 9, 0.3, 2) if busy else (1, 0, 0, 9))[0]
        events += [{"id": str(ts), "type": kind, "ts": ts, "attrs": {}}] if kind != "-" else []
    pattern = compiled("AND(A a, B b, C c) WITHIN 30")
    model = model_of(pattern, events)
    for order in permutations("abc"):
        assert model.cost(order) == pytest.approx(run(pattern, events, order=order)[0].evaluations, rel=0.35)


STRUCTURES = [
    "SEQ(A a, B b, C c, D d)",
    "AND(A a, B b, C c, D d)",
    "AND(SEQ(A a, B b), SEQ(C c, D d), E e)",
    "SEQ(A a, AND(B b, C c, D d), E e, F f)",
    "AND(A a, SEQ(B b, C c, D d), E e, F f, G g)",
]


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("seed", range(4))
def test_dynamic_programming_finds_what_all_permutations_find(structure: str, seed: int) -> None:
    branch = compiled(f"{structure} WITHIN 10").branches[0]
    draw = np.random.default_rng(seed)
    names = branch.positive
    counts = {name: draw.integers(0, 30, 6).astype(float) * draw.integers(0, 2, 6) for name in names}
    rates = {}
    for _ in range(5):
        some = draw.choice(len(names), draw.integers(2, 4), replace=False)
        rates[frozenset(names[i] for i in some)] = float(draw.random())
    totals = {name: float(counts[name].sum()) for name in names}
    model = Model(branch, totals, Density(counts, np.ones(6), 0.7), rates)
    best = min((model.cost(order), order) for order in permutations(names))
    assert model.cost(model.best()) == best[0]


def test_equal_costs_leave_the_order_written() -> None:
    branch = compiled("AND(A d, A b, A c, A a) WITHIN 10").branches[0]
    counts = {name: np.array([4.0, 4.0]) for name in "dbca"}
    assert Model(branch, dict.fromkeys("dbca", 8.0), Density(counts, np.ones(2), 1.0), {}).best() == tuple("dbca")


def test_more_than_eight_names_are_ordered_one_by_one_with_the_rare_and_connected_first() -> None:
    names = "abcdefghij"
    where = " AND ".join(f"{one}.k = {other}.k" for one, other in zip(names, names[1:], strict=False))
    draw = random.Random(2)
    kinds = "".join(name.upper() * (1 if name == "e" else 6) for name in names)
    events = [
        {"id": str(ts), "type": draw.choice(kinds), "ts": ts, "attrs": {"k": draw.randrange(8)}} for ts in range(800)
    ]
    pattern = compiled(f"AND({', '.join(f'{name.upper()} {name}' for name in names)}) WHERE {where} WITHIN 200")
    model = model_of(pattern, events)
    order = model.best()
    assert sorted(order) == sorted(names) and "e" in order[:2]
    for number, name in enumerate(order[1:], 1):
        assert any(abs(names.index(name) - names.index(other)) == 1 for other in order[:number])
    assert model.cost(order) <= model.cost(tuple(names))
    assert model.cost(order) < model.cost(tuple("acegibdfhj")) / 30
    assert list(model.estimates()) == [" ".join(order), " ".join(names)]


def test_sets_come_last_rarest_first() -> None:
    events = [{"id": f"{kind}{ts}", "type": kind, "ts": ts, "attrs": {}} for kind, ts in
              [("A", 1), ("B", 2), ("B", 3), ("C", 4), ("C", 5), ("C", 6), ("D", 7)]]  # fmt: skip
    statistics, _ = run(compiled("SEQ(A* a, C* c, D d) WITHIN 9"), events)
    assert statistics.order == [("d", "a", "c")]
    assert run(compiled("SEQ(A* a, C* c) WITHIN 9"), events)[0].order == [("a", "c")]


def test_linear_extensions() -> None:
    for structure, count in [("SEQ(A a, B b, C c, D d)", 1), ("AND(A a, B b, C c, D d)", 24),
                             ("AND(SEQ(A a, B b), SEQ(C c, D d))", 6), ("SEQ(A a, AND(B b, C c, D d))", 6),
                             ("AND(SEQ(A a, B b, C c), D d)", 4)]:  # fmt: skip
        assert linear_extensions(compiled(f"{structure} WITHIN 1").branches[0], frozenset("abcd")) == count


def test_the_same_events_give_the_same_order_in_any_order_of_rows() -> None:
    events = paper(0.1)
    shuffled = random.Random(4).sample(events, len(events))
    pattern = compiled(f"SEQ(A a, B b, C c) {NEAR}")
    first, again = (sample_of(pattern, from_dicts(those)[0]).models[0] for those in (events, shuffled))
    assert first.estimates() == again.estimates()
    assert model_of(pattern, events).pass_rates == model_of(pattern, events).pass_rates
    assert run(pattern, events)[0].order == run(pattern, shuffled)[0].order


def test_a_rare_name_is_seen_among_many_events() -> None:
    """Of a million events the five of the rare name are all looked at."""
    many = np.arange(1_000_000) * 10
    rare = np.array([3, 1_000_003, 1_000_013, 7_000_003, 9_999_983])
    found = density({"many": many, "rare": rare}, 999)
    assert found.counts["rare"] @ found.weights == 5
    assert found.counts["many"] @ found.weights == pytest.approx(1_000_000, rel=0.01)
    assert found.tuples(frozenset({"many", "rare"})) == pytest.approx(2 * 500 * 0.999, rel=0.01)
    assert len(found.weights) < 2_000


def test_regret_is_the_share_over_the_best_order_in_hindsight() -> None:
    events, pattern = paper(0.02), compiled(f"SEQ(A a, B b, C c) {NEAR}")
    sample = sample_of(pattern, from_dicts(events)[0])
    cost = {order: run(pattern, events, order=order)[0].evaluations for order in permutations("abc")}
    assert {order: sample.evaluations(0, order) for order in cost} == cost
    best = min(cost.values())
    assert sample.regret(["cba"]) == 0.0
    assert sample.regret(["abc"]) == pytest.approx(cost[tuple("abc")] / best - 1)
    assert sample.regret(["abc"], budget=10_000) is None
    # A budget for the chosen order and the cheapest ones only does not change the answer.
    assert sample.regret(["acb"], budget=20_000) == sample.regret(["acb"])


def test_regret_adds_branches_up_and_leaves_sets_out() -> None:
    events = paper(0.1, n=400)
    pattern = compiled("OR(SEQ(A a, C c) WHERE a.x < c.x, SEQ(B* b, C c, A a)) WITHIN 12")
    sample = sample_of(pattern, from_dicts(events)[0])
    assert [model.best() for model in sample.models] == [("c", "a"), ("c", "a", "b")]
    assert sample.regret([model.best() for model in sample.models]) == 0.0
    worse, best = sample.evaluations(0, ("a", "c")), sample.evaluations(0, ("c", "a"))
    second = sample.evaluations(1, ("c", "a"))
    assert sample.regret([("a", "c"), ("c", "a", "b")]) == pytest.approx((worse + second) / (best + second) - 1)
    five = compiled("AND(A a, B b, C c, A d, B e) WITHIN 1")
    assert sample_of(five, from_dicts(events)[0]).regret(["abcde"]) is None


def test_an_order_per_branch_can_be_given() -> None:
    events, pattern = paper(0.1, n=300), compiled("OR(SEQ(A a, C c), AND(A a, C c)) WITHIN 12")
    statistics, _ = run(pattern, events, options=SearchOptions([("a", "c"), ("c", "a")]))
    assert (statistics.order, statistics.how) == ([("a", "c"), ("c", "a")], "given")
    with pytest.raises(UsageError, match="by cost or by frequency"):
        run(pattern, events, options=SearchOptions(by="luck"))


def test_nothing_to_find_costs_nothing() -> None:
    pattern = compiled("SEQ(A a, B b, C c) WHERE a.x = b.x WITHIN 5")
    assert run(pattern, [])[0].evaluations == 0
    statistics, found = run(pattern, [event for event in paper(0.1) if event["type"] != "C"])
    assert (statistics.evaluations, found, statistics.order[0][0]) == (0, set(), "c")
