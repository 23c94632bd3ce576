"""What tasks do: each reads the events of a time range from the files once, and stages the matches of all its patterns.

A task returns the path of each pattern's file, and counts; no row comes back through Spark.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from chainlake.cep.heavy.asking import Exchange
from chainlake.cep.matches.best import thinned
from chainlake.cep.matches.candidates import keeps_all
from chainlake.cep.matches.day_limit import DayLimit
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.ownership import shares_pairs
from chainlake.cep.search.statistics import BestSearches, Statistics
from chainlake.days import US_PER_DAY, day_of_us
from chainlake.detect.answers import AskedFiles, Known, PairFile, Turns, Unfinished
from chainlake.detect.division.cut import MOST_ROWS, Share
from chainlake.detect.feed import Events, Feed
from chainlake.detect.matcher import PIECE_ROWS, Matcher, SliceSearch, needed
from chainlake.errors import ChainlakeError, InfrastructureError
from chainlake.lake.delta.sums.checksums import Sums, footer
from chainlake.run.tasks import Tasks
from chainlake.schemas.table import Table
from chainlake.storage.parquet import parquet_rows, parquet_writer
from chainlake.storage.resolve import storage_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq

#: How many matches are collected before they are written: a row group of some MB.
_ROWS_OF_A_GROUP = 100_000
#: The least number of events that each of many patterns collects before matching them, since a run costs some ms.
_LEAST_PIECE_ROWS = 50_000


@dataclass(frozen=True)
class Search:
    """A pattern for which tasks search.

    Args:
        pattern: the compiled pattern.
        table: the match table.
        orders: binding order of each branch; if not given, every piece chooses its own.
        folder: a folder that every task can reach.
    """

    pattern: Pattern
    table: Table
    orders: Sequence[Sequence[str]] | None
    folder: str


@dataclass(frozen=True)
class Found:
    """What tasks found for a pattern.

    Args:
        paths: Parquet files that hold the matches, as rows of the match table, and nothing else.
        per_day: UTC day of the decision → number of matches.
        evaluations: number of evaluations of conditions between names.
        evaluations_neg: number of tests of negated names.
        long_stretches: number of stretches of events that gave no match because they exceed the pattern's limit.
        best: for a ranked pattern, how its matches were found.
        pair_evals: number of pairs for which functions were called.
        pair_memo_hits: number of pairs that were asked for again in a slice.
        looked_at: number of events that tasks looked at, counting each as often as tasks did.
        inside: how many of these are in the time that the task owns, so that each event counts once.
        seconds: duration of each task.
        failure: what stopped the search, if anything; then the files do not hold all matches.
    """

    paths: tuple[str, ...] = ()
    per_day: Counter[date] = field(default_factory=Counter)
    evaluations: int = 0
    evaluations_neg: int = 0
    long_stretches: int = 0
    best: BestSearches = field(default_factory=BestSearches)
    pair_evals: int = 0
    pair_memo_hits: int = 0
    looked_at: int = 0
    inside: int = 0
    seconds: tuple[float, ...] = ()
    failure: ChainlakeError | None = None

    @property
    def replication(self) -> float | None:
        """How often an event was looked at, on average; None without events."""
        return self.looked_at / self.inside if self.inside else None

    @property
    def longest_task(self) -> float | None:
        """The ratio of the longest task's duration to the median one; None without tasks."""
        return max(self.seconds) / median(self.seconds) if self.seconds and median(self.seconds) else None

    def __add__(self, other: Found) -> Found:
        return Found(
            self.paths + other.paths,
            self.per_day + other.per_day,
            self.evaluations + other.evaluations,
            self.evaluations_neg + other.evaluations_neg,
            self.long_stretches + other.long_stretches,
            self.best + other.best,
            self.pair_evals + other.pair_evals,
            self.pair_memo_hits + other.pair_memo_hits,
            self.looked_at + other.looked_at,
            self.inside + other.inside,
            self.seconds + other.seconds,
            self.failure or other.failure,
        )


class SearchFailed(InfrastructureError):
    """A pattern's search was stopped by an error that is not one of ours."""

    @classmethod
    def of(cls, pattern: Pattern, error: Exception) -> SearchFailed:
        """Args: the pattern, and what stopped it."""
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return cls(f"the search for {pattern.name} failed: {text}", hint="Nothing of it was published; run it again.")


def stage(tasks: Tasks, events: Events, key: str, searches: Sequence[Search], shares: Sequence[Share]) -> list[Found]:
    """Write the matches that the shares own as Parquet files; whatever stops one search does not stop the others.

    Args:
        tasks: the tasks that do the work.
        events: the events of all read ranges.
        key: the source's key column.
        searches: the patterns, by their numbers in the shares.
        shares: what each task does.

    Returns:
        what was found for each search.
    """
    for search in searches:
        storage_of(search.folder).make_folder(search.folder)
    found = [Found()] * len(searches)
    sharing = (n for n, one in enumerate(searches) if len(shares) > 1 and shares_pairs(one.pattern))
    turns = Turns(tasks, {number: (searches[number].pattern, searches[number].folder) for number in sharing})
    waiting = list(shares)
    while waiting:
        # Made once, since tasks are sent with what they refer to.
        work = partial(_staged, events, key, searches, turns.known)
        asked: dict[int, list[PairFile]] = {}
        again: list[Share] = []
        for share, part in zip(waiting, tasks.map(work, waiting), strict=True):
            for number, one in part.items():
                if isinstance(one, Found):
                    found[number] += one
                else:
                    asked.setdefault(number, []).extend(one.asked)
            left = {number: share.slices[number] for number, one in part.items() if isinstance(one, Unfinished)}
            again.append(replace(share, slices=left))
        for number, gave in turns.answers(asked).items():
            found[number] += Found(pair_evals=gave.pairs, failure=gave.failure)
        waiting = [rest for share in again if (rest := _without_failed(share, found)).slices]
    for number, seconds in turns.close().items():
        found[number] = replace(found[number], seconds=max([found[number].seconds, *seconds], key=sum))
    return [_thinned(search, one) for search, one in zip(searches, found, strict=True)]


def _without_failed(share: Share, found: Sequence[Found]) -> Share:
    slices = {number: own for number, own in share.slices.items() if found[number].failure is None}
    return replace(share, slices=slices)


def _thinned(search: Search, found: Found) -> Found:
    """For a ranked pattern, keep only matches that can be among its best, however the work was cut."""
    pattern = search.pattern
    if not found.paths or found.failure is not None or pattern.extras.ranking is None or keeps_all(pattern):
        return found
    try:
        file = MatchFile(search)
        file.add(thinned(pattern, pa.concat_tables([parquet_rows(path) for path in found.paths])))
        paths = file.close()
    except Exception as error:  # one pattern's failure does not stop the others
        return Found(failure=SearchFailed.of(pattern, error))
    for path in found.paths:
        storage_of(path).remove(path)
    return replace(found, paths=paths, per_day=file.per_day)


def _staged(
    events: Events,
    key: str,
    searches: Sequence[Search],
    known: Mapping[int, Known],
    share: Share,
) -> dict[int, Found | Unfinished]:
    """What one task finds of its patterns.

    Args:
        events, key, searches: as for ``stage``.
        known: what is known of the pairs of patterns that ask for them.
        share: what the task does.
    """
    mine = {number: searches[number] for number in share.slices}
    columns: set[str] = set().union(*(needed(one.pattern, one.table) for one in mine.values()))
    feed = Feed.of(events, key, [one.pattern for one in mine.values()], columns)
    rows = min(PIECE_ROWS, max(_LEAST_PIECE_ROWS, MOST_ROWS // len(mine)))
    pattern_searches = {}
    for number, one in mine.items():
        pairs = known.get(number, Known())
        asked = AskedFiles(one.folder) if pairs.asks else None
        exchanges = [pairs.exchange(part.read, asked) for part in share.slices[number]]
        pattern_searches[number] = _PatternSearch(one, share, number, rows, exchanges, asked)
    for chunk in feed.chunks(one.read for slices in share.slices.values() for one in slices):
        for pattern_search in pattern_searches.values():
            pattern_search.add(chunk)
    return {number: pattern_search.finish() for number, pattern_search in pattern_searches.items()}


class _PatternSearch:
    """Searches for one pattern in a task's share and writes what it finds; an error ends only this search."""

    def __init__(
        self,
        search: Search,
        share: Share,
        number: int,
        piece_rows: int,
        exchanges: Sequence[Exchange],
        asked: AskedFiles | None,
    ) -> None:
        schema = search.table.arrow()
        self._pattern, self._statistics = search.pattern, Statistics()
        limit, matcher = DayLimit(search.pattern), Matcher(search.pattern, schema, search.orders, piece_rows)
        self._slice_searches: list[SliceSearch] = [
            matcher.slice_search(one.own, self._statistics, limit, share.keys, exchange=pairs)
            for one, pairs in zip(share.slices[number], exchanges, strict=True)
        ]
        self._exchanges, self._asked = exchanges, asked
        self._file = MatchFile(search)
        self._failure: ChainlakeError | None = None
        self._seconds = 0.0

    def add(self, events: pa.Table) -> None:
        """Take further events."""
        for slice_search in self._slice_searches:
            self._write(slice_search.add(events))

    def finish(self) -> Found | Unfinished:
        """What was found, once all events have come."""
        for slice_search in self._slice_searches:
            self._write(slice_search.finish())
        paths = self._file.close()
        unfinished = Unfinished.of(self._exchanges, self._asked)
        if unfinished is not None:
            # What failed may have done so since a value was unknown.
            for path in paths:
                storage_of(path).remove(path)
            return unfinished
        if self._failure is not None:
            return Found(failure=self._failure)
        counts = self._statistics
        return Found(
            paths,
            self._file.per_day,
            counts.evaluations,
            counts.evaluations_neg,
            counts.long_stretches,
            sum((slice_search.best for slice_search in self._slice_searches), BestSearches()),
            counts.pair_evals,
            counts.pair_memo_hits,
            sum(slice_search.looked_at for slice_search in self._slice_searches),
            sum(slice_search.inside for slice_search in self._slice_searches),
            (self._seconds,),
        )

    def _write(self, search: Iterator[pa.Table]) -> None:
        if self._failure is not None:
            return
        began = time.perf_counter()
        try:
            for rows in search:
                self._file.add(rows)
        except ChainlakeError as error:
            self._failure, self._slice_searches = error, []
        except Exception as error:  # one pattern's failure does not stop the others
            self._failure, self._slice_searches = SearchFailed.of(self._pattern, error), []
        self._seconds += time.perf_counter() - began


class MatchFile:
    """A Parquet file of matches, collected from many small tables; without matches there is no file."""

    def __init__(self, search: Search) -> None:
        self._schema = pa.schema([pa.field(f.name, f.type) for f in search.table.arrow()])
        self.per_day: Counter[date] = Counter()
        # A task can be tried twice, even at the same time; the file of the attempt that returns is the one that counts.
        self._path = f"{search.folder}/part-{uuid.uuid4().hex}.parquet"
        self._sums = Sums("decision_ts")
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._writer: pq.ParquetWriter | None = None

    def add(self, rows: pa.Table) -> None:
        """Add rows, to be written now or later."""
        self._waiting.append(rows.cast(self._schema))
        self._rows += len(rows)
        days, counts = np.unique(rows["decision_ts"].cast(pa.int64()).to_numpy() // US_PER_DAY, return_counts=True)
        for day, count in zip(days.tolist(), counts.tolist(), strict=True):
            self.per_day[day_of_us(day * US_PER_DAY)] += count
        if self._rows >= _ROWS_OF_A_GROUP:
            self._flush()

    def close(self) -> tuple[str, ...]:
        """Finish the file; return its path, if there is one."""
        if self._rows:
            self._flush()
        if self._writer is None:
            return ()
        self._writer.add_key_value_metadata(footer(self._sums))
        self._writer.close()
        return (self._path,)

    def _flush(self) -> None:
        if self._writer is None:
            # The file may become one of the table's files as it is.
            self._writer = parquet_writer(self._path, self._schema, write_page_checksum=True)
        rows = pa.concat_tables(self._waiting)
        self._sums.add(rows)
        self._writer.write_table(rows)
        self._waiting, self._rows = [], 0
