"""The kind of values that a column of a file holds: one rule for all its cells, or what the caller says about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.plain_files.errors import INEXACT, VANISHED, CellProblem, UnfitCell, UnfitColumn, WrongTypeOf
from chainlake.cep.plain_files.event_times import dates, iso, iso_error
from chainlake.cep.plain_files.places import row_place
from chainlake.cep.values.arrow import FALSE, NO_TEXT, TRUE, int64_scalar, text_array, vanished

#: A number as it is written in a cell; 007 and 1E3 do not count, since codes are written like that.
PLAIN = r"^\s*[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)\s*$"
#: A number as JSON writes it, or as a cell may in a column that the caller says holds numbers.
ANY = r"^\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*$"
_WHOLE = r"^-?\d+$"
#: Whole numbers beyond these are not exact as doubles.
_LOWEST, _HIGHEST = int64_scalar(-(2**53)), int64_scalar(2**53)
#: A whole number of at most this many characters fits into 64 bits.
_SURE_DIGITS = int64_scalar(18)
#: What a column can be said to hold.
KINDS = "number, text, bool, time or date:FORM"


@dataclass(frozen=True)
class Column:
    """A column of one file.

    Args:
        file: the file.
        values: its values; strings as they are written, unless ``written`` is empty.
        written: ``cell`` (of a delimited file), ``number`` (of JSON), or empty if the values already have their type.
    """

    file: Path
    values: pa.ChunkedArray
    written: str

    @property
    def is_text(self) -> bool:
        """Whether the values are strings."""
        return bool(pa.types.is_string(self.values.type) or pa.types.is_large_string(self.values.type))


@dataclass(frozen=True)
class Cell:
    """A cell that makes its column a column of strings.

    Args:
        file: its file.
        row: its row; the first event is row 1.
        text: what is written there.
        what: what is wrong with it.
    """

    file: Path
    row: int
    text: str
    what: str = "is not a number"

    def said(self, name: str) -> CellProblem:
        """What an error says about it, as a cell of the column ``name``."""
        return CellProblem(self.text, self.what, row_place(self.file, self.row), name)


def typed(name: str, columns: Sequence[Column]) -> tuple[list[pa.ChunkedArray], Cell | None]:
    """The columns of one name with their types, and the first cell that makes them strings, if one does.

    Cells are numbers if all of them, in all files together, are numbers that can be kept exactly; else they are
    strings.

    Raises:
        InputError: a number in JSON cannot be kept exactly.
    """
    found = [column.values for column in columns]
    cells = [at for at, column in enumerate(columns) if column.written == "cell"]
    numbers = [at for at, column in enumerate(columns) if column.written == "number"]
    wrong = _first([columns[at] for at in cells], PLAIN)
    if wrong is not None:
        cells = []
    else:
        parsed = _numbers([columns[at] for at in cells + numbers])
        if isinstance(parsed, Cell):
            of_json = [columns[at].file for at in numbers]
            if parsed.file in of_json:
                raise UnfitCell.too_large(parsed.said(name))
            wrong, cells = parsed, []
        else:
            for at, values in zip(cells + numbers, parsed, strict=True):
                found[at] = values if values.null_count < len(values) else pa.chunked_array([pa.nulls(len(values))])
    if wrong is not None and numbers:
        parsed = _numbers([columns[at] for at in numbers])
        if isinstance(parsed, Cell):
            raise UnfitCell.too_large(parsed.said(name))
        for at, values in zip(numbers, parsed, strict=True):
            found[at] = values
    if wrong is None:
        of_texts = (column for column in columns if column.is_text and not column.written)
        wrong = next((cell for column in of_texts if (cell := _filled(column)) is not None), None)
    return found, wrong


def as_asked(name: str, kind: str, columns: Sequence[Column]) -> list[pa.ChunkedArray]:
    """The columns of one name, as the kind that the caller says they hold.

    Args:
        name: of the columns.
        kind: one of ``KINDS``.
        columns: one of each file that has it.

    Raises:
        InputError: with the place of the first cell that is something else.
    """
    texts = [column for column in columns if column.is_text]
    if kind == "number":
        parsed = _numbers(texts)
        if isinstance(parsed, Cell):
            raise UnfitCell.no_number(parsed.said(name))
        found = iter(parsed)
    else:
        found = iter([_READERS[kind.partition(":")[0]](name, kind, column) for column in texts])
    return [next(found) if column.is_text else _kept(name, kind, column) for column in columns]


def asked_kinds(options: Sequence[str]) -> dict[str, str]:
    """Column name to kind, from ``COLUMN=KIND``.

    Raises:
        UsageError: an option that is not of this form.
    """
    found: dict[str, str] = {}
    for option in options:
        name, _, kind = option.rpartition("=")
        if kind.startswith("date:") and "=" in kind:
            raise WrongTypeOf.equals_sign(kind)
        kind = kind if kind.startswith("date:") else kind.lower()
        if not name or kind not in ("number", "text", "bool", "time") and not kind.startswith("date:"):
            raise WrongTypeOf.unclear(option, KINDS)
        if found.setdefault(name, kind) != kind:
            raise WrongTypeOf.two_kinds(name, found[name], kind)
    return found


def spelled_alike(columns: Sequence[Column]) -> tuple[str, str] | None:
    """Two cells that write one number differently, if there are any; strings that are not numbers are ignored."""
    distinct = pc.unique(pa.chunked_array([chunk for column in columns for chunk in column.values.chunks], pa.string()))
    distinct = distinct.filter(pc.fill_null(pc.match_substring_regex(distinct, PLAIN), FALSE))
    parsed = _numbers([Column(Path(), pa.chunked_array([distinct]), "cell")])
    if isinstance(parsed, Cell) or len(pc.unique(parsed[0])) == len(distinct):
        return None
    first: dict[float, str] = {}
    both = zip(parsed[0].to_pylist(), distinct.to_pylist(), strict=True)
    pairs = ((first.setdefault(number, text), text) for number, text in both)
    return next(pair for pair in pairs if pair[0] != pair[1])


def _first(columns: Sequence[Column], form: str) -> Cell | None:
    """The first text that does not match a regular expression."""
    for column in columns:
        row = pc.index(pc.match_substring_regex(column.values, form), FALSE).as_py()
        if row >= 0:
            return _cell(column, row)
    return None


def _filled(column: Column) -> Cell | None:
    """The first cell that is not null."""
    row = pc.index(pc.is_valid(column.values), TRUE).as_py()
    return None if row < 0 else _cell(column, row, "is text")


def _cell(column: Column, row: int, what: str = "is not a number") -> Cell:
    return Cell(column.file, row + 1, column.values[row].as_py(), what)


def _numbers(columns: Sequence[Column]) -> list[pa.ChunkedArray] | Cell:
    """Strings as numbers, whole ones if all are; or the first one that is not a number or cannot be kept exactly."""
    wrong = _first(columns, ANY)
    if wrong is not None:
        return wrong
    plain = [pc.replace_substring_regex(one.values, r"^\s*\+?(.*?)\s*$", r"\1") for one in columns]
    whole = [pc.match_substring_regex(texts, _WHOLE) for texts in plain]
    ints = []
    for column, texts, are in zip(columns, plain, whole, strict=True):
        long = pc.and_(are, pc.greater(pc.binary_length(texts), _SURE_DIGITS))
        for row in _rows(long):
            text = texts[row].as_py()
            if len(text) > 400 or not -(2**63) <= int(text) < 2**63:
                return _cell(column, row, INEXACT)
        ints.append(pc.if_else(are, texts, NO_TEXT).cast(pa.int64()))
    if all(one.null_count == texts.null_count for one, texts in zip(ints, plain, strict=True)):
        return ints
    floats = []
    for column, texts, one in zip(columns, plain, ints, strict=True):
        values = texts.cast(pa.float64())
        inexact = pc.or_(pc.less(one, _LOWEST), pc.greater(one, _HIGHEST))
        for row in _rows(pc.or_kleene(inexact, pc.is_inf(values))):
            return _cell(column, row, INEXACT)
        for row in vanished(texts, values).tolist():
            return _cell(column, row, VANISHED)
        floats.append(values)
    return floats


def _rows(where: pa.ChunkedArray) -> list[int]:
    """The rows that are true."""
    found: list[int] = pc.indices_nonzero(pc.fill_null(where, FALSE)).to_pylist()
    return found


def _text(name: str, kind: str, column: Column) -> pa.ChunkedArray:
    return column.values


def _bool(name: str, kind: str, column: Column) -> pa.ChunkedArray:
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(column.values))
    wrong = _first([Column(column.file, lower, "")], "^(?:true|false)$")
    if wrong is not None:
        raise UnfitCell.of(_cell(column, wrong.row - 1, "is neither true nor false").said(name))
    return pc.equal(lower, text_array(["true"])[0])


def _time(name: str, kind: str, column: Column) -> pa.ChunkedArray:
    try:
        return iso(column.values)
    except pa.ArrowInvalid:
        raise iso_error(column.file, column.values, name) from None


def _date(name: str, kind: str, column: Column) -> pa.ChunkedArray:
    return dates(column.file, column.values, name, kind.removeprefix("date:"))


_READERS: dict[str, Callable[[str, str, Column], pa.ChunkedArray]] = {
    "text": _text,
    "bool": _bool,
    "time": _time,
    "date": _date,
}


def _kept(name: str, kind: str, column: Column) -> pa.ChunkedArray:
    """Values that already have a type, which must be the one asked for."""
    of = column.values.type
    is_number = pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_decimal(of)
    if kind == "text" and pa.types.is_integer(of):
        return column.values.cast(pa.string())
    if (
        pa.types.is_null(of)
        or kind == "number"
        and is_number
        or kind == "bool"
        and pa.types.is_boolean(of)
        or kind == "time"
        and (pa.types.is_timestamp(of) or pa.types.is_date(of))
    ):
        return column.values
    raise UnfitColumn.unreadable(column.file, name, str(of), kind)
