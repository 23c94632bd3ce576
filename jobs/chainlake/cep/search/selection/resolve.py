"""Goes through matches, one terminator after another: what is selected, and what it uses up for later ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chainlake.cep.policy import PickRule, Policy
from chainlake.cep.search.compiled import machine
from chainlake.cep.search.selection.choose import accumulated, chosen, picked
from chainlake.cep.search.selection.order import NONE, Ranked

#: With at least this many matches, the loop is compiled, which takes longer to be ready than interpreting it.
_WORTH_COMPILING = 100_000
_SELECTS = ("each", "first", "last", "per_initiator")


@dataclass(frozen=True)
class Published:
    """What is published.

    Args:
        rows: the numbers of the matches, in the order in which they are published; for an accumulating policy, one
            match per terminator, whose events are among ``sets``.
        consumed: whether each rank is used up afterwards.
        sets: for an accumulating policy, the ranks of the events of each row and name, ascending.
    """

    rows: np.ndarray
    consumed: np.ndarray
    sets: tuple[tuple[np.ndarray, ...], ...] | None = None


def published(found: Ranked, names: Sequence[str], policy: Policy, consumed: np.ndarray | None = None) -> Published:
    """Which of all matches a policy publishes.

    Args:
        found: all matches, each once.
        names: the names of the columns of ``found``.
        policy: which matches are wanted.
        consumed: whether each rank was used up before; if None, no event was.
    """
    found, kept = _near(found, names, policy.picks)
    used = np.zeros(len(found.times), np.uint8) if consumed is None else consumed.astype(np.uint8)
    order = found.in_order()
    if not policy.consumes and policy.select in _SELECTS:
        free = order[~_uses_any(found.at(order), used)] if used.any() else order
        return Published(kept[free[chosen(found.at(free), policy.select)]], used.astype(bool))
    if policy.select in _SELECTS:
        rows = _loop(found, order, names, policy, used)
        return Published(kept[rows], used.astype(bool))
    return _by_terminator(found, kept, names, policy, used)


def _near(found: Ranked, names: Sequence[str], picks: tuple[PickRule, ...]) -> tuple[Ranked, np.ndarray]:
    """The matches whose picked events are close enough to their origins, and the numbers of these matches."""
    good = np.ones(len(found), bool)
    for pick in picks:
        if pick.within is not None and pick.origin is not None:
            one, other = (found.ranks[:, list(names).index(name)] for name in (pick.name, pick.origin))
            both = (one != NONE) & (other != NONE)
            good &= ~both | (np.abs(found.times[one] - found.times[other]) <= pick.within)
    rows = np.flatnonzero(good)
    return found.at(rows), rows


def _uses_any(found: Ranked, used: np.ndarray) -> np.ndarray:
    """Which matches have an event that is used up."""
    hit: np.ndarray = ((found.ranks != NONE) & (used[found.ranks] != 0)).any(axis=1)
    return hit


def _uses(found: Ranked, names: Sequence[str], policy: Policy) -> np.ndarray:
    """The ranks that each match uses up, ``NONE`` for none; shape (matches, names)."""
    if policy.consume == "all":
        return found.ranks
    if policy.consume == "initiator":
        return found.initiators[:, None]
    columns = [list(names).index(name) for name in policy.consume] if policy.consumes else []
    return found.ranks[:, columns]


def _by_terminator(
    found: Ranked, kept: np.ndarray, names: Sequence[str], policy: Policy, used: np.ndarray
) -> Published:
    """What a policy publishes that looks at all matches of a terminator together."""
    order = found.in_order()
    terminators = found.terminators[order]
    bounds = np.flatnonzero(np.diff(terminators, prepend=-2)) if len(order) else np.zeros(0, np.int64)
    rows: list[np.ndarray] = []
    sets: list[tuple[np.ndarray, ...]] = []
    for group in np.split(order, bounds[1:]) if len(order) else ():
        free = group[~_uses_any(found.at(group), used)]
        if not len(free):
            continue
        if policy.accumulates:
            sets.append(accumulated(found.at(free)))
            rows.append(free[:1])
            for ranks in sets[-1]:
                used[ranks] = 1
            continue
        rows.append(_publish(found, free[picked(found.at(free), names, policy.picks)], names, policy, used))
    every = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    return Published(kept[every], used.astype(bool), tuple(sets) if policy.accumulates else None)


def _publish(found: Ranked, wanted: np.ndarray, names: Sequence[str], policy: Policy, used: np.ndarray) -> np.ndarray:
    """The published ones of one terminator's wanted matches, one by one or together; ``used`` is marked."""
    uses = _uses(found.at(wanted), names, policy)
    rows = []
    for number, row in enumerate(wanted):
        if policy.together or not _uses_any(found.at(np.array([row])), used)[0]:
            rows.append(row)
            if not policy.together:
                used[uses[number][uses[number] != NONE]] = 1
    if policy.together:
        used[uses[uses != NONE]] = 1
    return np.array(rows, np.int64)


def _loop(found: Ranked, order: np.ndarray, names: Sequence[str], policy: Policy, used: np.ndarray) -> np.ndarray:
    """The published matches, in order; ``used`` is marked."""
    if not len(order):
        return order
    sorted_ = found.at(order)
    ranks = np.ascontiguousarray(sorted_.ranks, np.int64)
    uses = np.ascontiguousarray(_uses(sorted_, names, policy), np.int64)
    back = sorted_.backward(np.arange(len(order))) if policy.select == "last" else np.zeros(1, np.int64)
    keep = np.zeros(len(order), np.uint8)
    alive = np.zeros(len(order), np.uint8)
    first = sorted_.initiators if policy.select == "per_initiator" else np.zeros(1, np.int64)
    seen = np.full(len(found.times) if policy.select == "per_initiator" else 1, -1, np.int64)
    sizes = [len(order), ranks.shape[1], uses.shape[1], _SELECTS.index(policy.select), int(policy.together)]
    integers = [ranks.ravel(), uses.ravel(), sorted_.terminators, back, first, seen]
    _kernel(len(order))([], integers, [keep, alive, used], [], machine.NOTHING, np.array(sizes, np.int64), _STATE)
    return order[np.flatnonzero(keep)]


#: Nothing is kept between calls.
_STATE = np.zeros(1, np.int64)


def _kernel(matches: int) -> machine.Kernel:
    """The loop, compiled if the machine code exists already or if compiling pays."""
    if matches >= _WORTH_COMPILING or machine.loaded() and machine.known(_SOURCE):
        return machine.load(_SOURCE)
    return _interpreted()


def _interpreted() -> machine.Kernel:
    space: dict[str, machine.Kernel] = {}
    exec(compile(_SOURCE, "selection", "exec"), space)
    return space["kernel"]


_SOURCE = """def kernel(F, I, B, J, kf, ki, st):
    ranks = I[0]
    uses = I[1]
    ends = I[2]
    back = I[3]
    first = I[4]
    seen = I[5]
    keep = B[0]
    alive = B[1]
    used = B[2]
    n = ki[0]
    width = ki[1]
    taken = ki[2]
    select = ki[3]
    together = ki[4]
    lo = 0
    while lo < n:
        hi = lo
        best = -1
        while hi < n and ends[hi] == ends[lo]:
            free = 1
            for k in range(width):
                r = ranks[hi * width + k]
                if r >= 0 and used[r] != 0:
                    free = 0
            if free == 1:
                if select == 0:
                    alive[hi] = 1
                elif select == 1:
                    if best < 0:
                        best = hi
                elif select == 2:
                    if best < 0 or back[hi] > back[best]:
                        best = hi
                elif seen[first[hi]] != ends[lo]:
                    seen[first[hi]] = ends[lo]
                    alive[hi] = 1
            hi = hi + 1
        if best >= 0:
            alive[best] = 1
        for i in range(lo, hi):
            if alive[i] != 0:
                free = 1
                if together == 0:
                    for k in range(width):
                        r = ranks[i * width + k]
                        if r >= 0 and used[r] != 0:
                            free = 0
                if free == 1:
                    keep[i] = 1
                    if together == 0:
                        for k in range(taken):
                            r = uses[i * taken + k]
                            if r >= 0:
                                used[r] = 1
        if together != 0:
            for i in range(lo, hi):
                if keep[i] != 0:
                    for k in range(taken):
                        r = uses[i * taken + k]
                        if r >= 0:
                            used[r] = 1
        lo = hi
    return 0
"""
