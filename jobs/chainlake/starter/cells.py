"""Decides what the cells of a column are: numbers, truth values, or dates and times, judged by all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

_MISSING = ("", "nan", "na", "n/a", "null", "none")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?")
WHOLE = re.compile(r"[+-]?\d+")
_SWITCH = frozenset(("true", "false", "t", "f", "yes", "no", "y", "n"))
#: Forms of dates and times, more usual ones first; the first form that all rows fit is taken.
DATES = ("%Y-%m-%d", "%Y%m%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d")
CLOCKS = ("%H:%M:%S.%f", "%H:%M:%S", "%H:%M")
_FORMS = (*(f"{date}{joint}{clock}" for date in DATES for joint in (" ", "T") for clock in CLOCKS), *DATES)
#: Units of whole numbers that count from 1970 and lie between the years 2000 and 2100, as counts per second.
EPOCHS = {"epoch_s": 1, "epoch_ms": 1_000, "epoch_us": 1_000_000}
_FROM, _TO = 946_684_800, 4_102_444_800


def filled(cells: Sequence[str]) -> list[str]:
    """The cells that are not missing."""
    return [cell for cell in cells if cell.lower() not in _MISSING]


def all_fit(cells: Sequence[str], fits: Callable[[str], object]) -> bool:
    """Whether there are cells that are not missing, and all of these fit."""
    present = filled(cells)
    return bool(present) and all(fits(cell) for cell in present)


def has_decimal_comma(columns: dict[str, list[str]]) -> bool:
    """Whether numbers have a decimal comma: some column holds only numbers, and one of them has a comma."""
    return any(
        all_fit(cells, _DECIMAL_COMMA.fullmatch) and any("," in cell for cell in cells) for cells in columns.values()
    )


def type_of(cells: Sequence[str], decimal: str) -> str:
    """The type of a column: ``double``, ``boolean`` or ``string``."""
    present = filled(cells)
    number = _NUMBER if decimal == "." else _DECIMAL_COMMA
    # Codes such as 007 would lose their zeros as numbers.
    coded = any(re.fullmatch(r"0\d+", cell) for cell in present)
    if all_fit(present, number.fullmatch) and not coded:
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
    """Whether a text is a time in this form."""
    if form == "%Y%m%d" and len(text) != 8:
        return False
    try:
        datetime.strptime(text, form)
    except ValueError:
        return False
    return True
