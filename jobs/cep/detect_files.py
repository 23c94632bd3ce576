"""Patterns on Spark without Spark's rows: each task reads a slice's events from the files and stages its matches.

To bring an event through a shuffle, a sort and the pipe to Python takes Spark ten times as long as Arrow takes to read
it. Spark still says which task runs where, and tries again what failed.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from jobs.cep.detect import columns_of
from jobs.cep.feed import Feed
from jobs.cep.pattern import Pattern
from jobs.cep.slices import Slice
from jobs.cep.worker import REPORT, Matcher
from jobs.lake.event_files import EventFiles
from jobs.lake.python_workers import forget_archives
from schemas.table import Table

#: Matches that are collected before they are written.
_ROWS = 100_000


def stage_matches(
    spark: SparkSession,
    files: EventFiles,
    pattern: Pattern,
    table: Table,
    slices: Sequence[Slice],
    orders: Sequence[Sequence[str]] | None,
    path: str,
) -> list[str]:
    """Write the matches that the slices own, as rows of the match table; one task per slice.

    Args:
        spark: the session.
        files: the events of all read ranges.
        pattern: the compiled pattern, without histories.
        table: the match table.
        slices: slices that together own the wanted days.
        orders: binding order of each branch; if not given, every worker chooses its own.
        path: folder that every worker can reach; it does not exist.

    Returns:
        the reports, as :func:`jobs.cep.detect.count_reports` takes them.
    """
    feed = Feed(files, pattern, tuple(columns_of(files.schema.names, pattern, table)))
    matcher = Matcher(pattern, table.arrow(), {s.number: s.own for s in slices}, orders)
    folder = Path(path).absolute()
    attempts = folder.parent / f"_attempts-{uuid.uuid4().hex}"
    for made in (folder, attempts):
        made.mkdir(parents=True)

    def staged(one: Slice) -> tuple[str | None, list[str]]:
        forget_archives()
        # A task can be tried twice, also at a time: the driver takes the file of the attempt that Spark counts.
        name = f"part-{one.number:05}-{uuid.uuid4().hex}.parquet"
        wrote, reports = write_matches(matcher.run(feed.slice(one)), attempts / name)
        return name if wrote else None, reports

    done = spark.sparkContext.parallelize(slices, len(slices)).map(staged).collect()
    for name, _ in done:
        if name is not None:
            os.replace(attempts / name, folder / name)
    shutil.rmtree(attempts)
    return [report for _, reports in done for report in reports]


def write_matches(batches: Iterable[pa.RecordBatch], path: Path) -> tuple[bool, list[str]]:
    """Write what a matcher gives to one Parquet file, many small batches together; no file without matches.

    Args:
        batches: of ``jobs.cep.worker.Matcher.run``.
        path: the file.

    Returns:
        whether there is a file, and the reports.
    """
    import pyarrow.parquet as pq

    reports: list[str] = []
    waiting: list[pa.RecordBatch] = []
    rows = 0
    with ExitStack() as stack:
        writers: list[pq.ParquetWriter] = []

        def write() -> None:
            if not writers:
                writers.append(stack.enter_context(pq.ParquetWriter(path, waiting[0].schema)))
            writers[0].write_table(pa.Table.from_batches(waiting))

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
    return bool(writers), reports
