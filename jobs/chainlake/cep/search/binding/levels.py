"""The chain automaton, evaluated level by level over columns in bounded blocks (docs/automata.md#the-run)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chainlake.cep.conditions.blocks import Bindings, flat_blocks
from chainlake.cep.conditions.evaluate import View
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.plan.steps import Plan, Step
from chainlake.cep.search.binding.kleene import SetLimit, iterate
from chainlake.cep.search.binding.negation import not_forbidden
from chainlake.cep.search.bounding.cut import Cutter
from chainlake.cep.search.statistics import Statistics


@dataclass
class Search:
    """The search for the matches of one branch.

    Args:
        scan: the events and candidates to search.
        plan: the branch's plan.
        limit: how many events may be usable for a set.
        statistics: what is counted.
        cutter: leaves out partial matches that cannot be among the best; None if all matches are wanted.
    """

    scan: Scan
    plan: Plan
    limit: SetLimit
    statistics: Statistics
    cutter: Cutter | None = None

    def run(self) -> Iterator[Bindings]:
        """All matches of the branch, each once, in blocks."""
        nothing = self.scan.nothing
        if all(nothing.holds(clause, frozenset())[0] for clause in self.plan.constant):
            if self.cutter is None:
                yield from self._extend(Bindings.root(), 0)
                return
            for found in self.cutter.firsts(self.plan.order[0]):
                self.statistics.evaluations += found.n
                self.statistics.tests += found.n
                yield from self._passed(found, 0)

    def _extend(self, bindings: Bindings, level: int) -> Iterator[Bindings]:
        if level == len(self.plan.steps):
            yield bindings
            return
        step = self.plan.steps[level]
        for found in self._sets(step, bindings, level) if step.kleene else self._events(step, bindings):
            yield from self._passed(found, level)

    def _passed(self, found: Bindings, level: int) -> Iterator[Bindings]:
        """Continue with partial matches that passed the conditions of a step."""
        if self.cutter is not None:
            found = self.cutter.cut(found)
        for forbidden in self.plan.steps[level].forbidden:
            kept = not_forbidden(forbidden, found, self.scan, self.plan.branch.kleene, self.statistics.count_neg)
            found = found.at(kept)
        if found.n:
            yield from self._extend(found, level + 1)

    def _events(self, step: Step, bindings: Bindings) -> Iterator[Bindings]:
        data, candidates = self.scan.data, self.scan.candidates
        of = candidates[step.name]
        lo, hi = bindings.scope(step.scope, self.scan.window, candidates, of)
        base = bindings.view(data, candidates)
        for rows, within in flat_blocks(hi - lo, self.scan.block_rows):
            positions = lo[rows] + within
            apart = bindings.apart(step.scope, candidates, of, rows, positions)
            if apart is not None:
                rows, positions = rows[apart], positions[apart]
            self.statistics.evaluations += len(rows)
            self.statistics.tests += len(rows)
            for clause in step.clauses:
                view = View(data, len(rows), {step.name: (of, positions)}, {}, base, rows)
                kept = np.flatnonzero(view.holds(clause, self.plan.branch.kleene))
                rows, positions = rows[kept], positions[kept]
            found = bindings.at(rows)
            found.singles[step.name] = positions
            ts = of.ts[positions]
            found.start = np.minimum(found.start, ts)
            found.end = np.maximum(found.end, ts)
            yield found

    def _sets(self, step: Step, bindings: Bindings, level: int) -> Iterator[Bindings]:
        rest = self.plan.steps[level:]
        first = all(not earlier.kleene for earlier in self.plan.steps[:level])
        limit = self.limit.for_steps(rest) if first else None
        yield from iterate(step, bindings, self.scan, self.plan.branch.kleene, self.statistics, limit)
