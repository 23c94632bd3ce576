"""Contexts, selection and consumption: an evaluation in the order of events, written from the definition."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainlake.cep.library import as_dicts, from_dicts, match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.policy import PickRule, Policy
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.selection.order import NONE, Ranked
from chainlake.cep.search.selection.resolve import published
from chainlake.errors import DefinitionError, UsageError
from tests.cep.context_cases import events_of, text_of

NAMES = ("a", "b", "c")

#: A match: name -> rank of its event.
Bound = dict[str, int]


def key(match: Bound) -> tuple:
    """Last event, the others in the order of time, then the numbers of the names in that order."""
    ranks = sorted(match.values())
    names = sorted(match, key=lambda name: match[name])
    return (ranks[-1], *ranks[:-1]), tuple(NAMES.index(name) for name in names)


def better_last(one: Bound, other: Bound) -> bool:
    """Whether ``one`` is later, read back from the end; a longer list beats its prefix, then the smaller key."""
    x, y = sorted(one.values(), reverse=True), sorted(other.values(), reverse=True)
    return x > y if x != y else key(one) < key(other)


def pick(matches: list[Bound], picks: Sequence[PickRule]) -> list[Bound]:
    done: list[str] = []
    later = [rule.name for rule in picks]
    for number, rule in enumerate(picks):
        fixed = [name for name in NAMES if name not in later[number:] or name in done]
        groups: dict[tuple, list[Bound]] = {}
        for one in matches:
            groups.setdefault((tuple(one.get(n) for n in fixed), rule.name in one), []).append(one)
        matches = []
        for (_, binds), group in groups.items():
            if not binds:
                matches += group
                continue
            best = (max if rule.last else min)(one[rule.name] for one in group)
            matches += [one for one in group if one[rule.name] == best]
        done.append(rule.name)
    return matches


def select(matches: list[Bound], policy: Policy) -> list[Bound]:
    matches = sorted(matches, key=key)
    if policy.select == "first":
        return matches[:1]
    if policy.select == "last":
        best = matches[0]
        for one in matches[1:]:
            best = one if better_last(one, best) else best
        return [best]
    if policy.select == "per_initiator":
        seen: dict[int, Bound] = {}
        for one in matches:
            seen.setdefault(min(one.values()), one)
        return sorted(seen.values(), key=key)
    return sorted(pick(matches, policy.picks), key=key) if policy.select == "pick" else matches


def uses(match: Bound, policy: Policy) -> set[int]:
    if policy.consume == "none":
        return set()
    if policy.consume == "initiator":
        return {min(match.values())}
    return {rank for name, rank in match.items() if policy.consume == "all" or name in policy.consume}


def near(match: Bound, times: Sequence[int], policy: Policy) -> bool:
    for rule in policy.picks:
        if rule.within is not None and rule.name in match and rule.origin in match:
            if abs(times[match[rule.name]] - times[match[rule.origin]]) > rule.within:
                return False
    return True


def sequential(matches: list[Bound], times: Sequence[int], policy: Policy) -> tuple[list[Any], set[int]]:
    """What is published, one event after another, and what is used up in the end."""
    consumed: set[int] = set()
    fired: list[Any] = []
    matches = [match for match in matches if near(match, times, policy)]
    for event in range(len(times)):
        there = [m for m in matches if max(m.values()) == event and not consumed & set(m.values())]
        if not there:
            continue
        if policy.select == "accumulate":
            row = {name: sorted({m[name] for m in there if name in m}) for name in NAMES}
            fired.append({name: ranks for name, ranks in row.items() if ranks})
            consumed |= {rank for ranks in row.values() for rank in ranks}
            continue
        wanted = select(there, policy)
        if policy.together:
            fired += wanted
            consumed |= {rank for one in wanted for rank in uses(one, policy)}
            continue
        for one in wanted:
            if not consumed & set(one.values()):
                fired.append(one)
                consumed |= uses(one, policy)
    return fired, consumed


def engine(matches: list[Bound], times: Sequence[int], policy: Policy) -> tuple[list[Any], set[int]]:
    ranks = np.array([[match.get(name, NONE) for name in NAMES] for match in matches], np.int64).reshape(-1, 3)
    found = published(Ranked(ranks, np.array(times, np.int64)), NAMES, policy)
    if found.sets is not None:
        fired: list[Any] = [
            {name: one.tolist() for name, one in zip(NAMES, sets, strict=True) if len(one)} for sets in found.sets
        ]
    else:
        fired = [matches[row] for row in found.rows]
    return fired, set(np.flatnonzero(found.consumed).tolist())


POLICIES = [
    Policy(select_, consume, together)
    for select_ in ("each", "first", "last", "per_initiator")
    for consume in ("none", "all", "initiator", ("a",), ("b", "c"))
    for together in (False, True)
] + [Policy("accumulate", "all")] + [
    Policy("pick", consume, together, tuple(
        PickRule(name, last, *distance) for name, last in zip(order, lasts, strict=True)))
    for order in (("a",), ("b", "a"), ("a", "b", "c"))
    for lasts in itertools.product((False, True), repeat=len(order))
    for consume in ("none", "all", ("a",))
    for together in (False, True)
    for distance in ((), (2, "c"))
    if not distance or "c" not in order
]  # fmt: skip


def made(seed: int) -> tuple[list[Bound], list[int]]:
    """Random matches of up to three of twelve events; several may bind the same events by other names."""
    rng = random.Random(seed)
    events = rng.randrange(3, 12)
    times = sorted(rng.randrange(12) for _ in range(events))
    found: dict[tuple, Bound] = {}
    for _ in range(rng.randrange(1, 30)):
        names = rng.sample(NAMES, rng.choice([1, 2, 3, 3, 3]))
        match = dict(zip(names, rng.sample(range(events), len(names)), strict=True))
        found.setdefault(tuple(sorted(match.items())), match)
    matches = list(found.values())
    rng.shuffle(matches)
    return matches, times


@pytest.mark.few(40)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_published_are_those_of_an_evaluation_in_the_order_of_events(policy: Policy) -> None:
    some = 0
    for seed in range(4):
        matches, times = made(seed)
        fired, consumed = sequential(matches, times, policy)
        found, used = engine(matches, times, policy)
        assert found == fired and used == consumed, seed
        some += len(fired)
    assert some > 1


CASES = json.loads((Path(__file__).parents[1] / "cases" / "context-cases.json").read_text())["cases"]


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_worked_case_in_any_order_of_rows_and_binding(case: dict[str, Any], backend: str) -> None:
    text, events = text_of(case["query"]), events_of(case)
    wanted = [row["match"] for row in case["expect"]["fired"]]
    total = case["query"].get("order") == "total"
    names = [name.name for name in compile_pattern(text, strict_units=False).names]
    rng = random.Random(case["id"])
    rng.shuffle(events)
    rng.shuffle(names)
    assert list(match(text, events, order=names, backend=backend, ties_in_order=total)) == wanted, text


TAILS = [
    ("CONTEXT unrestricted", Policy()),
    ("CONTEXT recent", Policy("last", "none")),
    ("CONTEXT chronicle", Policy("each", "all")),  # as a law: the same as the first, with consumption
    ("CONTEXT continuous", Policy("per_initiator", "initiator", True)),
    ("CONTEXT cumulative", Policy("accumulate", "all")),
    ("SELECT first", Policy("first")),
    ("SELECT last CONSUME a", Policy("last", ("a",))),
    ("SELECT per_initiator PER TERMINATOR", Policy("per_initiator", "none", True)),
    ("CONSUME b, c PER TERMINATOR", Policy("each", ("b", "c"), True)),
    ("PICK last b, first a within 3 from b CONSUME a", Policy("pick", ("a",), False, (
        PickRule("b", True), PickRule("a", False, 3, "b")))),
]  # fmt: skip
SHAPES = ["SEQ(A a, B b, C c)", "AND(A a, B b)", "SEQ(A a, OR(B b, C c))", "ANY(2, A a, B b, C c)", "SEQ(A a, A b)",
          "SEQ(A a, NOT(C n), B b)"]  # fmt: skip


def stream(seed: int, most: int = 14) -> list[dict[str, Any]]:
    """Random events with equal times, some of them with a place among these."""
    rng = random.Random(seed)
    events = [
        {"id": f"e{i:02}", "type": rng.choice("AABBC"), "ts": rng.randrange(14), "attrs": {"k": rng.randrange(2)}}
        for i in range(rng.randrange(most - 8, most))
    ]
    if seed % 2:
        for event in events:
            event["seq"] = rng.randrange(3)
    return events


@pytest.mark.few(2)
@pytest.mark.parametrize(("tail", "policy"), TAILS, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("shape", SHAPES)
def test_patterns_publish_what_an_evaluation_in_the_order_of_events_does(shape: str, tail: str, policy: Policy) -> None:
    names = [name.name for name in compile_pattern(f"PATTERN {shape} WITHIN 5 s").names]
    if any(name not in names for rule in policy.picks for name in (rule.name,)) or (
        isinstance(policy.consume, tuple) and not set(policy.consume) <= set(names)
    ):
        with pytest.raises(DefinitionError):
            compile_pattern(f"PATTERN {shape} WITHIN 5 {tail}", strict_units=False)
        return
    some = 0
    for seed in range(7):
        events = stream(seed, 16)
        ordered = sorted(events, key=lambda event: (event["ts"], event.get("seq", 0), event["id"]))
        rank = {event["id"]: number for number, event in enumerate(ordered)}
        every = [{n: rank[i] for n, i in one.items()} for one in match(f"PATTERN {shape} WITHIN 5", events)]
        fired, _ = sequential(every, [event["ts"] for event in ordered], policy)
        found = [
            {n: sorted(rank[i] for i in ids) if isinstance(ids, list) else rank[ids] for n, ids in one.items()}
            for one in match(f"PATTERN {shape} WITHIN 5 {tail}", events)
        ]
        assert found == fired, (seed, events)
        some += len(fired)
    assert some > 1


@pytest.mark.few(1)
@pytest.mark.parametrize(("tail", "policy"), [one for one in TAILS if not one[1].consumes])
def test_stretches_of_history_publish_what_one_run_does(tail: str, policy: Policy) -> None:
    text = f"PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 5 {tail}"
    pattern = compile_pattern(text, strict_units=False)
    for seed in range(12):
        table, ids = from_dicts(stream(seed))
        whole = [one for batch in find(pattern, table) for one in as_dicts(pattern, batch, ids)]
        cuts = sorted(random.Random(seed).sample(range(-1, 20), 3))
        union: list[Any] = []
        for lo, hi in itertools.pairwise([-100, *cuts, 100]):
            low, high = pattern.read_range(lo, hi)
            ts = table["ts"].to_numpy()
            rows = np.flatnonzero((ts >= low) & (ts < high))
            part = table.take(rows)
            for batch in find(pattern, part, own=(lo, hi)):
                union += as_dicts(pattern, batch, [ids[row] for row in rows])
        key_of = json.dumps
        assert sorted(map(key_of, union)) == sorted(map(key_of, whole)), seed


def test_windows_in_events_count_all_events() -> None:
    events = [{"id": str(i), "type": kind, "ts": i, "attrs": {"k": key}} for i, (kind, key) in enumerate(
        [("A", 1), ("X", 1), ("X", 2), ("B", 1), ("X", 1), ("B", 1)])]  # fmt: skip

    def found(window: str, condition: str = "") -> list[Any]:
        return [one["b"] for one in match(f"PATTERN SEQ(A a, B b) {condition} WITHIN {window}", events, key="k")]

    assert found("3 EVENTS") == ["3"] and found("5 EVENTS") == ["3", "5"] == found("100, 5 EVENTS")
    assert found("2 EVENTS OF KEY", "WHERE a.k = b.k") == ["3"] and found("2 EVENTS") == []
    assert found("4, 5 EVENTS") == ["3"]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "shape", ["SEQ(A a, B b, C c)", "AND(A a, B b, C c)", "AND(A a, SEQ(B b, C c))", "SEQ(A+ a, B b)"]
)
@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("size", [3, 6])
def test_windows_in_events_are_those_of_a_plain_count(shape: str, gap: bool, size: int) -> None:
    if gap and "+" in shape:
        with pytest.raises(DefinitionError):
            compile_pattern(f"PATTERN {shape} WITHIN GAP 2 EVENTS")
        return
    some = 0
    for seed in range(15):
        events = stream(seed, 18) + [{"id": f"x{i}", "type": "X", "ts": i * 3, "attrs": {}} for i in range(4)]
        ordered = sorted(events, key=lambda event: (event["ts"], event.get("seq", 0), event["id"]))
        rank = {event["id"]: number for number, event in enumerate(ordered)}

        def near(one: dict[str, Any], rank: dict[str, int] = rank) -> bool:
            ranks = sorted(rank[i] for ids in one.values() for i in (ids if isinstance(ids, list) else [ids]))
            steps = [b - a for a, b in itertools.pairwise(ranks)] if gap else [ranks[-1] - ranks[0]]
            return all(step <= size for step in steps)

        wanted = [one for one in match(f"PATTERN {shape} WITHIN 100", events) if near(one)]
        found = list(match(f"PATTERN {shape} WITHIN {'GAP ' * gap}{size} EVENTS", events))
        assert sorted(map(str, found)) == sorted(map(str, wanted)), seed
        some += len(wanted)
    assert some > 0


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SEQ(A a, B* b) WITHIN 5 s CONTEXT recent", "a repeated event cannot be combined with CONTEXT"),
        ("SEQ(A a, COLLECT(B b), C c) WITHIN 5 s SELECT first", "COLLECT cannot be combined"),
        ("SEQ STRICT (A a, B b) WITHIN 5 s SELECT first", "SEQ STRICT cannot be combined"),
        ("SEQ(A a, B? b) WITHIN 5 s SELECT first", "? cannot be combined"),
        ("SEQ(A a, B b) WITHIN 5 s MAXIMAL SELECT first", "MAXIMAL cannot be combined"),
        ("SEQ(A a, NOT(B b)) WITHIN 5 s SELECT first", "b must be between two events"),
        ("SEQ(NOT(A a), B b) WITHIN 5 s CONSUME all", "a must be between two events"),
        ("SEQ(A a, B b) WITHIN 5 s CONTEXT chronicle CONSUME all", "CONTEXT chronicle already determines"),
        ("SEQ(A a, B b) WITHIN 5 s CONTEXT chronicle SELECT first", "CONTEXT, SELECT and PICK exclude"),
        ("SEQ(A a, B b) WITHIN 5 s CONTEXT latest", "a context is expected, not 'latest'"),
        ("SEQ(A a, B b) WITHIN 5 s PICK first z", "there is no event named z"),
        ("SEQ(A a, B b) WITHIN 5 s PICK first a, last a", "PICK names a twice"),
        ("SEQ(A a, B b) WITHIN 5 s PICK first a within 3 s from a", "the distance of a is measured from a itself"),
        ("SEQ(A a, B b) WITHIN 5 s PICK first a within 3 s", "a distance has a length and an origin"),
        ("SEQ(A a, B b) WITHIN 5 s PICK first a within 3 s from b, last b", "b is picked later than a"),
        ("SEQ(A a, B b) WITHIN 5 s CONSUME z", "there is no event named z"),
        ("SEQ(A a, B b) WITHIN 5 s CONSUME", "all, none, initiator or an event name is expected"),
        ("SEQ(A a, B b) WITHIN 5 s CONSUME all, a", "nothing is added to CONSUME all"),
        ("ANY(3, A a, B b) WITHIN 5 s", "ANY takes 1 to 2 of 2 items, not 3"),
        ("ANY(-1, A a, B b) WITHIN 5 s", "the number of events that ANY takes is expected"),
        ("SEQ(A a, B b) WITHIN 5 s, 2.5 EVENTS", "a number of events is expected"),
        ("SEQ(A a, B b) WITHIN 5 s GAP 2 EVENTS", "GAP belongs to WITHIN"),
        ("SEQ(A a, B b) WITHIN 90000000 d", "the window is too long"),
        ("SEQ(A a, B b) WITHIN 5 s, 3 min", "a second duration"),
        ("SEQ(A a, B b) WITHIN 5 EVENTS, 3 EVENTS", "a second window in events"),
    ],
)
def test_combinations_that_mean_nothing_are_told(query: str, what: str) -> None:
    with pytest.raises(DefinitionError) as error:
        compile_pattern(f"PATTERN {query}")
    assert error.value.what.startswith(what) and error.value.line == 1 and error.value.column and error.value.hint


def test_ties_in_order_are_for_one_search_of_all_events() -> None:
    pattern = compile_pattern("PATTERN SEQ(A a, B b) WITHIN 5", strict_units=False)
    with pytest.raises(UsageError):
        list(find(pattern, from_dicts(stream(1))[0], own=(0, 5), options=SearchOptions(ties_in_order=True)))


@pytest.mark.parametrize("query", ["SEQ STRICT(A a, A b)", "SEQ STRICT OF KEY(A a, A b)", "SEQ(A a, B+ b)"])
def test_ties_in_order_are_for_single_events_that_are_no_neighbours(query: str) -> None:
    where = "WHERE a.k = b.k" if "KEY" in query else ""
    with pytest.raises(UsageError, match="single events"):
        list(match(f"PATTERN {query} {where} WITHIN 5", stream(1), key="k", ties_in_order=True, strict_units=False))


def test_a_set_of_a_context_is_in_the_order_of_time_and_id_as_every_set_is() -> None:
    """Whatever seq says of equal times: so is the id of the match made."""
    events = [
        {"id": "a2", "type": "A", "ts": 1, "seq": 1},
        {"id": "a1", "type": "A", "ts": 1, "seq": 2},
        {"id": "a0", "type": "A", "ts": 2, "seq": 0},
        {"id": "b", "type": "B", "ts": 3, "seq": 0},
    ]
    cumulative = list(match("PATTERN SEQ(A a, B b) WITHIN 5 CONTEXT cumulative", events))
    collected = list(match("PATTERN SEQ(COLLECT(A a), B b) WITHIN 5 MEASURES FIRST(a.id) AS first", events))
    assert cumulative == [{"a": ["a1", "a2", "a0"], "b": ["b"]}]
    assert collected == [{"a": ["a1", "a2", "a0"], "b": "b", "first": "a2"}]


@pytest.mark.parametrize("measure", ["a.x AS n", "b.x - a.x AS severity", "1 AS one"])
def test_a_row_of_many_matches_has_no_measures(measure: str) -> None:
    """They would be those of one of them, or none at all."""
    with pytest.raises(DefinitionError, match="CONTEXT cumulative cannot be combined with MEASURES") as caught:
        compile_pattern(f"PATTERN SEQ(A a, B b) WITHIN 5 s CONTEXT cumulative MEASURES {measure}")
    assert caught.value.column == 62


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_a_pause_is_measured_in_the_events_own_times_where_ties_are_in_order(backend: str) -> None:
    events = [
        {"id": "a1", "type": "A", "ts": 0},
        {"id": "a2", "type": "A", "ts": 0},
        {"id": "b1", "type": "B", "ts": 3},
        {"id": "a3", "type": "A", "ts": 7},
    ]
    text = "PATTERN AND(A a, B b) WITHIN 9 PAUSE 3"
    for ties_in_order in (False, True):
        found = [(one["a"], one["b"]) for one in match(text, events, backend=backend, ties_in_order=ties_in_order)]
        assert sorted(found) == [("a1", "b1"), ("a2", "b1")]


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize("context", ["recent", "chronicle", "continuous", "cumulative"])
def test_a_context_gives_the_same_whatever_times_a_search_goes_by(context: str, backend: str) -> None:
    """It moves times where events are searched by parts, or where those of one time have an order."""
    rng = random.Random(context)
    text = f"PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 9 CONTEXT {context}"
    pattern = compile_pattern(text, strict_units=False)
    found = 0
    for _ in range(12):
        events = [
            {"id": f"{n:02}", "type": rng.choice("AB"), "ts": rng.randrange(14), "attrs": {"k": rng.randrange(3)}}
            for n in rng.sample(range(60), 40)
        ]
        table, _ = from_dicts(events)
        parts = table["k"].to_numpy().astype(np.int64)
        wanted = rows_of(find(pattern, table, backend="numpy", options=SearchOptions(mode="P")))
        found += len(wanted)
        for options in (SearchOptions(), SearchOptions(parts=parts)):
            assert rows_of(find(pattern, table, backend=backend, options=options)) == wanted
        # Events of one time may then follow one another, so there are other matches.
        in_order = SearchOptions(ties_in_order=True)
        wanted = rows_of(find(pattern, table, backend="numpy", options=replace(in_order, mode="P")))
        assert rows_of(find(pattern, table, backend=backend, options=in_order)) == wanted
    assert found > 60


def rows_of(batches: Any) -> list[tuple]:
    """Times and events of matches, in the order in which they are published."""
    found = []
    for batch in batches:
        for n in range(batch.n):
            times = (batch.start_us[n], batch.end_us[n], batch.decision_us[n])
            single = {name: [int(rows[n])] for name, rows in batch.single.items()}
            sets = {name: rows[begin[n] : begin[n + 1]].tolist() for name, (begin, rows) in batch.kleene.items()}
            found.append((times, sorted({**single, **sets}.items())))
    return found
