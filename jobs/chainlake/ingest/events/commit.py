"""Ingest's commits to data tables: raw rows are appended, events and quarantine brought to what they should be.

Each is one commit, or none if nothing differs; under the lock of the source.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from chainlake.days import day_start_us
from chainlake.definitions.source import Source
from chainlake.errors import InfrastructureError
from chainlake.ingest.events.resolution import Resolved
from chainlake.ingest.events.resolve import OP
from chainlake.ingest.staged import StagedFile
from chainlake.lake.commits.append import append_files
from chainlake.lake.commits.difference import Applied, apply_difference, apply_files, difference_arrow
from chainlake.lake.delta import tables
from chainlake.lake.delta.data_files import DataFile, data_files_of
from chainlake.lake.locks import file_lock, jvm_lock
from chainlake.paths import Home
from chainlake.run.tasks import SparkTasks, Tasks
from chainlake.schemas.events import events_table
from chainlake.schemas.quarantine import quarantine_table
from chainlake.schemas.raw import raw_table
from chainlake.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ONE = timedelta(days=1)


@dataclass(frozen=True)
class Commits:
    """The commits of one attempt.

    Args:
        home: the installation.
        source: the source.
        tasks: whose session merges.
        force: commit even if nothing differs, so that a dead attempt's late commit is refused.
    """

    home: Home
    source: Source
    tasks: Tasks
    force: bool

    def raw(self, files: Sequence[DataFile]) -> None:
        """Append data files that tasks wrote to the raw table."""
        table = raw_table(self.source)
        if files:
            base = tables.version(self.home, table.schema, table.name) or 0
            append_files(self.home, table, files, app=self._purpose, base_version=base, mark="raw")

    def events(self, resolved: Resolved, days: Sequence[date]) -> Applied:
        """Bring the events of ``days`` to ``resolved``."""
        table = events_table(self.source)
        files, base = resolved.files, resolved.base_version
        if not resolved.n_moved:
            return apply_files(self.home, table, files, purpose=self._purpose, base_version=base, force=self.force)
        folder = os.path.abspath(self.home.table(table.schema, table.name))
        added = [os.path.join(folder, file.path) for file in files]
        schema = pa.schema([*(pa.field(f.name, f.type) for f in table.arrow()), pa.field(OP, pa.string())])
        new = [_of_day(path, schema, file) for path, file in zip(added, files, strict=True)]
        rows = pa.concat_tables([pq.read_table(list(resolved.moved)).select(schema.names).cast(schema), *new])
        bounds = ("ts", day_start_us(days[0]), day_start_us(days[-1] + _ONE))
        applied = apply_difference(
            self._session, self.home, table, rows, purpose=self._purpose, base_version=base, bounds=bounds,
            force=self.force,
        )  # fmt: skip
        for path in added:
            os.unlink(path)
        return applied

    def quarantine(self, rows: Sequence[str], replaced: Replaced) -> Applied:
        """Put quarantine rows in the place of others.

        Args:
            rows: Parquet files with the columns of the table.
            replaced: the rows that they replace.
        """
        table = quarantine_table(self.source)
        base = tables.version(self.home, table.schema, table.name)
        if base is None:
            raise InfrastructureError(f"the table {table.path_name} is gone", hint="Run this again.")
        held = replaced.of(self.home, table)
        if not len(held):
            folder = os.path.abspath(self.home.table(table.schema, table.name))
            files = data_files_of(folder, table, rows)
            return apply_files(self.home, table, files, purpose=self._purpose, base_version=base, force=self.force)
        schema = pa.schema([pa.field(f.name, f.type) for f in table.arrow()])
        wanted = pa.concat_tables([schema.empty_table(), *(pq.read_table(path) for path in rows)])
        diff = difference_arrow(held.cast(schema), wanted.cast(schema), list(table.key), table.non_volatile)
        return apply_difference(
            self._session, self.home, table, diff, purpose=self._purpose, base_version=base, force=self.force
        )

    @property
    def _purpose(self) -> str:
        return f"ingest-{self.source.name}"

    @property
    def _session(self) -> SparkSession:
        return session_of(self.tasks)


def _of_day(path: str, schema: pa.Schema, file: DataFile) -> pa.Table:
    """The rows of a data file of events, to be inserted."""
    rows = pq.ParquetFile(path, page_checksum_verification=True).read()
    day = pa.array([date.fromisoformat(file.partition["event_date"])] * len(rows), pa.date32())
    rows = rows.append_column("event_date", day).append_column(OP, pa.array(["I"] * len(rows)))
    return rows.select(schema.names).cast(schema)


@dataclass(frozen=True)
class Replaced:
    """Which quarantine rows make way: those of files that were read again or are gone, and conflicts of some days.

    Args:
        kept: ids of the files whose rows stay.
        days: whose conflicts make way.
    """

    kept: Collection[str]
    days: Sequence[date]

    def of(self, home: Home, table: Table) -> pa.Table:
        """Those that are in the table now."""
        parsed = pc.unique(
            tables.arrow(home, table.schema, table.name, columns=["file_id"], filters=[("stage", "=", "parse")])[
                "file_id"
            ]
        )
        # Named are those that go: they are few, while those that stay are as many as the source has bad files.
        gone = sorted(set(parsed.to_pylist()) - set(self.kept))
        where: list[list[tuple[str, str, Any]]] = []
        if gone:
            where.append([("stage", "=", "parse"), ("file_id", "in", gone)])
        if self.days:
            where.append([("stage", "=", "resolve"), ("event_date", "in", list(self.days))])
        if not where:
            return table.arrow().empty_table()
        return tables.arrow(home, table.schema, table.name, filters=where)


def quarantine_rows(
    source: Source, staging: str, bad: Sequence[str], loads: Iterable[str], conflicts: Sequence[str]
) -> tuple[str, ...]:
    """The quarantine rows of a run in one Parquet file, with the columns of the table.

    Args:
        source: the source.
        staging: a folder, which exists.
        bad: files of what was not parsed, with the load of each row.
        loads: the loads of which it counts.
        conflicts: files of conflicting rows.
    """
    wanted = ds.field("load_id").isin(pa.array(sorted(loads), pa.string()))
    table = quarantine_table(source)
    schema = pa.schema([pa.field(f.name, f.type) for f in table.arrow()])
    now = datetime.now(UTC)
    with StagedFile(staging, "quarantine", schema) as file:
        for batch in (*_batches(bad, wanted), *_batches(conflicts, ds.scalar(True))):
            stamp = pa.array([now] * len(batch), schema.field("written_at").type)
            file.write(pa.Table.from_batches([batch]).append_column("written_at", stamp))
        return file.close()


def _batches(paths: Sequence[str], wanted: ds.Expression) -> Iterator[pa.RecordBatch]:
    if paths:
        yield from ds.dataset(list(paths), format="parquet").to_batches(filter=wanted, use_threads=False)


def source_lock(tasks: Tasks, home: Home, source: Source) -> AbstractContextManager[None]:
    """The lock of the source, held by whoever commits."""
    purpose = f"source-{source.name}"
    return jvm_lock(tasks.session, home, purpose) if isinstance(tasks, SparkTasks) else file_lock(home, purpose)


def session_of(tasks: Tasks) -> Any:
    """The session that merges; none where tasks need none."""
    return tasks.session if isinstance(tasks, SparkTasks) else None
