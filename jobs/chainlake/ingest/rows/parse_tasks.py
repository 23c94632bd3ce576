"""Parsing spread over Spark: one file = one task, streamed through ``mapInArrow`` (design §3, "Parsing").

A task writes the rows of a large file as data files of ``raw`` itself, where it can
(``chainlake.lake.delta.data_files``): only what could not be parsed, and counts, go through Spark. The rows of small
files do, so that many small files become few.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.definitions.source import Source
from chainlake.ingest.rows.parse import BAD, COUNTS, ROW, WAITING, Counts, Task, parse_file, parsed_schema
from chainlake.lake.delta.data_files import DataFile, DataFiles
from chainlake.lake.spark.types import spark_schema
from chainlake.schemas.quarantine import quarantine_table
from chainlake.schemas.raw import raw_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Kind of a row that names a data file which the task wrote, as JSON in ``_raw``.
FILE = 3
#: A landed file with more rows is written by its task, if so many of them fall on each of its days.
LARGE_FILE = 50_000
ROWS_PER_DAY = 5_000


def parse_all(spark: SparkSession, source: Source, tasks: list[Task], folder: str | None) -> DataFrame:
    """The rows of ``parse_file`` for all tasks, kept on disk so that no file is read twice; unpersist it after use.

    Args:
        spark: the session.
        source: the source.
        tasks: the files.
        folder: of the raw table, if tasks may write into it; then the rows of large files are not in the result, but
            rows of kind ``FILE`` name the data files that hold them.
    """
    from pyspark import StorageLevel

    large, per_day = LARGE_FILE, ROWS_PER_DAY

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                parsed = parse_file(source, tasks[number])
                yield from parsed if folder is None else large_to_files(source, parsed, folder, large, per_day)

    numbers = spark.range(0, len(tasks), 1, numPartitions=len(tasks))
    parsed = numbers.mapInArrow(work, spark_schema(parsed_schema(source)))
    return parsed.persist(StorageLevel.DISK_ONLY)


def large_to_files(
    source: Source, parsed: Iterable[pa.RecordBatch], folder: str, large: int, per_day: int
) -> Iterator[pa.RecordBatch]:
    """What ``parse_file`` gives, with the rows of a large file in data files instead.

    Args:
        source: the source.
        parsed: from ``parse_file``.
        folder: of the raw table.
        large: a file of more rows is large,
        per_day: if its first rows are at least so many for each of their days.

    Yields:
        Batches of ``parsed_schema``; those of kind ``FILE`` name the data files.
    """
    table, schema = raw_table(source), parsed_schema(source)
    first: list[pa.RecordBatch] = []
    undecided, rows, waits = True, 0, False
    with DataFiles(folder, table) as files, ThreadPoolExecutor(1) as beside:
        # Writing goes on beside parsing, one block behind it.
        written: Future[None] | None = None
        for batch in parsed:
            if len(batch) and batch.column(0)[0].as_py() == COUNTS:
                waits = json.loads(batch.column("_raw")[0].as_py())["outcome"] == WAITING
            if not len(batch) or batch.column(0)[0].as_py() != ROW or not (undecided or written):
                yield batch
                continue
            first.append(batch)
            rows += len(batch)
            if undecided and rows <= large:
                continue
            if undecided:
                undecided = False
                days = {day for one in first for day in pc.unique(one["event_date"]).to_pylist()}
                if len(days) * per_day > rows:
                    yield from first
                    first = []
                    continue
            if written is not None:
                written.result()
            written = beside.submit(files.write, pa.Table.from_batches(first).select(table.column_names))
            first = []
        if undecided:
            yield from first
        if written is not None:
            written.result()
        if waits:
            # Nothing of this load counts, so its files must not lie about until the next clean-up.
            files.abandon()
            return
        names = [file.text() for file in files.close()]
    if not names:
        return
    columns = {"_kind": pa.array([FILE] * len(names), pa.int32()), "_raw": pa.array(names, pa.string())}
    yield pa.record_batch([columns.get(f.name, pa.nulls(len(names), f.type)) for f in schema], schema=schema)


def reports_of(parsed: DataFrame) -> tuple[dict[str, Counts], list[DataFile]]:
    """The counts of each file, by load_id, and the data files that tasks wrote."""
    rows = parsed.where(f"_kind IN ({COUNTS}, {FILE})").select("_kind", "_raw").collect()
    found = [Counts(**json.loads(row["_raw"])) for row in rows if row["_kind"] == COUNTS]
    files = [DataFile.of(row["_raw"]) for row in rows if row["_kind"] == FILE]
    return {counts.load_id: counts for counts in found}, files


def without(parsed: DataFrame, loads: Collection[str]) -> DataFrame:
    """All rows but those of ``loads``."""
    from pyspark.sql import functions as F

    return parsed.where(~F.col("load_id").isin(sorted(loads))) if loads else parsed


def raw_rows(source: Source, parsed: DataFrame) -> DataFrame:
    """The rows for ``raw.<source>``."""
    return parsed.where(f"_kind = {ROW}").select(*raw_table(source).column_names)


def quarantined_rows(source: Source, parsed: DataFrame) -> DataFrame:
    """The rows for ``quarantine.<source>`` with stage ``parse``."""
    from pyspark.sql import functions as F

    return (
        parsed.where(f"_kind = {BAD}")
        .select(
            "file_id",
            "line",
            "entry",
            F.lit("parse").alias("stage"),
            F.col("_reason").alias("reason"),
            F.col("_field").alias("field"),
            F.col("_value").alias("value"),
            F.col("_raw").alias("raw"),
            "event_date",
            F.current_timestamp().alias("written_at"),
        )
        .select(*quarantine_table(source).column_names)
    )
