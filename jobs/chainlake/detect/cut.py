"""The way of large runs: Spark's tasks read the events from their files by themselves, if that is less work.

It is for events that Spark does not keep, in a plain folder. Whatever makes tasks read too much, or hold too much at a
time, leaves the run to Spark's own reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property

import pyarrow as pa
from pyspark.sql import SparkSession

from chainlake.cep.pattern import Pattern
from chainlake.days import US_PER_DAY, Days, day_start_us
from chainlake.definitions.source import Source
from chainlake.detect.counts.file_counts import FileCounts, draw_all, survey_all
from chainlake.detect.counts.survey import Ask, Draw, Survey
from chainlake.detect.order import WHOLE, Plan, draw_stretches, sample_columns, stretch_length
from chainlake.detect.staged import folder_of_matches
from chainlake.detect.tasks.by_files import Search
from chainlake.detect.tasks.curve import Curve, sum_of
from chainlake.detect.tasks.kept_days import MOST_ROWS
from chainlake.detect.tasks.slices import PIECES, Slice, runs, spans_of, within, work_curve
from chainlake.detect.work import Work
from chainlake.lake.delta.event_files import EventFiles, event_files
from chainlake.lake.records.event_days import Pinned
from chainlake.lake.records.runs import one_line
from chainlake.paths import Home
from chainlake.schemas.table import Table

#: Events of a slice if there are enough of them.
SLICE_ROWS = 2_000_000
#: What it costs to read an event that then is not wanted, in evaluations as ``chainlake.detect.tasks.slices`` has them.
PER_READ = 20.0
#: Events may be read so often on average, whatever else is to do.
READ_TWICE = 2.0


@dataclass(frozen=True)
class InFiles:
    """The files of a run's events.

    Args:
        spark: the session.
        files: the files.
        key: the source's key column.
        asks: what will be asked about the run's patterns.
    """

    spark: SparkSession = field(repr=False)
    files: EventFiles
    key: str
    asks: Sequence[Ask] = field(repr=False)

    @cached_property
    def _surveys(self) -> dict[tuple[str, tuple[tuple[int, int], ...]], Survey | Exception]:
        """What is counted for all patterns by one pass, or the error that this gave; nothing if the pass died."""
        try:
            found = survey_all(self.spark, self.files, self.asks)
        except Exception as error:  # of one of them, perhaps: each is counted in its turn
            print(f"the events are counted for each pattern by itself: {one_line(error)}", flush=True)
            return {}
        return {(ask.pattern.name, ask.reads): one for ask, one in zip(self.asks, found, strict=True)}

    @cached_property
    def _samples(self) -> dict[tuple[str, tuple[tuple[int, int], ...]], tuple[Draw, pa.Table]]:
        """What is drawn of the events of all patterns by one pass; not of those for which this failed."""
        draws = []
        for ask in self.asks:
            survey = self._surveys.get((ask.pattern.name, ask.reads))
            if isinstance(survey, Survey):
                chosen, thinning = draw_stretches(survey.numbers, survey.counts)
                draws.append(Draw(ask, tuple(chosen), tuple(thinning), tuple(sample_columns(ask.pattern, self.key))))
        try:
            found = draw_all(self.spark, self.files, draws)
        except Exception as error:  # of one of them, perhaps: each has its sample in its turn
            print(f"the sample of each pattern is drawn by itself: {one_line(error)}", flush=True)
            return {}
        return {
            (draw.ask.pattern.name, draw.ask.reads): (draw, one)
            for draw, one in zip(draws, found, strict=True)
            if not isinstance(one, Exception)
        }

    @property
    def large(self) -> set[str]:
        """The names of the patterns that are counted by this pass."""
        return {ask.pattern.name for ask in self.asks}

    def look(self, pattern: Pattern, base: Sequence[Slice]) -> FileCounts:
        """The events of one pattern.

        Raises:
            Exception: what stopped the counting of this pattern.
        """
        ask = ask_of(pattern, base)
        found = self._surveys.get((pattern.name, ask.reads))
        if isinstance(found, Exception):
            raise found
        return FileCounts(self.spark, self.files, ask, found, self._samples.get((pattern.name, ask.reads)))

    def cut(self, pattern: Pattern, days: Iterable[date], plan: Plan) -> Cut | None:
        """A pattern by itself, cut for tasks that read files, or None if Spark's reader has less to do."""
        own = sorted(days)
        base = runs(pattern, own)
        reads = ask_of(pattern, base).days(self.files)
        curve = work_curve(base, plan.work, plan.counts, self._pieces(reads))
        one = Cut(pattern, own, reads, plan.orders, curve, ())
        found = self._stretches([one])
        return None if found is None or self._too_large(one, found[0]) else replace(one, stretches=found[0])

    def together(self, cuts: Sequence[Cut]) -> list[Cut]:
        """Those of some patterns that one scan can serve, in its stretches: two at least, or none.

        Who would make it read or keep too much is left out, the longest windows first.
        """
        wanted = list(cuts)
        while len(wanted) > 1:
            found = self._stretches(wanted)
            if found is None:
                wanted.remove(max(wanted, key=lambda one: one.pattern.window_us))
                continue
            fits = [not self._too_large(one, own) for one, own in zip(wanted, found, strict=True)]
            if all(fits):
                return [replace(one, stretches=own) for one, own in zip(wanted, found, strict=True)]
            wanted = [one for one, good in zip(wanted, fits, strict=True) if good]
        return []

    def _stretches(self, wanted: Sequence[Cut]) -> list[tuple[tuple[Slice, ...], ...]] | None:
        """The slices of each pattern in stretches of about equal work, or None if too much would be read or kept."""
        days = sorted(set().union(*(one.reads for one in wanted)))
        curve = sum_of([one.curve for one in wanted])
        spans = spans_of(set().union(*(one.days for one in wanted)))
        least, pieces = self._least, self._pieces(days)
        while True:
            bounds = curve.cut(spans, pieces)
            cut = [within(runs(one.pattern, one.days), one.pattern, bounds) for one in wanted]
            parts = [[one for slices in part for one in slices] for part in zip(*cut, strict=True)]
            if len(wanted) > 1 and max(map(self._kept, parts)) > MOST_ROWS:
                return None
            reads = sum(self._rows(self._days(part)) for part in parts)
            if (reads - READ_TWICE * self._rows(days)) * PER_READ <= curve.total:
                return cut
            if pieces <= least:
                return None
            pieces = max(least, pieces // 2)

    @property
    def _least(self) -> int:
        return int(self.spark.sparkContext.defaultParallelism)

    def _pieces(self, days: Iterable[date]) -> int:
        """How many stretches there should be."""
        rows = self._rows(days)
        return 1 if rows <= WHOLE else max(PIECES, 2 * self._least, -(-rows // SLICE_ROWS))

    def _rows(self, days: Iterable[date]) -> int:
        return sum(self.files.rows[day] for day in days)

    def _days(self, slices: Iterable[Slice]) -> set[date]:
        return {day for one in slices for day in self.files.within(*one.read)}

    def _kept(self, slices: Sequence[Slice]) -> float:
        """About how many events a task keeps to read these slices, if those of a day lie evenly."""
        lo, hi = min(one.read[0] for one in slices), max(one.read[1] for one in slices)
        starts = {day: day_start_us(day) for day in self._days(slices)}
        parts = {day: min(hi, start + US_PER_DAY) - max(lo, start) for day, start in starts.items()}
        return sum(self.files.rows[day] * part / US_PER_DAY for day, part in parts.items())

    def _too_large(self, one: Cut, stretches: Sequence[Sequence[Slice]]) -> bool:
        """Whether a slice is more than a task can hold: with a partition key it is in memory as a whole."""
        if one.pattern.partition_key is None:
            return False
        return max(self._rows(self._days([own])) for slices in stretches for own in slices) > MOST_ROWS


@dataclass(frozen=True, eq=False)
class Cut:
    """A pattern cut for tasks that read files.

    Args:
        pattern: the pattern.
        days: the days wanted, ascending.
        reads: the days read.
        orders: binding order of each branch.
        curve: where its work lies.
        stretches: per task its slices, of a pattern by itself one each.
    """

    pattern: Pattern
    days: Sequence[date]
    reads: Sequence[date]
    orders: Sequence[Sequence[str]]
    curve: Curve = field(repr=False)
    stretches: Sequence[Sequence[Slice]] = field(repr=False)

    def search(self, table: Table, path: str) -> Search:
        """The work of the tasks, for the match table ``table`` and the staging folder ``path``."""
        return Search(self.pattern, table, self.stretches, self.orders, folder_of_matches(path))


def in_files(spark: SparkSession, home: Home, source: Source, pinned: Pinned, work: Sequence[Work]) -> InFiles | None:
    """The files of what a run reads.

    Returns:
        None if there are none, or only Spark's reader can read them, also because a task could not hold a day of them.
    """
    if pinned.version is None:
        return None
    files = event_files(home, source.name, span_of(work), pinned.version)
    if files is None or max(files.rows.values(), default=0) > MOST_ROWS:
        return None
    large = [
        item for item in work
        if not item.compiled.pattern.histories and pinned.event_days.events(item.read_days) > WHOLE
    ]  # fmt: skip
    asks = [ask_of(item.compiled.pattern, runs(item.compiled.pattern, item.fingerprints)) for item in large]
    return InFiles(spark, files, source.key, asks)


def ask_of(pattern: Pattern, base: Sequence[Slice]) -> Ask:
    """What is counted for a run of a pattern."""
    return Ask(pattern, tuple(one.read for one in base), stretch_length(pattern, base))


def span_of(work: Sequence[Work]) -> Days:
    """The days from the first to the last that is read."""
    reads = [item.read_days for item in work]
    return Days(min(r.start for r in reads), max(r.end for r in reads))
