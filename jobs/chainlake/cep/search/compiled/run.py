"""Runs one branch on the compiled backend: from candidates to blocks of matches."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from chainlake.cep.conditions.blocks import FAR, Bindings
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.plan.sizes import most_usable
from chainlake.cep.plan.steps import Plan
from chainlake.cep.remembered import Remembered
from chainlake.cep.search.binding.kleene import too_many
from chainlake.cep.search.bounding.cut import Cutter
from chainlake.cep.search.bounding.thresholds import BoundedBranch, Bounds
from chainlake.cep.search.compiled import machine
from chainlake.cep.search.compiled.best import Wanted, single_step
from chainlake.cep.search.compiled.bounded import BoundSlots
from chainlake.cep.search.compiled.generate import Generator, Limits
from chainlake.cep.search.compiled.lists.gathered import gather
from chainlake.cep.search.compiled.lists.scopes import look_up
from chainlake.cep.search.compiled.lists.skip import choose_loops, choose_selecting
from chainlake.cep.search.compiled.output import Output
from chainlake.cep.search.compiled.passing.leave_out import Together, only_passing
from chainlake.cep.search.compiled.text import slots as state
from chainlake.cep.search.compiled.text.errors import NotCompilable
from chainlake.cep.search.compiled.text.facts import Facts
from chainlake.cep.search.compiled.text.slots import Arguments, Slots
from chainlake.cep.search.statistics import Statistics

#: How many nested loops Python accepts.
NESTED = 20


@dataclass(frozen=True)
class Shape:
    """The code of a kernel, with what makes its arguments for any events that it fits.

    Args:
        source: the code.
        facts: what it assumes about the events.
        slots: its arguments.
        output: where it writes matches.
        capacity: the slot of how many matches a call may find.
        flat_capacity: the slot of how many members of sets a call may find.
        own: the slots of the owned decision times.
        skips: the names that are searched by value.
        passes: what leaves candidates out before the search, one pass after another.
        bound_slots: the slots of bounds, or None.
    """

    source: str
    facts: Facts
    slots: Slots
    output: Output
    capacity: str
    flat_capacity: str
    own: tuple[str, str]
    skips: tuple[str, ...]
    passes: tuple[Together, ...]
    bound_slots: BoundSlots | None = None


def make_shape(
    plan: Plan, scan: Scan, limits: Limits, wanted: Wanted | None = None, bounds: Bounds | None = None
) -> Shape:
    """The code of a plan for the events of a scan, and for all events for which the same facts hold.

    Args:
        plan, scan, limits: as in ``Compiled``.
        wanted: which matches it chooses; None for all.
        bounds: the bounds that it compares with thresholds, or None.

    Raises:
        NotCompilable: something in the plan has no code; the message says what.
    """
    facts = Facts(scan)
    if wanted is None:
        loops = choose_loops(plan, scan, every=bounds is None)
    else:
        loops = choose_selecting(plan, scan, single_step(plan, wanted))
    made = Generator(plan, facts, limits, loops, wanted, bounds)
    source = made.source()
    if _nested_loops(source) > NESTED:
        raise NotCompilable.loops(NESTED)
    facts.seal()
    skips = tuple(skip.name for skip in loops.skips.values())
    slots = made.bounded.bound_slots if made.bounded else None
    room = made.capacity, made.flat_capacity
    return Shape(source, facts, made.slots, made.output, *room, made.own, skips, loops.passes, slots)


@dataclass
class Compiled:
    """A branch that can be run as machine code.

    Args:
        scan: the events and candidates to search.
        plan: the branch's plan.
        limits: those of the pattern.
        memory: where shapes are kept.
        key: the key under which they are kept; how loops are run may differ only between keys.
        wanted: which matches it chooses; None for all. The plan binds their last event first.
        bounded: the thresholds that partial matches are compared with; None if there are none.

    Raises:
        NotCompilable: from ``shape`` and ``run``, if something in the plan has no code; the message says what.
    """

    scan: Scan
    plan: Plan
    limits: Limits
    memory: Remembered = field(default_factory=Remembered)
    key: Hashable = None
    wanted: Wanted | None = None
    bounded: BoundedBranch | None = None

    @cached_property
    def shape(self) -> Shape:
        """The kernel's code: the remembered one if it fits these events, else made again."""
        scan = self.scan
        if len(self.plan.branch.kleene) > 1:
            for step in (step for step in self.plan.steps if step.kleene):
                ts = scan.candidates[step.name].ts
                most = np.searchsorted(ts, ts + scan.window, "right") - np.arange(len(ts))
                if most.max(initial=0) > most_usable(step.size, self.limits.members):
                    raise NotCompilable.sets()
        if len(scan.data.ts) >= 2**31 - 1:
            raise NotCompilable.events()
        found = self.memory.recall(self._kept_as, Shape)
        if found is None or not found.facts.hold_for(scan):
            found = make_shape(self.plan, scan, self.limits, self.wanted, self._bounds)
            self.memory.keep(self._kept_as, found)
        return found

    def forget(self) -> None:
        """Forget the kernel's code, so that it is made again next time."""
        self.memory.forget(self._kept_as)

    @property
    def _kept_as(self) -> Hashable:
        return "shape", self.key, self.plan.order, self.wanted, self._bounds

    @property
    def _bounds(self) -> Bounds | None:
        return None if self.bounded is None else self.bounded.bounds

    def run(self, own: tuple[int, int] | None, statistics: Statistics, *, positions: bool) -> Iterator[Bindings]:
        """All matches of the branch that ``own`` owns, each once, in blocks.

        Args:
            own: ``[lo, hi)`` of decision times, or None for all.
            statistics: what is counted.
            positions: whether to give positions among the candidates, as ``Search.run`` does; else rows of the events.

        Raises:
            LimitExceeded: more events of one window are usable than allowed.
        """
        nothing = self.scan.nothing
        if not all(nothing.holds(clause, frozenset())[0] for clause in self.plan.constant):
            return
        shape = self.shape
        output, room = shape.output, self._room
        kernel = machine.load(shape.source)
        limited = {one.name for together in shape.passes for one in together}
        gather(self.scan, {name: attrs for name, attrs in shape.slots.read.items() if name not in limited})
        scan = only_passing(self.scan, shape.passes, shape.slots.read)
        look_up(scan, shape.slots)
        given = shape.slots.made(scan)
        cutter = None if self.bounded is None else Cutter(self.bounded, scan, self.plan.branch)
        if shape.bound_slots is not None and cutter is not None:
            shape.bound_slots.put(given, cutter, self.plan.order[0])
            shape.bound_slots.begin(given, cutter)
        flat = max([2 * room, *(len(self.scan.candidates[name]) + 1 for name in output.offsets)])
        lo, hi = own if own is not None else (-FAR, FAR)
        for name, value in zip((shape.flat_capacity, *shape.own), (flat, lo, hi), strict=True):
            given.set_number(name, value)
        for name, table in output.maps.items():
            given.put(table, self._map(name, scan.candidates[name].rows, positions))
        while True:
            room = self._room
            given.set_number(shape.capacity, room)
            self._make_room(given, output, room, flat)
            status = kernel(*given.arrays.values(), given.floats, given.ints, given.state)
            shared = given.state
            statistics.evaluations += int(shared[state.EVALUATIONS])
            statistics.evaluations_neg += int(shared[state.EVALUATIONS_NEG])
            statistics.evaluations_pre += int(shared[state.EVALUATIONS_PRE])
            statistics.tests += int(shared[state.TESTS])
            shared[state.EVALUATIONS : state.TESTS + 1] = 0
            if shape.bound_slots is not None and cutter is not None:
                shape.bound_slots.count(given, cutter)
            n = int(shared[state.FOUND])
            if n:
                yield _bindings(given, output, n)
            if status == state.LIMIT:
                step = next(step for step in self.plan.steps if step.kleene)
                raise too_many(int(shared[state.TOO_MANY]), step, self.limits.members)
            if status == state.DONE:
                return
            if shape.bound_slots is not None and cutter is not None:
                shape.bound_slots.begin(given, cutter)

    @property
    def _room(self) -> int:
        """How many matches a call may find; with ``per_initiator``, there may be one for each first event."""
        if self.bounded is not None:
            return min(self.bounded.thresholds.room, self.scan.block_rows)
        if self.wanted is None or self.wanted.select != "per_initiator":
            return self.scan.block_rows
        return max(self.scan.block_rows, len(self.scan.candidates[self.wanted.names[0]]))

    def _map(self, name: str, rows: np.ndarray, positions: bool) -> np.ndarray:
        """What is written for each candidate of a name; ``rows``: those of the candidates that are searched."""
        every = self.scan.candidates[name].rows if positions else rows
        if not positions:
            written = self.scan.data.rows_of(rows)
        else:
            written = np.arange(len(rows)) if len(rows) == len(every) else np.searchsorted(every, rows)
        return np.ascontiguousarray(written, np.int64)

    def _make_room(self, given: Arguments, output: Output, room: int, flat: int) -> None:
        """Make new arrays for the output of a call."""
        given.put(output.start, np.empty(room, np.int64))
        given.put(output.end, np.empty(room, np.int64))
        for name, where in output.rows.items():
            given.put(where, np.empty(flat if name in output.offsets else room, np.int32))
        for where in output.offsets.values():
            offsets = np.empty(room + 1, np.int64)
            offsets[0] = 0
            given.put(where, offsets)


def _bindings(given: Arguments, output: Output, n: int) -> Bindings:
    """The bindings that a call found."""
    singles = {name: _cut(given.array(rows), n) for name, rows in output.rows.items() if name not in output.offsets}
    groups = {}
    for name, where in output.offsets.items():
        offsets = given.array(where)
        groups[name] = _cut(offsets, n + 1), _cut(given.array(output.rows[name]), int(offsets[n]))
    return Bindings(n, singles, groups, _cut(given.array(output.start), n), _cut(given.array(output.end), n))


def _nested_loops(source: str) -> int:
    """How deeply the loops of a kernel are nested at most."""
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
    """An array shortened in place to its first ``n`` values, which frees the memory after them."""
    values.resize(n, refcheck=False)
    return values
