"""One search of a pattern in some events: how each branch is searched, and what is found."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from chainlake.cep.conditions.blocks import Bindings
from chainlake.cep.conditions.evaluate import Candidates
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.completion import Completion, completion_of
from chainlake.cep.search.binding.complete import Completer
from chainlake.cep.search.binding.kleene import SetLimit
from chainlake.cep.search.binding.levels import Search
from chainlake.cep.search.bounding.cut import Cutter
from chainlake.cep.search.bounding.thresholds import BoundedBranch
from chainlake.cep.search.choosing.backend import Decision, decide
from chainlake.cep.search.choosing.choice import Choice, OrderRequest, choose, likeness
from chainlake.cep.search.compiled.generate import Limits
from chainlake.cep.search.compiled.run import Compiled
from chainlake.cep.search.dedupe import also_matches
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.cep.search.found.measured import measured
from chainlake.cep.search.selection.modes import kernel_choice
from chainlake.cep.search.statistics import Statistics


@dataclass(frozen=True)
class Ready:
    """How a branch is searched.

    Args:
        number: the number of the branch.
        choice: the order of its names.
        compiled: its machine code, not yet made.
        decision: what it runs on.
        key: the key under which the choice is remembered.
    """

    number: int
    choice: Choice
    compiled: Compiled
    decision: Decision
    key: Hashable

    @property
    def chooses(self) -> bool:
        """Whether the search itself finds only the wanted matches."""
        return self.decision.compiled is not None and self.compiled.wanted is not None


@dataclass
class Run:
    """One search of a pattern.

    Args:
        pattern: the pattern.
        data: the events.
        own: ``[lo, hi)`` of owned decision times, or None for all.
        statistics: what is counted.
        chooses: whether kernels choose among the matches if the pattern wants only some of them and they can.
        scans: one of each branch, up to the one that is searched.
        bounded: for each branch, the thresholds of the best matches; empty if all matches are wanted.
    """

    pattern: Pattern
    data: Dataset
    own: tuple[int, int] | None
    statistics: Statistics
    chooses: bool = False
    scans: list[Scan] = field(default_factory=list)
    bounded: Sequence[BoundedBranch] = ()

    @property
    def by_start(self) -> bool:
        """Whether kernels take ``own`` as a range of the ends of windows rather than of matches, which they do unless
        matches are compared."""
        return self.pattern.open_right and not self.pattern.extras.keep

    @cached_property
    def within(self) -> tuple[int, int]:
        """The earliest and latest time at which its matches can be decided, given the events and ``own``."""
        lo, hi = self.data.ends
        at_end = self.pattern.decision == "end"
        if not at_end:
            lo, hi = lo + self.pattern.window_us, hi + self.pattern.window_us
        if self.own is None or at_end == self.by_start:
            return lo, hi
        return max(lo, self.own[0]), min(hi, self.own[1] - 1)

    def ready(self, number: int, request: OrderRequest) -> Ready:
        """How a branch is searched."""
        pattern, scan, statistics = self.pattern, self.scans[number], self.statistics
        branch = pattern.branches[number]
        able = kernel_choice(pattern, branch) if self.chooses and request.backend != "numpy" else None
        wanted = able.wanted if able is not None else None
        if wanted is not None:
            request = replace(request, first=wanted.last)
        key = (number, request, likeness(scan), self.bounded[number].bounds.period if self.bounded else "")
        choice = pattern.memory.recall(key, Choice)
        if choice is None:
            choice = choose(pattern, branch, scan, request)
            pattern.memory.keep(key, choice)
        statistics.order.append(choice.plan.order)
        statistics.how = choice.how
        limits = Limits(pattern.window_us, self.by_start, pattern.limits["kleene_members"])
        bounded = self.bounded[number] if self.bounded else None
        compiled = Compiled(scan, choice.plan, limits, pattern.memory, key, wanted, bounded)
        decision = decide(request.backend, compiled, choice.estimate)
        statistics.backends.append((decision.backend, decision.why))
        return Ready(number, choice, compiled, decision, key)

    def found(self, ready: Ready, doubles: Sequence[int]) -> Iterator[MatchBatch]:
        """The matches of a branch that none of the branches ``doubles`` finds."""
        number, choice, decision = ready.number, ready.choice, ready.decision
        pattern, scan, statistics = self.pattern, self.scans[number], self.statistics
        branch, before = pattern.branches[number], statistics.evaluations
        pause, most = pattern.extras.pause, pattern.limits["set_members"]
        completion = pattern.memory.recall(("completion", number), Completion)
        if completion is None:
            completion = completion_of(branch, pause)
            pattern.memory.keep(("completion", number), completion)
        complete = Completer(completion, scan, most, statistics)
        positions = bool(doubles or pattern.extras.values) or not completion.is_nothing
        cutter = Cutter(self.bounded[number], scan, branch) if self.bounded else None
        bound = self._blocks(scan, choice, decision.compiled, cutter, positions=positions)
        whole = completion.is_nothing
        for found in bound if whole else (one for block in bound for _, one in complete.run(block)):
            for earlier in doubles:
                double = also_matches(pattern.branches[earlier], branch, found, scan, self.scans[earlier], pause)
                found = found.only(~double)
            if found.n:
                yield self.batch(number, found, positions=decision.compiled is None or positions)
        evaluations = statistics.evaluations - before
        if not choice.held(evaluations):
            pattern.memory.forget(ready.key)
            ready.compiled.forget()
        elif choice.evaluations is None:
            pattern.memory.keep(ready.key, replace(choice, evaluations=evaluations))

    def batch(self, number: int, found: Bindings, *, positions: bool = True) -> MatchBatch:
        """Matches of a branch, with what is computed from them.

        Args:
            number: the number of the branch.
            found: the matches, bound to positions among the candidates or to rows of the events table.
            positions: whether they are bound to positions.
        """
        pattern, scan = self.pattern, self.scans[number]
        batch = _batch(number, found, scan.candidates if positions else None, self)
        if pattern.extras.values and not found.groups.keys() - pattern.branches[number].sets:
            batch = replace(batch, measures=measured(pattern, number, found, scan))
        return batch

    def _blocks(
        self, scan: Scan, choice: Choice, compiled: Compiled | None, cutter: Cutter | None, *, positions: bool
    ) -> Iterator[Bindings]:
        """What a backend finds, limited to owned matches."""
        if compiled is not None:
            yield from compiled.run(self.own, self.statistics, positions=positions)
            return
        pattern, own = self.pattern, self.own
        members = pattern.limits["kleene_members"]
        limit = SetLimit(members, self.by_start, own, pattern.window_us, self.data.clock)
        for found in Search(scan, choice.plan, limit, self.statistics, cutter).run():
            if own is not None:
                decided = self.data.real(found.start + pattern.window_us if self.by_start else found.end)
                found = found.only((decided >= own[0]) & (decided < own[1]))
            yield found


def _batch(number: int, found: Bindings, candidates: dict[str, Candidates] | None, run: Run) -> MatchBatch:
    """Bindings as a batch; they hold positions among ``candidates`` or, if that is None, rows of the events table."""
    data, pattern = run.data, run.pattern

    def rows(name: str, positions: np.ndarray) -> np.ndarray:
        return positions if candidates is None else data.rows_of(candidates[name].rows[positions])

    start, end = data.real(found.start), data.real(found.end)
    return MatchBatch(
        number,
        found.n,
        start,
        end,
        end if pattern.decision == "end" else start + pattern.window_us,
        {name: rows(name, positions) for name, positions in found.singles.items()},
        {name: (offsets, rows(name, flat)) for name, (offsets, flat) in found.groups.items()},
        within=run.within,
    )
