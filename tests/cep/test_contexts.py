"""Contexts, selection and consumption: an evaluation in the order of events, written from the definition."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from chainlake.cep.selection.order import NONE, Ranked
from chainlake.cep.selection.policy import PickRule, Policy
from chainlake.cep.selection.resolve import published

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
        for match in matches:
            groups.setdefault((tuple(match.get(n) for n in fixed), rule.name in match), []).append(match)
        matches = []
        for (_, binds), group in groups.items():
            if not binds:
                matches += group
                continue
            best = (max if rule.last else min)(match[rule.name] for match in group)
            matches += [match for match in group if match[rule.name] == best]
        done.append(rule.name)
    return matches


def select(matches: list[Bound], policy: Policy) -> list[Bound]:
    matches = sorted(matches, key=key)
    if policy.select == "first":
        return matches[:1]
    if policy.select == "last":
        best = matches[0]
        for match in matches[1:]:
            best = match if better_last(match, best) else best
        return [best]
    if policy.select == "per_initiator":
        seen: dict[int, Bound] = {}
        for match in matches:
            seen.setdefault(min(match.values()), match)
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
            consumed |= {rank for match in wanted for rank in uses(match, policy)}
            continue
        for match in wanted:
            if not consumed & set(match.values()):
                fired.append(match)
                consumed |= uses(match, policy)
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
    Policy("pick", consume, together, tuple(PickRule(name, last, *distance) for name, last in zip(order, lasts)))
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


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_published_are_those_of_an_evaluation_in_the_order_of_events(policy: Policy) -> None:
    some = 0
    for seed in range(40):
        matches, times = made(seed)
        fired, consumed = sequential(matches, times, policy)
        found, used = engine(matches, times, policy)
        assert found == fired and used == consumed, seed
        some += len(fired)
    assert some > 40
