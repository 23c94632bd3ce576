"""Staged matches: what the kernel wrote, its reports split off, counted per day.

Small outputs, the usual case, are read back without Spark, which takes a second to look at a few dozen rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from jobs.cep.detect import count_reports, report_of
from jobs.cep.worker import REPORT
from jobs.lake.rows import SMALL_ROWS
from jobs.lake.types import spark_schema
from schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Staged:
    """The staged matches of one pattern.

    Args:
        frame: the rows as a DataFrame; nothing is computed until it is used.
        rows: the same rows in memory, ``None`` if they are many.
        per_day: UTC day of the decision → matches.
        counts: evaluations, summed over all groups.
    """

    frame: DataFrame
    rows: pa.Table | None
    per_day: dict[date, int]
    counts: dict[str, int]


def read_staged(spark: SparkSession, path: str, table: Table) -> Staged:
    """Read what :func:`jobs.cep.detect.detect_matches` gave and was written to ``path``.

    Args:
        spark: the session.
        path: a Parquet folder.
        table: the match table that the rows are for.

    Raises:
        ChainlakeError: the error that stopped a group, as the kernel raised it.
    """
    from pyspark.sql import functions as F

    plain = pa.schema([pa.field(field.name, field.type) for field in table.arrow()])
    written = spark.read.schema(spark_schema(pa.unify_schemas([plain, REPORT]))).parquet(path)
    report = report_of(written)
    frame = written.where(report.isNull()).drop(report)
    rows = None if "://" in path else _in_memory(path, pa.unify_schemas([plain, REPORT]))
    if rows is None:
        reports = [row[0] for row in written.where(report.isNotNull()).select(report).collect()]
        counts = count_reports(reports)
        found = frame.groupBy(F.to_date("decision_ts").alias("day")).count().collect()
        return Staged(frame, None, {row["day"]: int(row["count"]) for row in found}, counts)
    name = REPORT.names[0]
    counts = count_reports(pc.drop_null(rows[name]).to_pylist())
    rows = rows.filter(pc.is_null(rows[name])).drop_columns([name])
    days = pc.cast(rows["decision_ts"], pa.date32(), safe=False)
    return Staged(frame, rows, dict(Counter(days.to_pylist())), counts)


def _in_memory(path: str, schema: pa.Schema) -> pa.Table | None:
    import pyarrow.dataset as ds

    written = ds.dataset(path, format="parquet", schema=schema)
    return None if written.count_rows() > SMALL_ROWS else written.to_table()
