"""What was nearly a match: for each step of the search, how many candidates each condition ended, with examples.

This is the search of ``chainlake.cep.search.binding.levels``, but it looks at what is dropped, condition by condition:
of several conditions that an event fails, the first one tested is named. Unknown counts as failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.conditions.blocks import Bindings, flat_blocks
from chainlake.cep.conditions.evaluate import Candidates, View
from chainlake.cep.conditions.scan import BLOCK_ROWS, Scan
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.explain.nearness import distances
from chainlake.cep.explain.parts import conjunction
from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.completion import completion_of
from chainlake.cep.plan.steps import Forbidden, Plan, Step
from chainlake.cep.search.binding.complete import Completer
from chainlake.cep.search.binding.kleene import SetLimit, iterate
from chainlake.cep.search.binding.negation import not_forbidden
from chainlake.cep.search.find import candidates_of, dataset, find
from chainlake.cep.search.keys import parts_by_key
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import LimitExceeded

#: How many examples of each reason are kept.
EXAMPLES = 3

#: Name to the row of its event in the events table, or to the rows of its set.
Example = dict[str, Any]


@dataclass
class Miss:
    """A reason that ended candidates.

    Args:
        reason: the condition, in words.
        count: how many it ended.
        examples: those that were nearest to fulfilling it, where that is a number, otherwise the first ones.
        distances: how far each example is from it; see ``chainlake.cep.explain.nearness``.
    """

    reason: str
    count: int = 0
    examples: list[Example] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)

    def room(self, apart: np.ndarray) -> np.ndarray:
        """Which of some candidates, by their distances, would be among the examples; the nearest first."""
        limit = np.inf if len(self.examples) < EXAMPLES else self.distances[-1]
        nearest = np.argsort(apart, kind="stable")[:EXAMPLES]
        return nearest if len(self.examples) < EXAMPLES else nearest[apart[nearest] < limit]

    def add(self, examples: Sequence[Example], apart: Sequence[float]) -> None:
        """Keep the nearest of the examples and these."""
        every = [*zip(self.distances, self.examples, strict=True), *zip(apart, examples, strict=True)]
        every.sort(key=lambda one: one[0])
        self.distances = [distance for distance, _ in every[:EXAMPLES]]
        self.examples = [example for _, example in every[:EXAMPLES]]


@dataclass
class Stage:
    """A step of the search.

    Args:
        what: what the step does, in words.
        entered: candidates tested.
        left: those that passed.
        misses: why the others did not, in the order of testing.
    """

    what: str
    entered: int = 0
    left: int = 0
    misses: dict[str, Miss] = field(default_factory=dict)

    def drop(self, reason: str, count: int) -> Miss:
        """Count candidates that a reason ended; returns the reason, for examples to be added."""
        miss = self.misses.setdefault(reason, Miss(reason))
        miss.count += count
        return miss


@dataclass
class Report:
    """The near misses of one branch.

    Args:
        plan: how the branch was searched.
        stages: events of each name, then the steps in the order of binding.
        matches: matches found.
    """

    plan: Plan
    stages: list[Stage]
    matches: int = 0


def near_misses(
    pattern: Pattern, events: pa.Table, plans: Sequence[Plan], own: tuple[int, int], block_rows: int = BLOCK_ROWS
) -> list[Report]:
    """The near misses of matches decided in ``own``, for each branch.

    Steps before the last one cannot know when a match would be decided, so they count all candidates.

    Args:
        pattern: the pattern.
        events: as for ``chainlake.cep.find``, of ``pattern.read_range(own)``.
        plans: of each branch.
        own: decision times, half-open, in ticks.
        block_rows: bounds the memory.

    Raises:
        LimitExceeded: a set has more usable members than the pattern allows.
    """

    def reports(parts: np.ndarray | None) -> list[Report]:
        data = dataset(pattern, events, own, by_id=True, parts=parts)
        probes = [_Probe(pattern, data, plan, own, block_rows) for plan in plans]
        if not pattern.neighbours:
            return [probe.report() for probe in probes]
        # No condition decides which events are neighbours, so a branch of neighbours has no step to look at.
        found: Counter[int] = Counter()
        for batch in find(pattern, events, own=own):
            found[batch.branch] += batch.n
        return [
            probe.report() if plan.branch.stream is None else Report(plan, probe.names(), found[number])
            for number, (plan, probe) in enumerate(zip(plans, probes, strict=True))
        ]

    try:
        # Two events with different keys are a near miss, too, as long as that does not make sets too large.
        return reports(None)
    except LimitExceeded:
        parts = parts_by_key(pattern, events)
        if parts is None:
            raise
    return reports(parts)


def nearness(reports: Sequence[Report]) -> tuple[int, int, float]:
    """How near candidates came to a match, to compare days by: in how late a step the last of them failed, at how late
    a condition of it, and how close they were to that one's limit."""

    def of(report: Report) -> tuple[int, int, float]:
        for late, stage in reversed([*enumerate(report.stages)]):
            for last, miss in reversed([*enumerate(stage.misses.values())]):
                if miss.count:
                    return late, last, -min(miss.distances, default=np.inf)
        return -1, -1, -np.inf

    return max((of(report) for report in reports), default=(-1, -1, -np.inf))


def alone(pattern: Pattern, events: pa.Table, plans: Sequence[Plan]) -> list[list[Stage]]:
    """For each branch and name, how many events the conditions on the name alone let it be bound to.

    Args:
        pattern: the pattern.
        events: as for ``chainlake.cep.find``.
        plans: of each branch.
    """
    own = everything(pattern, events)
    data = dataset(pattern, events, own, by_id=True)
    return [_Probe(pattern, data, plan, own, BLOCK_ROWS).names() for plan in plans]


def everything(pattern: Pattern, events: pa.Table) -> tuple[int, int]:
    """Decision times, half-open, of all matches that the events can have."""
    ticks = pc.cast(events["ts"], pa.int64())
    return pc.min(ticks).as_py(), pc.max(ticks).as_py() + pattern.window_us + 1


class _Probe:
    def __init__(self, pattern: Pattern, data: Dataset, plan: Plan, own: tuple[int, int], block_rows: int) -> None:
        self.pattern, self.data, self.plan, self.own = pattern, data, plan, own
        self.branch: Branch = plan.branch
        self.scan = Scan(data, candidates_of(pattern, self.branch, data, own), pattern.window_us, block_rows)
        self.completion = completion_of(self.branch, pattern.extras.pause)
        members = pattern.limits["kleene_members"]
        self.limit = SetLimit(members, pattern.open_right, own, pattern.window_us, data.clock)

    def names(self) -> list[Stage]:
        """The events of each name."""
        return [self._name(name) for name in (*self.plan.order, *self.branch.gaps, *self.branch.until)]

    def report(self) -> Report:
        """All steps of the search."""
        steps = [Stage(f"{'iterate' if step.kleene else 'take'} {step.name}") for step in self.plan.steps]
        last = [Stage("complete")] * (not self.completion.is_nothing)
        report = Report(self.plan, [*self.names(), *steps, *last])
        nothing = View(self.data, 1, {}, {})
        if all(nothing.holds(clause, frozenset())[0] for clause in self.plan.constant):
            for bound in self._extend(Bindings.root(), 0, steps):
                found = self._completed(bound, last[0]) if last else bound
                decided = self.data.real(found.start + self.pattern.window_us if self.pattern.open_right else found.end)
                report.matches += int(np.count_nonzero((decided >= self.own[0]) & (decided < self.own[1])))
        return report

    def _completed(self, found: Bindings, stage: Stage) -> Bindings:
        """The bindings that PAUSE, UNTIL and COLLECT keep."""
        whole = self.completion
        bare = replace(whole, pause=None, until=(), gatherings=(), finished=())
        tests = [("the pause", replace(bare, pause=whole.pause))] if whole.pause is not None else []
        tests += [(f"{self._forbids(one)} inside it", replace(bare, until=(one,))) for one in whole.until]
        if whole.gatherings:
            sets = ", ".join(one.name for one in whole.gatherings)
            tests.append((f"the set of {sets}", replace(whole, pause=None, until=())))
        stage.entered += found.n
        for reason, completion in tests:
            complete = Completer(completion, self.scan, None, Statistics())
            kept = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _ in complete.run(found))])
            self._drop(stage, reason, found, np.setdiff1d(np.arange(found.n), kept))
            found = found.at(np.sort(kept))
        stage.left += found.n
        return found

    def _name(self, name: str) -> Stage:
        """The events of the name's type, and which conditions on the name alone they fail."""
        kind = self.branch.types[name]
        forbidden = name in self.branch.negated or name in self.branch.until
        collected = name in {one.name for one in self.branch.collected}
        role = ", forbidden" if forbidden else ", collected" if collected else ""
        stage = Stage(f"{kind} {name}{role}")
        of = Candidates(self.data, self.data.of_type(kind))
        stage.entered = len(of)
        left = np.arange(len(of))
        for clause in self.plan.routing[name]:
            good = View(self.data, len(left), {name: (of, left)}, {}).holds(clause, frozenset())
            dropped = left[~good]
            miss = stage.drop(conjunction([clause]), len(dropped))
            apart = distances(clause, View(self.data, len(dropped), {name: (of, dropped)}, {}))
            nearest = miss.room(apart)
            rows = self.data.rows[of.rows[dropped[nearest]]].tolist()
            miss.add([{name: row} for row in rows], apart[nearest].tolist())
            left = left[good]
        stage.left = len(left)
        return stage

    def _extend(self, bindings: Bindings, level: int, stages: list[Stage]) -> Iterator[Bindings]:
        if level == len(self.plan.steps):
            yield bindings
            return
        step, stage = self.plan.steps[level], stages[level]
        for found in self._sets(step, bindings, level, stage) if step.kleene else self._events(step, bindings, stage):
            for forbidden in step.forbidden:
                kept = self._allowed(forbidden, found)
                self._drop(stage, self._forbids(forbidden), found, np.setdiff1d(np.arange(found.n), kept))
                found = found.at(kept)
            stage.left += found.n
            if found.n:
                yield from self._extend(found, level + 1, stages)

    def _allowed(self, forbidden: Forbidden, found: Bindings) -> np.ndarray:
        return not_forbidden(forbidden, found, self.scan, self.branch.kleene, lambda tests: None)

    def _forbids(self, forbidden: Forbidden) -> str:
        where = f" where {conjunction(forbidden.clauses)}" if forbidden.clauses else ""
        return f"a forbidden {forbidden.name}{where}"

    def _events(self, step: Step, bindings: Bindings, stage: Stage) -> Iterator[Bindings]:
        of = self.scan.candidates[step.name]
        lo, hi = bindings.scope(step.scope, self.pattern.window_us, self.scan.candidates, of)
        self._alone(step, bindings, np.flatnonzero(hi <= lo), stage)
        base = bindings.view(self.data, self.scan.candidates)
        for rows, within in flat_blocks(hi - lo, self.scan.block_rows):
            positions = lo[rows] + within
            stage.entered += len(rows)
            apart = bindings.apart(step.scope, self.scan.candidates, of, rows, positions)
            every = _extended(bindings, step.name, of, rows, positions)
            left = np.arange(len(rows))
            if apart is not None:
                self._drop(stage, "it is bound to another name", every, np.flatnonzero(~apart))
                left = np.flatnonzero(apart)
            for clause in step.clauses:
                view = View(self.data, len(left), {step.name: (of, positions[left])}, {}, base, rows[left])
                good = view.holds(clause, self.branch.kleene)
                self._fail(stage, clause, every, left[~good])
                left = left[good]
            yield every.at(left)

    def _sets(self, step: Step, bindings: Bindings, level: int, stage: Stage) -> Iterator[Bindings]:
        of = self.scan.candidates[step.name]
        lo, hi = bindings.scope(step.scope, self.pattern.window_us, self.scan.candidates, of)
        self._alone(step, bindings, np.flatnonzero(hi <= lo), stage)
        base = bindings.view(self.data, self.scan.candidates)
        for rows, within in flat_blocks(hi - lo, self.scan.block_rows):
            positions, left = lo[rows] + within, np.arange(len(rows))
            every = _extended(bindings, step.name, of, rows, positions)
            for clause in step.member_clauses:
                view = View(self.data, len(left), {step.name: (of, positions[left])}, {}, base, rows[left])
                good = view.holds(clause, self.branch.kleene)
                self._drop(stage, f"members: {conjunction([clause])}", every, left[~good])
                left = left[good]
        first = all(not earlier.kleene for earlier in self.plan.steps[:level])
        bare = replace(step, clauses=())
        limit = self.limit.for_steps(self.plan.steps[level:]) if first else None
        for found in iterate(bare, bindings, self.scan, self.branch.kleene, Statistics(), limit):
            stage.entered += found.n
            left = np.arange(found.n)
            for clause in step.clauses:
                view = found.at(left).view(self.data, self.scan.candidates)
                good = view.holds(clause, self.branch.kleene)
                self._fail(stage, clause, found, left[~good])
                left = left[good]
            yield found.at(left)

    def _alone(self, step: Step, bindings: Bindings, rows: np.ndarray, stage: Stage) -> None:
        """Count partial matches that find no event where order and window allow one."""
        if bindings.singles or bindings.groups:
            self._drop(stage, f"no {step.name} in the right order within the window", bindings, rows)

    def _fail(self, stage: Stage, clause: Clause, bindings: Bindings, rows: np.ndarray) -> None:
        """Count partial matches that a condition ended."""
        apart = distances(clause, bindings.at(rows).view(self.data, self.scan.candidates))
        self._drop(stage, conjunction([clause]), bindings, rows, apart)

    def _drop(
        self, stage: Stage, reason: str, bindings: Bindings, rows: np.ndarray, apart: np.ndarray | None = None
    ) -> None:
        miss, apart = stage.drop(reason, len(rows)), np.full(len(rows), np.inf) if apart is None else apart
        nearest = miss.room(apart)
        if len(nearest):
            miss.add(self._examples(bindings.at(rows[nearest])), apart[nearest].tolist())

    def _examples(self, bindings: Bindings) -> list[Example]:
        found: list[Example] = [{} for _ in range(bindings.n)]
        for name, positions in bindings.singles.items():
            for one, row in zip(found, self._rows(name, positions), strict=True):
                one[name] = row
        for name, (offsets, flat) in bindings.groups.items():
            rows = self._rows(name, flat)
            for number, one in enumerate(found):
                one[name] = rows[offsets[number] : offsets[number + 1]]
        return found

    def _rows(self, name: str, positions: np.ndarray) -> list[int]:
        """Rows of the events table."""
        found: list[int] = self.data.rows[self.scan.candidates[name].rows[positions]].tolist()
        return found


def _extended(bindings: Bindings, name: str, of: Candidates, rows: np.ndarray, positions: np.ndarray) -> Bindings:
    """The bindings ``rows``, each with one more event."""
    found = bindings.at(rows)
    found.singles[name] = positions
    found.start = np.minimum(found.start, of.ts[positions])
    found.end = np.maximum(found.end, of.ts[positions])
    return found
