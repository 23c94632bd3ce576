"""A file's lines as columns of text: CSV rows, wide rows, JSON maps. Lines that do not fit are set aside."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from chainlake.definitions.formats.format import Format
from chainlake.ingest.rows.lines import KEPT, BadLine, Block, ahead
from chainlake.schemas.quarantine import RowProblem
from chainlake.words import counted

#: The lines that take longer to parse than it takes to start a thread.
_WORTH_A_THREAD = 1_000


@dataclass(frozen=True)
class Texts:
    """Rows as text columns.

    Args:
        columns: text columns, by name.
        numbers: line number of each row (int64).
        entries: position of each row within its line (int64).
        lines: the lines; ``None`` if one line holds many rows.
        rows_of_lines: each row's position in ``lines``.
        bad: lines taken out.
    """

    columns: dict[str, pa.Array]
    numbers: np.ndarray
    entries: np.ndarray
    lines: list[bytes] | None
    rows_of_lines: np.ndarray
    bad: list[BadLine]

    def raw_text(self, row: int) -> str:
        """The original text of ``row``, truncated."""
        if self.lines is None:
            time, value = self.columns["time"][row].as_py(), self.columns["value"][row].as_py()
            return f"{json.dumps(time)}: {json.dumps(value)}"[:KEPT]
        return self.lines[int(self.rows_of_lines[row])][: 4 * KEPT].decode("utf-8", errors="replace")[:KEPT]


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


@dataclass(frozen=True)
class TextBlock:
    """A block with its rows.

    Args:
        block: the lines.
        texts: the rows, if they have been read.
    """

    block: Block
    texts: Texts | None = None

    def rows(self, form: Format, header: list[str], key: str) -> Texts:
        """The rows; see `read_block`."""
        return self.texts if self.texts is not None else read_block(self.block, form, header, key)


def text_blocks(found: Iterator[Block], form: Format, header: list[str], key: str) -> Generator[TextBlock, None, None]:
    """The rows of blocks, each read in a thread while the one before it is worked on; see `read_block`.

    What making the blocks raises, this does.
    """

    def read() -> Iterator[TextBlock]:
        for block in found:
            texts = None
            if block.lines:
                # What fails here fails again where the lines at fault are looked for.
                with suppress(Exception):
                    texts = read_block(Block(block.lines, block.numbers, []), form, header, key)
            yield TextBlock(block, texts)

    return ahead(read(), lambda one: len(one.block.lines) >= _WORTH_A_THREAD)


def read_block(block: Block, form: Format, header: list[str], key: str) -> Texts:
    """The rows of a block.

    Args:
        key: name of the key column, which wide rows fill by column name.
    """
    return READERS[form.kind](block, form, header, key)


def _rows_of_cells(block: Block, form: Format, header: list[str], key: str) -> Texts:
    texts = _csv_rows(block, form, header)
    return _unpivot(texts, form, key) if form.unpivot else texts


def _csv_rows(block: Block, form: Format, header: list[str]) -> Texts:
    bad = list(block.bad)
    lines, numbers = block.lines, block.numbers
    if not all(map(bytes.strip, lines)):
        numbers = numbers[[bool(line.strip()) for line in lines]]
        lines = [line for line in lines if line.strip()]
    found = _read_csv(lines, form, len(header), strict=False)
    if found is None:
        reasons = _broken(lines, form)
        bad.extend(BadLine(int(numbers[at]), why, _cut(lines[at])) for at, why in reasons.items())
        keep = [at for at in range(len(lines)) if at not in reasons]
        lines, numbers = [lines[at] for at in keep], numbers[keep]
        found = _read_csv(lines, form, len(header), strict=True)
    if found is not None and found[1] and form.fill_short_rows:
        missing = {at: len(header) - cells for at, cells in found[1].items()}
        filled = [line + form.delimiter.encode() * missing.get(at, 0) for at, line in enumerate(lines)]
        found = _read_csv(filled, form, len(header), strict=True)
    if found is None:
        raise RowsAreNotLines(len(lines))
    table, wrong = found
    for at, cells in wrong.items():
        why = f"{counted(cells, 'cell')} where the header has {len(header)}"
        bad.append(BadLine(int(numbers[at]), "columns", _cut(lines[at]), value=why))
    rows = np.array([at for at in range(len(lines)) if at not in wrong], np.int64) if wrong else np.arange(len(lines))
    columns: dict[str, pa.Array] = {}
    for at, name in enumerate(header):
        columns.setdefault(name, table.column(at))
    return Texts(columns, numbers[rows], np.zeros(len(rows), np.int64), lines, rows, bad)


class RowsAreNotLines(Exception):
    """The CSV reader found a number of rows other than the number of lines, each of which is one row."""

    def __init__(self, lines: int) -> None:
        super().__init__(f"the CSV reader does not give {lines} rows for {lines} lines")


def _broken(lines: list[bytes], form: Format) -> dict[int, RowProblem]:
    """The positions of lines that are not a complete row, and why; the others can be read together."""
    quote = form.quote.encode() if form.quote else None
    whole, across = (_row_pattern(form, ends) for ends in (b"\r", b""))
    found: dict[int, RowProblem] = {}
    for at, line in enumerate(lines):
        if (b"\r" in line or (quote is not None and quote in line)) and not whole.fullmatch(line):
            found[at] = "carriage_return" if across.fullmatch(line) else "quotes"
    return found


def _row_pattern(form: Format, ends: bytes) -> re.Pattern[bytes]:
    """The pattern of a line whose quotes are closed and that has none of ``ends`` outside them.

    As for the CSV reader, a quote opens a field only at the field's start; elsewhere it is an ordinary character.
    """
    delimiter = re.escape(form.delimiter.encode())
    plain = b"[^" + delimiter + ends + b"]*+"
    field = plain
    if form.quote is not None:
        quote = re.escape(form.quote.encode())
        # Once a quote is open, there is only one way to read what follows, so the pattern never backtracks.
        field = b"(?:%b(?:[^%b]|%b%b)*+%b%b|(?!%b)%b)" % (quote, quote, quote, quote, quote, plain, quote, plain)
    return re.compile(b"(?s)%b(?:%b%b)*+" % (field, delimiter, field))


def _read_csv(lines: list[bytes], form: Format, cells: int, *, strict: bool) -> tuple[pa.Table, dict[int, int]] | None:
    """All lines as a table of text columns, and position → number of cells for lines with another number of cells;
    ``None`` if some row is not one line.

    A line end ends a row unless it is in quotes, so if there are as many rows as lines, each line is one row. But a
    carriage return ends a row too, and so may hide that an open quote has swallowed a line end.

    Args:
        lines: the lines, none of them blank.
        form: the format.
        cells: the number of cells in a row.
        strict: whether carriage returns are known to be only in quotes.
    """
    names = [str(at) for at in range(cells)]
    if not lines:
        return pa.table({name: pa.array([], pa.string()) for name in names}), {}
    wrong: dict[int, int] = {}

    def set_aside(row: pa.csv.InvalidRow) -> str:
        wrong[row.number - 1] = row.actual_columns
        return "skip"

    # The end of the data closes an open quote and ends its row; one more line shows that, as the quote swallows it.
    data = b"\n".join((*lines, form.delimiter.encode() * (cells - 1), b""))
    if not strict and b"\r" in data:
        return None
    try:
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
    except pa.ArrowInvalid:
        # Most often, a quote is open at the end of the block.
        return None
    if len(table) + len(wrong) != len(lines) + 1:
        return None
    return table.slice(0, len(lines) - len(wrong)).combine_chunks(), wrong


def _unpivot(texts: Texts, form: Format, key: str) -> Texts:
    """Turn wide rows into long ones: one row per cell with a value; a blank cell counts as not delivered."""
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


def _json_rows(block: Block, form: Format, header: list[str], key: str) -> Texts:
    bad = list(block.bad)
    times: list[str] = []
    values: list[str | None] = []
    numbers: list[int] = []
    entries: list[int] = []
    for line, number in zip(block.lines, block.numbers.tolist(), strict=True):
        if not line.strip():
            continue
        pairs = _pairs(line)
        if pairs is None:
            bad.append(BadLine(number, "bad_json", _cut(line)))
            continue
        for at, (time, value) in enumerate(pairs):
            why = _no_value(time, value)
            if why:
                bad.append(BadLine(number, why, json.dumps(time)[:KEPT], at))
                continue
            times.append(time)
            values.append(("false", "true")[value] if isinstance(value, bool) else value)
            numbers.append(number)
            entries.append(at)
    columns = {"time": pa.array(times, pa.string()), "value": pa.array(values, pa.string())}
    none = np.empty(0, np.int64)
    return Texts(columns, np.array(numbers, np.int64), np.array(entries, np.int64), None, none, bad)


def _no_value(time: str, value: Any) -> RowProblem | None:
    """The reason against an entry of a JSON object; ``None`` if there is none."""
    if isinstance(value, list):
        return "bad_json"
    for text in (time, value):
        if isinstance(text, str) and not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text):
            return "bad_encoding"
        if isinstance(text, str) and "\0" in text:
            return "nul_byte"
    return None


class _Pairs(list[Any]):
    """The pairs of a JSON object, as distinct from a JSON list."""


# Objects become pairs, not dicts: a time given twice is two rows, between which the conflict rule decides. Numbers stay
# text, so that one with more digits than a double holds is noticed.
_DECODER = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=str, parse_float=str, parse_constant=str)
#: The deepest nesting of brackets in a line; Python's own limit depends on the caller.
_DEEPEST = 50
_JSON_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)


def _pairs(line: bytes) -> list[tuple[str, Any]] | None:
    if _depth(line) > _DEEPEST:
        return None
    try:
        found = _DECODER.decode(line.decode())
    except ValueError:
        return None
    return list(found) if isinstance(found, _Pairs) else None


def _depth(line: bytes) -> int:
    """How deeply brackets are nested; if there are too few to matter, just their number."""
    brackets = line.count(b"{") + line.count(b"[")
    if brackets <= _DEEPEST:
        return brackets
    signs = np.frombuffer(_JSON_TEXT.sub(b"", line), np.uint8)
    steps = np.isin(signs, (0x7B, 0x5B)).astype(np.int64) - np.isin(signs, (0x7D, 0x5D))
    return int(np.cumsum(steps).max(initial=0))


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    flat = column.combine_chunks()
    return flat if isinstance(flat, pa.Array) else pa.concat_arrays(flat.chunks)


def flat_columns(texts: Texts) -> Iterator[tuple[str, pa.Array]]:
    """The columns by name, as plain arrays."""
    for name, column in texts.columns.items():
        yield name, _flat(column)


def _cut(line: bytes) -> str:
    return line[: 4 * KEPT].decode("utf-8", errors="replace")[:KEPT]


#: What reads the lines of each kind of format (``chainlake.definitions.formats.kinds``), from the arguments of
#: `read_block`. A line that does not fit is among the ``bad`` ones, with its number.
READERS: dict[str, Callable[[Block, Format, list[str], str], Texts]] = {
    "csv": _rows_of_cells,
    "json_map": _json_rows,
}
