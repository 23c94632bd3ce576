"""The search for neighbours: level by level, by place.

Conditions on one event are computed for all events beforehand. So the places where a name can begin such that the
others can follow are found first, from the end backwards, and then only beginnings that can be completed are extended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from chainlake.cep.conditions.blocks import flat_blocks
from chainlake.cep.conditions.evaluate import Candidates, View
from chainlake.cep.conditions.scan import BLOCK_ROWS
from chainlake.cep.language.normal_form import Clause
from chainlake.cep.search.statistics import Statistics
from chainlake.cep.search.strict.end_ranges import EndRanges, RunEnds, fitting, no_more
from chainlake.cep.search.strict.form import ANY_NUMBER, Form
from chainlake.cep.search.strict.runs import Runs, portions
from chainlake.cep.search.strict.stream import Stream

#: How many members of a set the first round of a test of members looks at; later rounds look at more.
_FIRST_ROUND = 4


@dataclass
class Search:
    """The search of one branch in one stream.

    Args:
        stream: the events.
        form: the conditions on them.
        largest: whether only matches that grow as far as they can are wanted, if that is known before they are made.
        allowed: which events may be in a match; None for all.
        statistics: what is counted.
        block_rows: bounds the memory.
    """

    stream: Stream
    form: Form
    largest: bool
    allowed: np.ndarray | None
    statistics: Statistics
    block_rows: int = BLOCK_ROWS
    _accepted: dict[str, np.ndarray] = field(default_factory=dict, init=False)
    _counts: dict[int, np.ndarray] = field(default_factory=dict, init=False)
    _places: dict[int, np.ndarray] = field(default_factory=dict, init=False)

    def run(self) -> Iterator[Runs]:
        """All matches, each once, or those that ``largest`` wants; forbidden events are not yet tested."""
        form, stream = self.form, self.stream
        nothing = View(stream.data, 1, {}, {})
        if not len(stream) or not all(nothing.holds(clause, frozenset())[0] for clause in form.constant):
            return
        if any(least > most for least, most in form.sizes.values()):
            return
        found = self._alone() if len(form.names) == 1 else self._together()
        for runs in found:
            yield from self._whole(runs)

    # ---- conditions on one event

    def _accepts(self, number: int) -> np.ndarray:
        """Which events the name accepts by conditions on them alone."""
        name = self.form.names[number]
        if name not in self._accepted:
            branch = self.form.branch
            accepted = self.stream.holds(branch, name, branch.own[name])
            self._accepted[name] = accepted if self.allowed is None else accepted & self.allowed
            self.statistics.evaluations += len(accepted)
        return self._accepted[name]

    @cached_property
    def _run_ends(self) -> dict[str, RunEnds]:
        """For each repeated name, how far accepted neighbours continue from an accepted event."""
        return {
            name: RunEnds(~(self._accepts(number) & self.stream.joined))
            for number, name in enumerate(self.form.names)
            if name in self.form.branch.kleene
        }

    @cached_property
    def _followed(self) -> list[np.ndarray]:
        """For each name except the last, and each event: whether the next name can begin right after it."""
        found: list[np.ndarray] = []
        for number in range(len(self.form.names) - 1, 0, -1):
            begins = self._begins(number, found[-1] if found else None) & self.stream.joined
            found.append(np.append(begins[1:], False))
        return found[::-1]

    def _begins(self, number: int, followed: np.ndarray | None) -> np.ndarray:
        """Where a name can begin such that the next one can follow."""
        name = self.form.names[number]
        accepted = self._accepts(number)
        if name not in self.form.branch.kleene:
            return accepted if followed is None else accepted & followed
        least, most = self.form.sizes[name]
        if followed is None and least == 1:
            return accepted
        if followed is not None and least == 1 and most == ANY_NUMBER:
            led: np.ndarray = accepted & self._leads(accepted, followed)
            return led
        place = np.flatnonzero(accepted)
        stop = self._run_ends[name].of(place)
        if followed is None:
            fits = stop - place >= least - 1
        else:
            before = self._counted(number, followed)
            until = no_more(stop, place, most) + 1
            fits = before[until] > before[place if least == 1 else np.minimum(place + (least - 1), until)]
        found = np.zeros(len(accepted), bool)
        found[place[fits]] = True
        return found

    def _leads(self, accepted: np.ndarray, followed: np.ndarray) -> np.ndarray:
        """Whether each accepted event, or a later one reached by accepted neighbours, is followed by the next name."""
        leads = accepted & followed
        breaks = np.append(~(accepted & self.stream.joined)[1:], True)
        ends = np.flatnonzero(leads | breaks)
        return np.repeat(leads[ends], np.diff(ends, prepend=-1))

    def _counted(self, number: int, followed: np.ndarray) -> np.ndarray:
        """For each place, how many earlier events are followed by the next name."""
        if number not in self._counts:
            self._counts[number] = np.concatenate([[0], np.cumsum(followed)])
        return self._counts[number]

    # ---- one name

    def _alone(self) -> Iterator[Runs]:
        name = self.form.names[0]
        accepted = self._accepts(0)
        if name not in self.form.branch.kleene:
            places = np.flatnonzero(accepted)
            yield Runs(len(places), {name: places}, {name: places})
            return
        least, most = self.form.sizes[name]
        if self.largest and self.form.longest_is_largest:
            yield self._pieces(name, accepted)
            return
        begins = np.flatnonzero(accepted)
        last = self.stream.latest(begins, np.minimum(self._run_ends[name].of(begins), begins + (most - 1)))
        counts = np.maximum(last - begins - (least - 2), 0)
        for rows, within in flat_blocks(counts, self.block_rows):
            first = begins[rows]
            yield Runs(len(rows), {name: first}, {name: first + (least - 1) + within})

    def _pieces(self, name: str, accepted: np.ndarray) -> Runs:
        """The longest pieces of each stretch that the window and the size allow."""
        least, most = self.form.sizes[name]
        stream = self.stream
        goes_on = np.zeros(len(stream), bool)
        goes_on[1:] = accepted[1:] & accepted[:-1] & stream.joined[1:]
        stretches = np.flatnonzero(accepted & ~goes_on)
        ends = np.flatnonzero(accepted & ~np.append(goes_on[1:], False))
        if not stream.bounded and int((ends - stretches).max(initial=0)) < most:
            kept = ends - stretches >= least - 1
            return Runs(int(np.count_nonzero(kept)), {name: stretches[kept]}, {name: ends[kept]})
        begins = np.flatnonzero(accepted)
        stop = np.repeat(ends, ends - stretches + 1)
        last = stream.latest(begins, np.minimum(stop, begins + (most - 1)))
        # A piece that ends where the previous one ends is part of it.
        further = ~goes_on[begins]
        further[1:] |= last[1:] > last[:-1]
        kept = further & (last - begins >= least - 1)
        return Runs(int(np.count_nonzero(kept)), {name: begins[kept]}, {name: last[kept]})

    # ---- several names

    def _together(self) -> Iterator[Runs]:
        """Matches of several names, extended from the last event of the first name, which the second name follows."""
        name = self.form.names[0]
        places = self._accepts(0) & self._followed[0]
        anchors = np.flatnonzero(places)
        least = self.form.sizes[name][0]
        if least > 1:
            anchors = anchors[anchors - self._starts[anchors] >= least - 1]
        for low in range(0, len(anchors), self.block_rows):
            some = anchors[low : low + self.block_rows]
            yield from self._extend(Runs(len(some), {name: some}, {name: some}), 1)

    def _extend(self, runs: Runs, number: int) -> Iterator[Runs]:
        form, stream = self.form, self.stream
        if not runs.n:
            return
        if number == len(form.names):
            yield from self._grown(runs)
            return
        name, before = form.names[number], form.names[number - 1]
        begin = runs.last[before] + 1
        if name == form.last:
            yield from self._extend(runs.bind(name, begin, begin), number + 1)
            return
        anchor = runs.last[form.names[0]]
        if name not in form.branch.kleene:
            found = runs.bind(name, begin, begin).only(stream.near(anchor, begin))
            yield from self._extend(self._tested(found, name), number + 1)
            return
        least, most = form.sizes[name]
        until = stream.latest(anchor, no_more(self._run_ends[name].of(begin), begin, most))
        members = self._members_of(name)
        if members:
            until = self._reached(runs, name, (begin, until), members)
        ends, followed = self._ends(number), self._counted(number, self._followed[number])
        low = followed[begin if least == 1 else np.minimum(begin + (least - 1), len(stream))]
        counts = np.maximum(followed[until + 1] - low, 0)
        if counts.min() == counts.max() == 1:
            # Each has exactly one continuation, as when prices go either up or down.
            yield from self._extend(self._tested(runs.bind(name, begin, ends[low]), name), number + 1)
            return
        for rows, within in flat_blocks(counts, self.block_rows):
            found = runs.at(rows).bind(name, begin[rows], ends[low[rows] + within])
            yield from self._extend(self._tested(found, name), number + 1)

    def _ends(self, number: int) -> np.ndarray:
        """The events that are followed by the next name."""
        if number not in self._places:
            self._places[number] = np.flatnonzero(self._followed[number])
        return self._places[number]

    def _members_of(self, name: str) -> tuple[Clause, ...]:
        """The conditions that each event of an inner repeated name passes on its own, given the names before it."""
        return tuple(c for c in self._ready(name) if name in c.plain and name not in c.aggregated)

    def _ready(self, name: str) -> list[Clause]:
        """The conditions on inner names for which this name is the last to be bound."""
        names = self.form.names
        bound = set(names[: names.index(name) + 1])
        return [clause for clause in self.form.inner if name in clause.names and clause.names <= bound]

    def _tested(self, runs: Runs, name: str) -> Runs:
        """The matches that pass the conditions that can be tested once this name is bound."""
        done = self._members_of(name) if name in self.form.branch.kleene else ()
        return self._passing(runs, tuple(clause for clause in self._ready(name) if clause not in done))

    def _passing(self, runs: Runs, clauses: tuple[Clause, ...]) -> Runs:
        stream, branch = self.stream, self.form.branch
        for clause in clauses:
            if not runs.n:
                break
            view = runs.bindings(stream, branch, clause.names).view(stream.data, self._candidates)
            self.statistics.evaluations += runs.n
            runs = runs.only(view.holds(clause, branch.kleene))
        return runs

    @cached_property
    def _candidates(self) -> dict[str, Candidates]:
        return dict.fromkeys(self.form.names, self.stream.candidates)

    def _reached(
        self, runs: Runs, name: str, places: tuple[np.ndarray, np.ndarray], clauses: tuple[Clause, ...]
    ) -> np.ndarray:
        """How far a name reaches such that each of its events passes some conditions.

        Args:
            runs: matches in which the other names of the conditions are bound.
            name: the name.
            places: where it begins, and how far it may reach; the first name of the branch grows to the left.
            clauses: the conditions.

        Returns:
            the farthest place of each; the place before its beginning if even that fails.
        """
        stream, branch = self.stream, self.form.branch
        begin, until = places
        step = -1 if name == self.form.first else 1
        found = begin - step
        others = frozenset().union(*(clause.names for clause in clauses)) - {name}
        base = runs.bindings(stream, branch, others).view(stream.data, self._candidates)
        live, width = np.flatnonzero((until - begin) * step >= 0), _FIRST_ROUND
        while len(live):
            counts = np.minimum((until[live] - found[live]) * step, width)
            passed = []
            for rows, within in flat_blocks(counts, self.block_rows):
                at = stream.positions(found[live[rows]] + step * (1 + within))
                view = View(stream.data, len(rows), {name: (stream.candidates, at)}, {}, base, live[rows])
                passed.append(np.logical_and.reduce([view.holds(clause, branch.kleene) for clause in clauses]))
            good = np.concatenate(passed)
            self.statistics.evaluations += len(good)
            # Up to the first that fails.
            fails = np.concatenate([[0], np.cumsum(~good)])
            offsets = np.concatenate([[0], np.cumsum(counts)])
            steps = np.searchsorted(fails, fails[offsets[:-1]], "right") - 1 - offsets[:-1]
            steps = np.minimum(steps, counts)
            found[live] += step * steps
            live = live[(steps == counts) & ((until[live] - found[live]) * step > 0)]
            width = min(width * 4, self.block_rows)
        return found

    # ---- the names at both ends

    def _grown(self, runs: Runs) -> Iterator[Runs]:
        """The matches with all stretches, or the largest, of the first and the last name."""
        form = self.form
        runs, ends = fitting(runs, self._room(runs))
        first, last = form.first, form.last
        if first is not None and (members := form.members(first)):
            ends.earliest = self._reached(runs, first, (runs.last[first], ends.earliest), members)
            runs, ends = fitting(runs, ends)
        if last is not None and (members := form.members(last)):
            ends.latest = self._reached(runs, last, (runs.first[last], ends.latest), members)
            runs, ends = fitting(runs, ends)
        every = self._largest if self.largest and form.longest_is_largest else self._every
        for at, begin, end in every(ends):
            found = runs if at is None else runs.at(at)
            if first is not None:
                found = found.bind(first, begin, found.last[first])
            if last is not None:
                found = found.bind(last, found.first[last], end)
            yield found

    def _room(self, runs: Runs) -> EndRanges:
        """How far the first and the last name can reach, given the others, by conditions on single events, sizes and
        the window."""
        form, stream = self.form, self.stream
        begin, end = runs.last[form.names[0]], runs.first[form.names[-1]]
        (least, most), (least_last, most_last) = form.sizes[form.names[0]], form.sizes[form.names[-1]]
        high, low = begin - (least - 1), end + (least_last - 1)
        inside = (high >= 0) & (low < len(stream))
        if not inside.all():
            high, low = np.where(inside, high, 0), np.where(inside, low, 0)
        earliest, latest = high, low
        if form.last is not None:
            latest = no_more(self._run_ends[form.last].of(end), end, most_last)
            latest = stream.latest(high, np.maximum(latest, high))
        if form.first is not None:
            earliest = np.maximum(self._starts[begin], begin - (most - 1))
            earliest = stream.earliest(low, np.minimum(earliest, low))
        return EndRanges(earliest, high, low, latest, inside & stream.near(high, low))

    @cached_property
    def _starts(self) -> np.ndarray:
        """For each event that the first name accepts, the first place from which all events up to it are accepted
        neighbours."""
        marked = ~self.stream.joined
        marked[1:] |= ~self._accepts(0)[:-1]
        return np.maximum.accumulate(np.where(marked, np.arange(len(marked)), 0))

    def _every(self, ends: EndRanges) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """All pairs of a first place from ``earliest`` to ``high`` and a last one from ``low`` to ``latest`` that the
        window allows: the row of each pair, its first place and its last place."""
        for rows, within in flat_blocks(ends.high - ends.earliest + 1, self.block_rows):
            first = ends.earliest[rows] + within
            until = self.stream.latest(first, ends.latest[rows])
            for at, more in flat_blocks(np.maximum(until - ends.low[rows] + 1, 0), self.block_rows):
                yield rows[at], first[at], ends.low[rows[at]] + more

    def _largest(self, ends: EndRanges) -> Iterator[tuple[np.ndarray | None, np.ndarray, np.ndarray]]:
        """The pairs of ``_every`` that no other one contains; rows are None if each match has one pair."""
        # From this first place on, the last place is ``latest``, so later first places only give shorter pairs.
        enough = np.minimum(self.stream.earliest(ends.latest, ends.earliest), ends.high)
        counts = enough - ends.earliest + 1
        if counts.max(initial=1) == 1:
            yield None, ends.earliest, self.stream.latest(ends.earliest, ends.latest)
            return
        for rows, within in flat_blocks(counts, self.block_rows):
            first, latest = ends.earliest[rows] + within, ends.latest[rows]
            last = self.stream.latest(first, latest)
            before = self.stream.latest(np.maximum(first - 1, 0), latest)
            kept = (within == 0) | (last > before)
            yield rows[kept], first[kept], last[kept]

    def _whole(self, runs: Runs) -> Iterator[Runs]:
        """The matches that pass the conditions on whole matches."""
        if not self.form.whole:
            if runs.n:
                yield runs
            return
        for some in portions(runs, self.form.names, self.block_rows):
            found = self._passing(some, self.form.whole)
            if found.n:
                yield found
