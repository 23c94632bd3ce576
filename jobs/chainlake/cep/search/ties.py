"""Events of equal time in sequence, by (ts, seq, id), which only the library can ask for."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pyarrow as pa

from chainlake.cep.compiling.tail import UNBOUNDED
from chainlake.cep.events.clock import Ties
from chainlake.cep.events.columns import ticks_of
from chainlake.cep.events.previous import places
from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.pattern import Pattern


def in_total_order(pattern: Pattern, events: pa.Table) -> tuple[Pattern, Ties, np.ndarray]:
    """The pattern as it is searched if no two events have the same time.

    Args:
        pattern: the pattern.
        events: the events.

    Returns:
        the pattern with a window for the moved times, and the real one as conditions; the clock that moves them; and
        each event's place among those of its time.
    """
    ts = ticks_of(events["ts"], "ts")
    numbers = np.asarray(places(events, None).to_numpy(zero_copy_only=False))
    order = np.argsort(numbers)
    begins = np.diff(ts[order], prepend=ts[order[:1]] - 1) != 0
    found = np.empty(len(ts), np.int64)
    at = np.arange(len(ts))
    found[order] = at - np.maximum.accumulate(np.where(begins, at, 0)) if len(ts) else at
    clock = Ties.of(found)
    if pattern.window_us >= UNBOUNDED:
        return pattern, clock, found
    branches = tuple(_within(branch, pattern) for branch in pattern.branches)
    return replace(pattern, branches=branches, window_us=clock.window(pattern.window_us)), clock, found


def _within(branch: Branch, pattern: Pattern) -> Branch:
    """The branch with its window as conditions on pairs of its events."""
    size = pattern.window_us
    longest: ast.Node = ast.Literal(size) if not pattern.strict else ast.Duration(Fraction(size, 1_000_000))
    pairs = [(one, other) for one, other in permutations(branch.positive, 2) if one not in branch.before[other]]
    clauses = tuple(
        Clause((ast.Compare("<=", ast.Arithmetic("-", ast.Ref(later, "ts"), ast.Ref(earlier, "ts")), longest),))
        for later, earlier in pairs
    )
    return replace(branch, clauses=(*branch.clauses, *clauses))
