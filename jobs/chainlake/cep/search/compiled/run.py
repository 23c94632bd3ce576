"""One branch on the compiled backend: from candidates to blocks of matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chainlake.cep.conditions.blocks import FAR, Bindings
from chainlake.cep.conditions.evaluate import Candidates, View
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.plan.steps import Plan
from chainlake.cep.search.compiled import machine
from chainlake.cep.search.compiled import slots as state
from chainlake.cep.search.compiled.expressions import NotCompilable
from chainlake.cep.search.compiled.generate import Generator
from chainlake.cep.search.compiled.skip import choose_skips
from chainlake.cep.search.compiled.slots import place
from chainlake.cep.search.kleene import too_many
from chainlake.cep.search.statistics import Statistics

#: Loops within each other that Python takes.
NESTED = 20


@dataclass
class Compiled:
    """A branch that can be run as machine code.

    Args:
        data: the run's events.
        plan: the branch's plan.
        candidates: of every name, positive and negated.
        window: in ticks.
        by_start: whether matches decide at start + window.
        members: largest number of members of a set.

    Raises:
        NotCompilable: by ``source`` and ``run``: something in the plan has no code; the message says what.
    """

    data: Dataset
    plan: Plan
    candidates: dict[str, Candidates]
    window: int
    by_start: bool
    members: int

    @cached_property
    def _generated(self) -> tuple[Generator, str]:
        if len(self.plan.branch.kleene) > 1:
            for name in self.plan.branch.kleene:
                ts = self.candidates[name].ts
                most = np.searchsorted(ts, ts + self.window, "right") - np.arange(len(ts))
                if most.max(initial=0) > self.members:
                    raise NotCompilable("several repeated events, and more of one in a window than kleene_members")
        if len(self.data.ts) >= 2**31 - 1:
            raise NotCompilable("more than 2^31 events at once")
        skips, lists = choose_skips(self.plan, self.data, self.candidates, self.window)
        made = Generator(self.plan, self.data, self.candidates, self.window, self.by_start, skips, lists, self.members)
        source = made.source()
        if _nested_loops(source) > NESTED:
            raise NotCompilable(f"more than {NESTED} loops within each other")
        return made, source

    @property
    def source(self) -> str:
        """The kernel's source."""
        return self._generated[1]

    @property
    def skips(self) -> list[str]:
        """The names that are searched by value."""
        return [skip.name for skip in self._generated[0].skips.values()]

    def run(
        self, own: tuple[int, int] | None, block_rows: int, statistics: Statistics, *, positions: bool
    ) -> Iterator[Bindings]:
        """All matches of the branch that ``own`` owns, each once, in blocks.

        Args:
            own: ``[lo, hi)`` of decision times, or None for all.
            block_rows: largest number of matches of a block.
            statistics: what is counted.
            positions: give positions among the candidates, as ``Search.run`` does; else rows of the events table.

        Raises:
            LimitExceeded: more usable events in one window than allowed.
        """
        nothing = View(self.data, 1, {}, {})
        if not all(nothing.holds(clause, frozenset())[0] for clause in self.plan.constant):
            return
        made, source = self._generated
        kernel = machine.load(source)
        slots, output = made.slots, made.output
        floats, ints, bools, shorts = slots.made()
        lo, hi = own if own is not None else (-FAR, FAR)
        numbers = np.array(slots.int_constants, np.int64)
        flat = max([2 * block_rows, *(len(self.candidates[name]) + 1 for name in output.offsets)])
        given = {made.capacity: block_rows, made.flat_capacity: flat, made.own[0]: lo, made.own[1]: hi}
        for name, value in given.items():
            numbers[place(name)] = value
        for name, table in output.maps.items():
            rows = self.candidates[name].rows
            shorts[place(table)] = (np.arange(len(rows)) if positions else self.data.rows_of(rows)).astype(np.int32)
        constants = np.array(slots.float_constants, np.float64)
        shared = np.zeros(slots.states, np.int64)
        while True:
            ints[place(output.start)], ints[place(output.end)] = np.empty((2, block_rows), np.int64)
            for name, where in output.rows.items():
                shorts[place(where)] = np.empty(flat if name in output.offsets else block_rows, np.int32)
            for where in output.offsets.values():
                ints[place(where)] = np.empty(block_rows + 1, np.int64)
                ints[place(where)][0] = 0
            status = kernel(floats, ints, bools, shorts, constants, numbers, shared)
            statistics.evaluations += int(shared[state.EVALUATIONS])
            statistics.evaluations_neg += int(shared[state.EVALUATIONS_NEG])
            statistics.evaluations_pre += int(shared[state.EVALUATIONS_PRE])
            statistics.tests += int(shared[state.TESTS])
            shared[state.EVALUATIONS : state.TESTS + 1] = 0
            n = int(shared[state.FOUND])
            if n:
                yield Bindings(
                    n,
                    {name: _cut(shorts[place(where)], n) for name, where in output.rows.items()
                     if name not in output.offsets},
                    {
                        name: (
                            _cut(ints[place(where)], n + 1),
                            _cut(shorts[place(output.rows[name])], int(ints[place(where)][n])),
                        )
                        for name, where in output.offsets.items()
                    },
                    _cut(ints[place(output.start)], n),
                    _cut(ints[place(output.end)], n),
                )  # fmt: skip
            if status == state.LIMIT:
                raise too_many(int(shared[state.TOO_MANY]), next(iter(output.offsets)), self.members)
            if status == state.DONE:
                return


def _nested_loops(source: str) -> int:
    """How many loops of a kernel lie within each other at most."""
    deepest, around = 0, list[int]()
    for line in source.splitlines():
        depth = len(line) - len(line.lstrip())
        while around and around[-1] >= depth:
            around.pop()
        if line.startswith("while ", depth):
            around.append(depth)
            deepest = max(deepest, len(around))
    return deepest


def _cut(values: np.ndarray, n: int) -> np.ndarray:
    """The first ``n`` values, without keeping much more than these in memory."""
    return values[:n] if 2 * n > len(values) else values[:n].copy()
