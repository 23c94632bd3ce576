"""Where the events of a name may be for given bound events, as tables made before the search (docs/automata.md#scopes).

For a bound event, each limit of the scope is a position among the other name's candidates. Both sides are sorted by
time, so one pass over both gives a whole table, and the search only looks positions up, without binary searches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.plan.steps import Scope
from chainlake.cep.search.compiled.lists.merge import first_positions
from chainlake.cep.search.compiled.passing.counted import counted_before
from chainlake.cep.search.compiled.text.code import Writer
from chainlake.cep.search.compiled.text.expressions import Expressions
from chainlake.cep.search.compiled.text.slots import Slots, Table

#: Gives the table of a bound name, a name and a shift.
_Table = Callable[[str, str, int], str]


class Scopes:
    """Makes the code of scopes.

    Args:
        branch: the branch.
        window: in ticks.
        make: gives columns, positions and names of locals.
    """

    def __init__(self, branch: Branch, window: int, make: Expressions) -> None:
        self.branch, self.window, self.make = branch, window, make
        #: for each bound name, the code of the position of its first and of its last event
        self.first: dict[str, str] = {}
        self.last: dict[str, str] = {}
        #: for each bound name, the local that holds the time of its single event, if there is one
        self.moments: dict[str, str] = {}

    def bind(self, name: str, first: str, last: str) -> None:
        """From now on ``name`` is bound."""
        self.first[name], self.last[name] = first, last

    def among(self, names: frozenset[str]) -> Scopes:
        """The same scopes while only ``names`` are bound."""
        found = Scopes(self.branch, self.window, self.make)
        for name in self.first:
            if name in names:
                found.bind(name, self.first[name], self.last[name])
        return found

    def code(self, name: str, scope: Scope, lo: str, hi: str, out: Writer) -> None:
        """Write statements that set ``lo`` and ``hi`` to the bounds of ``name``'s candidates in scope and in window."""
        self._bounds(name, scope, (lo, hi), self.table, out)

    def counted(self, name: str, scope: Scope, lo: str, hi: str, out: Writer) -> None:
        """The same among all candidates of ``name``, even if only those that can pass are searched."""
        self._bounds(name, scope, (lo, hi), self._counted_table if name in self.make.limited else self.table, out)

    def _bounds(self, name: str, scope: Scope, bounds: tuple[str, str], table: _Table, out: Writer) -> None:
        below, above = last_of(self.branch, scope.after), first_of(self.branch, scope.before)
        low, high = [(x, 1) for x in below], [(x, 0) for x in above]
        if not (low and high):
            # An event between bound events, which fit the window, does not make a match longer.
            low += [(x, -self.window) for x in last_of(self.branch, self.last) if x not in below]
            high += [(x, self.window + 1) for x in first_of(self.branch, self.first) if x not in above]
        self._extreme(bounds[0], [f"{table(x, name, shift)}[{self.last[x]}]" for x, shift in low], ">", out)
        self._extreme(bounds[1], [f"{table(x, name, shift)}[{self.first[x]}]" for x, shift in high], "<", out)

    def time(self, which: str, result: str, out: Writer) -> None:
        """Write statements that set ``result`` to the smallest (``first``) or largest (``last``) bound time."""
        names = first_of(self.branch, self.first) if which == "first" else last_of(self.branch, self.last)
        places = self.first if which == "first" else self.last
        times = [self.moments.get(name) or f"{self.ticks(name)}[{places[name]}]" for name in names]
        self._extreme(result, times, "<" if which == "first" else ">", out)

    def ticks(self, name: str) -> str:
        """The array of times of a name's candidates."""
        self.make.slots.reads(name)
        return self.make.slots.array("i", lambda scan: scan.candidates[name].ts, ("ts", name))

    def same(self, bound: str, name: str) -> str:
        """The table from a position among ``bound``'s candidates to that of the same event among ``name``'s, or -1."""

        def make(scan: Scan) -> np.ndarray:
            one, other = scan.candidates[bound], scan.candidates[name]
            places: np.ndarray = np.full(len(scan.data.ts), -1, np.int32)
            places[other.rows] = np.arange(len(other), dtype=np.int32)
            return places.take(one.rows)

        return self.make.slots.array("j", make, ("same", bound, name))

    def table(self, bound: str, name: str, shift: int) -> str:
        """The table from ``bound``'s candidates to how many candidates of ``name`` are before ts + ``shift``."""
        return self._looked_up("bounds", (bound, name, shift), self.make.slots.tables)

    def _counted_table(self, bound: str, name: str, shift: int) -> str:
        return self._looked_up("counted", (bound, name, shift), self.make.slots.counted)

    def _looked_up(self, kind: str, table: Table, recorded: dict[Table, None]) -> str:
        recorded[table] = None
        key = (kind, table)
        return self.make.slots.array("j", lambda scan: scan.arrays[key][0], key)

    def _extreme(self, result: str, values: list[str], sign: str, out: Writer) -> None:
        out.put(f"{result} = {values[0]}")
        for value in values[1:]:
            other = self.make.fresh()
            out.put(f"{other} = {value}", f"if {other} {sign} {result}:", f"    {result} = {other}")


def look_up(scan: Scan, slots: Slots) -> None:
    """Make all tables of scopes at once; they are kept with the scan."""
    tables, counted, all_ts = list(slots.tables), list(slots.counted), scan.data.ts
    apart = list(dict.fromkeys((bound, shift) for bound, _, shift in counted if shift))
    of = scan.candidates
    searches = [(of[bound].ts, shift, of[name].ts) for bound, name, shift in tables]
    found = first_positions(searches + [(of[bound].ts, shift, all_ts) for bound, shift in apart])
    before = counted_before(scan, counted, dict(zip(apart, found[len(tables) :], strict=True)))
    for kind, keys, arrays in (("bounds", tables, found), ("counted", counted, before)):
        scan.arrays.update({(kind, key): (array,) for key, array in zip(keys, arrays, strict=False)})


def last_of(branch: Branch, names: Iterable[str]) -> list[str]:
    """The names that none of the others follows in ≺; one of them has the latest event."""
    names = list(names)
    return [n for n in names if not any(n in branch.before[m] for m in names)]


def first_of(branch: Branch, names: Iterable[str]) -> list[str]:
    """The names that none of the others precedes in ≺; one of them has the earliest event."""
    names = list(names)
    return [n for n in names if not any(m in branch.before[n] for m in names)]
