"""Staged matches: what the kernel found, its reports split off, counted per day.

The reports lie in files of their own, so that the others hold the rows of the match table and nothing else: they are
read without Spark, which takes seconds even for few rows, and become files of the table as they are where nothing else
is to be published. Only of lakes in object stores Spark reads them back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import US_PER_DAY, day_of_us
from chainlake.detect.tasks.by_shuffle import count_reports, report_of
from chainlake.lake.commits.rows import SMALL_ROWS
from chainlake.lake.spark.types import spark_schema
from chainlake.lake.store.port import Staged as StagedRows
from chainlake.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The column that says what a row is, in the names of folders only; no name of a pattern can be like it.
_KIND = "kind of row"
_MATCH, _REPORT = "match", "report"


@dataclass(frozen=True)
class Staged:
    """The staged matches of one pattern.

    Args:
        frame: the rows as a DataFrame; nothing is computed until it is used.
        rows: the same rows in memory, ``None`` if they are many.
        per_day: UTC day of the decision → matches.
        counts: evaluations, summed over all groups.
        paths: the Parquet files that hold the rows and nothing else; ``None`` if this process cannot read them.
    """

    frame: DataFrame
    rows: pa.Table | None
    per_day: dict[date, int]
    counts: dict[str, int]
    paths: Sequence[str] | None = None

    @property
    def to_publish(self) -> StagedRows:
        """The rows as publishing takes them."""
        return StagedRows(tuple(self.paths or ()))


def write_staged(found: DataFrame, path: str) -> None:
    """Write what :func:`chainlake.detect.tasks.by_shuffle.detect_matches` gave to the folder ``path``, which must not
    exist."""
    from pyspark.sql import functions as F

    report = report_of(found)
    kind = F.when(report.isNull(), _MATCH).otherwise(_REPORT).alias(_KIND)
    # The text of a report takes the place of an id, so that its files have no column that the table lacks.
    columns = [
        F.coalesce(found["match_id"], report).alias("match_id") if name == "match_id" else found[f"`{name}`"]
        for name in found.drop(report).columns
    ]
    conf, key = found.sparkSession.conf, "spark.sql.maxConcurrentOutputFileWriters"
    before = str(conf.get(key))
    # A file of each kind is open at a time; else Spark would sort all rows by their kind.
    conf.set(key, "2")
    try:
        found.select(*columns, kind).write.partitionBy(_KIND).parquet(path)
    finally:
        conf.set(key, before)


def folder_of_matches(path: str) -> str:
    """Where in the folder ``path`` the files with the rows of the match table lie, and nothing else."""
    return str(Path(path, f"{_KIND}={_MATCH}"))


def write_reports(reports: Sequence[str], path: str, table: Table) -> None:
    """Put the reports beside the matches that tasks wrote by themselves (``chainlake.detect.tasks.by_files``).

    Args:
        reports: of all workers.
        path: the folder, a plain one.
        table: the match table.
    """
    import pyarrow.parquet as pq

    schema = pa.schema([pa.field(field.name, field.type) for field in table.arrow()])
    texts = {"match_id": pa.array(reports, pa.string())}
    folder = Path(path, f"{_KIND}={_REPORT}")
    folder.mkdir(parents=True)
    columns = [texts.get(field.name, pa.nulls(len(reports), field.type)) for field in schema]
    pq.write_table(pa.table(columns, schema=schema), folder / "reports.parquet")


def read_staged(spark: SparkSession, path: str, table: Table) -> Staged:
    """Read what :func:`write_staged`, or tasks by themselves, wrote.

    Args:
        spark: the session.
        path: the folder.
        table: the match table that the rows are for.

    Raises:
        ChainlakeError: the error that stopped a group, as the kernel raised it.
    """
    from pyspark.sql import functions as F

    plain = pa.schema([pa.field(field.name, field.type) for field in table.arrow()])
    written = spark.read.schema(spark_schema(plain.append(pa.field(_KIND, pa.string())))).parquet(path)
    frame = written.where(F.col(f"`{_KIND}`") == _MATCH).drop(_KIND)
    if "://" in path:
        reports = written.where(F.col(f"`{_KIND}`") == _REPORT).select("match_id").collect()
        counts = count_reports(row[0] for row in reports)
        found = frame.groupBy(F.to_date("decision_ts").alias("day")).count().collect()
        return Staged(frame, None, {row["day"]: int(row["count"]) for row in found}, counts, [folder_of_matches(path)])
    counts = count_reports(_read(_files(path, _REPORT), plain)["match_id"].to_pylist())
    paths = _files(path, _MATCH)
    rows, per_day = _counted(paths, plain)
    return Staged(frame, rows, per_day, counts, paths)


def _files(path: str, kind: str) -> list[str]:
    return sorted(map(str, Path(path, f"{_KIND}={kind}").glob("*.parquet")))


def _read(paths: Sequence[str], schema: pa.Schema) -> pa.Table:
    import pyarrow.dataset as ds

    return ds.dataset(paths, format="parquet", schema=schema).to_table()


def _counted(paths: Sequence[str], schema: pa.Schema) -> tuple[pa.Table | None, dict[date, int]]:
    """The rows if they are few, and how many decide on each day."""
    import pyarrow.dataset as ds

    written = ds.dataset(paths, format="parquet", schema=schema)
    rows = written.to_table() if written.count_rows() <= SMALL_ROWS else None
    found: Counter[date] = Counter()
    source = rows.to_batches() if rows is not None else written.to_batches(columns=["decision_ts"])
    for batch in source:
        decided = pc.cast(pc.drop_null(batch["decision_ts"]), pa.int64()).to_numpy()
        days, counts = np.unique(decided // US_PER_DAY, return_counts=True)
        for day, count in zip(days.tolist(), counts.tolist(), strict=True):
            found[day_of_us(day * US_PER_DAY)] += count
    return rows, dict(found)
