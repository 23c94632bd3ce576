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
from chainlake.cep.search.strict.remaining import RemainingTests
from chainlake.cep.search.strict.runs import Runs, joined, largest_per_boundary, outermost, portions
from chainlake.cep.search.strict.search import Search
from chainlake.cep.search.strict.stream import Source, Stream, streams

#: How many members a batch's sets have at most, unless one match has more.
_MEMBERS = 8 * BLOCK_ROWS


@dataclass(frozen=True)
class BranchRequest:
    """The request to a branch's search.

    Args:
        source: the events to search.
        number: the number of the branch.
        own: ``[lo, hi)`` of owned decision times; None for all.
        counted: ``[lo, hi)`` of the times for which stretches that are too long are counted; None for all.
        keep: ``MAXIMAL`` or ``OUTERMOST`` within this branch; empty for all matches.
        budget: how many bound events may be held for comparison.
        block_rows: bounds the memory.
    """

    source: Source
    number: int
    own: tuple[int, int] | None
    counted: tuple[int, int] | None
    keep: str
    budget: EventBudget
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
class EventBudget:
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


def found(request: BranchRequest, statistics: Statistics) -> Iterator[MatchBatch]:
    """The matches of the branch, or only those that are kept within it.

    Raises:
        TooMany: too many matches would have to be compared.
        LimitExceeded: a set has too many members.
        DefinitionError: neighbours of one key are asked for, but there is no key.
    """
    found = _found(request, statistics)
    # Comparisons are complete before any match is given, so that the range can be halved if there are too many.
    for remaining, runs in [*found] if request.keep and not request.is_known else found:
        start, end = (
            remaining.stream.real(runs.first[remaining.names[0]]),
            remaining.stream.real(runs.last[remaining.names[-1]]),
        )
        decided = _decided(request.source, remaining.stream, runs.last[remaining.names[-1]], (start, end))
        times, at = (start, end, decided), 0
        if request.own is not None:
            rows = np.flatnonzero((decided >= request.own[0]) & (decided < request.own[1]))
            runs, times = runs.at(rows), (start[rows], end[rows], decided[rows])
        for part in portions(runs, remaining.names, _MEMBERS):
            some = tuple(of[at : at + part.n] for of in times)
            at += part.n
            yield from _batches(request, remaining, part, some)


def _found(request: BranchRequest, statistics: Statistics) -> Iterator[tuple[RemainingTests, Runs]]:
    """The kept combinations of each stream."""
    pattern = request.source.pattern
    for stream in streams(request.source, request.branch):
        allowed = None
        if pattern.longest is not None:
            allowed, long = _not_too_long(stream, pattern.longest, whole=pattern.by_pause, own=request.counted)
            if all(b.stream != request.branch.stream for b in pattern.branches[: request.number]):
                statistics.long_stretches += long
        search = Search(stream, Form(request.branch), bool(request.keep), allowed, statistics, request.block_rows)
        remaining = RemainingTests.of(pattern, request.branch, stream, request.block_rows, statistics)
        for runs in _kept(request, remaining, search.run()):
            yield remaining, runs


def _batches(
    request: BranchRequest, remaining: RemainingTests, runs: Runs, times: tuple[np.ndarray, ...]
) -> Iterator[MatchBatch]:
    """Matches with their sets as batches."""
    pattern, candidates = request.source.pattern, remaining.scan.candidates
    if not request.keep:
        passed = remaining.passed(runs)
        runs, times = runs.at(passed), tuple(of[passed] for of in times)
    for rows, bound in remaining.complete(runs, pattern.limits["set_members"]):
        if not len(rows):
            continue
        start, end, decided = (of[rows] for of in times)
        yield MatchBatch(
            request.number,
            len(rows),
            start,
            end,
            decided,
            {name: candidates[name].events(at) for name, at in bound.singles.items()},
            {name: (offsets, candidates[name].events(at)) for name, (offsets, at) in bound.groups.items()},
            measured(pattern, request.number, bound, remaining.scan) if pattern.extras.values else {},
        )


def _kept(request: BranchRequest, remaining: RemainingTests, runs: Iterator[Runs]) -> Iterator[Runs]:
    """The kept ones of the branch's combinations; if all are kept, they are not yet tested for forbidden events."""
    if not request.keep:
        yield from runs
        return
    every = (
        some
        for those in runs
        for part in portions(those, remaining.names, _MEMBERS)
        for some in remaining.matches(part)
    )
    if request.is_known:
        yield from every
        return
    parts = []
    for some in every:
        request.budget.take(2 * len(remaining.names) * some.n)
        parts.append(some)
    largest = joined(parts, remaining.names)
    if not remaining.form.longest_is_largest:
        largest = largest_per_boundary(largest, remaining.names)
    yield outermost(largest, remaining.names) if request.keep == "OUTERMOST" else largest


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
