"""Negated names and UNTIL: which bindings a forbidden event rules out (docs/semantics.md#negation)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from chainlake.cep.conditions.blocks import Bindings, flat_blocks
from chainlake.cep.conditions.evaluate import View
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.plan.steps import Forbidden

#: How many candidates per binding the first round of a test with conditions looks at; later rounds look at more.
_FIRST_ROUND = 4


def not_forbidden(
    forbidden: Forbidden,
    bindings: Bindings,
    scan: Scan,
    kleene: frozenset[str],
    count: Callable[[int], None],
) -> np.ndarray:
    """The rows of the bindings for which no event can be bound to the negated name.

    Args:
        forbidden: the test.
        bindings: bindings of all names that the test depends on.
        scan: what is looked through.
        kleene: names bound to sets.
        count: called with the number of events tested, where each test stops at the first event that rejects.
    """
    scope = forbidden.scope.among(bindings.singles.keys() | bindings.groups.keys())
    between = bindings.scope(scope, scan.window, scan.candidates, scan.candidates[forbidden.name])
    return _free(replace(forbidden, scope=scope), between, bindings, scan, kleene, count)


def not_until(
    until: Forbidden,
    bindings: Bindings,
    scan: Scan,
    kleene: frozenset[str],
    count: Callable[[int], None],
) -> np.ndarray:
    """The rows of the bindings that have no event of UNTIL strictly between their first and last event.

    Args:
        until: the test.
        bindings: bindings of all ordinary names.
        scan: what is looked through.
        kleene: names bound to sets.
        count: called with the number of events tested, where each test stops at the first event that rejects.
    """
    ts = scan.candidates[until.name].ts
    lo = np.searchsorted(ts, bindings.start, "right")
    return _free(until, (lo, np.maximum(lo, np.searchsorted(ts, bindings.end, "left"))), bindings, scan, kleene, count)


def _free(
    forbidden: Forbidden,
    between: tuple[np.ndarray, np.ndarray],
    bindings: Bindings,
    scan: Scan,
    kleene: frozenset[str],
    count: Callable[[int], None],
) -> np.ndarray:
    """The bindings for which no candidate at the positions ``between``, ``[lo, hi)``, passes the test."""
    data, candidates, scope = scan.data, scan.candidates, forbidden.scope
    of = candidates[forbidden.name]
    lo, hi = between
    if not forbidden.clauses and not scope.apart_from:
        count(int(np.count_nonzero(hi > lo)))
        return np.flatnonzero(hi <= lo)
    base = bindings.view(data, candidates)
    rejected = np.zeros(bindings.n, bool)
    width = _FIRST_ROUND
    live = np.flatnonzero(hi > lo)
    while len(live):
        counts = np.minimum(hi[live] - lo[live], width)
        for rows, within in flat_blocks(counts, scan.block_rows):
            some = live[rows]
            positions = lo[some] + within
            apart = bindings.apart(scope, candidates, of, some, positions)
            if apart is not None:
                some, positions = some[apart], positions[apart]
            view = View(data, len(some), {forbidden.name: (of, positions)}, {}, base, some)
            hits = view.all_hold(forbidden.clauses, kleene)
            count(_tested(some, hits, rejected))
            rejected[some[hits]] = True
        lo[live] += counts
        live = live[(hi[live] > lo[live]) & ~rejected[live]]
        width = min(width * 4, scan.block_rows)
    return np.flatnonzero(~rejected)


def _tested(rows: np.ndarray, hits: np.ndarray, rejected: np.ndarray) -> int:
    """How many tests a search makes that stops at the first hit of each row; ``rows`` is sorted."""
    live = ~rejected[rows]
    rows, hits = rows[live], hits[live]
    if not hits.any():
        return len(rows)
    new = np.concatenate([[True], rows[1:] != rows[:-1]])
    before = np.cumsum(hits) - hits
    first = np.maximum.accumulate(np.where(new, np.arange(len(rows)), 0))
    return int(np.count_nonzero(before == before[first]))
