"""The best matches of a sequence whose score is a sum, by one pass over its events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from chainlake.cep.conditions.blocks import Bindings
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.events.previous import places
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.pause import neighbours
from chainlake.cep.ranking.rule import Rule
from chainlake.cep.search.bounding.lists import DayCompetition, Periods
from chainlake.cep.search.bounding.strategy import criteria_of
from chainlake.cep.search.bounding.terms import terms_of
from chainlake.cep.search.branches import Run
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.cep.search.paths.kernel import CROWDED, DONE, FOUND, FULL, MADE, POSITION, kernel
from chainlake.cep.search.paths.steps import Steps, steps_of
from chainlake.cep.search.statistics import BestSearch
from chainlake.cep.values.arrow import numpy_of
from chainlake.errors import InputError

#: How many beginnings of a step may be kept beyond four times those that are wanted.
_CROWD = 64
#: The largest number of wanted beginnings; with more, listing all matches is quicker.
MOST_WANTED = 1_000
#: If windows together hold more than this many times the events, there is no pass over windows.
_WINDOWS = 1_000
#: With at least this many continuations, the pass is compiled, which takes longer to be ready than interpreting it.
_WORTH_COMPILING = 50_000
#: How many matches are given at a time.
_ROOM = 1 << 14
_STATE = 5


@dataclass(frozen=True)
class Line:
    """Events in the order of the pass.

    Args:
        rows: their sorted rows in the data.
        ts: their times.
        begins, ends: the bounds of the ranges, each of which is a separate pass.
        lists: for each event, the number of the list of matches whose last event it is.
    """

    rows: np.ndarray
    ts: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    lists: np.ndarray


def paths(
    pattern: Pattern, run: Run, events: pa.Table, backend: str, search: BestSearch, daily: DayCompetition | None = None
) -> Iterator[MatchBatch] | str:
    """Matches of a pattern that allows strategy B, including the best of each list.

    Args:
        pattern: with a ranking.
        run: the search, with the scan of its branch.
        events: the events table.
        backend: ``numpy`` interprets the pass, ``compiled`` compiles it, ``auto`` does what is quicker.
        search: counts what is done.
        daily: whether and how matches compete by the day of the decision.

    Returns:
        the matches, or why they cannot be found like this in these events.
    """
    ranking, scan = pattern.extras.ranking, run.scans[0]
    assert ranking is not None, "only ranked patterns get here"
    rule, branch = ranking.rule, pattern.branches[0]
    names = sequence_of(pattern)
    if scan.data.clock is not None:
        return "the events are searched in parts"
    if rule.count > MOST_WANTED:
        return f"more than {MOST_WANTED:,} rows of a list are wanted"
    clauses = [clause for clause in branch.clauses if not clause.names]
    if not all(scan.nothing.holds(clause, frozenset())[0] for clause in clauses):
        return iter(())
    terms = terms_of(rule.score(branch.written), criteria_of(pattern, 0))
    assert not isinstance(terms, str), "the pattern allows it"
    steps = steps_of(rule.score(branch.written), terms, names, scan, strict=pattern.strict)
    if steps is None:
        return "numbers are too large to be added"
    search.lacking = tuple(name for name in names if np.isnan(steps.gains[name]).any())
    line = _line(pattern, run, names, events, daily)
    if isinstance(line, str):
        return line
    one = _Pass(pattern, run, names, line, steps)
    found = one.found(rule, _compiled(backend, len(names) * len(line.rows) * rule.count), search)
    return found if isinstance(found, str) else (run.batch(0, some) for some in found)


def sequence_of(pattern: Pattern) -> tuple[str, ...]:
    """The names of a pattern that is one sequence, in time order."""
    branch = pattern.branches[0]
    pairs = neighbours(branch) or ()
    return (pairs[0][0], *(later for _, later in pairs)) if pairs else branch.positive


def _compiled(backend: str, work: int) -> bool:
    return backend == "compiled" or backend == "auto" and work >= _WORTH_COMPILING


@dataclass(frozen=True)
class _Pass:
    """One pass.

    Args:
        pattern, run: as in ``paths``.
        names: the names of the sequence.
        line: the events.
        steps: what the events add to the score.
    """

    pattern: Pattern
    run: Run
    names: tuple[str, ...]
    line: Line
    steps: Steps

    def found(self, rule: Rule, compiled: bool, search: BestSearch) -> list[Bindings] | str:
        """The best matches, each once, or why the pass cannot find them."""
        n, size, cap = len(self.names), len(self.line.rows), 4 * rule.count + _CROWD
        gain, same = self._columns()
        out, state = np.empty(n * (_ROOM + cap), np.int32), np.zeros(_STATE, np.int64)
        state[POSITION] = -1
        ints = [self.line.ts, self.line.begins, self.line.ends, self.line.lists, np.zeros(n, np.int64)]
        shorts = [same.ravel(), np.zeros(n * (cap + 1) * n, np.int32), out]
        sizes = [n, size, len(self.line.begins), rule.count, cap, _ROOM + cap, int(self.steps.exact)]
        floats = [gain.ravel(), np.zeros(n * (cap + 1))]
        call, rows = kernel(compiled=compiled), [np.zeros((0, n), np.int32)]
        status = FULL
        while status == FULL:
            status = call(floats, ints, [], shorts, np.array([self.steps.rounding]), np.array(sizes, np.int64), state)
            rows.append(out[: int(state[FOUND]) * n].reshape(-1, n).copy())
        if status == CROWDED:
            return "too many beginnings are as good as the last one that is wanted"
        assert status == DONE, "a pass has no other end"
        search.partial += int(state[MADE])
        every = np.concatenate(rows)
        # A match may be among the best of several windows.
        every = np.unique(every, axis=0) if rule.period.kind == "hop" else every
        return [self._bindings(every)] if len(every) else []

    def _columns(self) -> tuple[np.ndarray, np.ndarray]:
        """What each event of the line adds at each step, and the number of its parts; shape (names, events) each."""
        line, scan = self.line, self.run.scans[0]
        gain = np.full((len(self.names), len(line.rows)), np.nan)
        same = np.zeros((len(self.names), len(line.rows)), np.int32)
        place = np.full(len(scan.data.ts), -1, np.int64)
        place[line.rows] = np.arange(len(line.rows))
        for number, name in enumerate(self.names):
            at = place[scan.candidates[name].rows]
            there = at >= 0
            gain[number, at[there]] = self.steps.gains[name][there]
            same[number, at[there]] = self.steps.same[name][there]
        if self.run.own is not None:
            lo, hi = self.run.own
            gain[-1, (line.ts < lo) | (line.ts >= hi)] = np.nan
        return gain, same

    def _bindings(self, every: np.ndarray) -> Bindings:
        """Matches given as positions in the line, as bindings to positions among the candidates."""
        line, candidates = self.line, self.run.scans[0].candidates
        singles = {
            name: np.searchsorted(candidates[name].rows, line.rows[every[:, number]])
            for number, name in enumerate(self.names)
        }
        return Bindings(len(every), singles, {}, line.ts[every[:, 0]], line.ts[every[:, -1]])


def _line(
    pattern: Pattern, run: Run, names: tuple[str, ...], events: pa.Table, daily: DayCompetition | None
) -> Line | str:
    """The events of a pattern in the order of the pass, or why there can be none."""
    scan, ranking = run.scans[0], pattern.extras.ranking
    assert ranking is not None, "only ranked patterns get here"
    period = ranking.rule.period
    marks = np.zeros(len(scan.data.ts), bool)
    for name in names:
        marks[scan.candidates[name].rows] = True
    rows = np.flatnonzero(marks)
    key, rows = _keys(pattern, scan, rows)
    order = np.argsort(key, kind="stable")
    key, rows = key[order], rows[order]
    ts = np.ascontiguousarray(scan.data.ts[rows], np.int64)
    if ((ts[1:] == ts[:-1]) & (key[1:] == key[:-1])).any():
        # For events of equal time, the order of all events says which of two equal matches comes first.
        place = numpy_of(places(events, None))
        rows = rows[np.lexsort([place[scan.data.rows_of(rows)], key])]
    begins = np.flatnonzero(np.diff(key, prepend=-1))
    ends = np.append(begins[1:], len(rows))[: len(begins)]
    if period.kind == "hop":
        lists = np.zeros(len(rows), np.int64) if daily is None else ts // period.day
        return _windows(pattern, Line(rows, ts, begins, ends, lists))
    if len(begins) and int((ts[ends - 1] - ts[begins]).max()) > pattern.window_us:
        return "the window is shorter than the span of the events"
    try:
        lists = Periods(period, pattern.window_us, ts, daily).of(ts).low
    except InputError:
        return "an event has no calendar date"
    return Line(rows, ts, begins, ends, np.ascontiguousarray(lists, np.int64))


def _keys(pattern: Pattern, scan: Scan, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The key of each row, as a number, and the rows that have one."""
    if pattern.partition_key is None:
        return np.zeros(len(rows), np.int64), rows
    value = scan.data.columns[pattern.partition_key]
    if value.kind == "null":
        return np.zeros(0, np.int64), rows[:0]
    values = np.asarray(value.values)[rows]
    known = np.ones(len(rows), bool) if value.valid is None else value.valid[rows].copy()
    if values.dtype.kind == "f":
        known &= ~np.isnan(values)
    return np.unique(values[known], return_inverse=True)[1], rows[known]


def _windows(pattern: Pattern, line: Line) -> Line | str:
    """The line with one range for each key and window that holds an event."""
    assert pattern.extras.ranking is not None, "only ranked patterns get here"
    period = pattern.extras.ranking.rule.period
    if pattern.window_us < period.size - 1:
        return "the window is shorter than that of the lists"
    begins, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    count, most = 0, _WINDOWS * len(line.rows)
    for begin, end in zip(line.begins.tolist(), line.ends.tolist(), strict=True):
        ts = line.ts[begin:end]
        last = (ts - period.offset) // period.step
        first = (ts - period.size - period.offset) // period.step + 1
        if int(last[-1]) - int(first[0]) > most:
            return "there are many more windows than events"
        numbers = np.arange(int(first[0]), int(last[-1]) + 1)
        starts = period.offset + numbers * period.step
        lo, hi = np.searchsorted(ts, starts), np.searchsorted(ts, starts + period.size)
        full = hi > lo
        begins.append(begin + lo[full])
        ends.append(begin + hi[full])
        count += int((hi - lo).sum())
        if count > most:
            return "windows share most of their events"
    return Line(line.rows, line.ts, np.concatenate(begins), np.concatenate(ends), line.lists)
