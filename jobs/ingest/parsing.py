"""Parsing spread over Spark: one file = one task, streamed through ``mapInArrow`` (design §3, "Parsing")."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.ingest.parse import BAD, COUNTS, ROW, Counts, Task, parse_file, parsed_schema
from jobs.lake.types import spark_schema
from jobs.sources import Source
from schemas.quarantine import quarantine_table
from schemas.raw import raw_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def parse_all(spark: SparkSession, source: Source, tasks: list[Task]) -> DataFrame:
    """The rows of ``parse_file`` for all tasks, kept on disk so that no file is read twice; unpersist it after use."""
    from pyspark import StorageLevel

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from parse_file(source, tasks[number])

    numbers = spark.range(0, len(tasks), 1, numPartitions=len(tasks))
    parsed = numbers.mapInArrow(work, spark_schema(parsed_schema(source)))
    return parsed.persist(StorageLevel.DISK_ONLY)


def counts_of(parsed: DataFrame) -> dict[str, Counts]:
    """The counts of each file, by load_id."""
    rows = parsed.where(f"_kind = {COUNTS}").select("_raw").collect()
    found = [Counts(**json.loads(row["_raw"])) for row in rows]
    return {counts.load_id: counts for counts in found}


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


def conflict_rows(source: Source, resolved: DataFrame) -> DataFrame:
    """The rows for ``quarantine.<source>`` with stage ``resolve``: what lost against another row of the same event."""
    from pyspark.sql import functions as F

    from jobs.ingest.identity import quoted
    from jobs.ingest.resolve import CONFLICT

    # The delivered text is not kept in raw; what was read from it says as much.
    text = F.to_json(
        F.struct("type", quoted(source.key), "ts", *(quoted(a.name) for a in source.attributes)),
        {"ignoreNullFields": "false"},
    )
    return (
        resolved.where(F.col("_fate") == CONFLICT)
        .select(
            "file_id",
            "line",
            "entry",
            F.lit("resolve").alias("stage"),
            F.lit("conflict").alias("reason"),
            F.lit(None).cast("string").alias("field"),
            F.lit(None).cast("string").alias("value"),
            F.substring(text, 1, 1000).alias("raw"),
            "event_date",
            F.current_timestamp().alias("written_at"),
        )
        .select(*quarantine_table(source).column_names)
    )
