"""Selection in the kernel: one last event after another, of each only the matches that are wanted, never all of them.

The outermost loop runs over the last events in the order of time. What follows keeps the best match so far and passes
over all that cannot beat it; when the loop goes on, the match is written, and what it uses up is marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from chainlake.cep.events.any_type import share_events
from chainlake.cep.plan.steps import Step
from chainlake.cep.search.compiled.lists.site import Site
from chainlake.cep.search.compiled.text.code import Writer
from chainlake.cep.search.compiled.text.slots import Make


@dataclass(frozen=True)
class Wanted:
    """Which matches a kernel chooses, and what they use up.

    Args:
        select: ``first``, ``last`` or ``per_initiator``.
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


class Kernel(Site, Protocol):
    """A kernel under construction that chooses."""

    capacity: str

    @property
    def output(self) -> Output:
        """Where matches are put."""

    def forget_lists(self, number: int) -> None:
        """Have the lists that belong to the event of a step made anew."""

    def return_full(self, out: Writer) -> None:
        """Stop until the output is emptied."""


class Output(Protocol):
    """Where a kernel puts matches: names of the slots."""

    @property
    def start(self) -> str:
        """Smallest ts of each match."""

    @property
    def end(self) -> str:
        """Largest ts."""

    @property
    def rows(self) -> Mapping[str, str]:
        """Name to the row of its event."""

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
        decisive = wanted.names[1:-1] if self.per_initiator else wanted.names[:-1]
        #: names in the order in which they decide which of two matches is better
        self.decisive = decisive[::-1] if self.backward else decisive
        self.initiator = wanted.names[0]
        types = to.plan.branch.types
        #: names of which an event can be used up
        self.usable_once = frozenset(
            name for name in wanted.names if any(share_events(types[name], types[taken]) for taken in wanted.taken)
        )
        #: those among them that can have an event of another name
        self.shared = frozenset(
            name
            for name in self.usable_once
            if any(other != name and share_events(types[name], types[other]) for other in self.usable_once)
        )
        found = ["p0", "some"]
        if self.per_initiator:
            found += ["least", "most", self._kept(wanted.last)]
        else:
            found += [self._kept(name) for name in wanted.names]
        self.saved = [(to.slots.state(), local) for local in found]

    # ---- the loop over last events

    def write(self, step: Step) -> None:
        """The loop over last events, and what follows."""
        to = self.to
        out, name = to.out, step.name
        out.put("resume = 0", *(f"{local} = {place}" for place, local in self.saved))
        out.open("while True:")
        self._publish()
        out.put(f"if p0 >= {to.size(name)}:", "    break", "q0 = p0", "p0 += 1")
        for test in self.unused(name, "q0"):
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

    def unused(self, name: str, position: str) -> list[str]:
        """What is true of an event that is not used up."""
        return [f"({self._mark(name, position)} == 0)"] if name in self.usable_once else []

    def limit(self, name: str, lo: str, hi: str) -> None:
        """Narrow the scope of the name that decides first to what is as good as the best match."""
        if self.per_initiator or name != self.decisive[0]:
            return
        best = self._kept(name)
        if self.backward:
            self.to.out.put(f"if (some != 0) & ({lo} < {best}):", f"    {lo} = {best}")
        else:
            self.to.out.put(f"if (some != 0) & ({hi} > {best}):", f"    {hi} = {best} + 1")

    def prune(self, name: str, in_order: bool) -> None:
        """Pass over an event with which no match is better than the best one.

        Args:
            name: what was bound last.
            in_order: whether the events of its loop come in the order in which they decide, so that all others are
                worse than one that is.
        """
        singles = self.to.make.singles
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
        """Take the match that is bound as the best one; everything worse was passed over."""
        to, wanted = self.to, self.wanted
        out, singles = to.out, to.make.singles
        if not self.per_initiator:
            out.put(*(f"{self._kept(name)} = {singles[name]}" for name in wanted.names), "some = 1")
            return
        at, last = singles[self.initiator], singles[wanted.last]
        test = self._some()
        if not self.decisive:
            out.put(f"if {test}:", "    continue")
        out.put(f"{self._seen}[{at}] = {last} + 1")
        out.put(*(f"{self._best(name)} = {singles[name]}" for name in self.decisive))
        out.open("if some == 0:")
        out.put(f"{self._kept(wanted.last)} = {last}", f"least = {at}", f"most = {at}", "some = 1")
        out.close()
        out.put(f"least = min(least, {at})", f"most = max(most, {at})")

    def _kept(self, name: str) -> str:
        """The local that holds the position of a name's event in the best match."""
        return f"y{self.wanted.names.index(name)}"

    @property
    def _seen(self) -> str:
        """The array that says of each initiator with which last event it was seen."""
        return self.to.slots.array("j", _zeros(self.initiator, np.int32), ("seen", self.initiator))

    def _some(self) -> str:
        """Whether there is a best match to compare with."""
        if not self.per_initiator:
            return "some != 0"
        singles = self.to.make.singles
        return f"{self._seen}[{singles[self.initiator]}] == {singles[self.wanted.last]} + 1"

    def _best(self, name: str, initiator: str | None = None) -> str:
        """The position of a name's event in the best match: of the initiator that is bound, or the one given."""
        if not self.per_initiator:
            return self._kept(name)
        table = self.to.slots.array("j", _zeros(self.initiator, np.int32), ("best", name))
        return f"{table}[{initiator or self.to.make.singles[self.initiator]}]"

    def _mark(self, name: str, position: str) -> str:
        """The place that says whether an event is used up."""
        slots = self.to.slots
        if name not in self.shared:
            return f"{slots.array('b', _zeros(name, np.bool_), ('used', name))}[{position}]"
        rows = slots.array("i", lambda scan: scan.candidates[name].rows, ("rows of", name))
        used = slots.array("b", lambda scan: np.zeros(len(scan.data.ts), np.bool_), "used")
        return f"{used}[{rows}[{position}]]"

    # ---- what is published

    def _publish(self) -> None:
        """Write what was chosen for the last event before, and mark what it uses up."""
        to, out, wanted = self.to, self.to.out, self.wanted
        out.open("if some != 0:")
        needed = "most - least + 1" if self.per_initiator else "1"
        out.open(f"if n + {needed} > {to.capacity}:")
        out.put(*(f"{place} = {local}" for place, local in self.saved))
        to.return_full(out)
        out.close()
        if not self.per_initiator:
            self._row({name: self._kept(name) for name in wanted.names}, out)
            out.put("some = 0")
            out.close()
            return
        at, last = to.make.fresh(), self._kept(wanted.last)
        out.put("some = 0", f"{at} = least - 1")
        out.open(f"while {at} < most:")
        out.put(f"{at} += 1", f"if {self._seen}[{at}] != {last} + 1:", "    continue")
        places = {self.initiator: at, wanted.last: last}
        places |= {name: self._best(name, at) for name in self.decisive}
        if not wanted.together:
            for name in wanted.names:
                for test in self.unused(name, places[name]):
                    out.put(f"if not {test}:", "    continue")
        self._row(places, out)
        out.close(2)

    def _row(self, places: dict[str, str], out: Writer) -> None:
        """Write a match, and mark what it uses up."""
        to, wanted = self.to, self.wanted
        for name in to.plan.order:
            out.put(f"{to.output.rows[name]}[n] = {to.output.maps[name]}[{places[name]}]")
        out.put(f"{to.output.start}[n] = {to.scopes.ticks(wanted.names[0])}[{places[wanted.names[0]]}]")
        out.put(f"{to.output.end}[n] = {to.scopes.ticks(wanted.last)}[{places[wanted.last]}]", "n += 1")
        out.put(*(f"{self._mark(name, places[name])} = 1" for name in wanted.taken))


def _zeros(name: str, kind: type) -> Make:
    """What makes an array with a place for each candidate of a name."""
    return lambda scan: np.zeros(len(scan.candidates[name]), kind)
