"""The back end *files*: Arrow reads, DuckDB compares, delta-rs commits; no JVM."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from chainlake.env.own_folders import own_folder
from chainlake.lake.delta import tables
from chainlake.lake.delta.columns import require_columns
from chainlake.lake.delta.data_files import DataFile, DataFiles
from chainlake.lake.delta.reader import data_path, open_table, rows_of
from chainlake.lake.delta.sums.checksums import checksums_of_files
from chainlake.lake.delta.sums.pages import verified
from chainlake.lake.delta.where import Where, expression
from chainlake.lake.locks import WAIT_SECONDS, file_lock
from chainlake.lake.sql.duck import connected
from chainlake.lake.store.delta_commits import RowFile, commit_files, landed, merge_files, require_files, turn_of
from chainlake.lake.store.difference import Counted, bounding, loose, write_difference
from chainlake.lake.store.errors import Overtaken, RowsOutside
from chainlake.lake.store.port import Applied, Change, DayFile, DayFiles, Part, Staged, Turn
from chainlake.paths import Home
from chainlake.schemas.table import Table
from chainlake.storage.parquet import parquet_dataset, parquet_footer, parquet_rows
from chainlake.storage.resolve import storage_of

if TYPE_CHECKING:
    from deltalake import DeltaTable

_DAY = "event_date"
#: How many rows of each side of a difference are in memory at a time.
_ROWS_PER_BATCH = 65_536


@dataclass(frozen=True)
class FilesLake:
    """See ``chainlake.lake.store.port.Lake``.

    Args:
        home: the installation.
    """

    home: Home
    name: str = field(default="files", init=False)

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
        table = open_table(self.home, schema, name, version=version)
        chosen = None if where is None else expression(where, pa.schema(table.schema().to_arrow()))
        rows = rows_of(self.home, table, chosen)
        return rows.to_table(columns=_listed(columns), filter=chosen, fragment_scan_options=verified())

    def day_files(self, schema: str, name: str, days: Collection[date], version: int | None = None) -> DayFiles:
        """See ``Lake.day_files``."""
        table = open_table(self.home, schema, name, version=version)
        folder = storage_of(self.home.lake).absolute(self.home.table(schema, name))
        added = table.get_add_actions(flatten=True)
        found = []
        if len(added):
            named = (f"partition.{_DAY}", "path", "num_records", "size_bytes")
            columns = (added.column(of).to_pylist() for of in named)
            for day, path, rows, size in zip(*columns, strict=True):
                if day in days:
                    place = data_path(f"{schema}.{name}", folder, path)
                    # Not every writer records the number of rows.
                    counted = parquet_footer(place).num_rows if rows is None else rows
                    found.append(DayFile(day, place, counted, size))
        stored = pa.schema(table.schema().to_arrow())
        return DayFiles(pa.schema([pa.field(f.name, f.type) for f in stored if f.name != _DAY]), tuple(found))

    def task_folder(self, table: Table) -> str:
        """See ``Lake.task_folder``."""
        # The path is absolute, because tasks may run in another working directory.
        return storage_of(self.home.lake).absolute(self.home.table(table.schema, table.name))

    def change(self, table: Table, staged: Staged, part: Part) -> Change:
        """See ``Lake.change``."""
        tables.ensure_table(self.home, table)
        require_files(table, "", (), staged.paths)
        at = open_table(self.home, table.schema, table.name)
        require_columns(at, table)
        mine = expression(part.where, pa.schema(at.schema().to_arrow()))
        published = rows_of(self.home, at, mine)
        alone = not published.count_rows(filter=mine)
        if alone and staged.rows is None and _whole(table, staged):
            return _adopted(at, table, staged, part)
        scratch = own_folder(self.home.temporary) / f"change-{uuid.uuid4().hex[:8]}"
        scratch.mkdir()
        counted = Counted(table, part)
        kind = loose(table)
        with ExitStack() as undone:
            undone.callback(shutil.rmtree, scratch, ignore_errors=True)
            wanted = pa.RecordBatchReader.from_batches(kind, counted.through(_staged(table, staged)))
            current = None if alone else _reader(published, mine, kind)
            with connected(self.home, len(os.sched_getaffinity(0))) as con:
                found = write_difference(con, table, part, wanted, current, scratch)
            counted.require_inside()
            undone.pop_all()
        sums = {} if counted.sums is None else counted.sums.of
        return Change(
            table,
            at.version(),
            staged=tuple(found.staged),
            moved=tuple(found.moved),
            bounds=bounding(table, part),
            scratch=str(scratch),
            added=found.total["I"],
            changed=found.total["U"],
            withdrawn=found.total["D"],
            rows={place: one.rows for place, one in sums.items()},
            ops=found.per_day,
            sums=sums,
        )

    def additions(self, table: Table, files: Iterable[DataFile], moved: Sequence[str] = ()) -> Change:
        """See ``Lake.additions``."""
        at = open_table(self.home, table.schema, table.name, without_files=True)
        listed = tuple(files)
        require_files(table, "", (), moved)
        ops = [op for path in moved for op in parquet_rows(path, columns=["_op"])["_op"].to_pylist()]
        return Change(
            table,
            at.version(),
            files=listed,
            moved=tuple(moved),
            bounds=table.partition_by,
            added=sum(file.rows for file in listed),
            changed=ops.count("U"),
            withdrawn=ops.count("D"),
        )

    def commit(self, change: Change, turn: Turn) -> Applied:
        """See ``Lake.commit``."""
        try:
            return self._commit(change, turn)
        finally:
            change.drop()

    def _commit(self, change: Change, turn: Turn) -> Applied:
        table = change.table
        if change.empty and not turn.force:
            return Applied(0, 0, 0, None)
        at = open_table(self.home, table.schema, table.name, to_write=True)
        if at.version() != change.base_version:
            raise Overtaken.of(table)
        require_columns(at, table)
        mark = f"{turn.purpose} {uuid.uuid4().hex}"
        properties = turn_of(turn.purpose, change.base_version, mark)
        folder = self.home.table(table.schema, table.name)
        require_files(table, folder, change.files, (*change.staged, *change.moved))
        if change.moved:
            by_tasks = [RowFile(f"{folder}/{file.path}", file.partition) for file in change.files]
            new = [*(RowFile(path) for path in change.staged), *by_tasks]
            with _at_hand(self.home, change, new) as (moved, rows):
                merge_files(at, moved, rows, properties)
            for file in by_tasks:
                storage_of(folder).remove(file.path)
        else:
            with DataFiles(folder, table) as out:
                for path in change.staged:
                    out.take(path)
                files = [*change.files, *out.close()]
            # If anything fails from here on, the commit may have landed, so files stay: those not part of the table do
            # no harm.
            commit_files(at, table, files, properties)
        made = landed(self.home, table, mark, change.base_version)
        return Applied(change.added, change.changed, change.withdrawn, made)

    def lock(self, purpose: str, *, wait_s: float = WAIT_SECONDS) -> AbstractContextManager[None]:
        """See ``Lake.lock``."""
        return file_lock(self.home, purpose, wait_s=wait_s)


@contextmanager
def _at_hand(home: Home, change: Change, new: Sequence[RowFile]) -> Iterator[tuple[Change, list[RowFile]]]:
    """A change and its files of new rows on disk, copied if need be: delta-rs cannot wait for a store as it reads."""
    with tempfile.TemporaryDirectory(prefix="merge-", dir=own_folder(home.temporary)) as folder:
        moved = tuple(storage_of(path).bring(path, folder) for path in change.moved)
        rows = [replace(file, path=storage_of(file.path).bring(file.path, folder)) for file in new]
        yield replace(change, moved=moved), rows


def _listed(columns: Sequence[str] | None) -> list[str] | None:
    return None if columns is None else list(columns)


def _dataset(table: Table, paths: Sequence[str]) -> ds.Dataset:
    if not paths:
        return ds.dataset(loose(table).empty_table())
    plain = ds.ParquetFileFormat(
        default_fragment_scan_options=verified(), read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    )
    return parquet_dataset(paths, loose(table), plain)


def _reader(rows: ds.Dataset, chosen: Any, schema: pa.Schema) -> pa.RecordBatchReader:
    """The rows of a dataset, few of which are in memory at a time."""
    scanner = rows.scanner(
        columns=schema.names,
        filter=chosen,
        batch_size=_ROWS_PER_BATCH,
        batch_readahead=2,
        fragment_readahead=1,
        fragment_scan_options=verified(),
    )
    plain = (pa.Table.from_batches([batch]).cast(schema).to_batches() for batch in scanner.to_batches())
    return pa.RecordBatchReader.from_batches(schema, chain.from_iterable(plain))


def _staged(table: Table, staged: Staged) -> Iterator[pa.RecordBatch]:
    kind = loose(table)
    chosen = None if staged.within is None else expression(staged.within, kind)
    if staged.paths:
        yield from _reader(_dataset(table, staged.paths), chosen, kind)
    if staged.rows is not None:
        rows = staged.rows.select(kind.names).cast(kind)
        yield from (rows if chosen is None else rows.filter(chosen)).to_batches(_ROWS_PER_BATCH)


def _whole(table: Table, staged: Staged) -> bool:
    """Whether every row of the staged files is wanted."""
    if staged.within is None:
        return True
    rows = _dataset(table, staged.paths)
    return bool(rows.count_rows() == rows.count_rows(filter=expression(staged.within, rows.schema)))


def _adopted(at: DeltaTable, table: Table, staged: Staged, part: Part) -> Change:
    """The change that takes the staged files as they are, if nothing is published yet."""
    rows = _dataset(table, staged.paths)
    total = rows.count_rows()
    outside = total - rows.count_rows(filter=expression(part.where, rows.schema))
    if outside:
        raise RowsOutside.of(table, outside, part.where)
    sums = {}
    if part.day_column is not None:
        sums = checksums_of_files(staged.paths, table.column_names, part.day_column, table.volatile, part.owner_column)
    counts = {place: one.rows for place, one in sums.items()}
    added = {(*place, "I"): count for place, count in counts.items()}
    return Change(table, at.version(), staged=staged.paths, added=total, rows=counts, ops=added, sums=sums)
