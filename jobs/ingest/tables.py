"""A file's lines as columns of text: header, CSV rows, wide rows, JSON maps. What does not fit is set aside."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from jobs.ingest.formats import Format
from jobs.ingest.lines import KEPT, BadLine, Block, sniff

#: Bytes of a file that are looked at to choose its format.
HEAD = 1 << 18


@dataclass(frozen=True)
class Texts:
    """Rows as text columns.

    Args:
        columns: by name.
        numbers: line of each row (int64); ``entries``: position within the line (int64).
        lines: the lines, ``None`` where one line holds many rows; ``rows_of_lines``: each row's position in them.
        bad: lines taken out.
    """

    columns: dict[str, pa.Array]
    numbers: np.ndarray
    entries: np.ndarray
    lines: list[bytes] | None
    rows_of_lines: np.ndarray
    bad: list[BadLine]

    def raw_text(self, row: int) -> str:
        """The text that ``row`` came as, cut."""
        if self.lines is None:
            time, value = self.columns["time"][row].as_py(), self.columns["value"][row].as_py()
            return f"{json.dumps(time)}: {json.dumps(value)}"[:KEPT]
        return self.lines[int(self.rows_of_lines[row])][: 4 * KEPT].decode("utf-8", errors="replace")[:KEPT]


def header_of(head: bytes, form: Format) -> list[str] | None:
    """The column names in the header line of a file that begins with ``head``; ``None`` if there is no such line."""
    encoding, bom = sniff(head[:4], form.encoding)
    text = head[bom:].decode(encoding, errors="replace")
    lines = text.split("\n", form.skip_lines + 1)
    if len(lines) <= form.skip_lines or not lines[form.skip_lines].strip():
        return None
    return split_line(lines[form.skip_lines].rstrip("\r"), form)


def split_line(line: str, form: Format) -> list[str]:
    """The cells of one line, without surrounding white space."""
    text = io.StringIO(line)
    if form.quote is None:
        reader = csv.reader(text, delimiter=form.delimiter, quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(text, delimiter=form.delimiter, quotechar=form.quote)
    try:
        return [cell.strip() for cell in next(reader, [])]
    except csv.Error:
        return []


def choose_format(formats: tuple[Format, ...], path: str, head: bytes) -> tuple[Format | None, list[str], str]:
    """``(format, column names, why not)``: the first format whose glob and header fit the file.

    Of formats that name the path and yet do not fit, each says why.
    """
    why: list[str] = []
    for form in formats:
        if not form.fits_path(path):
            continue
        if form.kind == "json_map":
            return form, ["time", "value"], ""
        header = list(form.columns) if form.columns is not None else header_of(head, form)
        if header is None:
            why.append("empty")
            continue
        problems = form.misfits(header)
        if not problems:
            return form, header, ""
        why.append(f"{form.name}: {'; '.join(problems)}")
    return None, [], "; ".join(dict.fromkeys(why or ["no format's glob fits the path"]))[:KEPT]


def read_block(block: Block, form: Format, header: list[str], key: str) -> Texts:
    """The rows of a block.

    Args:
        key: name of the key column, which wide rows fill by column name.
    """
    if form.kind == "json_map":
        return _json_rows(block)
    texts = _csv_rows(block, form, header)
    return _unpivot(texts, form, key) if form.unpivot else texts


def _csv_rows(block: Block, form: Format, header: list[str]) -> Texts:
    bad = list(block.bad)
    keep = [at for at, line in enumerate(block.lines) if line and not line.isspace()]
    quote = form.quote.encode() if form.quote else None
    if quote is not None and quote in b"\n".join(block.lines):
        # A quote that is never closed would swallow the lines after it: such a line is read by itself.
        keep = [at for at in keep if block.lines[at].count(quote) % 2 == 0 or _alone(block.lines[at], form, header)]
        kept = set(keep)
        for at, line in enumerate(block.lines):
            if at not in kept and line.count(quote) % 2:
                bad.append(BadLine(int(block.numbers[at]), "quotes", _cut(line)))
    lines = [block.lines[at] for at in keep]
    numbers = block.numbers[keep] if keep else np.empty(0, np.int64)
    if not lines:
        empty = {name: pa.array([], pa.string()) for name in header}
        return Texts(empty, numbers, numbers, [], numbers, bad)
    table, wrong = _read_csv(lines, form, header)
    if wrong and form.fill_short_rows:
        filled = {at: _filled(lines[at], form, len(header)) for at in wrong}
        table, wrong = _read_csv([filled.get(at, line) for at, line in enumerate(lines)], form, header)
    if wrong:
        taken = set(wrong)
        bad.extend(BadLine(int(numbers[at]), "columns", _cut(lines[at])) for at in wrong)
        rows = np.array([at for at in range(len(lines)) if at not in taken], np.int64)
    else:
        rows = np.arange(len(lines), dtype=np.int64)
    columns: dict[str, pa.Array] = {}
    for at, name in enumerate(header):
        columns.setdefault(name, table.column(at))
    return Texts(columns, numbers[rows], np.zeros(len(rows), np.int64), lines, rows, bad)


def _filled(line: bytes, form: Format, cells: int) -> bytes:
    """The line with blank cells at its end, so that it has as many as the header; unchanged if it has more."""
    given = split_line(line.decode("utf-8", errors="replace"), form)
    return line + form.delimiter.encode() * (cells - len(given))


def _alone(line: bytes, form: Format, header: list[str]) -> bool:
    """Whether a line with an odd number of quotes is a whole row all the same (a stray quote inside a text)."""
    assert form.quote is not None
    return not any(cell.startswith(form.quote) for cell in line.decode().split(form.delimiter))


def _read_csv(lines: list[bytes], form: Format, header: list[str]) -> tuple[pa.Table, list[int]]:
    """All lines as a table of text columns, and the positions of the lines with another number of cells."""
    wrong: list[int] = []

    def set_aside(row: pa.csv.InvalidRow) -> str:
        wrong.append(row.number - 1)
        return "skip"

    names = [str(at) for at in range(len(header))]
    data = b"\n".join(lines) + b"\n"
    table = pa.csv.read_csv(
        pa.BufferReader(data),
        read_options=pa.csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
        parse_options=pa.csv.ParseOptions(
            delimiter=form.delimiter,
            quote_char=form.quote or False,
            ignore_empty_lines=False,
            invalid_row_handler=set_aside,
        ),
        convert_options=pa.csv.ConvertOptions(
            column_types={name: pa.string() for name in names}, strings_can_be_null=False, check_utf8=False
        ),
    )
    return table.combine_chunks(), wrong


def _unpivot(texts: Texts, form: Format, key: str) -> Texts:
    """Wide rows to long ones: one per column that holds something; a blank cell was not delivered."""
    pieces: list[np.ndarray] = []
    values: list[pa.Array] = []
    keys: list[str] = []
    entries: list[np.ndarray] = []
    for at, (column, name) in enumerate(form.unpivot):
        if column not in texts.columns:
            continue
        cells = pc.utf8_trim_whitespace(_flat(texts.columns[column]))
        held = np.flatnonzero(pc.not_equal(cells, "").to_numpy(zero_copy_only=False))
        pieces.append(held)
        values.append(cells.take(pa.array(held)))
        keys.extend([name] * len(held))
        entries.append(np.full(len(held), at, np.int64))
    rows = np.concatenate(pieces) if pieces else np.empty(0, np.int64)
    index = pa.array(rows)
    wide = {column for column, _ in form.unpivot}
    columns = {name: _flat(c).take(index) for name, c in texts.columns.items() if name not in wide}
    columns["value"] = pa.concat_arrays(values) if values else pa.array([], pa.string())
    columns[key] = pa.array(keys, pa.string())
    entry = np.concatenate(entries) if entries else np.empty(0, np.int64)
    return Texts(columns, texts.numbers[rows], entry, texts.lines, texts.rows_of_lines[rows], texts.bad)


def _json_rows(block: Block) -> Texts:
    bad = list(block.bad)
    times: list[str] = []
    values: list[str | None] = []
    numbers: list[int] = []
    entries: list[int] = []
    for line, number in zip(block.lines, block.numbers, strict=True):
        if not line.strip():
            continue
        pairs = _pairs(line)
        if pairs is None:
            bad.append(BadLine(int(number), "bad_json", _cut(line)))
            continue
        for at, (time, value) in enumerate(pairs):
            times.append(time)
            values.append(value if isinstance(value, str) or value is None else json.dumps(value))
            numbers.append(int(number))
            entries.append(at)
    columns = {"time": pa.array(times, pa.string()), "value": pa.array(values, pa.string())}
    none = np.empty(0, np.int64)
    return Texts(columns, np.array(numbers, np.int64), np.array(entries, np.int64), None, none, bad)


def _pairs(line: bytes) -> list[tuple[str, Any]] | None:
    try:
        # Pairs, not a dict: a time given twice is two rows, and it is for the conflict rule to choose.
        found = json.loads(line, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    return list(found) if isinstance(found, _Pairs) else None


class _Pairs(list):
    """The pairs of a JSON object, told apart from a JSON list."""


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    flat = column.combine_chunks()
    return flat if isinstance(flat, pa.Array) else pa.concat_arrays(flat.chunks)


def flat_columns(texts: Texts) -> Iterator[tuple[str, pa.Array]]:
    """Columns as plain arrays."""
    for name, column in texts.columns.items():
        yield name, _flat(column)


def _cut(line: bytes) -> str:
    return line[: 4 * KEPT].decode("utf-8", errors="replace")[:KEPT]
