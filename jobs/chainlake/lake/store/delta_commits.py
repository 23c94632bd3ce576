"""Commits that this process makes with delta-rs: each for one particular version of the table, with the writer's turn.

None of them can land after the process has died. Commits that Spark makes for the same writer can, which is what the
turn is for: a dead attempt's commit is then refused or skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.lake.delta.data_files import DataFile
from chainlake.lake.delta.log import require_taken
from chainlake.lake.delta.reader import open_table
from chainlake.lake.delta.rules import Rules
from chainlake.lake.delta.where import delta_literal, delta_names
from chainlake.lake.locks import require_locks
from chainlake.lake.store.difference import OP, WAS, loose
from chainlake.lake.store.errors import FilesNotVisible, Overtaken, PartlyMerged
from chainlake.lake.store.port import Change
from chainlake.paths import Home
from chainlake.schemas.table import Table
from chainlake.storage.parquet import parquet_file
from chainlake.storage.resolve import storage_of

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable, WriterProperties

#: Rows per row group, which is in memory until it is complete; and rows of a change that are in memory at a time.
_ROWS_PER_GROUP, _ROWS_PER_BATCH = 100_000, 65_536
#: Up to this many files of a folder are asked for one by one; for more, the folder is listed.
_ASKED_ONE_BY_ONE = 8


def commit_files(at: DeltaTable, table: Table, files: Sequence[DataFile], properties: CommitProperties) -> None:
    """Make files under the table's folder part of the table; with no files there is a commit too.

    It is no error if the version exists already, since it may be this very commit: if a store's answer is lost, it is
    asked again and refuses the second try. :func:`landed` says whose version it is.

    Args:
        at: the table, at the version that the rows were computed against.
        table: its definition.
        files: data files whose rows break no rule of the table.
        properties: from :func:`turn_of`.

    Raises:
        StoreFailed: the store refused the commit, and the version does not exist.
    """
    from deltalake.exceptions import CommitFailedError
    from deltalake.transaction import AddAction

    require_locks()
    adds = [AddAction(f.path, f.size, dict(f.partition), f.modified_ms, True, f.stats) for f in files]
    base = at.version()
    try:
        at.create_write_transaction(
            list(adds), "append", at.schema(), list(table.partition_by), commit_properties=properties
        )
    except CommitFailedError:
        require_taken(at, base)


def require_files(table: Table, folder: str, files: Sequence[DataFile], paths: Sequence[str]) -> None:
    """Make sure that this process sees every file that a commit is made of, whoever wrote it.

    Args:
        table: the table.
        folder: the folder of ``files``.
        files: data files, with their sizes.
        paths: files of rows.

    Raises:
        FilesNotVisible: a file is missing or has another size.
    """
    beside: dict[str, list[DataFile]] = {}
    for file in files:
        beside.setdefault(f"{folder}/{file.path}".rpartition("/")[0], []).append(file)
    for place, mine in beside.items():
        sizes: dict[str, int | None]
        if len(mine) <= _ASKED_ONE_BY_ONE:
            sizes = {file.path: storage_of(place).size(f"{folder}/{file.path}") for file in mine}
        else:
            there = {f"{place}/{one.path}": one.size for one in storage_of(place).listed(place)[1]}
            sizes = {file.path: there.get(f"{folder}/{file.path}") for file in mine}
        for file in mine:
            if sizes[file.path] != file.size:
                raise FilesNotVisible.of(table, f"{folder}/{file.path}", sizes[file.path], file.size)
    for path in paths:
        if storage_of(path).size(path) is None:
            raise FilesNotVisible.of(table, path, None)


def turn_of(purpose: str, base_version: int, mark: str) -> CommitProperties:
    """Properties of a commit that is tried once, as the version after ``base_version``."""
    from deltalake import CommitProperties, Transaction

    return CommitProperties(
        custom_metadata={"userMetadata": mark},
        app_transactions=[Transaction(purpose, base_version + 1)],
        max_commit_retries=0,
    )


def landed(home: Home, table: Table, mark: str, base_version: int) -> int:
    """The version whose commit carries ``mark``.

    Raises:
        Overtaken: no commit after ``base_version`` does, so it was skipped.
    """
    delta = open_table(home, table.schema, table.name, without_files=True)
    for commit in delta.history(max(1, delta.version() - base_version)):
        if commit.get("userMetadata") == mark:
            return int(commit["version"])
    raise Overtaken.of(table)


@dataclass(frozen=True)
class RowFile:
    """A Parquet file of rows.

    Args:
        path: where it is.
        partition: values of the columns that are not in the file, as Delta writes them.
    """

    path: str
    partition: Mapping[str, str] = field(default_factory=dict)


def merge_files(at: DeltaTable, change: Change, new: Sequence[RowFile], properties: CommitProperties) -> None:
    """Update, delete and insert rows by their keys; only data files that hold such a key are rewritten.

    Args:
        at: the table, at the version that the rows were computed against.
        change: the change.
        new: files with the rows to insert.
        properties: from :func:`turn_of`.

    Raises:
        AuditFailed: a row breaks a rule of the table; the message names rule and row.
        Overtaken: another writer made the next version.
        StoreFailed: the store reports a conflict, but no other writer committed.
        PartlyMerged: not every row that was to be changed was found.
    """
    from deltalake.exceptions import CommitFailedError

    table, files = change.table, [*new, *(RowFile(path) for path in change.moved)]
    on = [f't."{name}" = s."{name}"' for name in table.key]
    for name, (low, high) in _looked_through(change, files).items():
        on.append(f't."{name}" >= {delta_literal(low)} AND t."{name}" <= {delta_literal(high)}')
    batches = chain.from_iterable(
        _keys_of_deleted(table, rows).to_batches() for file in files for rows in _batches(table, file)
    )
    values = delta_names(table.column_names, "s")
    merger = at.merge(
        pa.RecordBatchReader.from_batches(_schema(table), batches),
        " AND ".join(on),
        source_alias="s",
        target_alias="t",
        writer_properties=_properties(table),
        commit_properties=properties,
    )
    merger = merger.when_matched_delete(f"s.{OP} = 'D'").when_matched_update(values, f"s.{OP} = 'U'")
    require_locks()
    base = at.version()
    try:
        done = merger.when_not_matched_insert(values, f"s.{OP} = 'I'").execute()
    except CommitFailedError:
        require_taken(at, base)
        raise Overtaken.of(table) from None
    wanted = {"inserted": change.added, "updated": change.changed, "deleted": change.withdrawn}
    reached = {kind: int(done[f"num_target_rows_{kind}"]) for kind in wanted}
    if reached != wanted:
        raise PartlyMerged.of(table, at.version(), reached, wanted)


def _looked_through(change: Change, files: Sequence[RowFile]) -> dict[str, tuple[Any, Any]]:
    """Least and largest value of the published rows that change, in each column of ``change.bounds``.

    Raises:
        AuditFailed: a row that will be in the table breaks one of its rules.
    """
    rules = Rules(change.table)
    spans: dict[str, tuple[Any, Any]] = {}
    for file in files:
        for rows in _batches(change.table, file, change.bounds):
            rules.check(rows.filter(pc.not_equal(rows[OP], "D")))
            moved = rows.filter(pc.not_equal(rows[OP], "I"))
            for name in change.bounds if len(moved) else ():
                found = pc.min_max(moved[WAS + name])
                low, high = found["min"].as_py(), found["max"].as_py()
                least, most = spans.get(name, (low, high))
                spans[name] = min(low, least), max(high, most)
    return spans


def _schema(table: Table, bounds: Sequence[str] = ()) -> pa.Schema:
    plain = loose(table)
    was = [pa.field(WAS + name, plain.field(name).type) for name in bounds]
    return pa.schema([*plain, pa.field(OP, pa.string()), *was])


def _batches(table: Table, file: RowFile, bounds: Sequence[str] = ()) -> Iterator[pa.Table]:
    """The rows of a file with their operation, and the published rows' values in the columns ``bounds``."""
    schema = _schema(table, bounds)
    with parquet_file(file.path, page_checksum_verification=True) as parquet:
        for batch in parquet.iter_batches(_ROWS_PER_BATCH):
            rows = pa.Table.from_batches([batch])
            for name, value in {OP: "I", **file.partition}.items():
                if name not in rows.column_names:
                    rows = rows.append_column(name, pa.array([value] * len(rows), pa.string()))
            for name in bounds:
                if WAS + name not in rows.column_names:
                    # A writer that leaves the column out says that rows keep their days.
                    rows = rows.append_column(WAS + name, rows[name])
            yield rows.select(schema.names).cast(schema)


def _keys_of_deleted(table: Table, rows: pa.Table) -> pa.Table:
    """The same rows, those to delete with their keys only, because a merge holds them in memory until it finds them."""
    gone = pc.equal(rows[OP], "D")
    if not pc.any(gone).as_py():
        return rows
    for at, column in enumerate(rows.schema):
        if column.name not in (*table.key, OP):
            rows = rows.set_column(at, column, pc.if_else(gone, pa.scalar(None, column.type), rows[column.name]))
    return rows


def _properties(table: Table) -> WriterProperties:
    """As in our own data files: no bounds for columns that may have NaN, because Spark would skip files by them."""
    from deltalake import ColumnProperties, WriterProperties

    plain = [f.name for f in table.arrow() if not pa.types.is_nested(f.type) and not pa.types.is_floating(f.type)]
    return WriterProperties(
        compression="SNAPPY",
        max_row_group_size=_ROWS_PER_GROUP,
        default_column_properties=ColumnProperties(statistics_enabled="NONE"),
        column_properties={name: ColumnProperties(statistics_enabled="CHUNK") for name in plain},
    )
