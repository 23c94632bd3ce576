"""Selection in the kernel: for one last event after another, only the matches that are wanted, never all of them.

The outermost loop runs over the last events in time order. The loops inside it keep the best match so far and
skip all that cannot beat it; when the outermost loop continues, the match is written, and what it uses up is marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from chainlake.cep.events.any_type import share_events
from chainlake.cep.plan.steps import Plan, Step
from chainlake.cep.search.compiled.lists.kernel_context import KernelContext
from chainlake.cep.search.compiled.text.code import Writer
from chainlake.cep.search.compiled.text.slots import Make


@dataclass(frozen=True)
class Wanted:
    """Which matches a kernel chooses, and what they use up.

    Args:
        select: ``first``, ``last``, ``per_initiator`` or ``accumulate``.
        names: all names of a match in the order of their events.
        taken: the names whose events are used up.
        together: whether the matches of one last event are published before any of them uses events up.
    """

    select: str
    names: tuple[str, ...]
    taken: tuple[str, ...]
    together: bool

    @property
    def last(self) -> str:
        """The name of the last event."""
        return self.names[-1]


def decisive_of(wanted: Wanted) -> tuple[str, ...]:
    """The names in the order in which they decide which of two matches is better."""
    names = wanted.names[1:-1] if wanted.select == "per_initiator" else wanted.names[:-1]
    return names[::-1] if wanted.select == "last" else names


def single_step(plan: Plan, wanted: Wanted | None) -> int | None:
    """The step that wants only one event, or None: the last step, if it decides between matches that differ
    only in its event, so that the first event found, from the best on, is the best."""
    decides = wanted is not None and wanted.select != "accumulate" and plan.order[-1] in decisive_of(wanted)
    return len(plan.order) - 1 if decides else None


class Kernel(KernelContext, Protocol):
    """A kernel under construction that chooses among matches."""

    capacity: str

    @property
    def output(self) -> Output:
        """Where matches are written."""

    def written(self, name: str) -> str:
        """The local that counts the events written for a name that is bound to sets."""

    def return_full(self, out: Writer) -> None:
        """Stop until the output has been emptied."""


class Output(Protocol):
    """Where a kernel writes matches: names of the slots."""

    @property
    def start(self) -> str:
        """Smallest ts of each match."""

    @property
    def end(self) -> str:
        """Largest ts of each match."""

    @property
    def rows(self) -> Mapping[str, str]:
        """Name to the row of its event."""

    @property
    def offsets(self) -> Mapping[str, str]:
        """For names that are bound to sets, where each set begins in ``rows``."""

    @property
    def maps(self) -> Mapping[str, str]:
        """Name to the table from candidates to rows."""


class Best:
    """Writes the choice among the matches of one last event.

    Args:
        to: the kernel's generator, whose first step binds the last event.
        wanted: what is chosen.
    """

    def __init__(self, to: Kernel, wanted: Wanted) -> None:
        self.to, self.wanted = to, wanted
        self.backward = wanted.select == "last"
        self.per_initiator = wanted.select == "per_initiator"
        self.accumulates = wanted.select == "accumulate"
        self.decisive = decisive_of(wanted)
        self.initiator = wanted.names[0]
        types = to.plan.branch.types
        #: names whose events can be used up
        self.usable_once = frozenset(
            name for name in wanted.names if any(share_events(types[name], types[taken]) for taken in wanted.taken)
        )
        #: those of them that can have the same event as another name
        self.shared = frozenset(
            name
            for name in self.usable_once
            if any(other != name and share_events(types[name], types[other]) for other in self.usable_once)
        )
        found = ["p0", "some"]
        if self.per_initiator or self.accumulates:
            ranged = wanted.names[:-1] if self.accumulates else wanted.names[:1]
            found += [local for name in ranged for local in self._range(name)] + [self._kept(wanted.last)]
        else:
            found += [self._kept(name) for name in wanted.names]
        self.saved = [(to.slots.state(), local) for local in found]

    # ---- the loop over last events

    def write(self, step: Step) -> None:
        """Write the loop over last events, and what is inside it."""
        to = self.to
        out, name = to.out, step.name
        out.put("resume = 0", *(f"{local} = {place}" for place, local in self.saved))
        out.open("while True:")
        self._publish()
        out.put(f"if p0 >= {to.size(name)}:", "    break", "q0 = p0", "p0 += 1")
        for test in self._free(name, "q0"):
            out.put(f"if not {test}:", "    continue")
        moment = to.make.fresh()
        out.put(f"{moment} = {to.scopes.ticks(name)}[q0]")
        to.unless_owned(moment, moment, "continue")
        out.put("E += 1", "T += 1")
        to.make.singles[name] = "q0"
        to.scopes.bind(name, "q0", "q0")
        to.forget_lists(0)
        to.enter(step, 0)
        out.close()

    # ---- what can be part of a better match

    def useful(self, name: str, position: str) -> list[str]:
        """Tests that an event passes if it is not used up and may be part of a better match."""
        tests, order = self._free(name, position), self.to.plan.order
        if self._has_dead_ends and name == order[1]:
            tests.append(f"({self._dead(position)} == 0)")
        if self.accumulates and name == order[-1] and self.to.lists.get(len(order) - 1) == len(order) - 2:
            tests.append(f"((fresh != 0) | ({self._seen(name)}[{position}] != q0 + 1))")
        return tests

    def limit(self, name: str, lo: str, hi: str) -> None:
        """Narrow the scope of the name that decides first to events as good as that of the best match."""
        out, order = self.to.out, self.to.plan.order
        if self._has_dead_ends and name == order[2]:
            out.put(f"wide = {hi}")
        if self.accumulates:
            if name == order[-1]:
                unseen = [f"({test})" for test in map(self._is_new, order[1:-1])]
                out.put(f"fresh = int({' | '.join(unseen) or 'False'})")
        elif not self.per_initiator and name == self.decisive[0]:
            best = self._kept(name)
            if self.backward:
                out.put(f"if (some != 0) & ({lo} < {best}):", f"    {lo} = {best}")
            else:
                out.put(f"if (some != 0) & ({hi} > {best}):", f"    {hi} = {best} + 1")

    def note_dead_end(self, number: int, count: str) -> None:
        """Remember an event before which no event fits, since for later last events even fewer are in reach.

        Args:
            number: the number of the step whose list was made.
            count: the local that holds how many events the list has.
        """
        if not self._has_dead_ends or number != 2:
            return
        # Only the list of the last step may leave out events that were seen.
        narrowed = self.accumulates and number == len(self.to.plan.order) - 1
        whole = f"({count} == 0) & (hi2 == wide)" + (" & (fresh != 0)" if narrowed else "")
        position = self.to.make.singles[self.to.plan.order[1]]
        self.to.out.put(f"if {whole}:", f"    {self._dead(position)} = 1")

    @cached_property
    def _has_dead_ends(self) -> bool:
        """Whether the third name comes before the second, and is compared only with it."""
        plan, to = self.to.plan, self.to
        each = to.lists.get(2) == 1 or 2 in to.searches
        if len(plan.order) < 3 or not each or self.backward and self.decisive[0] == plan.order[2]:
            return False
        second, step = plan.order[1], plan.steps[2]
        named = frozenset[str]().union(*(clause.names for clause in step.clauses))
        return second in plan.branch.after[step.name] and named <= {second, step.name}

    def _dead(self, position: str) -> str:
        name = self.to.plan.order[1]
        return f"{self.to.slots.array('b', _zeros(name, np.bool_), ('dead', name))}[{position}]"

    def _free(self, name: str, position: str) -> list[str]:
        """Tests that an event passes if it is not used up."""
        return [f"({self._mark(name, position)} == 0)"] if name in self.usable_once else []

    def prune(self, name: str, in_order: bool) -> None:
        """Skip an event with which no match is better than the best one.

        Args:
            name: the name that was bound last.
            in_order: whether the events of its loop come in the order in which they decide, so that all events after a
                worse one are worse, too.
        """
        singles = self.to.make.singles
        if self.accumulates:
            if name == self.to.plan.order[-1]:
                self.to.out.put(f"if (fresh == 0) & ({self._seen(name)}[{singles[name]}] == q0 + 1):", "    continue")
            return
        prefix = []
        for one in self.decisive:
            if one not in singles:
                break
            prefix.append(one)
        initiated = not self.per_initiator or self.initiator in singles
        if not prefix or not initiated or name not in (*prefix, *([self.initiator] if self.per_initiator else [])):
            return
        test, sign = "", "<" if self.backward else ">"
        for one in reversed(prefix):
            mine, best = singles[one], self._best(one)
            rest = f" | (({mine} == {best}) & {test})" if test else ""
            test = f"(({mine} {sign} {best}){rest})"
        jump = "break" if in_order and name in prefix else "continue"
        self.to.out.put(f"if {self._some()}:", f"    if {test}:", f"        {jump}")

    def keep(self) -> None:
        """Take the bound match as the best one, since everything worse was skipped."""
        to, wanted = self.to, self.wanted
        out, singles = to.out, to.make.singles
        if self.accumulates:
            self._gather()
            return
        if not self.per_initiator:
            out.put(*(f"{self._kept(name)} = {singles[name]}" for name in wanted.names), "some = 1")
            return
        if not self.decisive:
            out.put(f"if {self._some()}:", "    continue")
        out.put(*(f"{self._best(name)} = {singles[name]}" for name in self.decisive))
        self._see([self.initiator])

    def _gather(self) -> None:
        """Take all events of the bound match."""
        self.to.out.put("fresh = 0")
        self._see(self.wanted.names[:-1])

    def _see(self, names: Sequence[str]) -> None:
        """Note that the bound events of these names are in a match with this last event."""
        out, singles, last = self.to.out, self.to.make.singles, self.wanted.last
        out.open("if some == 0:")
        for name in names:
            least, most = self._range(name)
            out.put(f"{least} = {singles[name]}", f"{most} = {singles[name]}")
        out.put(f"{self._kept(last)} = {singles[last]}", "some = 1")
        out.close()
        for name in names:
            least, most = self._range(name)
            out.put(f"{least} = min({least}, {singles[name]})", f"{most} = max({most}, {singles[name]})")
            out.put(f"{self._seen(name)}[{singles[name]}] = {singles[last]} + 1")

    def _range(self, name: str) -> tuple[str, str]:
        """The locals that hold the first and the last position seen among a name's events."""
        number = self.wanted.names.index(name)
        return f"least{number}", f"most{number}"

    def _is_new(self, name: str) -> str:
        """Whether the bound event has not been seen with this last event."""
        singles = self.to.make.singles
        return f"{self._seen(name)}[{singles[name]}] != {singles[self.wanted.last]} + 1"

    def _kept(self, name: str) -> str:
        """The local that holds the position of a name's event in the best match."""
        return f"y{self.wanted.names.index(name)}"

    def _seen(self, name: str) -> str:
        """The array that holds, for each event of a name, with which last event it was seen."""
        return self.to.slots.array("j", _zeros(name, np.int32), ("seen", name))

    def _some(self) -> str:
        """Whether there is a best match to compare with."""
        if not self.per_initiator:
            return "some != 0"
        singles = self.to.make.singles
        return f"{self._seen(self.initiator)}[{singles[self.initiator]}] == {singles[self.wanted.last]} + 1"

    def _best(self, name: str, initiator: str | None = None) -> str:
        """The position of a name's event in the best match of the bound initiator, or of the given one."""
        if not self.per_initiator:
            return self._kept(name)
        table = self.to.slots.array("j", _zeros(self.initiator, np.int32), ("best", name))
        return f"{table}[{initiator or self.to.make.singles[self.initiator]}]"

    def _mark(self, name: str, position: str) -> str:
        """The place that holds whether an event is used up."""
        slots = self.to.slots
        if name not in self.shared:
            return f"{slots.array('b', _zeros(name, np.bool_), ('used', name))}[{position}]"
        rows = slots.array("i", lambda scan: scan.candidates[name].rows, ("rows of", name))
        used = slots.array("b", lambda scan: np.zeros(len(scan.data.ts), np.bool_), "used")
        return f"{used}[{rows}[{position}]]"

    # ---- what is published

    def _publish(self) -> None:
        """Write the matches chosen for the previous last event, and mark what they use up."""
        to, out, wanted = self.to, self.to.out, self.wanted
        out.open("if some != 0:")
        least, most = self._range(self.initiator)
        needed = f"{most} - {least} + 1" if self.per_initiator else "1"
        out.open(f"if n + {needed} > {to.capacity}:")
        out.put(*(f"{place} = {local}" for place, local in self.saved))
        to.return_full(out)
        out.close()
        out.put("some = 0")
        if self.accumulates:
            self._sets(out)
        elif self.per_initiator:
            at = self._open_seen(self.initiator, out)
            places = {self.initiator: at, wanted.last: self._kept(wanted.last)}
            places |= {name: self._best(name, at) for name in self.decisive}
            if not wanted.together:
                for name in wanted.names:
                    for test in self._free(name, places[name]):
                        out.put(f"if not {test}:", "    continue")
            self._row(places, out)
            out.close()
        else:
            self._row({name: self._kept(name) for name in wanted.names}, out)
        out.close()

    def _open_seen(self, name: str, out: Writer) -> str:
        """Open the loop over the events of a name that were seen; returns the local that holds their position."""
        at, (least, most) = self.to.make.fresh(), self._range(name)
        out.put(f"{at} = {least} - 1")
        out.open(f"while {at} < {most}:")
        seen = f"{self._seen(name)}[{at}]"
        out.put(f"{at} += 1", f"if {seen} != {self._kept(self.wanted.last)} + 1:", "    continue")
        return at

    def _sets(self, out: Writer) -> None:
        """Write all events that were seen as one row, and mark them as used up."""
        to, wanted = self.to, self.wanted
        for name in wanted.names:
            rows, table, written = to.output.rows[name], to.output.maps[name], to.written(name)
            at = self._kept(name) if name == wanted.last else self._open_seen(name, out)
            out.put(f"{rows}[{written}] = {table}[{at}]", f"{written} += 1", f"{self._mark(name, at)} = 1")
            if name != wanted.last:
                out.close()
            out.put(f"{to.output.offsets[name]}[n + 1] = {written}")
        self._times(self._range(wanted.names[0])[0], self._kept(wanted.last), out)

    def _times(self, first: str, last: str, out: Writer) -> None:
        """Write the times of the first and last event of a row, which completes it."""
        to, wanted = self.to, self.wanted
        out.put(f"{to.output.start}[n] = {to.scopes.ticks(wanted.names[0])}[{first}]")
        out.put(f"{to.output.end}[n] = {to.scopes.ticks(wanted.last)}[{last}]", "n += 1")

    def _row(self, places: dict[str, str], out: Writer) -> None:
        """Write a match, and mark what it uses up."""
        to, wanted = self.to, self.wanted
        for name in to.plan.order:
            out.put(f"{to.output.rows[name]}[n] = {to.output.maps[name]}[{places[name]}]")
        self._times(places[wanted.names[0]], places[wanted.last], out)
        out.put(*(f"{self._mark(name, places[name])} = 1" for name in wanted.taken))


def _zeros(name: str, kind: type) -> Make:
    """A function that makes an array of zeros with a place for each candidate of a name."""
    return lambda scan: np.zeros(len(scan.candidates[name]), kind)
