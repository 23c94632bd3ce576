"""What must change so that a part of a table holds the wanted rows: DuckDB joins both sides, in bounded memory."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from chainlake.env.databases import cursor
from chainlake.lake.delta.sums.checksums import Sums
from chainlake.lake.delta.where import expression
from chainlake.lake.store.errors import RowsOutside
from chainlake.lake.store.port import Part
from chainlake.schemas.table import Table

if TYPE_CHECKING:
    import duckdb

OP, WAS = "_op", "_was_"
#: Rows per row group, and per batch between DuckDB and Arrow.
_ROWS_PER_GROUP, _ROWS_PER_BATCH = 250_000, 65_536
#: Rows per file of rows to insert, which may become a data file as it is.
_ROWS_PER_FILE = 2_000_000


@dataclass
class Counted:
    """Counts and checks the wanted rows while they are read.

    Args:
        table: the table.
        part: the part of the table that they replace.
        sums: adds up their checksums; ``None`` if rows do not belong to days.
        outside: how many of them do not belong to the part.
    """

    table: Table
    part: Part
    sums: Sums | None = field(init=False, default=None)
    outside: int = 0

    def __post_init__(self) -> None:
        if self.part.day_column is not None:
            self.sums = Sums(self.part.day_column, self.part.owner_column, self.table.volatile)

    def through(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass the batches through, unchanged."""
        inside = expression(self.part.where, self.table.arrow())
        for batch in batches:
            self.outside += len(batch) - len(pa.Table.from_batches([batch]).filter(inside))
            if self.sums is not None:
                self.sums.add(batch)
            yield batch

    def require_inside(self) -> None:
        """Make sure, once all rows are read, that every row belongs to the part.

        Raises:
            RowsOutside: one does not.
        """
        if self.outside:
            raise RowsOutside.of(self.table, self.outside, self.part.where)


@dataclass
class Written:
    """Files that hold a difference, and how many rows they have.

    Args:
        staged: rows to insert.
        moved: rows to update and to delete.
        total: operation → number of rows.
        per_day: (owner, day, operation) → number of rows, if rows belong to days.
    """

    staged: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    total: Counter[str] = field(default_factory=Counter)
    per_day: Counter[tuple[str, date, str]] = field(default_factory=Counter)


def bounding(table: Table, part: Part) -> tuple[str, ...]:
    """Columns whose bounds help to find the files of rows that change."""
    days = () if part.day_column is None else (part.day_column,)
    never_null = {column.name for column in table.columns if not column.nullable}
    return tuple(name for name in dict.fromkeys((*table.partition_by, *days)) if name in never_null)


def write_difference(
    con: duckdb.DuckDBPyConnection,
    table: Table,
    part: Part,
    wanted: pa.RecordBatchReader,
    current: pa.RecordBatchReader | None,
    folder: Path,
) -> Written:
    """Write what differs between wanted and current rows as files in ``folder``.

    Args:
        con: where the rows are joined.
        table: the table of the rows.
        part: says by which columns rows are counted.
        wanted: the rows as they should be, in the table's columns and types.
        current: the published rows; ``None`` if there are none.
        folder: where the files go.
    """
    bounds = bounding(table, part)
    if current is None:
        batches: Iterator[pa.RecordBatch] = (_all_new(batch) for batch in wanted)
        return written(table, part, (), batches, folder)
    con.register("w", wanted)
    con.register("c", current)
    try:
        reader = con.sql(_joined(table, bounds)).to_arrow_reader(_ROWS_PER_BATCH)
        return written(table, part, bounds, iter(reader), folder)
    finally:
        con.unregister("w")
        con.unregister("c")


def difference_arrow(current: pa.Table, wanted: pa.Table, key: list[str], compare: list[str]) -> pa.Table:
    """What differs between two Arrow tables, in their order.

    Args:
        current: rows as they are.
        wanted: rows as they should be, in the same columns.
        key: columns that identify a row, unique on both sides.
        compare: columns whose change makes an update.

    Returns:
        the columns of ``wanted`` and ``_op``: ``I`` (insert), ``U`` (update), ``D`` (delete); rows to delete come last,
        with their current values.
    """

    def side(table: pa.Table) -> pa.Table:
        names = list(dict.fromkeys([*key, *compare]))
        return table.select(names).append_column("__row", pa.array(range(len(table)), pa.int64()))

    changed = " OR ".join(f'w."{n}" IS DISTINCT FROM c."{n}"' for n in compare if n not in key) or "false"
    on = " AND ".join(f'w."{name}" IS NOT DISTINCT FROM c."{name}"' for name in key)
    with cursor(len(os.sched_getaffinity(0))) as connection:
        connection.register("w", side(wanted))
        connection.register("c", side(current))
        found = connection.sql(
            f"SELECT w.__row AS w, c.__row AS c FROM w FULL JOIN c ON {on} "
            f"WHERE w.__row IS NULL OR c.__row IS NULL OR {changed} ORDER BY w, c"
        ).to_arrow_table()
    both = pc.and_(pc.is_valid(found["w"]), pc.is_valid(found["c"]))
    op = pc.if_else(both, "U", pc.if_else(pc.is_valid(found["w"]), "I", "D"))
    upserts = pc.is_valid(found["w"])
    parts = [
        wanted.take(found["w"].filter(upserts)).append_column("_op", op.filter(upserts)),
        current.select(wanted.column_names)
        .take(found["c"].filter(pc.invert(upserts)))
        .append_column("_op", op.filter(pc.invert(upserts))),
    ]
    return pa.concat_tables([parts[0], parts[1].cast(parts[0].schema)])


def _joined(table: Table, bounds: Sequence[str]) -> str:
    key, others = table.key, [name for name in table.non_volatile if name not in table.key]
    on = " AND ".join(f'w."{name}" IS NOT DISTINCT FROM c."{name}"' for name in key)
    changed = " OR ".join(f'w."{name}" IS DISTINCT FROM c."{name}"' for name in others) or "false"
    gone = "w.__in IS NULL"
    columns = [f'CASE WHEN {gone} THEN c."{n}" ELSE w."{n}" END AS "{n}"' for n in table.column_names]
    was = [f'c."{name}" AS "{WAS}{name}"' for name in bounds]
    op = f"CASE WHEN c.__in IS NULL THEN 'I' WHEN {gone} THEN 'D' ELSE 'U' END AS {OP}"
    return (
        f"SELECT {', '.join([*columns, op, *was])} FROM (SELECT true AS __in, * FROM w) w "
        f"FULL JOIN (SELECT true AS __in, * FROM c) c ON {on} "
        f"WHERE {gone} OR c.__in IS NULL OR {changed}"
    )


def _schema(table: Table, bounds: Sequence[str]) -> pa.Schema:
    plain = loose(table)
    was = [pa.field(WAS + name, plain.field(name).type) for name in bounds]
    return pa.schema([*plain, pa.field(OP, pa.string()), *was])


def loose(table: Table) -> pa.Schema:
    """The table's columns, all nullable: rules are checked when a commit is made, and then name the row."""
    return pa.schema([pa.field(f.name, f.type) for f in table.arrow()])


def _all_new(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.append_column(OP, pa.array(["I"] * len(batch), pa.string()))


def written(
    table: Table, part: Part, bounds: Sequence[str], batches: Iterator[pa.RecordBatch], folder: Path
) -> Written:
    """Write the rows of a difference, which have ``_op``, to files in ``folder``; see :func:`write_difference`."""
    found = Written()
    with ExitStack() as stack:
        new = _Files(folder, "new", loose(table), stack)
        moved = _Files(folder, "moved", _schema(table, bounds), stack)
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            is_new = pc.equal(rows[OP], "I")
            new.write(rows.filter(is_new))
            moved.write(rows.filter(pc.invert(is_new)))
            _count(found, rows, part)
        found.staged, found.moved = new.paths, moved.paths
    return found


class _Files:
    """Parquet files of a good size, each opened when there are rows for it."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema, stack: ExitStack) -> None:
        self._folder, self._name, self._schema, self._stack = folder, name, schema, stack
        self._writer: pq.ParquetWriter | None = None
        self._rows = 0
        self.paths: list[str] = []

    def write(self, rows: pa.Table) -> None:
        """Add some rows."""
        if not len(rows):
            return
        if self._writer is None or self._rows >= _ROWS_PER_FILE:
            if self._writer is not None:
                self._writer.close()
            path = str(self._folder / f"{self._name}-{len(self.paths)}.parquet")
            self.paths.append(path)
            self._rows = 0
            # They are written like data files, so that they can become data files.
            self._writer = self._stack.enter_context(
                pq.ParquetWriter(path, self._schema, store_schema=False, write_page_checksum=True)
            )
        self._rows += len(rows)
        self._writer.write_table(rows.select(self._schema.names).cast(self._schema), row_group_size=_ROWS_PER_GROUP)


def _count(found: Written, rows: pa.Table, part: Part) -> None:
    found.total.update(rows[OP].to_pylist())
    if part.day_column is None:
        return
    owners = pa.array([""] * len(rows), pa.string()) if part.owner_column is None else rows[part.owner_column]
    days = pc.cast(rows[part.day_column], pa.date32(), safe=False)
    each = pa.table({"owner": owners, "day": days, "op": rows[OP]}).group_by(["owner", "day", "op"])
    for row in each.aggregate([([], "count_all")]).to_pylist():
        found.per_day[row["owner"], row["day"], row["op"]] += row["count_all"]
