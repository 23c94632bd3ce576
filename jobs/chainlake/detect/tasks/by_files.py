"""Patterns on Spark without Spark's rows: each task reads a stretch of events from the files and stages its matches, of
one pattern or several.

To bring an event through a shuffle, a sort and the pipe to Python takes Spark ten times as long as Arrow takes to read
it. Spark still says which task runs where, and tries again what failed.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from chainlake.cep.pattern import Pattern
from chainlake.detect.tasks.by_shuffle import columns_of
from chainlake.detect.tasks.feed import Events, Feed
from chainlake.detect.tasks.kept_days import KeptDays, Read
from chainlake.detect.tasks.slices import Slice
from chainlake.detect.tasks.worker import REPORT, Matcher
from chainlake.lake.delta.checksums import Sums, footer
from chainlake.lake.delta.event_files import EventFiles
from chainlake.lake.spark.python_workers import forget_archives
from chainlake.schemas.table import Table

#: Matches that are collected before they are written.
_ROWS = 100_000


@dataclass(frozen=True)
class Search:
    """A pattern that tasks look for.

    Args:
        pattern: the compiled pattern, without histories.
        table: the match table.
        stretches: per task, the slices that are its share, maybe none; together they own the wanted days.
        orders: binding order of each branch; if not given, every worker chooses its own.
        path: folder that every worker can reach; it does not exist.
    """

    pattern: Pattern
    table: Table
    stretches: Sequence[Sequence[Slice]]
    orders: Sequence[Sequence[str]] | None
    path: str


@dataclass(frozen=True)
class Outcome:
    """What tasks say of a search.

    Args:
        reports: as :func:`chainlake.detect.tasks.by_shuffle.count_reports` takes them.
        failure: kind and text of an exception that no task should meet; then nothing is in the folder.
    """

    reports: Sequence[str]
    failure: str | None = None


def stage_matches(spark: SparkSession, files: EventFiles, searches: Sequence[Search]) -> list[Outcome]:
    """Write the matches that the slices own, as rows of the match tables; one task per stretch, for all searches.

    What goes wrong with one search stops no other. A single one's unexpected exception is Spark's to handle.

    Args:
        spark: the session.
        files: the events of all read ranges.
        searches: the patterns, all cut into equally many stretches.

    Returns:
        what came of each search.
    """
    tasks = [_Task(search, files) for search in searches]
    folders = [Path(search.path).absolute() for search in searches]
    attempts = [folder.parent / f"_attempts-{uuid.uuid4().hex}" for folder in folders]
    for made in (*folders, *attempts):
        made.mkdir(parents=True)

    def staged(number: int) -> list[tuple[str | None, Outcome]]:
        forget_archives()
        if len(tasks) == 1:
            return [tasks[0].run(files, number, attempts[0])]
        kept = KeptDays(files, [read for task in tasks for read in task.reads(number)])
        found: list[tuple[str | None, Outcome]] = []
        for task, folder in zip(tasks, attempts, strict=True):
            try:
                found.append(task.run(kept, number, folder))
            except Exception as error:  # told to the driver
                found.append((None, Outcome([], " ".join(f"{type(error).__name__}: {error}".split()))))
        return found

    stretches = range(len(searches[0].stretches))
    done = spark.sparkContext.parallelize(stretches, len(stretches)).map(staged).collect()
    outcomes = []
    for number, (folder, tried) in enumerate(zip(folders, attempts, strict=True)):
        mine = [found[number] for found in done]
        failures = [outcome.failure for _, outcome in mine if outcome.failure is not None]
        for name, _ in mine if not failures else ():
            if name is not None:
                os.replace(tried / name, folder / name)
        # What a late attempt still writes goes with the run's other leftovers.
        shutil.rmtree(tried, ignore_errors=True)
        reports = [report for _, outcome in mine for report in outcome.reports]
        outcomes.append(Outcome([], failures[0]) if failures else Outcome(reports))
    return outcomes


class _Task:
    """What tasks need for a search."""

    def __init__(self, search: Search, files: EventFiles) -> None:
        self._stretches = search.stretches
        self._feed = Feed(files, search.pattern, tuple(columns_of(files.schema.names, search.pattern, search.table)))
        own = {one.number: one.own for part in search.stretches for one in part}
        self._matcher = Matcher(search.pattern, search.table.arrow(), own, search.orders)

    def reads(self, number: int) -> list[Read]:
        """What a task reads."""
        types = self._feed.pattern.event_types
        return [Read(self._feed.columns, types, *one.read) for one in self._stretches[number]]

    def run(self, events: Events, number: int, folder: Path) -> tuple[str | None, Outcome]:
        """The name of the file with the matches of a stretch, if there are any, and the reports."""
        if not self._stretches[number]:
            return None, Outcome([])
        # A task can be tried twice, also at a time: the driver takes the file of the attempt that Spark counts.
        name = f"part-{number:05}-{uuid.uuid4().hex}.parquet"
        feed = replace(self._feed, files=events)
        batches = (batch for one in self._stretches[number] for batch in feed.slice(one))
        wrote, reports = write_matches(self._matcher.run(batches), folder / name)
        return name if wrote else None, Outcome(reports)


def write_matches(batches: Iterable[pa.RecordBatch], path: Path) -> tuple[bool, list[str]]:
    """Write what a matcher gives to one Parquet file, many small batches together; no file without matches.

    Args:
        batches: of ``chainlake.detect.tasks.worker.Matcher.run``.
        path: the file.

    Returns:
        whether there is a file, and the reports.
    """
    import pyarrow.parquet as pq

    reports: list[str] = []
    waiting: list[pa.RecordBatch] = []
    rows = 0
    sums = Sums("decision_ts")
    with ExitStack() as stack:
        writers: list[pq.ParquetWriter] = []

        def write() -> None:
            if not writers:
                # The file may become one of the table's as it is.
                writer = pq.ParquetWriter(path, waiting[0].schema, write_page_checksum=True)
                writers.append(stack.enter_context(writer))
            found = pa.Table.from_batches(waiting)
            sums.add(found)
            writers[0].write_table(found)

        for batch in batches:
            texts = batch[REPORT.names[0]]
            if texts.null_count < len(batch):
                reports += texts.drop_null().to_pylist()
                continue
            waiting.append(batch.drop_columns(REPORT.names))
            rows += len(batch)
            if rows >= _ROWS:
                write()
                waiting, rows = [], 0
        if rows:
            write()
        for writer in writers:
            writer.add_key_value_metadata(footer(sums))
    return bool(writers), reports
