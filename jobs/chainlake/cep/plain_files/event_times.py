"""The time of each event of a file: strings in ISO 8601, dates of a stated form, timestamps, or counts since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.columns import whole_us
from chainlake.cep.plain_files.errors import UnfitTime, WrongTypeOf
from chainlake.cep.plain_files.places import row_place
from chainlake.cep.values.arrow import FALSE, NO_TEXT, TRUE, int64_array
from chainlake.days import us_of
from chainlake.definitions.formats.time_formats import contradicted, digits_of, directives, problem_of, tells_numbers

UTC_US = pa.timestamp("us", tz="UTC")
UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
#: Seconds at the beginning of 1900 and of 2200: a number that is not between them counts something else.
_FIRST_S, _END_S = -2_208_988_800, 7_258_118_400
#: Digits of a second after the sixth; they are cut off, as everywhere (docs/sources.md).
_FINER = r"(\.\d{6})\d+"
_ZONED = r":.*([Zz]|[+-]\d\d(:?\d\d)?)$"
#: The digits of a calendar date, from its year to its day, hour, minute, second or millisecond.
_CALENDAR = (
    r"^(?:19|20|21)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
    r"(?:(?:[01]\d|2[0-3])(?:[0-5]\d(?:[0-5]\d(?:\d{3})?)?)?)?$"
)
_FORMS = {8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S", 17: "%Y%m%d%H%M%S%f"}


def counted(file: Path, numbers: pa.ChunkedArray, name: str, unit: str | None) -> pa.ChunkedArray:
    """Numbers that count ``unit`` since 1970 UTC as timestamps; if no unit is named, seconds as they are.

    A number that reads as a calendar date (20240301) is refused if no unit is named; if all numbers do,
    they are refused also if a unit other than seconds is named.

    Args:
        file: for errors.
        numbers: whole numbers, or doubles if a unit is named.
        name: of the column.
        unit: a key of ``UNITS``, or None.

    Raises:
        InputError: with file, line and column: a calendar date, or a time outside the years 1900 to 2199.
    """
    if pa.types.is_integer(numbers.type) and unit != "s":
        calendar = pc.match_substring_regex(numbers.cast(pa.string()), _CALENDAR)
        if pc.all(calendar).as_py() if unit is not None else pc.any(calendar).as_py():
            row = pc.index(calendar, TRUE).as_py()
            value = numbers[row].as_py()
            form, seconds = _FORMS[len(str(value))], unit is None and value < _END_S
            raise UnfitTime.calendar(row_place(file, row + 1), name, value, form, unit or "seconds", seconds=seconds)
    scale = UNITS[unit or "s"]
    low, high = (value.as_py() for value in pc.min_max(numbers).values())
    if not _FIRST_S * scale <= low <= high < _END_S * scale:
        wrong = pc.or_(pc.less(numbers, _FIRST_S * scale), pc.greater_equal(numbers, _END_S * scale))
        row = pc.index(wrong, TRUE).as_py()
        value = numbers[row].as_py()
        fits = [word for word, of in UNITS.items() if 10**8 * of <= value < _END_S * of]
        raise UnfitTime.outside(row_place(file, row + 1), name, value, unit or "s", fits)
    if unit is None:
        return numbers.cast(pa.int64())
    if pa.types.is_floating(numbers.type):
        return pc.round(pc.multiply(numbers, 1_000_000 / scale)).cast(pa.int64()).cast(pa.timestamp("us")).cast(UTC_US)
    ticks = int64_array(whole_us(numbers.cast(pa.int64()).cast(pa.timestamp(unit))))
    return pa.chunked_array([ticks.cast(pa.timestamp("us")).cast(UTC_US)])


def iso(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Strings in ISO 8601 as timestamps, in UTC if they name no zone.

    Raises:
        pa.ArrowInvalid: one of them is not ISO 8601; ``iso_error`` says which.
    """
    texts = pc.replace_substring_regex(texts, _FINER, r"\1")
    # Arrow takes strings with an offset or strings without one, but not both in a column.
    zoned = pc.match_substring_regex(texts, _ZONED)
    local = pc.cast(pc.if_else(zoned, NO_TEXT, texts), pa.timestamp("us")).cast(UTC_US)
    return pc.coalesce(pc.cast(pc.if_else(zoned, texts, NO_TEXT), UTC_US), local)


def iso_error(file: Path, texts: pa.ChunkedArray, name: str) -> UnfitTime:
    """An error at the first text that ``iso`` does not accept."""
    low, high = 0, len(texts)
    # The first half that fails holds the first text that fails.
    while high - low > 1:
        middle = (low + high) // 2
        try:
            iso(texts.slice(low, middle - low))
            low = middle
        except pa.ArrowInvalid:
            high = middle
    text = texts[low].as_py()
    number = re.match(r"\s*[+-]?[\d.]+\s*\Z", text)
    others = pc.any(pc.match_substring_regex(texts, r"^\s*\d{4}-")).as_py()
    kind = UnfitTime.mixed if number and others else UnfitTime.no_time
    return kind(row_place(file, low + 1), name, text)


def first_without_zone(texts: pa.ChunkedArray) -> int | None:
    """The row of the first ISO text without a zone where others name one, else None."""
    zoned = pc.match_substring_regex(texts, _ZONED)
    if not pc.any(zoned).as_py() or pc.all(zoned).as_py():
        return None
    row: int = pc.index(zoned, FALSE).as_py()
    return row


def check_form(form: str) -> None:
    """Refuse a form by which no date can be read.

    Raises:
        UsageError: the form has no year, or does not give a time.
    """
    if not {"Y", "y", "G"} & set(directives(form)):
        raise WrongTypeOf.no_year(form)
    problem = problem_of(form)
    if problem is not None:
        raise WrongTypeOf.no_form(form, problem.what, problem.hint)


def dates(file: Path, texts: pa.ChunkedArray, name: str, form: str) -> pa.ChunkedArray:
    """Strings of a stated form as timestamps, in UTC if the form has no zone.

    Raises:
        InputError: with the place of the first that has another form, or a weekday that its date does not have.
    """
    known: dict[str | None, int] = {None: 0}
    ticks = np.zeros(len(texts), np.int64)
    for row, text in enumerate(texts.to_pylist()):
        if text not in known:
            found = _date(text.strip(), form)
            wrong = None if found is None else contradicted(text.strip(), form, found)
            if found is not None and wrong is not None:
                raise UnfitTime.contradicts(row_place(file, row + 1), name, text, wrong, found)
            if found is None or (digits_of(form) is not None and not tells_numbers(text.strip(), form, found)):
                raise UnfitTime.other_form(row_place(file, row + 1), name, text, form)
            known[text] = us_of(found.replace(tzinfo=found.tzinfo or UTC))
        ticks[row] = known[text]
    values = pa.chunked_array([int64_array(ticks).cast(pa.timestamp("us")).cast(UTC_US)])
    return pc.if_else(pc.is_valid(texts), values, pa.nulls(1, UTC_US)[0])


def _date(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None
