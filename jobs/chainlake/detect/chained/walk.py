"""A task for a pattern whose days form a chain: it goes through some days and hands on what is used up."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

import numpy as np
import pyarrow as pa

from chainlake.cep.events.columns import ticks_of
from chainlake.cep.matches.consumed import Consumed
from chainlake.cep.matches.day_limit import DayLimit
from chainlake.cep.search.statistics import BestSearches, Statistics
from chainlake.days import US_PER_DAY, Days, day_of_us
from chainlake.detect.chained.state import digest_of, state_at
from chainlake.detect.division.cut import slice_of
from chainlake.detect.feed import Events, Feed
from chainlake.detect.matcher import Matcher, needed
from chainlake.detect.stage import Found, MatchFile, Search, SearchFailed
from chainlake.errors import ChainlakeError
from chainlake.lake.records.chain import Link


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


def walk(events: Events, key: str, leg: Leg) -> Walked:
    """Find the matches of a leg's days; each day gets its own file.

    Args:
        events: the source's events, which cover the leg's read range.
        key: the source's key column.
        leg: what to search; its folder exists.
    """
    pattern, table = leg.search.pattern, leg.search.table
    statistics, used = Statistics(), leg.state
    files: dict[date, MatchFile] = {}
    first = max(leg.days.start, leg.start)
    best = BestSearches()
    looked_at = inside = 0
    began = time.perf_counter()
    try:
        if first < leg.days.end:
            one = slice_of(pattern, Days(first, leg.days.end).micros())
            matcher = Matcher(pattern, table.arrow(), leg.search.orders)
            slice_search = matcher.slice_search(one.own, statistics, DayLimit(pattern), consumed=leg.state)
            for chunk in Feed.of(events, key, [pattern], needed(pattern, table)).chunks([one.read]):
                for rows in slice_search.add(chunk):
                    _write(leg.search, files, rows)
            for rows in slice_search.finish():
                _write(leg.search, files, rows)
            used = slice_search.consumed or used
            best, looked_at, inside = slice_search.best, slice_search.looked_at, slice_search.inside
    except ChainlakeError as error:
        return Walked(Found(failure=error), {}, {})
    except Exception as error:  # one pattern's failure stays its own: the others go on
        return Walked(Found(failure=SearchFailed.of(pattern, error)), {}, {})
    digests = [digest_of(state_at(pattern, used, day)) for day in (*leg.days, leg.days.end)]
    links = {day: Link(*digests[n : n + 2]) for n, day in enumerate(leg.days)}
    paths = {day: path for day, file in sorted(files.items()) for path in file.close()}
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
