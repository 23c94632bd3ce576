"""Events from plain files: JSON lines, CSV and Parquet, plain or gzipped (design §11, ``match``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from jobs.cep.arrow import NO_TEXT, text_array
from jobs.errors import InputError, UsageError

_JSON = (".jsonl", ".ndjson", ".json")
_TABLES = (".csv", ".tsv", ".txt")


def read_events(
    files: Sequence[Path], *, id_column: str | None = None, type_column: str | None = None, ts_column: str | None = None
) -> pa.Table:
    """All events of the files, in the columns ``event_id``, ``type`` (if there is one), ``ts`` and attributes.

    Args:
        files: JSON lines (flat objects, or ``{id, type, ts, attrs: {…}}``), CSV with a header, or Parquet, by suffix.
        id_column: default ``event_id`` or ``id``; events without an id are called ``FILE:ROW``.
        type_column: default ``type``; a table without it has no column ``type``.
        ts_column: default ``ts``; timestamps, texts in ISO 8601 (UTC if they name no zone), or whole seconds.

    Raises:
        InputError: a file that cannot be read, files that do not fit together, a column that is not there.
        UsageError: a suffix that says nothing.
    """
    texts = ("event_id", "id", "type", *filter(None, (id_column, type_column)))
    tables = [_events(file, _read(file, texts), id_column, type_column, ts_column) for file in files]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"the files do not fit together: {error}") from None


def regular_file(file: Path) -> None:
    """Refuse what is not there, and folders, pipes and devices.

    Raises:
        InputError: with the file.
    """
    if file.is_dir():
        raise InputError("this is a folder", file=file, hint="Name the files in it.")
    if str(file) == "-" or file.exists() and not file.is_file():
        raise InputError("this is no regular file", file=file, hint="Write what comes through a pipe to a file first.")
    if not file.is_file():
        raise InputError("there is no such file", file=file)


def _read(file: Path, texts: Sequence[str]) -> pa.Table:
    """The file's rows; in the columns ``texts`` of a CSV file 007 is not 7."""
    suffix = Path(file.stem).suffix if file.suffix == ".gz" else file.suffix
    regular_file(file)
    if file.stat().st_size == 0:
        return pa.table({})
    try:
        if suffix in _JSON:
            import pyarrow.json

            return _flat(pyarrow.json.read_json(str(file)))
        if suffix in _TABLES:
            import pyarrow.csv

            form = pyarrow.csv.ParseOptions(delimiter="\t" if suffix == ".tsv" else ",")
            kinds = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()))
            table = pyarrow.csv.read_csv(str(file), parse_options=form, convert_options=kinds)
            return _texts(table, texts)
        if suffix in (".parquet", ".pq"):
            import pyarrow.parquet

            return pyarrow.parquet.ParquetFile(file).read()
    except (pa.ArrowException, OSError) as error:
        # The message may quote the file, which may be anything.
        reason = "".join(letter if letter.isprintable() else "?" for letter in str(error)[:200])
        raise InputError(f"the file cannot be read: {reason}", file=file) from None
    raise UsageError(
        f"'{suffix}' does not say what the file holds",
        file=file,
        hint=f"Suffixes are {', '.join((*_JSON, *_TABLES, '.parquet'))}, with or without .gz.",
    )


def _texts(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Blank texts of a CSV file as missing values; ``names`` as whole numbers if each is written as a number prints."""
    for index, field in enumerate(table.schema):
        if not pa.types.is_string(field.type):
            continue
        column = pc.if_else(pc.match_substring_regex(table.column(index), "."), table.column(index), NO_TEXT)
        if field.name in names:
            column = _whole_numbers(column)
        table = table.set_column(index, field.name, column)
    return table


def _whole_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts as whole numbers if each is written as a number prints, else as they are."""
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
    return numbers if numbers.cast(pa.string()).equals(column) else column


def _flat(table: pa.Table) -> pa.Table:
    """Attributes in ``attrs`` become columns."""
    if "attrs" not in table.column_names or not pa.types.is_struct(table.schema.field("attrs").type):
        return table
    attrs = table["attrs"].combine_chunks()
    if isinstance(attrs, pa.ChunkedArray):
        attrs = pa.concat_arrays(attrs.chunks)
    table = table.drop_columns(["attrs"])
    for field in attrs.type:
        table = table.append_column(field.name, pc.struct_field(attrs, field.name))
    return table


def _events(
    file: Path, table: pa.Table, id_column: str | None, type_column: str | None, ts_column: str | None
) -> pa.Table:
    if len(table) == 0:
        return pa.table({})
    names = table.column_names
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(f"the column {twice[0]} stands twice", file=file, key=twice[0])
    for name in (id_column, type_column, ts_column):
        if name is not None and name not in names:
            raise _absent(file, name, names)
    id_column = id_column or next((name for name in ("event_id", "id") if name in names), None)
    type_column = type_column or ("type" if "type" in names else None)
    ts_column = ts_column or "ts"
    if ts_column not in names:
        raise _absent(file, ts_column, names)
    ids = _ids(file, table, id_column)
    columns = {"event_id": ids}
    if type_column is not None:
        _complete(file, table[type_column], type_column)
        columns["type"] = table[type_column].cast(pa.string())
    columns["ts"] = _times(file, table[ts_column], ts_column)
    taken = {id_column, type_column, ts_column}
    columns |= {name: table[name] for name in names if name not in taken and name not in columns}
    return pa.table(columns)


def _ids(file: Path, table: pa.Table, id_column: str | None) -> pa.Array | pa.ChunkedArray:
    if id_column is not None:
        ids = table[id_column]
        if pa.types.is_string(ids.type):
            ids = pc.if_else(pc.match_substring_regex(ids, "."), ids, NO_TEXT)
        if ids.null_count == 0:
            return ids
    rows = text_array([f"{file.name}:{row}" for row in range(1, len(table) + 1)])
    return rows if id_column is None else pc.coalesce(ids.cast(pa.string()), rows)


def _complete(file: Path, column: pa.ChunkedArray, name: str) -> None:
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py() + 1
        raise InputError(f"{column.null_count} rows have no {name}, first row {row}", file=file, key=name)


def _absent(file: Path, name: str, names: list[str]) -> InputError:
    return InputError(
        f"there is no column {name}",
        file=file,
        key=name,
        hint=f"Columns are {', '.join(names)}; name them with --id, --type and --ts.",
    )


def _times(file: Path, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    _complete(file, column, name)
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    try:
        if pa.types.is_string(column.type):
            # Arrow takes texts with an offset or texts without one, but not both in a column.
            zoned = pc.match_substring_regex(column, r":.*([Zz]|[+-]\d\d(:?\d\d)?)$")
            utc = pa.timestamp("us", tz="UTC")
            local = pc.cast(pc.if_else(zoned, NO_TEXT, column), pa.timestamp("us")).cast(utc)
            column = pc.coalesce(pc.cast(pc.if_else(zoned, column, NO_TEXT), utc), local)
        if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
            zone = getattr(column.type, "tz", None)
            return column.cast(pa.timestamp("us", tz=zone), safe=False).cast(pa.timestamp("us", tz="UTC"))
    except pa.ArrowInvalid as error:
        raise InputError(f"{name} cannot be read as a time: {error}", file=file, key=name) from None
    raise InputError(
        f"{name} holds {column.type}, which is no time",
        file=file,
        key=name,
        hint="Times are ISO 8601 texts, timestamps, or whole seconds.",
    )
