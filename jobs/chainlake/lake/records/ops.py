"""``ops.*``: append-only logs with a sequence number per key, written by delta-rs.

The current row of a key is the one with the highest ``seq``; it is the key's last one + 1, assigned under the ops lock
when the row is written. One call of :func:`append` is one commit (10 ms; a Spark append takes seconds).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.lake.delta.columns import add_columns
from chainlake.lake.delta.log import marked, require_taken
from chainlake.lake.delta.reader import files_of, open_table
from chainlake.lake.delta.sums.pages import verified
from chainlake.lake.delta.tables import exists
from chainlake.lake.errors import ConcurrentWriter
from chainlake.lake.locks import file_lock, require_locks
from chainlake.paths import Home
from chainlake.schemas.ops import ALL
from chainlake.schemas.ops_rows import EventDayRow, FileRow, IntervalRow, PlanRow, RateRow, RunRow, WaitingFileRow
from chainlake.schemas.table import Table

if TYPE_CHECKING:
    from deltalake import DeltaTable

#: Every append adds a file, and opening one takes as long as reading a thousand rows. If there are more than
#: ``COMPACT_ABOVE`` small files, they are merged into files of about ``MERGED_BYTES``. Files of that size are left
#: alone; otherwise years of rows would be written again and again. A small file has less than half that size, so that
#: any two fit into one and few are left.
COMPACT_ABOVE = 10
MERGED_BYTES = 4 << 20

#: How often an append is tried: its lock keeps out everybody but late commits of those who lost the lock.
_TRIES = 5

_SET = ("seq", "written_at", "run_id")

Row = TypeVar("Row", FileRow, WaitingFileRow, EventDayRow, RateRow, IntervalRow, RunRow, PlanRow)


@overload
def append(home: Home, table: Literal["files"], rows: Sequence[FileRow], run_id: str) -> None: ...
@overload
def append(home: Home, table: Literal["waiting_files"], rows: Sequence[WaitingFileRow], run_id: str) -> None: ...
@overload
def append(home: Home, table: Literal["event_days"], rows: Sequence[EventDayRow], run_id: str) -> None: ...
@overload
def append(home: Home, table: Literal["rates"], rows: Sequence[RateRow], run_id: str) -> None: ...
@overload
def append(home: Home, table: Literal["intervals"], rows: Sequence[IntervalRow], run_id: str) -> None: ...
@overload
def append(home: Home, table: Literal["runs"], rows: Sequence[RunRow], run_id: str) -> None: ...
@overload
def append(home: Home, table: Literal["plans"], rows: Sequence[PlanRow], run_id: str) -> None: ...
def append(home: Home, table: str, rows: Sequence[Mapping[str, Any]], run_id: str) -> None:
    """Append rows; ``seq``, ``written_at`` and ``run_id`` are set here. No rows, no commit.

    Args:
        home: the installation.
        table: a name of ``schemas.ops.ALL``; made at first use, and given columns that were defined later.
        rows: without the three columns above; columns that are missing become null. Several rows of one key get
            consecutive numbers in list order.
        run_id: the run that writes them.

    Raises:
        InfrastructureError: the ops lock could not be acquired, another writer came first each time, or the store
            refused the write.
    """
    if not rows:
        return
    from deltalake import DeltaTable, write_deltalake
    from deltalake.exceptions import CommitFailedError

    definition = ALL[table]
    path = home.table("ops", table)
    with file_lock(home, "ops"):
        if not exists(home, "ops", table):
            DeltaTable.create(
                path,
                definition.arrow(),
                mode="ignore",
                name=definition.path_name,
                description=definition.comment,
                commit_properties=marked("create"),
            )
        for left in reversed(range(_TRIES)):
            delta = _with_all_columns(home, open_table(home, "ops", table, to_write=True), definition)
            base = delta.version()
            fresh = _numbered(delta, definition, rows, run_id)
            require_locks()
            try:
                # Only on top of this version: numbers derived from an older one would be assigned twice.
                write_deltalake(delta, fresh, mode="append", commit_properties=marked(run_id, 0))
                break
            except CommitFailedError:
                require_taken(delta, base)
                if not left:
                    raise ConcurrentWriter.appending(definition.path_name) from None
        sizes = pa.table(delta.get_add_actions(flatten=True))["size_bytes"]
        if pc.sum(pc.less(sizes, MERGED_BYTES // 2)).as_py() > COMPACT_ABOVE:
            delta.optimize.compact(target_size=MERGED_BYTES, commit_properties=marked("compact"))


def _numbered(delta: DeltaTable, definition: Table, rows: Sequence[Mapping[str, Any]], run_id: str) -> pa.Table:
    """The rows to be written, with the sequence numbers that follow those of the table."""
    stamp = datetime.now(UTC)
    last = _last_seq(delta, definition, rows, run_id)
    batch = []
    for row in rows:
        full = {**row, "run_id": run_id}
        key = tuple(full[name] for name in definition.key)
        last[key] = last.get(key, 0) + 1
        batch.append({**_storable(full), "seq": last[key], "written_at": stamp})
    # Without comments: a table that an earlier release made may have other words, which delta-rs refuses to merge.
    return pa.Table.from_pylist(batch, schema=pa.schema([field.remove_metadata() for field in definition.arrow()]))


def _with_all_columns(home: Home, delta: DeltaTable, definition: Table) -> DeltaTable:
    """The table, given the columns that were defined after it was made; under the ops lock."""
    stored = {field.name for field in delta.schema().fields}
    missing = [column for column in definition.columns if column.name not in stored]
    if not missing:
        return delta
    add_columns(home, definition, missing)
    return open_table(home, definition.schema, definition.name, to_write=True)


def current_table(
    home: Home,
    table: str,
    *,
    columns: list[str] | None = None,
    filters: Any = None,
    as_log: bool = False,
    encoded: bool = False,
) -> pa.Table:
    """The current row of each key, as Arrow; an empty table if nothing was ever written.

    Args:
        home: the installation.
        table: as for :func:`append`.
        columns: only these columns, all if not given.
        filters: pyarrow's disjunctive normal form, on key columns only (on others it would hide newer rows).
        as_log: all rows, not just the current ones.
        encoded: give text columns as dictionaries, which for hundreds of thousands of rows cost a fraction of the time
            and memory.
    """
    definition = ALL[table]
    wanted = columns or definition.column_names
    if not exists(home, "ops", table):
        schema = definition.arrow()
        return pa.schema([schema.field(name) for name in wanted]).empty_table()
    delta = open_table(home, "ops", table)
    stored = {field.name for field in delta.schema().fields}
    needed = [name for name in dict.fromkeys([*wanted, *definition.key, "seq"]) if name in stored]
    texts = [f for f in definition.arrow() if encoded and f.name in needed and pa.types.is_string(f.type)]
    rows = _read(delta, needed, filters, texts)
    for name in wanted:
        if name not in stored:
            # This column was defined after the last row was written.
            rows = rows.append_column(name, pa.nulls(len(rows), definition.arrow().field(name).type))
    if as_log:
        return rows.select(wanted)
    newest = pa.array(_newest(rows, definition.key))
    return pa.table({name: rows[name].combine_chunks().take(newest) for name in wanted})


def _read(delta: Any, columns: list[str], filters: Any, encoded: Sequence[pa.Field]) -> pa.Table:
    """The given columns; the strings among ``encoded`` as dictionaries, which is how the files store them."""
    from pyarrow.parquet import filters_to_expression

    # Dictionaries of nullable columns sometimes have a null among their values and then cannot be unified.
    as_stored = {field.name for field in encoded if not field.nullable}
    files = files_of(delta, dictionary_columns=as_stored)
    chosen = filters_to_expression(filters) if filters else None
    rows = files.to_table(columns=columns, filter=chosen, fragment_scan_options=verified()).unify_dictionaries()
    for field in encoded:
        if field.nullable:
            rows = rows.set_column(columns.index(field.name), field.name, rows[field.name].dictionary_encode())
    return rows


def _newest(rows: pa.Table, key: Sequence[str]) -> np.ndarray:
    """Positions of the rows with the highest seq of their key, in the order of the keys."""
    parts = [-rows["seq"].to_numpy(), *(_ranks(rows[name]) for name in reversed(key))]
    order = np.lexsort(parts)
    first = np.zeros(len(order), dtype=bool)
    first[:1] = True
    for part in parts[1:]:
        sorted_part = part[order]
        first[1:] |= sorted_part[1:] != sorted_part[:-1]
    return order[first]


def _ranks(column: pa.ChunkedArray) -> np.ndarray:
    """An integer per value that sorts and compares as the value does; nulls last."""
    encoded = column.combine_chunks().dictionary_encode()
    ranks = np.empty(len(encoded.dictionary) + 1, dtype=np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    ranks[-1] = len(encoded.dictionary)
    result: np.ndarray = ranks[encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)]
    return result


@overload
def current(home: Home, table: Literal["files"], **equals: Any) -> list[FileRow]: ...
@overload
def current(home: Home, table: Literal["waiting_files"], **equals: Any) -> list[WaitingFileRow]: ...
@overload
def current(home: Home, table: Literal["event_days"], **equals: Any) -> list[EventDayRow]: ...
@overload
def current(home: Home, table: Literal["rates"], **equals: Any) -> list[RateRow]: ...
@overload
def current(home: Home, table: Literal["intervals"], **equals: Any) -> list[IntervalRow]: ...
@overload
def current(home: Home, table: Literal["runs"], **equals: Any) -> list[RunRow]: ...
@overload
def current(home: Home, table: Literal["plans"], **equals: Any) -> list[PlanRow]: ...
def current(home: Home, table: str, **equals: Any) -> Sequence[Any]:
    """The current rows whose key columns equal ``equals``, as dicts: see ``schemas.ops_rows``.

    Raises:
        KeyError: a name in ``equals`` is not a key column of the table.
    """
    for name in equals:
        if name not in ALL[table].key:
            raise KeyError(f"{name} is not a key column of ops.{table}")
    filters = [(name, "=", value) for name, value in equals.items()] or None
    result: list[Any] = current_table(home, table, filters=filters).to_pylist()
    return result


def again(row: Row) -> Row:
    """A current row without the columns that :func:`append` sets, so that it can be written again."""
    return cast(Row, {name: value for name, value in row.items() if name not in _SET})


def _last_seq(
    delta: Any, definition: Table, rows: Sequence[Mapping[str, Any]], run_id: str
) -> dict[tuple[Any, ...], int]:
    """The highest ``seq`` in the table for each key that occurs in ``rows``, and perhaps for others."""
    first = definition.key[0]
    values = {run_id} if first == "run_id" else {row[first] for row in rows}
    names = [*definition.key, "seq"]
    old = _read(delta, names, [(first, "in", sorted(values))], ())
    if not len(old):
        return {}
    top = old.group_by(list(definition.key)).aggregate([("seq", "max")])
    columns = [top[name].to_pylist() for name in definition.key]
    return dict(zip(zip(*columns, strict=True), top["seq_max"].to_pylist(), strict=True))


def _storable(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose maps are lists of pairs, which is how Arrow takes them."""
    return {name: list(value.items()) if isinstance(value, dict) else value for name, value in row.items()}
