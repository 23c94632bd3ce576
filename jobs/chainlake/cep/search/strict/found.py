"""The matches of a branch of ``SEQ STRICT`` in batches: searched by place, tested for forbidden events, decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chainlake.cep.conditions.evaluate import Candidates
from chainlake.cep.conditions.scan import BLOCK_ROWS, Scan
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.matches.measures import measured
from chainlake.cep.plan.steps import Forbidden, scope_of
from chainlake.cep.search.batch import MatchBatch
from chainlake.cep.search.negation import not_forbidden
from chainlake.cep.search.statistics import Statistics
from chainlake.cep.search.strict.form import Form
from chainlake.cep.search.strict.runs import Runs, joined, largest_per_boundary, outermost, portions
from chainlake.cep.search.strict.search import Search
from chainlake.cep.search.strict.stream import Source, Stream, streams

#: Members of a batch's sets at most, unless one match has more.
_MEMBERS = 8 * BLOCK_ROWS


@dataclass(frozen=True)
class Ask:
    """What is asked of a branch.

    Args:
        source: what is looked through.
        number: the branch's.
        own: ``[lo, hi)`` of owned decision times; None for all.
        keep: ``MAXIMAL`` or ``OUTERMOST``, of the branch by itself; empty for all matches.
        room: bound events that may be held to be compared.
        block_rows: bounds the memory.
    """

    source: Source
    number: int
    own: tuple[int, int] | None
    keep: str
    room: Room
    block_rows: int = BLOCK_ROWS

    @property
    def branch(self) -> Branch:
        """The branch."""
        return self.source.pattern.branches[self.number]


class TooMany(Exception):
    """More matches would have to be held at a time than the limit allows."""


@dataclass
class Room:
    """How many bound events may be held, so that memory has a bound.

    Args:
        most: so many.
        held: so many are.
    """

    most: int
    held: int = 0

    def take(self, number: int) -> None:
        """Hold some more.

        Raises:
            TooMany: these are too many.
        """
        self.held += number
        if self.held > self.most:
            raise TooMany


def found(ask: Ask, statistics: Statistics) -> Iterator[MatchBatch]:
    """The matches of the branch; of a branch by itself only those that are to be kept.

    Raises:
        TooMany: too many would have to be compared.
        DefinitionError: neighbours of one key, and there is no key.
    """
    pattern = ask.source.pattern
    for stream in streams(ask.source, ask.branch):
        allowed = None
        if pattern.longest is not None:
            allowed, long = _not_too_long(stream, pattern.longest, whole=pattern.by_pause, own=ask.own)
            if all(b.stream != ask.branch.stream for b in pattern.branches[: ask.number]):
                statistics.long_stretches += long
        form = Form(ask.branch)
        search = Search(stream, form, bool(ask.keep), allowed, statistics, ask.block_rows)
        tests = _tests(ask, stream)
        runs = (some for every in search.run() for some in _possible(ask, stream, every, tests, statistics))
        for some in _kept(ask, form, runs):
            start, end = stream.real(some.first[form.names[0]]), stream.real(some.last[form.names[-1]])
            decided = _decided(ask.source, stream, some.last[form.names[-1]], (start, end))
            mine = np.ones(some.n, bool) if ask.own is None else (decided >= ask.own[0]) & (decided < ask.own[1])
            rows = np.flatnonzero(mine)
            for part in _numbered(some.at(rows), form, (start[rows], end[rows], decided[rows])):
                yield _batch(ask, stream, *part)


def _numbered(
    runs: Runs, form: Form, times: tuple[np.ndarray, ...]
) -> Iterator[tuple[Runs, np.ndarray, np.ndarray, np.ndarray]]:
    at = 0
    for part in portions(runs, form.names, _MEMBERS):
        start, end, decided = (of[at : at + part.n] for of in times)
        yield part, start, end, decided
        at += part.n


def _batch(ask: Ask, stream: Stream, runs: Runs, start: np.ndarray, end: np.ndarray, decided: np.ndarray) -> MatchBatch:
    data, candidates, pattern = stream.data, stream.candidates, ask.source.pattern
    bound = runs.bindings(stream, ask.branch, ask.branch.positive)
    measures = {}
    if pattern.extras.measures:
        every: dict[str, Candidates] = dict.fromkeys(ask.branch.positive, candidates)
        measures = measured(pattern, ask.number, bound, Scan(data, every, stream.window, ask.block_rows))
    return MatchBatch(
        ask.number,
        runs.n,
        start,
        end,
        decided,
        {name: data.rows_of(candidates.rows[at]) for name, at in bound.singles.items()},
        {name: (offsets, data.rows_of(candidates.rows[at])) for name, (offsets, at) in bound.groups.items()},
        measures,
    )


def _kept(ask: Ask, form: Form, runs: Iterator[Runs]) -> Iterator[Runs]:
    """Of the branch's matches those that are kept."""
    if not ask.keep or form.longest_is_largest and ask.keep == "MAXIMAL":
        yield from runs
        return
    parts = []
    for some in runs:
        ask.room.take(2 * len(form.names) * some.n)
        parts.append(some)
    every = largest_per_boundary(joined(parts, form.names), form.names)
    yield outermost(every, form.names) if ask.keep == "OUTERMOST" else every


def _tests(ask: Ask, stream: Stream) -> list[tuple[Forbidden, Scan]]:
    """The tests for forbidden events, each with what it looks through."""
    branch = ask.branch
    positive = dict.fromkeys(branch.positive, stream.candidates)
    found = []
    for name in branch.negated:
        alone = branch.alone[name]
        clauses = tuple(clause for clause in branch.clauses_of(name) if clause not in alone)
        every: dict[str, Candidates] = {**positive, name: stream.others(branch, name, alone)}
        test = Forbidden(name, scope_of(branch, name, branch.positive), clauses)
        found.append((test, Scan(stream.data, every, stream.window, ask.block_rows)))
    return found


def _possible(
    ask: Ask, stream: Stream, runs: Runs, tests: list[tuple[Forbidden, Scan]], statistics: Statistics
) -> Iterator[Runs]:
    """The matches that no forbidden event rejects."""
    branch = ask.branch
    if not tests:
        yield runs
        return
    for some in portions(runs, Form(branch).names, _MEMBERS):
        for test, scan in tests:
            bound = some.bindings(stream, branch, branch.positive)
            some = some.at(not_forbidden(test, bound, scan, branch.kleene, statistics.count_neg))
            if not some.n:
                break
        else:
            yield some


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
    return np.minimum(latest, judge.real(judge.stretch(last)[1]) + (pattern.extras.pause or 0))


def _not_too_long(stream: Stream, longest: int, *, whole: bool, own: tuple[int, int] | None) -> tuple[np.ndarray, int]:
    """Which events may be in a match although stretches may be longer than the limit, and how many stretches are.

    Args:
        stream: the events.
        longest: the limit.
        whole: whether no event of a longer stretch may be in a match, or only none beyond the limit.
        own: a stretch counts for those who own the time of its first event beyond the limit.
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
