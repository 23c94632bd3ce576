"""The back end *spark*: for stores whose files this process cannot read, and changes too large for one process.

A commit requested from Spark can land after this process has died, and Delta silently skips a commit whose turn has
passed. So each commit carries a turn and a mark, is looked up afterwards, and is made under a lock that the JVM holds.
"""

from __future__ import annotations

import re
import shutil
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

from chainlake.lake.delta import tables
from chainlake.lake.delta.columns import require_columns
from chainlake.lake.delta.data_files import DataFile
from chainlake.lake.delta.reader import open_table
from chainlake.lake.delta.sums.checksums import checksums_of_frame
from chainlake.lake.delta.where import Where, spark_literal, sql
from chainlake.lake.errors import RowRefused
from chainlake.lake.locks import WAIT_SECONDS, jvm_lock, require_locks
from chainlake.lake.spark.session import expect_rows
from chainlake.lake.spark.types import frame_of, spark_schema
from chainlake.lake.store.delta_commits import landed, require_files
from chainlake.lake.store.difference import OP, WAS, bounding, loose
from chainlake.lake.store.errors import Overtaken, PartlyMerged, RowsOutside
from chainlake.lake.store.port import Applied, Change, DayFile, DayFiles, Part, Staged, Turn
from chainlake.paths import Home
from chainlake.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_DAY = "event_date"
#: Column that says whether the rows of a difference are new; it appears only in the names of folders.
_NEW = "__new"

#: Delta takes a MERGE's transaction and mark from the session's settings, so only one MERGE runs at a time.
_merging = threading.Lock()


@dataclass(frozen=True)
class SparkLake:
    """See ``chainlake.lake.store.port.Lake``.

    Args:
        home: the installation.
        session: returns this process's Spark session, and makes it if necessary.
    """

    home: Home
    session: Callable[[], SparkSession]
    name: str = field(default="spark", init=False)

    def version(self, schema: str, name: str) -> int | None:
        """See ``Lake.version``."""
        return tables.version(self.home, schema, name)

    def rows(
        self,
        schema: str,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        version: int | None = None,
    ) -> pa.Table:
        """See ``Lake.rows``."""
        frame = self._read(schema, name, version)
        chosen = frame if where is None else frame.where(sql(where))
        return (chosen if columns is None else chosen.select(*map(_quoted, columns))).toArrow()

    def day_files(self, schema: str, name: str, days: Collection[date], version: int | None = None) -> DayFiles:
        """See ``Lake.day_files``; the files are copies in staging, which a later run sweeps."""
        from pyspark.sql import functions as F

        self._expect(schema, name)
        folder = f"{self.home.staging}/export-{uuid.uuid4().hex[:8]}"
        frame = self._read(schema, name, version)
        frame.where(F.col(_DAY).isin(sorted(days))).write.partitionBy(_DAY).parquet(folder)
        fields = tables.arrow_schema(self.home, schema, name)
        plain = pa.schema([pa.field(f.name, f.type) for f in fields if f.name != _DAY])
        read = self.session().read.schema(spark_schema(fields)).parquet(folder)
        counted = read.groupBy(F.input_file_name(), _DAY).count().collect()
        return DayFiles(plain, tuple(_day_file(day, _plain_path(uri), rows) for uri, day, rows in counted))

    def task_folder(self, table: Table) -> str:
        """See ``Lake.task_folder``; it is not the table's own folder, where only Spark writes."""
        return f"{self.home.staging}/tasks-{table.path_name.replace('/', '.')}"

    def change(self, table: Table, staged: Staged, part: Part) -> Change:
        """See ``Lake.change``."""
        from pyspark.sql import functions as F

        tables.ensure_table(self.home, table)
        at = open_table(self.home, table.schema, table.name, without_files=True)
        require_columns(at, table)
        self._expect(table.schema, table.name, staged)
        wanted = self._staged(table, staged)
        mine = F.coalesce(F.expr(sql(part.where)), F.lit(False))
        outside = wanted.where(~mine).count()
        if outside:
            raise RowsOutside.of(table, outside, part.where)
        current = self._read(table.schema, table.name, at.version()).where(mine)
        bounds = bounding(table, part)
        scratch = f"{self.home.staging}/change-{uuid.uuid4().hex[:8]}"
        with ExitStack() as undone:
            undone.callback(shutil.rmtree, scratch, ignore_errors=True)
            diff = _difference(current, wanted, table, bounds)
            diff.withColumn(_NEW, F.col(OP) == "I").write.partitionBy(_NEW).parquet(scratch)
            owner = F.lit("") if part.owner_column is None else F.col(part.owner_column)
            day = F.lit(None).cast("date") if part.day_column is None else F.to_date(part.day_column)
            written = self.session().read.schema(_moved_schema(table, bounds)).parquet(scratch)
            counted = written.groupBy(owner, day, OP).count().collect()
            total: Counter[str] = Counter()
            for _, _, op, count in counted:
                total[op] += count
            sums = {}
            if part.day_column is not None:
                sums = checksums_of_frame(wanted, part.day_column, part.owner_column, table.volatile)
            undone.pop_all()
        return Change(
            table,
            at.version(),
            staged=(f"{scratch}/{_NEW}=true",) if total["I"] else (),
            moved=(f"{scratch}/{_NEW}=false",) if total["U"] or total["D"] else (),
            bounds=bounds,
            scratch=scratch,
            added=total["I"],
            changed=total["U"],
            withdrawn=total["D"],
            rows={place: one.rows for place, one in sums.items()},
            ops={(row[0], row[1], row[2]): row[3] for row in counted} if part.day_column is not None else {},
            sums=sums,
        )

    def additions(self, table: Table, files: Iterable[DataFile], moved: Sequence[str] = ()) -> Change:
        """See ``Lake.additions``."""
        at = open_table(self.home, table.schema, table.name, without_files=True)
        listed = tuple(files)
        counts: dict[str, int] = {}
        if moved:
            rows = self.session().read.schema(_moved_schema(table, ())).parquet(*moved)
            counts = dict(rows.groupBy(OP).count().collect())
        return Change(
            table,
            at.version(),
            files=listed,
            moved=tuple(moved),
            bounds=table.partition_by,
            added=sum(file.rows for file in listed),
            changed=counts.get("U", 0),
            withdrawn=counts.get("D", 0),
        )

    def commit(self, change: Change, turn: Turn) -> Applied:
        """See ``Lake.commit``."""
        try:
            return self._commit(change, turn)
        finally:
            folder = self.task_folder(change.table)
            change.drop()
            for file in change.files:
                Path(folder, file.path).unlink(missing_ok=True)

    def _commit(self, change: Change, turn: Turn) -> Applied:
        table = change.table
        if change.empty and not turn.force:
            return Applied(0, 0, 0, None)
        at = open_table(self.home, table.schema, table.name, without_files=True, to_write=True)
        if at.version() != change.base_version:
            raise Overtaken.of(table)
        require_columns(at, table)
        require_files(table, self.task_folder(table), change.files, ())
        mark = f"{turn.purpose} {uuid.uuid4().hex}"
        wanted = {
            "spark.databricks.delta.write.txnAppId": turn.purpose,
            "spark.databricks.delta.write.txnVersion": str(change.base_version + 1),
            "spark.databricks.delta.commitInfo.userMetadata": mark,
        }
        spark = self.session()
        with _merging:
            require_locks()
            for name, value in wanted.items():
                spark.conf.set(name, value)
            try:
                self._write(change)
            except Exception as error:
                raise (_translated(error, table) or error) from error
            finally:
                for name in wanted:
                    spark.conf.unset(name)
        made = landed(self.home, table, mark, change.base_version)
        return Applied(change.added, change.changed, change.withdrawn, made)

    def _write(self, change: Change) -> None:
        table = change.table
        path = self.home.table(table.schema, table.name)
        if not change.moved:
            new = self._new(change)
            out = new.hint("rebalance", *table.partition_by) if table.partition_by else new
            out.write.format("delta").mode("append").save(path)
            return
        from delta.tables import DeltaTable

        spark = self.session()
        on = " AND ".join(f"t.{_quoted(name)} = s.{_quoted(name)}" for name in table.key)
        moved = spark.read.schema(_moved_schema(table, change.bounds)).parquet(*change.moved)
        for name, (low, high) in _spans(moved, change).items():
            on += f" AND t.{_quoted(name)} BETWEEN {spark_literal(low)} AND {spark_literal(high)}"
        source = moved.select(*map(_quoted, table.column_names), OP)
        if change.added:
            source = source.unionByName(self._new(change).selectExpr("*", f"'I' AS {OP}"))
        values: dict[str, str | Column] = {_quoted(name): f"s.{_quoted(name)}" for name in table.column_names}
        merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), on)
        merge = merge.whenMatchedDelete(f"s.{OP} = 'D'").whenMatchedUpdate(f"s.{OP} = 'U'", values)
        (done,) = merge.whenNotMatchedInsert(f"s.{OP} = 'I'", values).execute().collect()
        reached = {
            "inserted": done.num_inserted_rows,
            "updated": done.num_updated_rows,
            "deleted": done.num_deleted_rows,
        }
        asked = {"inserted": change.added, "updated": change.changed, "deleted": change.withdrawn}
        if reached != asked:
            raise PartlyMerged.of(table, change.base_version + 1, reached, asked)

    def lock(self, purpose: str, *, wait_s: float = WAIT_SECONDS) -> AbstractContextManager[None]:
        """See ``Lake.lock``."""
        return jvm_lock(self.session(), self.home, purpose, wait_s=wait_s)

    def _expect(self, schema: str, name: str, staged: Staged | None = None) -> None:
        """Tell the session how many rows a table has, and how many may be added."""
        files = open_table(self.home, schema, name).get_add_actions(flatten=True)
        rows = sum(count or 0 for count in files.column("num_records").to_pylist()) if len(files) else 0
        if staged is not None:
            rows += sum(pq.read_metadata(path).num_rows for path in staged.paths)
            rows += 0 if staged.rows is None else len(staged.rows)
        expect_rows(self.session(), rows)

    def _read(self, schema: str, name: str, version: int | None) -> DataFrame:
        return tables.read(self.session(), self.home, schema, name, version)

    def _staged(self, table: Table, staged: Staged) -> DataFrame:
        spark, kind = self.session(), loose(table)
        parts = []
        if staged.paths:
            parts.append(spark.read.schema(spark_schema(kind)).parquet(*staged.paths))
        if staged.rows is not None or not staged.paths:
            rows = kind.empty_table() if staged.rows is None else staged.rows.select(kind.names).cast(kind)
            parts.append(frame_of(spark, rows, kind))
        frame = reduce(lambda a, b: a.unionByName(b), parts)
        return frame if staged.within is None else frame.where(sql(staged.within))

    def _new(self, change: Change) -> DataFrame:
        """The rows to insert."""
        table, reader = change.table, self.session().read.schema(spark_schema(loose(change.table)))
        parts = []
        if change.staged:
            parts.append(reader.parquet(*change.staged))
        if change.files:
            folder = self.task_folder(table)
            paths = [f"{folder}/{file.path}" for file in change.files]
            parts.append(reader.option("basePath", folder).parquet(*paths))
        if not parts:
            parts.append(frame_of(self.session(), loose(table).empty_table()))
        return reduce(lambda a, b: a.unionByName(b), parts).select(*map(_quoted, table.column_names))


def _quoted(name: str) -> str:
    return f"`{name}`"


def _difference(current: DataFrame, wanted: DataFrame, table: Table, bounds: Sequence[str]) -> DataFrame:
    """The rows to insert, update and delete, with the published rows' values in ``bounds``."""
    from pyspark.sql import functions as F

    w = wanted.withColumn("__in", F.lit(True)).alias("w")
    c = current.select(*map(_quoted, table.column_names)).withColumn("__in", F.lit(True)).alias("c")
    others = [name for name in table.non_volatile if name not in table.key]
    on, same = (
        reduce(and_, [F.col(f"w.`{name}`").eqNullSafe(F.col(f"c.`{name}`")) for name in names], F.lit(True))
        for names in (table.key, others)
    )
    gone, new = F.col("w.__in").isNull(), F.col("c.__in").isNull()
    op = F.when(new, "I").when(gone, "D").when(~same, "U")
    columns = [F.when(gone, F.col(f"c.`{n}`")).otherwise(F.col(f"w.`{n}`")).alias(n) for n in table.column_names]
    was = [F.col(f"c.`{name}`").alias(WAS + name) for name in bounds]
    return w.join(c, on, "full_outer").select(*columns, op.alias(OP), *was).where(f"{OP} IS NOT NULL")


def _moved_schema(table: Table, bounds: Sequence[str]) -> Any:
    plain = loose(table)
    was = [pa.field(WAS + name, plain.field(name).type) for name in bounds]
    return spark_schema(pa.schema([*plain, pa.field(OP, pa.string()), *was]))


def _spans(moved: DataFrame, change: Change) -> dict[str, tuple[Any, Any]]:
    """Least and largest value of the published rows that change, in each column of ``change.bounds``."""
    from pyspark.sql import functions as F

    if not change.bounds:
        return {}
    # A writer that leaves the column out says that rows keep their days.
    was = [F.coalesce(F.col(WAS + name), F.col(name)) for name in change.bounds]
    (found,) = moved.agg(*(each(column) for column in was for each in (F.min, F.max))).collect()
    return {name: (found[2 * n], found[2 * n + 1]) for n, name in enumerate(change.bounds)}


def _day_file(day: date, path: str, rows: int) -> DayFile:
    return DayFile(day, path, rows, Path(path).stat().st_size)


def _plain_path(uri: str) -> str:
    return unquote(urlparse(uri).path) if uri.startswith("file:") else uri


def _translated(error: Exception, table: Table) -> Exception | None:
    """Delta's refusal as one of our errors, with rule and row; ``None`` for anything else."""
    text = str(error)
    broken = re.search(r"\[DELTA_[A-Z_]*(?:CONSTRAINT|NOT_NULL)[A-Z_]*\] (.*(?:\n - .*)*)", text)
    if broken:
        return RowRefused.of(table.path_name, " ".join(broken.group(1).split()))
    if re.search(r"\[DELTA_CONCURRENT|Concurrent\w*Exception", text):
        return Overtaken.of(table)
    return None
