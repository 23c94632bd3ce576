"""Decides what the cells of a column are: numbers, truth values, or dates and times, judged by all of its cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial

from chainlake.definitions.formats.format import NULLS

_MISSING = ("", "nan", "na", "n/a", "null", "none")
#: What stands for a missing number as well, if all other cells of the column are numbers.
_PLACEHOLDERS = frozenset(("-", "--", "---", ".", "..", "?", "*", "n.a.", "#n/a", "#na", "nil", "missing", "\\n"))
#: Signs that may stand between groups of three digits, by the decimal sign.
_THOUSANDS = {".": (",", "'", " "), ",": (".", "'", " ")}
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?")
WHOLE = re.compile(r"[+-]?\d+")
_SWITCH = frozenset(("true", "false", "t", "f", "yes", "no", "y", "n"))
#: Forms of dates and times, more usual ones first; the first form that all rows fit is taken.
DATES = ("%Y-%m-%d", "%Y%m%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d")
CLOCKS = ("%H:%M:%S.%f", "%H:%M:%S", "%H:%M")
_FORMS = (*(f"{date}{joint}{clock}" for date in DATES for joint in (" ", "T") for clock in CLOCKS), *DATES)
#: Units of whole numbers that count from 1970 and lie between the years 2000 and 2100, as counts per second.
EPOCHS = {"epoch_s": 1, "epoch_ms": 1_000, "epoch_us": 1_000_000}
_FROM, _TO = 946_684_800, 4_102_444_800


@dataclass(frozen=True)
class Writing:
    """How a file writes numbers.

    Args:
        decimal: the sign before a fraction.
        thousands: the sign between groups of three digits; None if there is none.
        nulls: strings that mean no value, besides those that every format knows.
    """

    decimal: str = "."
    thousands: str | None = None
    nulls: tuple[str, ...] = ()

    @cached_property
    def number(self) -> re.Pattern[str]:
        """What a cell with a number fits."""
        sign = None if self.thousands is None else re.escape(self.thousands)
        whole = r"\d+" if sign is None else rf"(\d+|[1-9]\d{{0,2}}({sign}\d{{3}})+)"
        return re.compile(
            rf"[+-]?({whole}(\.\d*)?|\.\d+)([eE][+-]?\d+)?" if self.decimal == "." else rf"[+-]?{whole}(,\d+)?"
        )

    def value(self, cell: str) -> float | None:
        """The number in a cell; None if it holds none."""
        if self.number.fullmatch(cell) is None:
            return None
        return float(cell.replace(self.thousands or "", "").replace(self.decimal, "."))

    def filled(self, cells: Sequence[str]) -> list[str]:
        """The cells that are not missing."""
        return [cell for cell in filled(cells) if cell not in self.nulls]


def filled(cells: Sequence[str]) -> list[str]:
    """The cells that are not missing by a word that is usual for it."""
    return [cell for cell in cells if cell.lower() not in _MISSING]


def all_fit(cells: Sequence[str], fits: Callable[[str], object]) -> bool:
    """Whether there are cells that are not missing, and all of these fit."""
    present = filled(cells)
    return bool(present) and all(fits(cell) for cell in present)


def writing_of(columns: dict[str, list[str]], delimiter: str) -> Writing:
    """How the numbers of a file are written, as all of its columns together tell."""
    cells = [_without_placeholders(column) for column in columns.values()]
    decimal = "," if delimiter != "," and _has_decimal_comma(cells) else "."
    written = (Writing(decimal, sign) for sign in _THOUSANDS[decimal])
    grouped = next((one for one in written if any(_groups(one, column) for column in cells)), Writing(decimal))
    nulls = {mark for column in columns.values() for mark in _nulls(column, grouped)}
    return Writing(decimal, grouped.thousands, tuple(sorted(nulls)))


def _without_placeholders(cells: Iterable[str]) -> list[str]:
    return [cell for cell in cells if cell.lower() not in _PLACEHOLDERS]


def _has_decimal_comma(columns: Sequence[Sequence[str]]) -> bool:
    """Whether numbers have a decimal comma: some column holds only such, and no other proves a decimal point."""
    pointed = Writing()
    numbers = [cells for cells in columns if all_fit(cells, pointed.number.fullmatch)]
    # In 1.250 the point can also be the sign of the thousands.
    if any(not all_fit(cells, lambda cell: "." not in cell or _DECIMAL_COMMA.fullmatch(cell)) for cells in numbers):
        return False
    return any(all_fit(cells, _DECIMAL_COMMA.fullmatch) and any("," in cell for cell in cells) for cells in columns)


def _groups(writing: Writing, cells: Sequence[str]) -> bool:
    """Whether a column holds only numbers, and the sign between groups of digits occurs in it."""
    assert writing.thousands is not None
    return all_fit(cells, writing.number.fullmatch) and any(writing.thousands in cell for cell in cells)


def _nulls(cells: Sequence[str], writing: Writing) -> set[str]:
    """The strings that mean no value in a column of numbers and that no format knows by itself."""
    rest = _without_placeholders(cells)
    if not all_fit(rest, writing.number.fullmatch):
        return set()
    return {cell for cell in cells if cell not in NULLS and writing.number.fullmatch(cell) is None}


def type_of(cells: Sequence[str], writing: Writing) -> str:
    """The type of a column: ``double``, ``boolean`` or ``string``."""
    present = writing.filled(cells)
    # Codes such as 007 would lose their zeros as numbers.
    coded = any(re.fullmatch(r"0\d+", cell) for cell in present)
    if all_fit(present, writing.number.fullmatch) and not coded:
        return "double"
    return "boolean" if all_fit(present, lambda cell: cell.lower() in _SWITCH) else "string"


def form_of(cells: Sequence[str]) -> str | None:
    """The form in which all cells are times: a ``strptime`` format, ``iso``, or a key of `EPOCHS`; None if none is."""
    for name, unit in EPOCHS.items():
        if all_fit(cells, WHOLE.fullmatch) and all(_FROM * unit <= int(cell) < _TO * unit for cell in cells):
            return name
    if all_fit(cells, lambda cell: "-" in cell[4:5] and ":" in cell and _is_iso(cell)):
        return "iso"
    return next((form for form in _FORMS if all_fit(cells, partial(parses, form=form))), None)


def _is_iso(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def parses(text: str, form: str) -> bool:
    """Whether a string is a time in this form."""
    if form == "%Y%m%d" and len(text) != 8:
        return False
    try:
        datetime.strptime(text, form)
    except ValueError:
        return False
    return True
