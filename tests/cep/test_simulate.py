"""Runs in event order: reference values and traces, what the papers claim and holds, waiting, buffers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks import lazy
from chainlake.cep.automata.chain import Chain
from chainlake.cep.automata.meter import Costs
from chainlake.cep.automata.simulate import ENGINES, NEGATIONS, Outcome, simulate
from chainlake.cep.library import from_dicts, match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import LimitExceeded, UsageError
from tests.cep.test_evaluations import HUNDRED, ORDERS, RISING, stream

ABC = "PATTERN SEQ(A a, B b, C c) WITHIN 100"
CLOSE = "PATTERN SEQ({}) WHERE Abs(a.x - b.x) < 0.2 AND Abs(b.x - c.x) < 0.2 WITHIN 40"


def ran(
    text: str, events: list[dict], order: str | None = None, *, engine: str = "chain", negation: str = NEGATIONS[0]
) -> Outcome:
    pattern = compile_pattern(text, strict_units=False)
    table, _ = from_dicts(events)
    return simulate(pattern, table, engine=engine, order=list(order) if order else None, negation=negation)


def shown(text: str, events: list[dict], **how: str) -> list[dict]:
    pattern = compile_pattern(text, strict_units=False)
    table, ids = from_dicts(events)
    return list(simulate(pattern, table, **how).matches(pattern, ids))  # type: ignore[arg-type]


def at(*events: tuple[str, int] | tuple[str, int, float]) -> list[dict]:
    """``("b", 3)`` as event ``b@3`` of type B at 3, with an x if there is a third entry."""
    return [
        {"id": f"{e[0]}@{e[1]}", "type": e[0].upper(), "ts": e[1], "attrs": {"x": e[2] if len(e) > 2 else None}}
        for e in events
    ]


# ---- 6.1: reference values

ROWS = [
    (stream("a3", "b7", "c9"), (3, 3, 3, 3, 3, 3), 3, 1),
    (stream("a3", "b13", "c9"), (3, 3, 3, 2, 3, 2), 3, 0),
    (stream("a8", "b7", "c9"), (2, 3, 2, 3, 3, 3), 2, 0),
    (stream("a3", "a5", "a8", "b7", "b13", "c9"), (14, 12, 13, 7, 10, 6), 6, 2),
    (stream(*HUNDRED), (20100, 10200, 20100, 300, 10101, 201), 201, 100),
    (stream(*HUNDRED[:99], *HUNDRED[100:]), (19899, 10098, 19900, 299, 10000, 200), 10000, 99),
]


@pytest.mark.parametrize(
    ("events", "chains", "tree", "matches"),
    [pytest.param(*row, marks=pytest.mark.slow if len(row[0]) > 100 else ()) for row in ROWS],
)
def test_evaluations_of_the_reference_streams(
    events: list[dict], chains: tuple[int, ...], tree: int, matches: int
) -> None:
    runs = [ran(RISING, events, order) for order in ORDERS]
    assert tuple(r.costs.evaluations for r in runs) == chains
    eager, ad_hoc = ran(RISING, events, engine="eager"), ran(RISING, events, engine="tree")
    assert (eager.costs.evaluations, ad_hoc.costs.evaluations) == (chains[0], tree)
    assert {len(r.bindings) for r in (*runs, eager, ad_hoc)} == {matches}


def test_peak_instances_of_a_reference_stream() -> None:
    small = [ran(RISING, ROWS[3][0], order).costs for order in ORDERS]
    assert tuple(c.resting for c in small) == (8, 3, 5, 2, 0, 0)
    assert tuple(c.depth_first for c in small) == (8, 4, 6, 3, 2, 2)
    assert ran(RISING, ROWS[3][0], engine="tree").costs.resting == 0


@pytest.mark.slow
def test_peak_instances_of_the_large_reference_stream() -> None:
    large = [ran(RISING, ROWS[4][0], order).costs for order in ORDERS]
    assert tuple(c.resting for c in large) == (10100, 100, 10000, 100, 0, 0)
    assert ran(RISING, ROWS[4][0], engine="tree").costs.resting == 0


def test_eager_trace_of_the_papers() -> None:
    one_type = "PATTERN SEQ(E a, E b, E c) WHERE a.p < b.p AND b.p < c.p AND a.t = A AND b.t = B AND c.t = C WITHIN 100"
    events = [
        {"id": text, "type": "E", "ts": ts, "attrs": {"t": text[0].upper(), "p": int(text[1:])}}
        for ts, text in enumerate(["a3", "a5", "a8", "b7", "b13", "c9"])
    ]
    assert [ran(one_type, events[:n], engine="eager").costs.resting for n in (3, 5)] == [3, 8]
    assert shown(one_type, events, engine="eager") == [
        {"a": "a3", "b": "b7", "c": "c9"}, {"a": "a5", "b": "b7", "c": "c9"}
    ]  # fmt: skip


# ---- 3.5: traces

TRACES = {
    "abc": ("{}+a1, a1+b1, a1b1+c1, {}+a2, a1+b2, a2+b2, a1b1+c2, a1b2+c2, a2b2+c2", 5),
    "acb": ("{}+a1, a1+c1, a1c1+b1, {}+a2, a1+c2, a1c2+b1, a1c2+b2, a2+c2, a2c2+b2", 2),
    "bac": ("{}+b1, b1+a1, b1a1+c1, {}+b2, b2+a1, b2+a2, b1a1+c2, b2a1+c2, b2a2+c2", 3),
    "bca": ("{}+b1, b1+c1, b1c1+a1, {}+b2, b1+c2, b1c2+a1, b2+c2, b2c2+a1, b2c2+a2", 2),
    "cab": ("{}+c1, c1+a1, c1a1+b1, {}+c2, c2+a1, c2a1+b1, c2a1+b2, c2+a2, c2a2+b2", 0),
    "cba": ("{}+c1, c1+b1, c1b1+a1, {}+c2, c2+b1, c2b1+a1, c2+b2, c2b2+a1, c2b2+a2", 0),
}


@pytest.mark.parametrize("order", TRACES)
def test_trace(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        {"id": name, "type": name[0].upper(), "ts": ts, "attrs": {}}
        for name, ts in zip(("a1", "b1", "c1", "a2", "b2", "c2"), range(1, 7), strict=True)
    ]
    seen = []
    evaluate = Chain._evaluate

    def recorded(self, instance, extended):  # type: ignore[no-untyped-def]
        bound = "".join(events[row]["id"] for row in instance.rows)
        seen.append(f"{bound or '{}'}+{events[extended.rows[-1]]['id']}")
        evaluate(self, instance, extended)

    monkeypatch.setattr(Chain, "_evaluate", recorded)
    found = ran(ABC, events, order)
    assert (", ".join(seen), found.costs.resting) == TRACES[order]
    assert found.costs.evaluations == 9
    assert sorted("".join(events[r]["id"] for (r,) in b.values()) for b in found.bindings) == [
        "a1b1c1", "a1b1c2", "a1b2c2", "a2b2c2"
    ]  # fmt: skip


# ---- 6.3: acceptance


def load(n: int, share: float, seed: int, rare: str = "C", start: int = 0) -> list[dict]:
    draw = random.Random(seed)
    others = [name for name in "ABC" if name != rare]
    return [
        {
            "id": str(ts),
            "type": rare if draw.random() < share else draw.choice(others),
            "ts": ts,
            "attrs": {"x": draw.random()},
        }
        for ts in range(start, start + n)
    ]


@pytest.mark.slow
def test_a_rare_last_type_is_ten_times_cheaper_when_bound_first_and_leaves_nothing_waiting() -> None:
    events, sequence = load(2500, 0.005, seed=2), CLOSE.format("A a, B b, C c")
    eager = ran(sequence, events, engine="eager").costs
    first = [ran(sequence, events, order).costs for order in ("cab", "cba")]
    tree = ran(sequence, events, engine="tree").costs
    assert all(10 * costs.evaluations < eager.evaluations for costs in (*first, tree))
    assert [costs.resting for costs in first] == [0, 0] and eager.resting > 100
    reverse = CLOSE.format("C c, B b, A a")
    assert ran(reverse, events, engine="eager").costs.evaluations == ran(reverse, events, "cba").costs.evaluations


@pytest.mark.slow
def test_a_tree_beats_every_chain_when_the_rare_type_changes() -> None:
    events = [e for i, rare in enumerate("CABC") for e in load(1500, 0.02, 10 + i, rare, 1500 * i)]
    sequence = CLOSE.format("A a, B b, C c")
    chains = [ran(sequence, events, order).costs.evaluations for order in ORDERS]
    assert ran(sequence, events, engine="tree").costs.evaluations < min(chains)


@pytest.mark.slow
def test_the_course_of_a_run_says_what_it_had_cost_after_every_so_many_events() -> None:
    events = load(100, 0.2, seed=3)
    pattern = compile_pattern(CLOSE.format("A a, B b, C c"), strict_units=False)
    for engine in ENGINES:
        whole = simulate(pattern, from_dicts(events)[0], engine=engine, every=30)
        assert [len(whole.course), whole.costs.evaluations > 0] == [3, True]
        for number, costs in enumerate(whole.course, 1):
            part = simulate(pattern, from_dicts(events[: 30 * number])[0], engine=engine, every=30)
            assert costs == part.course[-1] == part.costs
        assert simulate(pattern, from_dicts(events)[0], engine=engine).course == []


@pytest.mark.slow
def test_the_experiments_of_the_papers_find_equal_matches_and_counts(tmp_path: Path) -> None:
    check = lazy.Check()
    found = lazy.dynamic(1500, 500, check)
    assert found["matches"] > 0 and found["orders"][0][0] == "c" and found["orders"][1][0] == "a"
    file = tmp_path / "quotes.csv"
    draw = random.Random(1)
    file.write_text(
        "ticker,ts,close\n"
        + "".join(f"{t},{1_700_000_000 + 60 * m},{draw.randrange(9)}\n" for m in range(60) for t in "WXYZ")
    )
    quotes = lazy.quotes([file], ["W", "X"], ["Y"], "Z", 5)
    assert quotes.counts() == (120, 60, 60) and quotes.with_rare(1.0).counts() == (120, 60, 90)
    rows = lazy.sweep(quotes, "abc", 0.3, check)
    assert [row["counts"][2] for row in rows] == [1, 3, 9, 27, 90] and rows[-1]["matches"] > 0
    assert rows[2]["E"]["cba"] < rows[2]["E"]["eager"]
    assert {row["what"] for row in lazy.operators(quotes, 0.3, check)} == set(lazy.OPERATORS)
    assert lazy.peaks(quotes, 0.3, check)[-1]["costs"]["cba"]["resting"] == 0
    assert check.wrong == []
    check.equal("two numbers", {"one": 1, "other": 2})
    assert check.wrong == ["two numbers: {'one': 1, 'other': 2}"]


# ---- sets


@pytest.mark.parametrize("order", ["acb", "cab"])
def test_iterate_makes_each_set_once(order: str) -> None:
    found = ran("PATTERN SEQ(A a, B* b, C c) WITHIN 100", stream("a", "b", "b", "b", "c"), order)
    assert (found.costs.evaluations, len(found.bindings)) == (1 + 1 + 7, 7)


def test_a_set_bound_first_forgets_members_older_than_the_window() -> None:
    events = stream(*["a"] * 6)
    found = ran("PATTERN A* a WITHIN 2", events)
    assert found.costs.evaluations == len(found.bindings) == 6 + 5 + 2 * 4
    assert (found.costs.buffered, found.costs.referenced, found.costs.resting) == (3, 3, 0)


def test_more_members_than_the_limit_fail_loudly() -> None:
    text = "---\nlimits: {kleene_members: 4}\n---\nPATTERN SEQ(A a, B* b) WITHIN 100"
    assert len(ran(text, stream("a", *["b"] * 4)).bindings) == 15
    with pytest.raises(LimitExceeded, match="5 events of one window are usable for b"):
        ran(text, stream("a", *["b"] * 5))


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_sets_are_made_and_counted_key_by_key(order: str) -> None:
    limits = "---\nlimits: {kleene_members: 3}\n---\n"
    text = f"{limits}PATTERN SEQ(A* a, B b, NOT(C c)) WHERE a.k = b.k AND b.k = c.k WITHIN 20"
    types = ["A", "A", "A", "A", "A", "B", "B", "A", "C", "B"]
    events = [
        {"id": f"e{i}", "type": one, "ts": i, "attrs": {"k": key}}
        for i, (one, key) in enumerate(zip(types, "xyxyxxyyxx", strict=True))
    ]
    pattern = compile_pattern(text, strict_units=False)
    table, ids = from_dicts(events)
    statistics = Statistics()
    found = sorted(map(str, match(text, events, order=list(order), statistics=statistics)))
    run = ran(text, events, order)
    assert sorted(map(str, run.matches(pattern, ids))) == found and len(found) == 3 + 7
    assert (run.costs.evaluations, run.costs.evaluations_neg) == (statistics.evaluations, statistics.evaluations_neg)


def test_sets_without_partner_count_in_the_kernel_too() -> None:
    text, events = "PATTERN SEQ(A a, B* b, C* c) WITHIN 5", [*stream("a", "b", "b", "b"), *at(("a", 10), ("b", 11))]
    for more, evaluations in (([], 1 + 7 + 1 + 1), (at(("c", 4)), 1 + 7 + 7 + 1 + 1)):
        statistics = Statistics()
        list(match(text, [*events, *more], order=["a", "b", "c"], statistics=statistics))
        assert statistics.evaluations == ran(text, [*events, *more], "abc").costs.evaluations == evaluations


# ---- negation


def test_post_processing_tests_the_most_frequent_name_first() -> None:
    text = "PATTERN SEQ(A a, NOT(M m), NOT(N n), C c) WHERE m.x > a.x WITHIN 100"
    events = at(("a", 0, 5.0), ("m", 1, 1.0), ("n", 2), ("n", 3), ("c", 4))
    assert [ran(text, events, negation=how).costs.evaluations_neg for how in NEGATIONS] == [2, 1]


@pytest.mark.parametrize("negation", NEGATIONS)
def test_a_start_negation_is_remembered_while_an_end_negation_is_awaited(negation: str) -> None:
    text = "PATTERN SEQ(NOT(B b), A a, C c, NOT(D d)) WITHIN 5"
    early = at(("d", 0), ("d", 1), ("a", 6), ("c", 8), ("a", 11), ("d", 12))
    assert shown(text, early, negation=negation) == [{"a": "a@6", "c": "c@8"}]
    for b, rejects in ((2, False), (3, True), (5, True), (6, False)):
        assert shown(text, sorted([*early, *at(("b", b))], key=lambda e: e["ts"]), negation=negation) == (
            [] if rejects else [{"a": "a@6", "c": "c@8"}]
        )


@pytest.mark.parametrize("negation", NEGATIONS)
def test_what_awaits_a_forbidden_event_is_an_instance_until_it_comes_or_the_window_has_passed(negation: str) -> None:
    text = "PATTERN SEQ(A a, C c, NOT(B b)) WITHIN 5"
    instances = []
    for later in ([], at(("b", 5), ("c", 9)), at(("b", 6))):
        found = ran(text, [*at(("a", 0), ("c", 1)), *later], negation=negation)
        instances.append((found.costs.resting, len(found.bindings)))
    assert instances == [(2, 1), (2, 0), (2, 1)]


def test_ties_of_forbidden_events_count_in_the_order_of_ids_whatever_the_order_of_rows() -> None:
    text = "PATTERN SEQ(A a, NOT(B n), C c) WHERE n.x > a.x WITHIN 10"
    pattern = compile_pattern(text, strict_units=False)
    a, c = at(("a", 0, 5.0), ("c", 2))
    one, other = ({"id": i, "type": "B", "ts": 1, "attrs": {"x": x}} for i, x in (("n1", 9.0), ("n2", 0.0)))
    for events in ([a, one, other, c], [c, other, one, a]):
        table, _ = from_dicts(events)
        statistics = Statistics()
        assert list(find(pattern, table, statistics=statistics)) == []
        assert statistics.evaluations_neg == simulate(pattern, table).costs.evaluations_neg == 1


# ---- buffers


def test_buffers_hold_a_window_and_match_buffers_count_only_once() -> None:
    events = at(("a", 0), ("b", 1), ("b", 2), ("c", 3), ("b", 8))
    costs = ran("PATTERN SEQ(A a, B b, C c) WITHIN 4", events, "abc").costs
    assert (costs.buffered, costs.referenced) == (4, 4)
    costs = ran("PATTERN SEQ(A a, B b, C c) WITHIN 4", events, engine="eager").costs
    assert (costs.buffered, costs.referenced) == (0, 3)


def test_or_shares_buffers_and_adds_up_instances() -> None:
    events = at(("a", 0), ("b", 1))
    one, both = "SEQ(A a, B b, C c)", "OR(SEQ(A a, B b, C c), SEQ(A a, B b, D d))"
    single = ran(f"PATTERN {one} WITHIN 9", events, engine="eager").costs
    double = ran(f"PATTERN {both} WITHIN 9", events, engine="eager").costs
    assert (double.evaluations, double.resting) == (2 * single.evaluations, 2 * single.resting) == (4, 4)
    assert double.referenced == single.referenced == 2
    stored = ran(f"PATTERN {both} WITHIN 9", events, engine="tree").costs
    assert stored == Costs(buffered=2, referenced=2, states=2)


# ---- use


def test_what_is_not_defined_is_said() -> None:
    for engine, text, why in (
        ("tree", "SEQ(A a, B* b)", "a repeated event"),
        ("tree", "SEQ(A a, NOT(B b))", "NOT"),
        ("eager", "SEQ(A* a, B b)", "before a single one"),
        ("eager", "AND(A a, B* b)", "AND with a repeated"),
    ):
        with pytest.raises(UsageError, match=f"{engine} is not defined for pattern: .*{why}"):
            ran(f"PATTERN {text} WITHIN 5", [], engine=engine)
    for engine in ENGINES:
        for tail, why in (
            ("CONTEXT chronicle", "CONTEXT, SELECT"),
            ("SELECT first", "CONTEXT, SELECT"),
            ("RANK BY MAX(b.x) TOP 1 PER ALL", "RANK BY"),
            ("MAXIMAL", "MAXIMAL"),
        ):
            with pytest.raises(UsageError, match=f"{engine} is not defined for pattern: {why}"):
                ran(f"PATTERN SEQ(A a, B b) WITHIN 5 {tail}", [], engine=engine)
    with pytest.raises(UsageError, match="there is no engine 'lazy'\nhint: Choose one of eager, "):
        ran(ABC, [], engine="lazy")
    with pytest.raises(UsageError, match="takes no order"):
        ran(ABC, [], "abc", engine="tree")
