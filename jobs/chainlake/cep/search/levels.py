"""The chain automaton, evaluated level by level over columns in bounded blocks (spec 3.4 batch variant, design §5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chainlake.cep.conditions.blocks import Bindings, flat_blocks
from chainlake.cep.conditions.evaluate import Candidates, View
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.plan.steps import Plan, Step
from chainlake.cep.search.kleene import SetLimit, iterate
from chainlake.cep.search.negation import not_forbidden
from chainlake.cep.search.statistics import Statistics


@dataclass
class Search:
    """The search for the matches of one branch.

    Args:
        data: the run's events.
        plan: the branch's plan.
        candidates: of every name, positive and negated.
        window: in ticks.
        limit: of the members of a set.
        block_rows: largest number of candidate bindings in memory at a time and level.
        statistics: what is counted.
    """

    data: Dataset
    plan: Plan
    candidates: dict[str, Candidates]
    window: int
    limit: SetLimit
    block_rows: int
    statistics: Statistics

    def run(self) -> Iterator[Bindings]:
        """All matches of the branch, each once, in blocks."""
        nothing = View(self.data, 1, {}, {})
        if all(nothing.holds(clause, frozenset())[0] for clause in self.plan.constant):
            yield from self._extend(Bindings.root(), 0)

    def _extend(self, bindings: Bindings, level: int) -> Iterator[Bindings]:
        if level == len(self.plan.steps):
            yield bindings
            return
        step = self.plan.steps[level]
        for found in self._sets(step, bindings, level) if step.kleene else self._events(step, bindings):
            for forbidden in step.forbidden:
                found = found.at(
                    not_forbidden(
                        forbidden,
                        found,
                        self.data,
                        self.candidates,
                        self.plan.branch.kleene,
                        self.window,
                        self.block_rows,
                        self.statistics.count_neg,
                    )
                )
            if found.n:
                yield from self._extend(found, level + 1)

    def _events(self, step: Step, bindings: Bindings) -> Iterator[Bindings]:
        of = self.candidates[step.name]
        lo, hi = bindings.scope(step.scope, self.window, self.candidates, of)
        base = bindings.view(self.data, self.candidates)
        for rows, within in flat_blocks(hi - lo, self.block_rows):
            positions = lo[rows] + within
            apart = bindings.apart(step.scope, self.candidates, of, rows, positions)
            if apart is not None:
                rows, positions = rows[apart], positions[apart]
            self.statistics.evaluations += len(rows)
            self.statistics.tests += len(rows)
            for clause in step.clauses:
                view = View(self.data, len(rows), {step.name: (of, positions)}, {}, base, rows)
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
        yield from iterate(
            step,
            bindings,
            self.data,
            self.candidates,
            self.plan.branch.kleene,
            self.window,
            self.block_rows,
            self.statistics,
            self.limit.for_steps(rest) if first else None,
        )
