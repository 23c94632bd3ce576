"""Events from plain files: JSON lines, CSV and Parquet, plain or gzipped (design §11, ``match``)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from jobs.cep.arrow import NO_TEXT, text_array
from jobs.cep.cells import no_values
from jobs.cep.places import (
    JSON,
    NUMBER,
    TEXT,
    cell_error,
    csv_error,
    delimiter_of,
    json_error,
    row_place,
    shown,
    suffix_of,
)
from jobs.errors import InputError, UsageError
from jobs.words import counted

#: Seconds at the beginning of 1900 and of 2200: what is not between them counts something else.
_FIRST_S, _END_S = -2_208_988_800, 7_258_118_400
UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
#: Digits of a second beyond the sixth; they are cut off, as everywhere (docs/sources.md).
_FINER = r"(\.\d{6})\d+"


def read_events(
    files: Sequence[Path],
    *,
    id_column: str | None = None,
    type_column: str | None = None,
    ts_column: str | None = None,
    ts_unit: str | None = None,
) -> pa.Table:
    """All events of the files, in the columns ``event_id``, ``type`` (if there is one), ``ts`` and attributes.

    Args:
        files: JSON lines (flat objects, or ``{id, type, ts, attrs: {…}}``), CSV with a header, or Parquet, by suffix.
        id_column: default ``event_id`` or ``id``; events without an id are called ``FILE:ROW``.
        type_column: default ``type``; a table without it has no column ``type``.
        ts_column: default ``ts``; timestamps, texts in ISO 8601 (UTC if they name no zone), or whole seconds. Digits
            finer than a microsecond are cut off.
        ts_unit: a key of ``UNITS``: times are numbers that count these since 1970 UTC.

    Raises:
        InputError: a file that cannot be read, files that do not fit together, a column that is not there.
        UsageError: a suffix that says nothing.
    """
    texts = ("event_id", "id", "type", *filter(None, (id_column, type_column)))

    def all_of(raw: Sequence[str]) -> list[pa.Table]:
        read = (_read(file, texts, raw) for file in files)
        return [
            _events(file, rows, id_column, type_column, ts_column, ts_unit)
            for file, rows in zip(files, read, strict=True)
        ]

    tables = all_of(())
    raw = _numbers_and_texts(tables) if all(suffix_of(file) in TEXT for file in files) else []
    if raw:
        tables = all_of(raw)
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise _misfit(files, tables) from None


def _numbers_and_texts(tables: Sequence[pa.Table]) -> list[str]:
    """Attributes that are numbers in one table and texts in another: one cell that is no number is enough for that."""
    kinds: dict[str, set[str]] = {}
    for field in (field for table in tables for field in table.schema if field.name not in ("event_id", "type", "ts")):
        kinds.setdefault(field.name, set()).add(_kind(field.type))
    return [name for name, found in kinds.items() if {"numbers", "texts"} <= found]


def _misfit(files: Sequence[Path], tables: Sequence[pa.Table]) -> InputError:
    """Which column of which two files cannot be put under one type."""
    first: dict[str, tuple[Path, pa.DataType]] = {}
    for file, table in zip(files, tables, strict=True):
        for field in table.schema:
            other, kind = first.setdefault(field.name, (file, field.type))
            if _kind(kind) != _kind(field.type) and not {kind, field.type} & {pa.null()}:
                words = {_kind(field.type): file, _kind(kind): other}
                found = not_a_number(words["texts"], field.name) if words.keys() == {"numbers", "texts"} else None
                return found or InputError(
                    f"{field.name} holds {_kind(field.type)}, and {_kind(kind)} in {other}", file=file, key=field.name
                )
    return InputError("the files do not fit together", file=files[-1])


def not_a_number(file: Path, column: str) -> InputError | None:
    """An error at the first cell of a column of a CSV file that is no number, if there is one."""
    nothing = frozenset(no_values())
    return cell_error(file, column, lambda text: text not in nothing and not NUMBER.match(text), "is no number")


def _kind(kind: pa.DataType) -> str:
    """What a column of this type holds, in words."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "texts"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "times"
    return "true and false" if pa.types.is_boolean(kind) else str(kind)


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


def _read(file: Path, texts: Sequence[str], raw: Sequence[str]) -> pa.Table:
    """The file's rows; in the columns ``texts`` of a CSV file 007 is not 7, those of ``raw`` are texts as written."""
    suffix = suffix_of(file)
    regular_file(file)
    try:
        if file.stat().st_size == 0:
            return pa.table({})
        if suffix in JSON:
            return _json(file)
        if suffix in TEXT:
            return _csv(file, texts, raw)
        if suffix in (".parquet", ".pq"):
            import pyarrow.parquet

            return pyarrow.parquet.ParquetFile(file).read()
    except PermissionError:
        raise InputError("the file cannot be read: permission denied", file=file) from None
    except (pa.ArrowException, OSError, EOFError, zlib.error):
        if suffix in (".parquet", ".pq"):
            raise InputError("the file is no Parquet file, or a damaged one", file=file) from None
        raise InputError("the file is cut off or damaged", file=file) from None
    raise UsageError(
        f"'{suffix}' does not say what the file holds" if suffix else "the file's name does not say what it holds",
        file=file,
        hint=f"Suffixes are {', '.join((*JSON, *TEXT, '.parquet'))}, with or without .gz.",
    )


def _json(file: Path) -> pa.Table:
    import pyarrow.json

    try:
        return _flat(pyarrow.json.read_json(str(file)))
    except pa.ArrowInvalid:
        # Reads the file again; one that ends too early says so itself.
        raise json_error(file) from None


def _csv(file: Path, texts: Sequence[str], raw: Sequence[str]) -> pa.Table:
    import pyarrow.csv

    form = pyarrow.csv.ParseOptions(delimiter=delimiter_of(file))
    kinds = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys((*texts, *raw), pa.string()))
    try:
        table = pyarrow.csv.read_csv(str(file), parse_options=form, convert_options=kinds)
    except pa.ArrowInvalid:
        raise csv_error(file) from None
    if any(pa.types.is_binary(field.type) for field in table.schema):
        raise csv_error(file)
    return _texts(table, texts)


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
    file: Path,
    table: pa.Table,
    id_column: str | None,
    type_column: str | None,
    ts_column: str | None,
    ts_unit: str | None,
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
    columns["ts"] = _times(file, table[ts_column], ts_column, ts_unit)
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
        others = f" and in {counted(column.null_count - 1, 'other row')}" if column.null_count > 1 else ""
        raise InputError(f"there is no {name} here{others}", **row_place(file, row), key=name)


def _absent(file: Path, name: str, names: list[str]) -> InputError:
    return InputError(
        f"there is no column {name}",
        file=file,
        key=name,
        hint=f"Columns are {', '.join(names)}; name them with --id, --type and --ts.",
    )


def _times(file: Path, column: pa.ChunkedArray, name: str, unit: str | None) -> pa.ChunkedArray:
    _complete(file, column, name)
    number = pa.types.is_integer(column.type) or (unit is not None and pa.types.is_floating(column.type))
    if number:
        return _counted_times(file, column, name, unit)
    if unit is not None:
        raise InputError(
            f"{name} holds {_kind(column.type)}, no numbers", file=file, key=name, hint="Leave out --ts-unit."
        )
    if pa.types.is_string(column.type):
        return _text_times(file, pc.replace_substring_regex(column, _FINER, r"\1"), name)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        zone = getattr(column.type, "tz", None)
        return column.cast(pa.timestamp("us", tz=zone), safe=False).cast(_UTC)
    raise InputError(
        f"{name} holds {_kind(column.type)}, no times",
        file=file,
        key=name,
        hint="Times are ISO 8601 texts, timestamps, or whole seconds; --ts-unit takes other counts.",
    )


_UTC = pa.timestamp("us", tz="UTC")


def _counted_times(file: Path, column: pa.ChunkedArray, name: str, unit: str | None) -> pa.ChunkedArray:
    """Numbers as they are if no unit is named, else as timestamps."""
    scale = UNITS[unit or "s"]
    low, high = (value.as_py() for value in pc.min_max(column).values())
    if not _FIRST_S * scale <= low <= high < _END_S * scale:
        wrong = pc.or_(pc.less(column, _FIRST_S * scale), pc.greater_equal(column, _END_S * scale))
        row = pc.index(wrong, True).as_py()
        value = column[row].as_py()
        fits = [name for name, of in UNITS.items() if 10**8 * of <= value < _END_S * of]
        raise InputError(
            f"{name} is {value} here, which is outside the years 1900 to 2199 if it counts {unit or 's'}",
            **row_place(file, row + 1),
            key=name,
            hint=f"Name what it counts: --ts-unit {' or '.join(fits)}." if fits else None,
        )
    if unit is None:
        return column.cast(pa.int64())
    if pa.types.is_floating(column.type):
        return pc.round(pc.multiply(column, 1_000_000 / scale)).cast(pa.int64()).cast(pa.timestamp("us")).cast(_UTC)
    return column.cast(pa.int64()).cast(pa.timestamp(unit)).cast(pa.timestamp("us"), safe=False).cast(_UTC)


def _text_times(file: Path, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    try:
        return _iso(column)
    except pa.ArrowInvalid:
        low, high = 0, len(column)
        # The first half that fails holds the first text that fails.
        while high - low > 1:
            middle = (low + high) // 2
            try:
                _iso(column.slice(low, middle - low))
                low = middle
            except pa.ArrowInvalid:
                high = middle
    raise InputError(
        f"'{shown(column[low].as_py())}' cannot be read as a time",
        **row_place(file, low + 1),
        key=name,
        hint="Times are ISO 8601 texts, such as 2025-01-01T09:30:00+01:00, or whole seconds.",
    )


def _iso(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # Arrow takes texts with an offset or texts without one, but not both in a column.
    zoned = pc.match_substring_regex(column, r":.*([Zz]|[+-]\d\d(:?\d\d)?)$")
    local = pc.cast(pc.if_else(zoned, NO_TEXT, column), pa.timestamp("us")).cast(_UTC)
    return pc.coalesce(pc.cast(pc.if_else(zoned, column, NO_TEXT), _UTC), local)
