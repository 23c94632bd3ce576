"""Reads events from plain files: JSON lines, CSV and Parquet, plain or gzipped."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.plain_files.cells import ANY, Cell, Column, as_asked, typed
from chainlake.cep.plain_files.delimited import read_delimited
from chainlake.cep.plain_files.errors import UnfitCell, UnfitColumn, UnfitFile, UnfitTime, UnknownSuffix, WrongTypeOf
from chainlake.cep.plain_files.event_times import UTC_US, check_form, counted, dates, first_without_zone, iso, iso_error
from chainlake.cep.plain_files.json_lines import read_json_lines
from chainlake.cep.plain_files.parquet import read_parquet
from chainlake.cep.plain_files.places import JSON, TEXT, row_place, suffix_of
from chainlake.cep.values.arrow import NO_TEXT, TRUE, text_array
from chainlake.errors import InputError
from chainlake.terminal import storable


@dataclass(frozen=True)
class Asked:
    """What the caller says about the files' columns.

    Args:
        id_column: default ``event_id`` or ``id``; events without an id are called ``FILE:ROW``, with the whole path if
            several files have the same name.
        type_column: default ``type``; a table without it has no column ``type``.
        ts_column: default ``ts``; timestamps, strings in ISO 8601 (UTC if they name no zone), or whole seconds. Digits
            finer than a microsecond are cut off.
        ts_unit: a key of ``event_times.UNITS``; times are numbers that count this unit since 1970 UTC.
        kinds: by column name, what the column holds (``cells.KINDS``), instead of what the rule would say.
        missing: strings that stand for a missing value, in every column.
    """

    id_column: str | None = None
    type_column: str | None = None
    ts_column: str | None = None
    ts_unit: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    missing: Sequence[str] = ()


@dataclass(frozen=True)
class Events:
    """The events of some files.

    Args:
        table: ``event_id``, ``type`` (if there is one), ``ts`` and attributes.
        texts: columns that are strings because of their cells, each with the first cell that makes it so.
        cells: columns of delimited files as they are written, except those whose kind the caller declares.
        notes: what the reader of the matches should know.
        key: the column that says which events are of one series, or None.
        landed: whether they are read as a source's files; then ``seq`` is not an attribute.
    """

    table: pa.Table
    texts: Mapping[str, Cell] = field(default_factory=dict)
    cells: Mapping[str, Sequence[Column]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    key: str | None = None
    landed: bool = False


@dataclass(frozen=True)
class _File:
    """What a file holds, before its columns have types."""

    file: Path
    table: pa.Table
    written: Mapping[str, str]

    def column(self, name: str) -> Column:
        return Column(self.file, self.table[name], self.written.get(name, ""))


@dataclass(frozen=True)
class _Rows:
    """The columns of a file that have their types (at first ``event_id``, ``type`` and ``ts``), and the others."""

    columns: dict[str, Any]
    rest: Mapping[str, Column]
    notes: Sequence[str]


def read_events(files: Sequence[Path], asked: Asked = Asked()) -> Events:  # noqa: B008
    """All events of the files.

    A column of cells holds numbers if all its cells in all files are numbers, else strings (``cells.typed``). In JSON
    and Parquet, each value has its own kind.

    Args:
        files: JSON lines (flat objects, or ``{id, type, ts, attrs: {…}}``), CSV with a header, or Parquet, by suffix.
        asked: what the caller says about the columns.

    Raises:
        InputError: a file cannot be read, files do not fit together, or a column is missing.
        UsageError: a suffix is not known, or what the caller says about a column does not fit.
    """
    for kind in asked.kinds.values():
        if kind.startswith("date:"):
            check_form(kind.removeprefix("date:"))
    names = _names(files)
    read = [_without(_read(file), asked.missing) for file in names]
    full = [one for one in read if len(one.table)]
    for name in asked.kinds:
        if full and not any(name in one.table.column_names for one in full):
            raise UnfitColumn.absent(full[0].file, name, full[0].table.column_names)
    events = [_events(one, names[one.file], asked) for one in full]
    texts: dict[str, Cell] = {}
    cells: dict[str, list[Column]] = {}
    for name in dict.fromkeys(name for one in events for name in one.rest):
        having = [one for one in events if name in one.rest]
        columns = [one.rest[name] for one in having]
        if name in asked.kinds:
            values = as_asked(name, asked.kinds[name], columns)
        else:
            values, wrong = typed(name, columns)
            if wrong is not None:
                texts[name] = wrong
            cells[name] = [column for column in columns if column.written == "cell"]
        for one, found in zip(having, values, strict=True):
            one.columns[name] = found
    tables = [pa.table(one.columns) for one in events]
    if not tables:
        return Events(pa.table({}))
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise _misfit([one.file for one in full], tables, texts) from None
    return Events(table, texts, cells, [note for one in events for note in one.notes])


def _names(files: Sequence[Path]) -> dict[Path, str]:
    """The name in the ids of each file's events: the file's name, or its whole path if several files have that name.

    A file that is given twice is read once.
    """
    places: dict[str, Path] = {}
    for file in files:
        places.setdefault(os.path.realpath(file), file)
    counts = Counter(file.name for file in places.values())
    return {file: storable(file.name if counts[file.name] == 1 else place) for place, file in places.items()}


def _without(file: _File, missing: Sequence[str]) -> _File:
    """The file with null for strings that stand for a missing value."""
    if not missing:
        return file
    table = file.table
    for index, one in enumerate(table.schema):
        if pa.types.is_string(one.type):
            column = table.column(index)
            absent = pc.is_in(pc.utf8_trim_whitespace(column), value_set=text_array(list(missing)))
            table = table.set_column(index, one.name, pc.if_else(absent, NO_TEXT, column))
    return _File(file.file, table, file.written)


def _misfit(files: Sequence[Path], tables: Sequence[pa.Table], texts: Mapping[str, Cell]) -> InputError:
    """The error that names the column, and two files, for which there is no common type."""
    first: dict[str, tuple[Path, pa.DataType]] = {}
    for file, table in zip(files, tables, strict=True):
        for one in table.schema:
            other, kind = first.setdefault(one.name, (file, one.type))
            if _kind(kind) != _kind(one.type) and not {kind, one.type} & {pa.null()}:
                if {_kind(kind), _kind(one.type)} == {"numbers", "text"} and one.name in texts:
                    return UnfitCell.of(texts[one.name].said(one.name))
                return UnfitColumn.other_kind(file, one.name, _kind(one.type), other, _kind(kind))
    return UnfitFile.misfit(files[-1])


def _kind(kind: pa.DataType) -> str:
    """What a column of this type holds, in words."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "times"
    return "true and false" if pa.types.is_boolean(kind) else str(kind)


def regular_file(file: Path) -> None:
    """Refuse missing files, folders, pipes and devices.

    Raises:
        InputError: with the file.
    """
    if file.is_dir():
        raise UnfitFile.folder(file)
    if str(file) == "-" or file.exists() and not file.is_file():
        raise UnfitFile.special(file)
    if not file.is_file():
        raise UnfitFile.missing(file)


def _read(file: Path) -> _File:
    """The file's rows; the cells of a CSV file and the numbers of JSON are as they are written."""
    suffix = suffix_of(file)
    regular_file(file)
    try:
        if file.stat().st_size == 0:
            return _File(file, pa.table({}), {})
        if suffix in JSON:
            table, numbers = read_json_lines(file)
            return _File(file, table, dict.fromkeys(numbers, "number"))
        if suffix in TEXT:
            table = read_delimited(file)
            return _File(file, table, dict.fromkeys(table.column_names, "cell"))
        if suffix in (".parquet", ".pq"):
            return _File(file, read_parquet(file), {})
    except PermissionError:
        raise UnfitFile.denied(file) from None
    except (pa.ArrowException, OSError, EOFError, zlib.error):
        if suffix in (".parquet", ".pq"):
            raise UnfitFile.no_parquet(file) from None
        raise UnfitFile.damaged(file) from None
    raise UnknownSuffix.of(file, suffix, (*JSON, *TEXT, ".parquet"))


def _events(one: _File, called: str, asked: Asked) -> _Rows:
    names = one.table.column_names
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise UnfitColumn.duplicate(one.file, twice[0])
    for name in (asked.id_column, asked.type_column, asked.ts_column):
        if name is not None and name not in names:
            raise UnfitColumn.absent(one.file, name, names)
    id_column = asked.id_column or next((name for name in ("event_id", "id") if name in names), None)
    type_column = asked.type_column or ("type" if "type" in names else None)
    ts_column = asked.ts_column or "ts"
    if ts_column not in names:
        raise UnfitColumn.absent(one.file, ts_column, names)
    for name, what in ((id_column, "id"), (type_column, "type")):
        if asked.kinds.get(name or "", "text") != "text":
            raise WrongTypeOf.text_expected(name or "", what)
    for name in (id_column, type_column, ts_column):
        if name is not None:
            _single(one.file, one.table[name], name)
    columns: dict[str, Any] = {"event_id": _ids(one, called, id_column, asked.kinds)}
    if type_column is not None:
        _complete(one.file, one.table[type_column], type_column)
        columns["type"] = one.table[type_column].cast(pa.string())
    columns["ts"] = _times(one.column(ts_column), ts_column, asked)
    taken = {id_column, type_column, ts_column}
    rest = {name: one.column(name) for name in names if name not in taken and name not in columns}
    note = _without_zone(one.column(ts_column), ts_column)
    return _Rows(columns, rest, [] if note is None else [note])


def _ids(one: _File, called: str, id_column: str | None, kinds: Mapping[str, str]) -> pa.Array | pa.ChunkedArray:
    rows = text_array([f"{called}:{row}" for row in range(1, len(one.table) + 1)])
    if id_column is None:
        return rows
    ids = one.table[id_column]
    if id_column in one.written and id_column not in kinds:
        ids = _whole_numbers(ids)
    return ids if ids.null_count == 0 else pc.coalesce(ids.cast(pa.string()), rows)


def _whole_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The strings as whole numbers if each is written as its number prints, else as they are."""
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
    return numbers if numbers.cast(pa.string()).equals(column) else column


def _single(file: Path, column: pa.ChunkedArray, name: str) -> None:
    """Refuse lists, objects and bytes, which cannot be an id, a type or a time."""
    of = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_bytes = pa.types.is_binary(of) or pa.types.is_large_binary(of) or pa.types.is_fixed_size_binary(of)
    if pa.types.is_nested(of) or is_bytes:
        kind = "bytes" if is_bytes else "an object" if pa.types.is_struct(of) or pa.types.is_map(of) else "a list"
        if of == pa.struct([]):
            kind = "an object, or a list of things other than numbers,"
        row = max(pc.index(pc.is_valid(column), TRUE).as_py(), 0) + 1
        raise UnfitColumn.no_single(row_place(file, row), name, kind)


def _complete(file: Path, column: pa.ChunkedArray, name: str) -> None:
    if column.null_count:
        row = pc.index(pc.is_null(column), TRUE).as_py() + 1
        raise UnfitColumn.incomplete(row_place(file, row), name, column.null_count)


def _without_zone(column: Column, name: str) -> str | None:
    """A note on the first time that names no zone, if others name one."""
    row = first_without_zone(column.values) if column.is_text else None
    if row is None:
        return None
    return str(UnfitTime.without_zone(row_place(column.file, row + 1), name, column.values[row].as_py()))


def _times(column: Column, name: str, asked: Asked) -> pa.ChunkedArray:
    file, values, kind = column.file, column.values, asked.kinds.get(name, "")
    _complete(file, values, name)
    if kind in ("text", "bool"):
        raise WrongTypeOf.time_expected(name, kind)
    if kind.startswith("date:") and column.is_text:
        if asked.ts_unit is not None:
            raise WrongTypeOf.dates_and_counts(name)
        return dates(file, values, name, kind.removeprefix("date:"))
    numbers = values
    if column.is_text and (kind == "number" or column.written and kind != "time"):
        if kind == "number" or pc.all(pc.match_substring_regex(values, ANY)).as_py():
            numbers = as_asked(name, "number", [column])[0]
    if pa.types.is_integer(numbers.type) or asked.ts_unit is not None and pa.types.is_floating(numbers.type):
        return counted(file, numbers, name, asked.ts_unit)
    if asked.ts_unit is not None:
        raise UnfitColumn.no_count(file, name, _kind(numbers.type))
    if numbers is values and column.is_text:
        try:
            return iso(values)
        except pa.ArrowInvalid:
            raise iso_error(file, values, name) from None
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        zone = getattr(values.type, "tz", None)
        return values.cast(pa.timestamp("us", tz=zone), safe=False).cast(UTC_US)
    raise UnfitColumn.no_times(file, name, _kind(numbers.type))
