"""How a Delta table becomes something that DuckDB can select from (used by ``chainlake.lake.sql.query``).

On a local disk, DuckDB's own Parquet reader takes the list of files from delta-rs. It starts in a tenth of the time of
an Arrow dataset (whose import pulls in pandas) and does not rely on the file statistics in the Delta log, where Spark
truncates timestamps to milliseconds. Object stores, which DuckDB reaches only with an extension, are read through
Arrow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from chainlake.lake.delta.reader import data_path, open_table
from chainlake.lake.records.defined.registered import later_versions
from chainlake.paths import Home
from chainlake.storage.resolve import storage_of

if TYPE_CHECKING:
    import duckdb
    from deltalake import DeltaTable

_SIMPLE = {
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.binary(): "BLOB",
    pa.timestamp("us", tz="UTC"): "TIMESTAMPTZ",
    pa.timestamp("us"): "TIMESTAMP",
}


@dataclass(frozen=True)
class Scan:
    """How to read a table.

    Args:
        sql: a SELECT that gives the rows.
        schema: their Arrow schema.
        handle: the name that ``sql`` uses for ``dataset``, which must be registered under it first.
        dataset: an Arrow dataset, or ``None`` if DuckDB reads the files itself.
    """

    sql: str
    schema: pa.Schema
    handle: str = ""
    dataset: Any = None


def quoted(name: str) -> str:
    """``name`` as a DuckDB identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """``text`` as a DuckDB string."""
    return "'" + text.replace("'", "''") + "'"


def parquet_path(path: str) -> str:
    """The path of one file for DuckDB's Parquet reader, with the characters escaped that it takes for wildcards."""
    return literal(re.sub(r"([\[*?])", r"[\1]", path))


def duckdb_type(kind: pa.DataType) -> str:
    """The DuckDB type that holds values of an Arrow type of ``schemas/``.

    Raises:
        TypeError: the type does not occur in Delta tables.
    """
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_list(kind):
        return f"{duckdb_type(kind.value_type)}[]"
    if pa.types.is_map(kind):
        return f"MAP({duckdb_type(kind.key_type)}, {duckdb_type(kind.item_type)})"
    if pa.types.is_struct(kind):
        return f"STRUCT({', '.join(f'{quoted(field.name)} {duckdb_type(field.type)}' for field in kind)})"
    raise TypeError(f"no DuckDB type for {kind}")


def empty(schema: pa.Schema) -> Scan:
    """A table without rows."""
    columns = ", ".join(f"NULL::{duckdb_type(field.type)} AS {quoted(field.name)}" for field in schema)
    return Scan(f"SELECT {columns} WHERE false", schema)


def in_memory(name: str, rows: pa.Table) -> Scan:
    """A table that was made for the query; ``name`` must be unique within the connection."""
    return Scan(f"SELECT * FROM {quoted(name)}", rows.schema, name, rows)


def scan(con: duckdb.DuckDBPyConnection, home: Home, schema_name: str, name: str) -> Scan:
    """The current version of the Delta table ``schema_name.name``; may be called from several threads at once.

    Raises:
        UnreadableTable: its files alone do not determine its rows.
        deltalake.exceptions.DeltaError: it cannot be read.
    """
    uri, table = home.table(schema_name, name), open_table(home, schema_name, name)
    schema = pa.schema(table.schema().to_arrow())
    partitions = table.metadata().partition_columns
    # DuckDB takes every folder with a = in its name for a column's value, even folders above the table.
    if not storage_of(uri).on_disk or (partitions and "=" in uri):
        return whole(uri, table)
    files = _files(table, f"{schema_name}.{name}", uri)
    return _parquet(con, files, schema, partitions) if files else empty(schema)


def whole(uri: str, table: DeltaTable) -> Scan:
    """A table, read by Arrow.

    The statistics in the Delta log are ignored: Spark truncates timestamps in them to milliseconds, so that filtering
    by them would lose rows.
    """
    import pyarrow.dataset as ds
    from pyarrow import fs

    pruned = table.to_pyarrow_dataset()
    partitions = table.metadata().partition_columns
    files = storage_of(uri)
    # Arrow's own file system, if there is one: its threads then call no Python, which can crash when the process ends.
    on_disk = fs.SubTreeFileSystem(files.absolute(uri), fs.LocalFileSystem()) if files.on_disk else None
    system = on_disk or pruned.filesystem

    def expression(fragment: Any) -> Any:
        known = ds.get_partition_keys(fragment.partition_expression)
        found = ds.scalar(True)
        for name in partitions:
            value = known[name]
            field = ds.field(name)
            typed = None if value is None else pa.scalar(value, pruned.schema.field(name).type)
            found = found & (field.is_null() if typed is None else field == typed)
        return found

    parts = [
        pruned.format.make_fragment(one.path, filesystem=system, partition_expression=expression(one))
        for one in pruned.get_fragments()
    ]
    dataset = ds.FileSystemDataset(parts, pruned.schema, pruned.format, system)
    return Scan(f"SELECT * FROM {quoted(uri)}", pruned.schema, uri, dataset)


def _files(table: DeltaTable, name: str, uri: str) -> list[str]:
    """Paths of the table's files, the oldest first."""
    actions = table.get_add_actions(flatten=True)
    # Columns are taken one by one, because pa.table() would import pandas only to check for one of its frames.
    times, paths = actions.column("modification_time").to_pylist(), actions.column("path").to_pylist()
    aged = [path for _, path in sorted(zip(times, paths, strict=True))]
    return [data_path(name, uri, path) for path in aged]


def _parquet(con: duckdb.DuckDBPyConnection, files: list[str], schema: pa.Schema, partitions: list[str]) -> Scan:
    options = "hive_partitioning = false"
    if partitions:
        types = ", ".join(f"{literal(name)}: {duckdb_type(schema.field(name).type)}" for name in partitions)
        options = f"hive_partitioning = true, hive_types = {{{types}}}"
    # Columns are only ever added, so the oldest file tells whether all files have them; looking at all takes long.
    listed = list(map(parquet_path, files))
    oldest = con.cursor().execute(f"DESCRIBE SELECT * FROM read_parquet({listed[0]}, {options})").fetchall()
    columns = ", ".join(quoted(name) for name in schema.names)
    if set(schema.names) <= {name for name, *_ in oldest}:
        return Scan(f"SELECT {columns} FROM read_parquet([{', '.join(listed)}], {options})", schema)
    # A new column may not be in any file yet, so an empty table that has all columns comes first.
    rows = f"SELECT * FROM read_parquet([{', '.join(listed)}], {options}, union_by_name = true)"
    return Scan(f"SELECT {columns} FROM ({empty(schema).sql} UNION ALL BY NAME {rows})", schema)


def list_tables(home: Home, schema: str) -> list[str]:
    """Names of the Delta tables under ``schema``; later versions of a match table as ``name/v2``."""
    root = home.table(schema, "").rstrip("/")
    files = storage_of(root)
    found = [name for name in files.folders(root) if files.names(f"{root}/{name}/_delta_log")]
    if schema == "matches":
        names = {*files.folders(root), *files.folders(home.next_tables(schema))}
        found += [f"{name}/v{number}" for name in sorted(names) for number in later_versions(home, name)]
    return found
