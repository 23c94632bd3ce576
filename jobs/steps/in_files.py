"""The way of large runs: Spark's tasks read the events from their files by themselves, if that is less work.

It is for events that Spark does not keep, in a plain folder. Whatever makes tasks read too much, or hold too much at a
time, leaves the run to Spark's own reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import SparkSession

from jobs.cep.pattern import Pattern
from jobs.cep.slices import PIECES, Slice, cut_evenly, runs
from jobs.cep.survey import Ask, Survey
from jobs.days import Days
from jobs.lake.event_days import Pinned
from jobs.lake.event_files import EventFiles, event_files
from jobs.paths import Home
from jobs.steps.detect import Work
from jobs.steps.file_counts import FileCounts, survey_all
from jobs.steps.order_choice import WHOLE, Plan, stretch_length

#: Events that a task may hold: of a day, and of a keyed pattern's slice.
MOST_ROWS = 3_000_000
#: Events of a slice if there are enough of them.
SLICE_ROWS = 2_000_000
#: What it costs to read an event that then is not wanted, in evaluations as ``jobs.cep.slices`` has them.
PER_READ = 20.0
#: Events may be read so often on average, whatever else is to do.
READ_TWICE = 2.0
#: Each key of each slice is searched by itself, which is worth it for so many events.
KEY_ROWS = 1_000


@dataclass(frozen=True)
class InFiles:
    """The files of a run's events.

    Args:
        spark: the session.
        files: the files.
        asks: what will be asked about the run's patterns.
    """

    spark: SparkSession = field(repr=False)
    files: EventFiles
    asks: Sequence[Ask] = field(repr=False)

    @cached_property
    def _surveys(self) -> dict[tuple[str, tuple[tuple[int, int], ...]], Survey | Exception]:
        """What is counted for all patterns by one pass, or the error that this gave."""
        found = survey_all(self.spark, self.files, self.asks)
        return {(ask.pattern.name, ask.reads): one for ask, one in zip(self.asks, found, strict=True)}

    def look(self, pattern: Pattern, base: Sequence[Slice]) -> FileCounts:
        """The events of one pattern.

        Raises:
            Exception: what stopped the counting of this pattern.
        """
        ask = ask_of(pattern, base)
        found = self._surveys.get((pattern.name, ask.reads))
        if isinstance(found, Exception):
            raise found
        return FileCounts(self.spark, self.files, ask, found)

    def slices(self, base: Sequence[Slice], plan: Plan) -> tuple[Slice, ...] | None:
        """Slices for tasks that read files, or None if Spark's reader has less to do."""
        pattern, files = plan.work.pattern, self.files
        days = ask_of(pattern, base).days(files)
        rows = sum(files.rows[day] for day in days)
        least = self.spark.sparkContext.defaultParallelism
        pieces = 1 if rows <= WHOLE else max(PIECES, 2 * least, -(-rows // SLICE_ROWS))
        while True:
            cut, work = cut_evenly(base, plan.work, plan.counts, pieces)
            reads = [files.count(*one.read) for one in cut]
            if (sum(reads) - READ_TWICE * rows) * PER_READ <= work:
                return None if self._too_many_keys(plan, reads, rows) else cut
            if pieces <= least:
                return None
            pieces = max(least, pieces // 2)

    def _too_many_keys(self, plan: Plan, reads: Sequence[int], rows: int) -> bool:
        """Whether a keyed slice is too large, or its keys are too many to be searched once more per slice."""
        if plan.work.pattern.partition_key is None:
            return False
        keys = plan.counts.survey.keys if isinstance(plan.counts, FileCounts) else 0
        return max(reads) > MOST_ROWS or keys * len(reads) * KEY_ROWS > rows


def in_files(spark: SparkSession, home: Home, source: str, pinned: Pinned, work: Sequence[Work]) -> InFiles | None:
    """The files of what a run reads.

    Returns:
        None if there are none, or only Spark's reader can read them, also because a task could not hold a day of them.
    """
    if pinned.version is None:
        return None
    files = event_files(home, source, span_of(work), pinned.version)
    if files is None or max(files.rows.values(), default=0) > MOST_ROWS:
        return None
    large = [
        item for item in work
        if not item.compiled.pattern.histories and pinned.event_days.events(item.read_days) > WHOLE
    ]  # fmt: skip
    asks = [ask_of(item.compiled.pattern, runs(item.compiled.pattern, item.fingerprints)) for item in large]
    return InFiles(spark, files, asks)


def ask_of(pattern: Pattern, base: Sequence[Slice]) -> Ask:
    """What is counted for a run of a pattern."""
    return Ask(pattern, tuple(one.read for one in base), stretch_length(pattern, base))


def span_of(work: Sequence[Work]) -> Days:
    """The days from the first to the last that is read."""
    reads = [item.read_days for item in work]
    return Days(min(r.start for r in reads), max(r.end for r in reads))
