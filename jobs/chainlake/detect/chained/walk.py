"""Tasks for patterns whose days form chains: each goes through some days and passes on what is used up."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial

import numpy as np
import pyarrow as pa

from chainlake.cep.events.columns import ticks_of
from chainlake.cep.heavy.asking import Exchange
from chainlake.cep.matches.consumed import Consumed
from chainlake.cep.matches.day_limit import DayLimit
from chainlake.cep.search.ownership import has_dear_pairs
from chainlake.cep.search.statistics import BestSearches, Statistics
from chainlake.days import US_PER_DAY, Days, day_of_us
from chainlake.detect.answers import AskedFiles, Known, PairFile, Turns, Unfinished
from chainlake.detect.chained.state import digest_of, state_at
from chainlake.detect.division.cut import slice_of
from chainlake.detect.feed import Events, Feed
from chainlake.detect.matcher import Matcher, needed
from chainlake.detect.stage import Found, MatchFile, Search, SearchFailed
from chainlake.errors import ChainlakeError
from chainlake.lake.records.chain import Link
from chainlake.run.tasks import Tasks
from chainlake.storage.resolve import storage_of


@dataclass(frozen=True)
class Leg:
    """Consecutive days of a pattern that are searched in one go.

    Args:
        search: the search for the pattern.
        days: the days.
        start: the pattern's start; days before it have no matches.
        state: the events used up before the first day.
    """

    search: Search
    days: Days
    start: date
    state: Consumed = field(repr=False)


@dataclass(frozen=True)
class Walked:
    """What was found on the days of a leg.

    Args:
        found: the whole result; its paths are those of ``files``.
        files: day → the file with its matches; days without matches have none.
        links: day → the digests of the states at its ends; none if the search failed.
    """

    found: Found
    files: Mapping[date, str]
    links: Mapping[date, Link]

    def of(self, days: Iterable[date]) -> Found:
        """The result for some of the days."""
        wanted = set(days)
        per_day = type(self.found.per_day)({day: n for day, n in self.found.per_day.items() if day in wanted})
        paths = tuple(path for day, path in self.files.items() if day in wanted)
        return replace(self.found, paths=paths, per_day=per_day)


def walk(tasks: Tasks, events: Events, key: str, legs: Sequence[Leg]) -> list[Walked]:
    """Find the matches of several legs, each of which is a task.

    A leg runs in one task; the expensive functions that it needs are evaluated by all tasks.

    Args:
        tasks: the tasks that do the work.
        events: the source's events, which cover the read ranges.
        key: the source's key column.
        legs: what to search; their folders exist.
    """
    dear = {
        number: (leg.search.pattern, leg.search.folder)
        for number, leg in enumerate(legs)
        if tasks.parallelism > 1 and has_dear_pairs(leg.search.pattern)
    }
    turns = Turns(tasks, dear)
    walked: dict[int, Walked] = {}
    evaluated: Counter[int] = Counter()
    waiting = list(range(len(legs)))
    while waiting:
        known = turns.known
        given = [(legs[number], known.get(number, Known())) for number in waiting]
        asked: dict[int, Sequence[PairFile]] = {}
        for number, one in zip(waiting, tasks.map(partial(_walked, events, key), given), strict=True):
            if isinstance(one, Unfinished):
                asked[number] = one.asked
            else:
                walked[number] = one
        for number, gave in turns.answers(asked).items():
            evaluated[number] += gave.pairs
            if gave.failure is not None:
                walked[number] = Walked(Found(failure=gave.failure), {}, {})
        waiting = [number for number in waiting if number not in walked]
    for number, seconds in turns.close().items():
        found = walked[number].found + Found(pair_evals=evaluated[number])
        found = replace(found, seconds=max([found.seconds, *seconds], key=sum))
        walked[number] = replace(walked[number], found=found)
    return [walked[number] for number in range(len(legs))]


def _walked(events: Events, key: str, given: tuple[Leg, Known]) -> Walked | Unfinished:
    """The matches of one leg's days; each day gets its own file."""
    leg, known = given
    pattern, table = leg.search.pattern, leg.search.table
    statistics, used = Statistics(), leg.state
    files: dict[date, MatchFile] = {}
    first = max(leg.days.start, leg.start)
    best = BestSearches()
    looked_at = inside = 0
    began = time.perf_counter()
    asked = AskedFiles(leg.search.folder) if known.asks else None
    exchange = Exchange()
    failure: ChainlakeError | None = None
    try:
        if first < leg.days.end:
            one = slice_of(pattern, Days(first, leg.days.end).micros())
            exchange = known.exchange(one.read, asked)
            matcher, limit = Matcher(pattern, table.arrow(), leg.search.orders), DayLimit(pattern)
            slice_search = matcher.slice_search(one.own, statistics, limit, consumed=leg.state, exchange=exchange)
            for chunk in Feed.of(events, key, [pattern], needed(pattern, table)).chunks([one.read]):
                for rows in slice_search.add(chunk):
                    _write(leg.search, files, rows)
            for rows in slice_search.finish():
                _write(leg.search, files, rows)
            used = slice_search.consumed or used
            best, looked_at, inside = slice_search.best, slice_search.looked_at, slice_search.inside
    except ChainlakeError as error:
        failure = error
    except Exception as error:  # one pattern's failure does not stop the others
        failure = SearchFailed.of(pattern, error)
    paths = {day: path for day, file in sorted(files.items()) for path in file.close()}
    unfinished = Unfinished.of([exchange], asked)
    if unfinished is not None:
        # What failed may have done so since a value was unknown.
        for path in paths.values():
            storage_of(path).remove(path)
        return unfinished
    if failure is not None:
        return Walked(Found(failure=failure), {}, {})
    digests = [digest_of(state_at(pattern, used, day)) for day in (*leg.days, leg.days.end)]
    links = {day: Link(*digests[n : n + 2]) for n, day in enumerate(leg.days)}
    found = Found(
        tuple(paths.values()),
        sum((file.per_day for file in files.values()), Found().per_day),
        statistics.evaluations,
        statistics.evaluations_neg,
        statistics.long_stretches,
        best,
        statistics.pair_evals,
        statistics.pair_memo_hits,
        looked_at,
        inside,
        (time.perf_counter() - began,),
    )
    return Walked(found, paths, links)


def _write(search: Search, files: dict[date, MatchFile], rows: pa.Table) -> None:
    """Add rows to the files of their days."""
    numbers = ticks_of(rows["decision_ts"], "decision_ts") // US_PER_DAY
    for number in np.unique(numbers).tolist():
        day = day_of_us(number * US_PER_DAY)
        if day not in files:
            files[day] = MatchFile(search)
        files[day].add(rows.filter(pa.array(numbers == number)))
