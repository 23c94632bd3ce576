"""Prints rows as a table, vertically, as CSV or as JSON, for ``sql``, ``changes``, ``match``, ``try`` and others."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TextIO
from zoneinfo import ZoneInfo

from chainlake.cli.errors import Unprintable
from chainlake.terminal import for_programs, json_visible, one_line, table_line, widths_of, without_noise
from chainlake.words import counted

#: How many rows decide the column widths of a table.
_SAMPLE = 1_000


def plain(value: Any) -> Any:
    """A value in a form that JSON can hold; times are in UTC with a Z, without trailing zeros."""
    if isinstance(value, datetime):
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        text = moment.isoformat(timespec="microseconds" if moment.microsecond else "seconds")
        return text + "Z" if value.tzinfo else text
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (date, Decimal)):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _finite(value: Any) -> Any:
    """The value with None for NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cell(value: Any, missing: str) -> str:
    """A value as text: arrays, structs and maps as JSON."""
    simple = plain(value)
    if simple is None:
        return missing
    return json.dumps(simple, ensure_ascii=False) if isinstance(simple, (dict, list)) else str(simple)


def print_table(columns: Sequence[str], rows: Iterator[Sequence[Any]], out: TextIO) -> None:
    """Print aligned columns, then the number of rows; the first rows decide the widths, so any result streams."""
    columns = [one_line(name) for name in columns]
    sample = [[_shown(value) for value in row] for _, row in zip(range(_SAMPLE), rows, strict=False)]
    widths = widths_of([columns, *sample])
    for texts in (columns, ["-" * width for width in widths], *sample):
        out.write(table_line(texts, widths) + "\n")
    count = len(sample)
    for row in rows:
        out.write(table_line([_shown(value) for value in row], widths) + "\n")
        count += 1
    out.write(f"({counted(count, 'row')})\n")


def _shown(value: Any) -> str:
    """A cell for people: on one line, in which nothing affects a terminal, with numbers without noise."""
    return one_line(cell(without_noise(value), "NULL"))


def write_exactly(text: str, out: TextIO) -> None:
    """Write text exactly as it is, unless the output is a terminal.

    Raises:
        Unprintable: the output's encoding lacks a character.
    """
    try:
        for_programs(out).write(text)
    except UnicodeEncodeError as error:
        raise Unprintable.of(error) from None


class _Lines:
    """Changes line ends from CR LF to LF: if csv itself wrote LF, it would leave a CR in a cell unquoted."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, row: str) -> None:
        """Write one row; errors are those of :func:`write_exactly`."""
        write_exactly(row.removesuffix("\r\n") + "\n", self._out)


def print_csv(columns: Sequence[str], rows: Iterator[Sequence[Any]], out: TextIO) -> None:
    """Print a header and one line per row; null is an empty field. Exact, unless the output is a terminal."""
    writer = csv.writer(_Lines(out))
    writer.writerow(columns)
    writer.writerows([cell(value, "") for value in row] for row in rows)


def print_json(columns: Sequence[str], rows: Iterator[Sequence[Any]], out: TextIO) -> None:
    """Print one array of objects, one row per line."""
    out.write("[")
    for number, row in enumerate(rows):
        item = {name: _finite(plain(value)) for name, value in zip(columns, row, strict=True)}
        out.write(("," if number else "") + "\n" + json_visible(json.dumps(item, ensure_ascii=False)))
    out.write("\n]\n")


def print_vertical(columns: Sequence[str], rows: Iterator[Sequence[Any]], out: TextIO) -> None:
    """Print a line per value and a heading per row, for rows too wide for a terminal; then the number of rows."""
    names = [one_line(name) for name in columns]
    width = max(map(len, names), default=0)
    count = 0
    for count, row in enumerate(rows, 1):
        out.write(f"-- row {count} --\n")
        out.writelines(f"{name.ljust(width)}  {_shown(value)}\n" for name, value in zip(names, row, strict=True))
    out.write(f"({counted(count, 'row')})\n")


def flat(
    columns: Sequence[str], fields: Sequence[Sequence[str] | None], rows: Iterator[Sequence[Any]]
) -> tuple[list[str], Iterator[list[Any]]]:
    """Split structs into their own columns, such as ``down.ts``.

    Args:
        columns: names of the columns.
        fields: for each column the fields of its struct, or ``None`` if it is not a struct.
        rows: rows with structs as mappings.

    Returns:
        the new names and rows.
    """
    named = [
        name if field is None else f"{name}.{field}"
        for name, inner in zip(columns, fields, strict=True)
        for field in (inner if inner is not None else (None,))
    ]
    return named, (
        [
            value if field is None else None if value is None else value.get(field)
            for value, inner in zip(row, fields, strict=True)
            for field in (inner if inner is not None else (None,))
        ]
        for row in rows
    )


def local_text(value: Any, zone: ZoneInfo) -> Any:
    """A UTC time by the clock of a zone, with its offset; None for anything else."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    moment = value.astimezone(zone)
    return moment.isoformat(sep=" ", timespec="microseconds" if moment.microsecond else "seconds")


def by_clock(value: Any, zone: ZoneInfo) -> Any:
    """A value whose times are text by the clock of a zone, ``2025-03-01 09:30:00``, as spreadsheets take them."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        moment = value.astimezone(zone).replace(tzinfo=None)
        return moment.isoformat(sep=" ", timespec="microseconds" if moment.microsecond else "seconds")
    if isinstance(value, dict):
        return {key: by_clock(item, zone) for key, item in value.items()}
    return [by_clock(item, zone) for item in value] if isinstance(value, list | tuple) else value


#: How rows can be printed: name of the format → its printer.
FORMATS: dict[str, Callable[[Sequence[str], Iterator[Sequence[Any]], TextIO], None]] = {
    "table": print_table,
    "csv": print_csv,
    "json": print_json,
    "vertical": print_vertical,
}
