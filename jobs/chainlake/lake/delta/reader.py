"""The only place where Delta tables are opened outside Spark.

Arrow and DuckDB read the files as the log lists them. A table with newer features keeps more than its files, such as
which of their rows are deleted or what their columns are called; a reader of the files alone would then silently get
wrong rows. So such a table is refused before anything is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from chainlake.errors import InfrastructureError
from chainlake.lake.delta.damaged import require_entries
from chainlake.lake.delta.opened import keep, kept
from chainlake.lake.locks import require_locks
from chainlake.paths import Home
from chainlake.storage.resolve import storage_of

if TYPE_CHECKING:
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    from deltalake import DeltaTable

#: Reader features that do not change how rows are stored in the files.
_PLAIN = {"timestampNtz"}
#: Writer features that every commit made here supports.
_KEPT_UP = {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "timestampNtz"}
#: The feature that version 2 of Delta's reader protocol stands for, and the setting that says whether it is used.
_MAPPING, _MODE = "columnMapping", "delta.columnMapping.mode"
_NEWEST = 3


class UnreadableTable(InfrastructureError):
    """The files of a table do not determine its rows; the message says why, and how to remove the feature at fault."""

    @classmethod
    def feature(cls, table: str, path: str, name: str) -> UnreadableTable:
        """For a feature of Delta's reader protocol.

        Args:
            table: ``schema.name``.
            path: where it is.
            name: the feature, as Delta calls it.
        """
        place = f"delta.`{path}`"
        steps = [f"ALTER TABLE {place} DROP FEATURE {name}"]
        if name == "deletionVectors":
            steps[:0] = [
                f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
                f"REORG TABLE {place} APPLY (PURGE)",
            ]
        elif name == _MAPPING:
            steps[:0] = [f"ALTER TABLE {place} SET TBLPROPERTIES ('{_MODE}' = 'none')"]
        return cls(
            f"table {table} uses the Delta feature '{name}', so its files alone do not determine its rows; "
            "nothing was read",
            hint=f"Read it with Spark, or remove the feature with Spark: {'; '.join(steps)}.",
        )

    @classmethod
    def elsewhere(cls, table: str, file: str) -> UnreadableTable:
        """For a data file outside the table's folder, as a shallow clone has them."""
        return cls(
            f"table {table} is made of files outside its folder, such as {file}; nothing was read",
            hint="Read it with Spark, or make it a separate table with Spark: DEEP CLONE, or CREATE TABLE AS SELECT.",
        )

    @classmethod
    def unknown(cls, table: str, why: str) -> UnreadableTable:
        """For a protocol that is not known here."""
        return cls(
            f"table {table} needs a newer reader than this one ({why}); nothing was read",
            hint=(
                "Read it with the program that wrote it last, and remove the features that it added there (DROP "
                "FEATURE)."
            ),
        )


class UnwritableTable(InfrastructureError):
    """A table requires a writer feature that is not supported here; the message names it."""

    @classmethod
    def feature(cls, table: str, path: str, name: str) -> UnwritableTable:
        """Args: ``schema.name``, where it is, and the feature, as Delta calls it."""
        drop = f"ALTER TABLE delta.`{path}` DROP FEATURE {name}"
        if name == "checkpointProtection":
            drop += " TRUNCATE HISTORY (a day after the feature that it remains from was dropped)"
        return cls(
            f"table {table} uses the Delta feature '{name}', which this program does not maintain when it writes; "
            "nothing was written",
            hint=f"Remove it with Spark: {drop}; or move the table away and have its days computed again.",
        )


def open_table(
    home: Home,
    schema: str,
    name: str,
    *,
    version: int | None = None,
    without_files: bool = False,
    to_write: bool = False,
) -> DeltaTable:
    """Open a Delta table whose rows are those of its files. A reader may get an object that it shares with others.

    Args:
        home: the installation.
        schema: schema of the table.
        name: its name under the schema.
        version: the version to open; the newest if not given.
        without_files: for callers that need only version, columns or history, which are right whatever its files hold.
        to_write: for callers that commit.

    Raises:
        deltalake.exceptions.TableNotFoundError: there is no such table.
        DamagedTable: an entry of its log is empty.
        UnreadableTable: its files alone do not determine its rows, or its log cannot be understood.
        UnwritableTable: it is opened to be written, and requires a writer feature that is not supported here.
        LockLost: it is opened to be written, and a lock of this process is no longer its own.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    log = require_entries(home, schema, name)
    if to_write:
        require_locks()
    path, shown = home.table(schema, name), f"{schema}.{name}"
    found = None if log is None or to_write else kept(path, version, without_files, log)
    try:
        table = DeltaTable(path, version=version, without_files=without_files) if found is None else found
    except TableNotFoundError:
        raise
    except DeltaError as error:
        text = str(error).strip().splitlines()[0]
        if "Unsupported" not in text:
            raise
        feature = re.search(r"[Ff]eature '(\w+)'", text)
        if feature is None:
            raise UnreadableTable.unknown(shown, text) from None
        raise UnreadableTable.feature(shown, path, feature[1]) from None
    odd = None if without_files else _odd_feature(table)
    if odd is not None:
        raise UnreadableTable.feature(shown, path, odd)
    asked = sorted(set(table.protocol().writer_features or ()) - _KEPT_UP)
    if to_write and asked:
        raise UnwritableTable.feature(shown, path, asked[0])
    if log is not None and found is None and not to_write:
        keep(path, version, without_files, log, table)
    return table


def rows_of(home: Home, table: DeltaTable, chosen: pc.Expression | None = None) -> ds.Dataset:
    """The rows of a table, to be scanned with the filter ``chosen``.

    On a disk, Arrow skips what the bounds in the files themselves rule out, which costs less than passing it the bounds
    in the log. In a store each file is a request, so delta-rs passes Arrow the bounds in the log. But delta-rs passes a
    missing bound as null, and Arrow then skips the file; so if a bound is missing, none are passed.

    Args:
        home: the installation.
        table: as ``open_table`` gives it.
        chosen: the filter that the dataset is scanned with; none if all rows are wanted.
    """
    if storage_of(home.lake).on_disk:
        return files_of(table)
    if chosen is not None:
        added, text = table.get_add_actions(flatten=True), str(chosen)
        by = table.metadata().partition_columns
        for name in (field.name for field in table.schema().fields if field.name not in by and field.name in text):
            for bound in (f"min.{name}", f"max.{name}"):
                if bound not in added.schema.names or added.column(bound).null_count:
                    return files_of(table)
    return table.to_pyarrow_dataset()


def files_of(table: DeltaTable, *, dictionary_columns: Collection[str] = ()) -> ds.Dataset:
    """The files of a table, to be scanned whole.

    ``to_pyarrow_dataset`` first makes an expression of each bound of each file, to skip files by: that takes two
    milliseconds per file, which is longer than reading a small one.

    Args:
        table: as ``open_table`` gives it.
        dictionary_columns: text columns to read as dictionaries, which is how the files store them.
    """
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import PyFileSystem

    added = table.get_add_actions(flatten=True)
    paths, sizes = (added.column(name).to_pylist() for name in ("path", "size_bytes"))
    store = PyFileSystem(DeltaStorageHandler(table.table_uri, known_sizes=dict(zip(paths, sizes, strict=True))))
    files = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(dictionary_columns=set(dictionary_columns)))
    schema = pa.schema(table.schema().to_arrow())
    # Files do not hold the columns that they are partitioned by.
    by = {name: added.column(f"partition.{name}").to_pylist() for name in table.metadata().partition_columns}
    fragments = []
    for number, path in enumerate(paths):
        held = pc.scalar(True)
        for name, values in by.items():
            field, value = pc.field(name), pa.scalar(values[number], schema.field(name).type)
            held = held & (field == value if value.is_valid else field.is_null())
        fragments.append(files.make_fragment(path, store, held))
    for name in dictionary_columns:
        field = schema.field(name)
        schema = schema.set(schema.get_field_index(name), field.with_type(pa.dictionary(pa.int32(), field.type)))
    return ds.FileSystemDataset(fragments, schema, files, store)


def _odd_feature(table: DeltaTable) -> str | None:
    """A feature of the table that reading its files ignores, if there is one."""
    protocol = table.protocol()
    if protocol.min_reader_version > _NEWEST:
        return f"reader version {protocol.min_reader_version}"
    odd = sorted(set(protocol.reader_features or ()) - _PLAIN)
    if odd:
        return odd[0]
    mode = table.metadata().configuration.get(_MODE) or "none"
    return _MAPPING if protocol.min_reader_version == 2 and mode != "none" else None


def data_path(table: str, folder: str, path: str) -> str:
    """The place of the data file that the log of ``table``, in ``folder``, calls ``path``.

    Raises:
        UnreadableTable: it is outside the folder.
    """
    plain = unquote(path)
    if plain.startswith("/") or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", plain):
        raise UnreadableTable.elsewhere(table, plain)
    return os.path.join(folder, plain)
