"""The matches of a branch of ``SEQ STRICT`` in batches: found by place, tested for forbidden events, decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chainlake.cep.conditions.scan import BLOCK_ROWS
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.cep.search.found.measured import measured
from chainlake.cep.search.statistics import Statistics
from chainlake.cep.search.strict.form import Form
from chainlake.cep.search.strict.rest import Rest
from chainlake.cep.search.strict.runs import Runs, joined, largest_per_boundary, outermost, portions
from chainlake.cep.search.strict.search import Search
from chainlake.cep.search.strict.stream import Source, Stream, streams

#: How many members a batch's sets have at most, unless one match has more.
_MEMBERS = 8 * BLOCK_ROWS


@dataclass(frozen=True)
class Ask:
    """What is asked of a branch.

    Args:
        source: the events to search.
        number: the number of the branch.
        own: ``[lo, hi)`` of owned decision times; None for all.
        counted: ``[lo, hi)`` of the times for which stretches that are too long are counted; None for all.
        keep: ``MAXIMAL`` or ``OUTERMOST`` within this branch; empty for all matches.
        room: how many bound events may be held for comparison.
        block_rows: bounds the memory.
    """

    source: Source
    number: int
    own: tuple[int, int] | None
    counted: tuple[int, int] | None
    keep: str
    room: Room
    block_rows: int = BLOCK_ROWS

    @property
    def branch(self) -> Branch:
        """The branch."""
        return self.source.pattern.branches[self.number]

    @property
    def is_known(self) -> bool:
        """Whether the matches to keep are known without comparing matches."""
        return self.keep == "MAXIMAL" and Form(self.branch).longest_is_largest


class TooMany(Exception):
    """More bound events would have to be held at a time than the limit allows."""


@dataclass
class Room:
    """How many bound events may be held, so that memory has a bound.

    Args:
        most: how many may be held.
        held: how many are held.
    """

    most: int
    held: int = 0

    def take(self, number: int) -> None:
        """Count more bound events as held.

        Raises:
            TooMany: there are too many.
        """
        self.held += number
        if self.held > self.most:
            raise TooMany


def found(ask: Ask, statistics: Statistics) -> Iterator[MatchBatch]:
    """The matches of the branch, or only those that are kept within it.

    Raises:
        TooMany: too many matches would have to be compared.
        LimitExceeded: a set has too many members.
        DefinitionError: neighbours of one key are asked for, but there is no key.
    """
    found = _found(ask, statistics)
    # Comparisons are complete before any match is given, so that the range can be halved if there are too many.
    for rest, runs in [*found] if ask.keep and not ask.is_known else found:
        start, end = rest.stream.real(runs.first[rest.names[0]]), rest.stream.real(runs.last[rest.names[-1]])
        decided = _decided(ask.source, rest.stream, runs.last[rest.names[-1]], (start, end))
        times, at = (start, end, decided), 0
        if ask.own is not None:
            rows = np.flatnonzero((decided >= ask.own[0]) & (decided < ask.own[1]))
            runs, times = runs.at(rows), (start[rows], end[rows], decided[rows])
        for part in portions(runs, rest.names, _MEMBERS):
            some = tuple(of[at : at + part.n] for of in times)
            at += part.n
            yield from _batches(ask, rest, part, some)


def _found(ask: Ask, statistics: Statistics) -> Iterator[tuple[Rest, Runs]]:
    """The kept combinations of each stream."""
    pattern = ask.source.pattern
    for stream in streams(ask.source, ask.branch):
        allowed = None
        if pattern.longest is not None:
            allowed, long = _not_too_long(stream, pattern.longest, whole=pattern.by_pause, own=ask.counted)
            if all(b.stream != ask.branch.stream for b in pattern.branches[: ask.number]):
                statistics.long_stretches += long
        search = Search(stream, Form(ask.branch), bool(ask.keep), allowed, statistics, ask.block_rows)
        rest = Rest.of(pattern, ask.branch, stream, ask.block_rows, statistics)
        for runs in _kept(ask, rest, search.run()):
            yield rest, runs


def _batches(ask: Ask, rest: Rest, runs: Runs, times: tuple[np.ndarray, ...]) -> Iterator[MatchBatch]:
    """Matches with their sets as batches."""
    pattern, candidates = ask.source.pattern, rest.scan.candidates
    if not ask.keep:
        passed = rest.passed(runs)
        runs, times = runs.at(passed), tuple(of[passed] for of in times)
    for rows, bound in rest.complete(runs, pattern.limits["set_members"]):
        if not len(rows):
            continue
        start, end, decided = (of[rows] for of in times)
        yield MatchBatch(
            ask.number,
            len(rows),
            start,
            end,
            decided,
            {name: candidates[name].events(at) for name, at in bound.singles.items()},
            {name: (offsets, candidates[name].events(at)) for name, (offsets, at) in bound.groups.items()},
            measured(pattern, ask.number, bound, rest.scan) if pattern.extras.values else {},
        )


def _kept(ask: Ask, rest: Rest, runs: Iterator[Runs]) -> Iterator[Runs]:
    """The kept ones of the branch's combinations; if all are kept, they are not yet tested for forbidden events."""
    if not ask.keep:
        yield from runs
        return
    every = (some for those in runs for part in portions(those, rest.names, _MEMBERS) for some in rest.matches(part))
    if ask.is_known:
        yield from every
        return
    parts = []
    for some in every:
        ask.room.take(2 * len(rest.names) * some.n)
        parts.append(some)
    largest = joined(parts, rest.names)
    if not rest.form.longest_is_largest:
        largest = largest_per_boundary(largest, rest.names)
    yield outermost(largest, rest.names) if ask.keep == "OUTERMOST" else largest


def _decided(source: Source, stream: Stream, last: np.ndarray, times: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """When matches are decided (docs/semantics.md#owner-of-a-match)."""
    pattern, (start, end) = source.pattern, times
    if pattern.decision == "end":
        return end
    latest = start + pattern.window_us
    if pattern.decision == "start+W":
        return latest
    judge = source.judge
    if judge is None:
        judge = stream
    else:
        place = np.zeros(len(source.data.ts), np.int64)
        place[judge.rows] = np.arange(len(judge))
        last = place[stream.rows[last]]
    decided: np.ndarray = np.minimum(latest, judge.real(judge.stretch(last)[1]) + (pattern.extras.pause or 0))
    return decided


def _not_too_long(stream: Stream, longest: int, *, whole: bool, own: tuple[int, int] | None) -> tuple[np.ndarray, int]:
    """Which events may be in a match, given the limit on stretches, and how many stretches are too long.

    Args:
        stream: the events.
        longest: the limit.
        whole: whether no event of a longer stretch may be in a match; if not, only those beyond the limit may not.
        own: stretches whose first event beyond the limit is in this range are counted; None counts all.
    """
    if not len(stream):
        return np.zeros(0, bool), 0
    number = np.cumsum(~stream.joined) - 1
    since = stream.times - stream.times[stream.begins][number]
    beyond = since > longest
    first = beyond.copy()
    first[1:] &= ~(beyond[:-1] & stream.joined[1:])
    at = stream.real(np.flatnonzero(first))
    count = len(at) if own is None else int(np.count_nonzero((at >= own[0]) & (at < own[1])))
    if whole:
        beyond = np.logical_or.reduceat(beyond, stream.begins)[number]
    return ~beyond, count
