"""Kleene closure: every non-empty set of usable events (docs/semantics.md#operators), enumerated in bounded blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from chainlake.cep.conditions.blocks import Bindings, flat_blocks
from chainlake.cep.conditions.evaluate import View
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.errors import TooManyMembers
from chainlake.cep.events.clock import Clock
from chainlake.cep.language.ast import ANY_SIZE
from chainlake.cep.plan.sizes import most_usable
from chainlake.cep.plan.steps import Step
from chainlake.cep.search.binding.subsets import subsets
from chainlake.cep.search.statistics import Statistics


@dataclass(frozen=True)
class SetLimit:
    """How many events in one window may be usable for one set.

    The limit applies to facts that depend neither on the order nor on slicing: the largest set that fits one binding of
    the single names and has an owned decision time.

    Args:
        members: the limit for sets of any size; as many sets are allowed of sets with a stated size.
        by_start: whether matches are decided at ``start + window``, not at their end.
        own: ``[lo, hi)`` of owned decision times, or None for all.
        window: in ticks.
        clock: how the times were moved, or None.
        steps: the steps that bind sets.
    """

    members: int
    by_start: bool
    own: tuple[int, int] | None
    window: int
    clock: Clock | None = None
    steps: tuple[Step, ...] = ()

    def for_steps(self, steps: tuple[Step, ...]) -> SetLimit:
        """This limit, for the sets that ``steps`` bind."""
        return replace(self, steps=steps)

    def of(self, step: Step) -> int:
        """How many events of one window may be usable for the set of a step."""
        return most_usable(step.size, self.members)

    def owned(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Which bindings, if complete, would be owned."""
        if self.own is None:
            return np.ones(len(start), bool)
        decision = start + self.window if self.by_start else end
        decision = decision if self.clock is None else self.clock.real(decision)
        return (decision >= self.own[0]) & (decision < self.own[1])


@dataclass
class _Usable:
    """The usable events of one name for each binding of a block.

    Args:
        offsets: into ``positions``, shape (bindings + 1,).
        positions: among the name's candidates, ascending for each binding.
        rows: the binding of each event.
        stop: for each event, the index after the last event of its binding that is at most a window later.
    """

    offsets: np.ndarray
    positions: np.ndarray
    rows: np.ndarray
    stop: np.ndarray


def _usable(
    step: Step,
    bindings: Bindings,
    scan: Scan,
    kleene: frozenset[str],
    count: Statistics | None,
) -> _Usable:
    data, candidates, window = scan.data, scan.candidates, scan.window
    of = candidates[step.name]
    lo, hi = bindings.scope(step.scope, window, candidates, of)
    base = bindings.view(data, candidates)
    kept_rows, kept_positions = [], []
    for rows, within in flat_blocks(hi - lo, scan.block_rows):
        positions = lo[rows] + within
        apart = bindings.apart(step.scope, candidates, of, rows, positions)
        if apart is not None:
            rows, positions = rows[apart], positions[apart]
        if step.member_clauses and count is not None:
            count.evaluations_pre += len(rows)
            count.tests += len(rows)
        for clause in step.member_clauses:
            view = View(data, len(rows), {step.name: (of, positions)}, {}, base, rows)
            kept = np.flatnonzero(view.holds(clause, kleene))
            rows, positions = rows[kept], positions[kept]
        kept_rows.append(rows)
        kept_positions.append(positions)
    rows = np.concatenate(kept_rows) if kept_rows else np.zeros(0, np.int64)
    positions = np.concatenate(kept_positions) if kept_positions else np.zeros(0, np.int64)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=bindings.n))])
    last = np.searchsorted(of.ts, of.ts[positions] + window, "right")
    size = len(of) + 1
    stop = np.searchsorted(rows * size + positions, rows * size + last, "left")
    return _Usable(offsets, positions, rows, stop)


def iterate(
    step: Step,
    bindings: Bindings,
    scan: Scan,
    kleene: frozenset[str],
    statistics: Statistics,
    limit: SetLimit | None,
) -> Iterator[Bindings]:
    """Bind ``step.name`` to every non-empty set of usable events that fits the window.

    Args:
        step: the step.
        bindings: what is bound so far.
        scan: the events and candidates to search.
        kleene: names under Kleene closure.
        statistics: E counts sets, E_pre members.
        limit: the limit for all sets of a binding, checked when its first set is bound; else None.

    Raises:
        LimitExceeded: more events of one window are usable than allowed.
    """
    lo, hi = bindings.scope(step.scope, scan.window, scan.candidates, scan.candidates[step.name])
    for part in _parts(hi - lo, scan.block_rows):
        some = bindings.at(part)
        usable = _usable(step, some, scan, kleene, statistics)
        anchors = np.arange(len(usable.positions))
        if limit is not None:
            anchors = _check(step, limit, some, usable, scan, kleene)
        yield from _subsets(step, some, usable, anchors, scan, kleene, statistics)


def _parts(counts: np.ndarray, limit: int) -> Iterator[np.ndarray]:
    """Bindings in runs with about ``limit`` candidates together; those without candidates are left out."""
    rows = np.flatnonzero(counts)
    group = (np.cumsum(counts[rows]) - 1) // limit
    yield from np.split(rows, np.flatnonzero(group[1:] != group[:-1]) + 1) if len(rows) else ()


def _check(
    step: Step,
    limit: SetLimit,
    bindings: Bindings,
    usable: _Usable,
    scan: Scan,
    kleene: frozenset[str],
) -> np.ndarray:
    """The first members worth trying; raises if a set of one of the steps of ``limit`` is too large."""
    only = len(limit.steps) == 1
    fits = np.ones(bindings.n, bool)
    sets = [(step, usable)]
    for other in limit.steps[1:]:
        scope = replace(
            other.scope,
            after=tuple(n for n in other.scope.after if n in bindings.singles),
            before=tuple(n for n in other.scope.before if n in bindings.singles),
            apart_from=tuple(n for n in other.scope.apart_from if n in bindings.singles),
        )
        bound = bindings.singles.keys() | {other.name}
        alone = replace(other, scope=scope, member_clauses=tuple(c for c in other.member_clauses if c.names <= bound))
        sets.append((other, _usable(alone, bindings, scan, kleene, None)))
    for _, found in sets:
        fits &= np.diff(found.offsets) > 0
    for other, found in sets:
        ts = scan.candidates[other.name].ts[found.positions]
        size = found.stop - np.arange(len(found.stop))
        start = np.minimum(bindings.start[found.rows], ts)
        end = np.maximum(bindings.end[found.rows], ts[found.stop - 1] if len(ts) else ts)
        owned = limit.owned(start, end) if only else np.ones(len(ts), bool)
        most = limit.of(other)
        over = np.flatnonzero((size > most) & owned & fits[found.rows])
        for partner, usable_partner in sets:
            if partner is not other:
                last = ts[over + most]
                spans = _Spans(ts[over], last, found.rows[over])
                over = over[_has_partner(other, spans, partner, usable_partner, scan)]
        if len(over):
            raise too_many(int(size[over].max()), other, limit.members)
        if other is step:
            # Sets that find no partner are made anyway, as in a run in event order, so that E is the same. Beyond the
            # limit, where such a run ends, they are left out.
            large = np.zeros(bindings.n, bool)
            large[found.rows[size > most]] = True
            anchors = np.flatnonzero(owned & (fits | ~large)[found.rows])
    if not only:
        # A larger set has no partner, or it would have been reported, so it need not be tried.
        usable.stop = np.minimum(usable.stop, np.arange(len(usable.stop)) + limit.of(step))
    return anchors


def too_many(events: int, step: Step, limit: int) -> TooManyMembers:
    """The error for a set with this many usable events."""
    if step.size == ANY_SIZE:
        return TooManyMembers.of_any_size(events, step.name, limit)
    return TooManyMembers.of_size(events, step.name, most_usable(step.size, limit), limit)


@dataclass(frozen=True)
class _Spans:
    """The time spans of sets.

    Args:
        first: ts of the first member of each set.
        last: ts of the last member.
        rows: the binding of each set.
    """

    first: np.ndarray
    last: np.ndarray
    rows: np.ndarray


def _has_partner(step: Step, spans: _Spans, partner: Step, usable: _Usable, scan: Scan) -> np.ndarray:
    """Which sets of ``step`` leave an event for ``partner``."""
    of, window = scan.candidates[partner.name], scan.window
    first, last, rows = spans.first, spans.last, spans.rows
    step_first = step.name in partner.scope.after or partner.name in step.scope.before
    partner_first = partner.name in step.scope.after or step.name in partner.scope.before
    lo = np.searchsorted(of.ts, last + 1 if step_first else last - window, "left")
    hi = np.searchsorted(of.ts, first if partner_first else first + window + 1, "left")
    # every (binding, event) of the partner as a number; these ascend
    size = len(of) + 1
    keys = usable.rows * size + usable.positions
    low = np.searchsorted(keys, rows * size + lo, "left")
    return np.searchsorted(keys, rows * size + np.maximum(lo, hi), "left") > low


def _subsets(
    step: Step,
    bindings: Bindings,
    usable: _Usable,
    anchors: np.ndarray,
    scan: Scan,
    kleene: frozenset[str],
    statistics: Statistics,
) -> Iterator[Bindings]:
    """Every set once; its first member is an anchor."""
    data, candidates = scan.data, scan.candidates
    of = candidates[step.name]
    base = bindings.view(data, candidates)
    for sets in subsets(step.size, usable.stop[anchors] - anchors - 1, scan.block_rows):
        rows, offsets = sets.rows, sets.offsets
        statistics.evaluations += len(rows)
        statistics.tests += len(rows)
        first = anchors[rows]
        flat = usable.positions[np.repeat(first, np.diff(offsets)) + sets.members]
        at = usable.rows[first]
        view = View(data, len(rows), {}, {step.name: (of, offsets, flat)}, base, at)
        good = view.all_hold(step.clauses, kleene)
        found = bindings.at(at)
        found.groups[step.name] = (offsets, flat)
        found.start = np.minimum(found.start, found.earliest(step.name, candidates))
        found.end = np.maximum(found.end, found.latest(step.name, candidates))
        yield found if good.all() else found.at(np.flatnonzero(good))
