"""Text to typed columns, a whole block at once; every function also says which rows it could not read."""

from __future__ import annotations

import decimal
import re
from datetime import datetime
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.values.arrow import vanished
from chainlake.definitions.formats.format import EPOCHS, date_from_path
from chainlake.definitions.formats.mappings import FALSE, LARGEST_LONG, NUMBER, TRUE, Mapping, Sentinel
from chainlake.definitions.formats.time_formats import agreeing, digits_of, redundant, tells_numbers

_ISO = (
    r"^(?P<local>\d{4}-?\d\d-?\d\d(?:[T ]\d\d(?::?\d\d(?::?\d\d(?:[.,]\d+)?)?)?)?)"
    r"\s*(?P<offset>[Zz]|UTC|[+-]\d\d(?::?\d\d)?)?$"
)
_TAIL_OFFSET = r"^(?P<local>.*?)\s*(?P<offset>[Zz]|UTC|[+-]\d\d(?::?\d\d)?)$"
#: Words that pandas takes for the current time; in a file they are not a time.
_PRESENT = ("now", "today")
#: No place on earth has ever been further from UTC.
_FURTHEST_MINUTES = 15 * 60 + 59
#: Decimals of up to this many digits have distinct doubles.
_EXACT_DIGITS = 15
#: The relative error that is tolerated in conversions to whole numbers below ``_FEW``.
_NOISE, _FEW = decimal.Decimal(2) ** -52, 2**40
_US_PER_MINUTE = 60_000_000
#: The day that pandas gives to a string without a date, 1 January 1900.
_CLOCK_DAY_US = -25_567 * 24 * 60 * _US_PER_MINUTE
#: Instants that pandas (nanoseconds in 64 bits) and Spark can both hold.
_FIRST_US, _LAST_US = -9_223_372_036_000_000, 9_223_372_036_000_000
#: The years of the first and the last of these instants.
_FIRST_YEAR, _LAST_YEAR = 1677, 2262


class Cast(NamedTuple):
    """A typed column, and a bool per row: whether its text was not of that type (then its value is null)."""

    values: pa.Array
    bad: np.ndarray


class Wall(NamedTuple):
    """Times as read: microseconds (int64, 0 if unknown), whether each is already in UTC, and which failed.

    ``beyond`` marks times too far away to be stored, ``contradicting`` those whose parts do not fit together, such as a
    date with the wrong weekday.
    """

    micros: np.ndarray
    is_utc: np.ndarray
    bad: np.ndarray
    missing: np.ndarray
    beyond: np.ndarray
    contradicting: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """A flag per row that has a time."""
        return np.asarray(~(self.bad | self.missing | self.beyond | self.contradicting))


def clean(texts: pa.Array, nulls: tuple[str, ...]) -> pa.Array:
    """Strings without surrounding white space; null if they are one of ``nulls``."""
    stripped = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.is_in(stripped, pa.array(nulls, pa.string())), pa.scalar(None, pa.string()), stripped)


def doubles(texts: pa.Array) -> Cast:
    """Strings with a decimal point as float64; nulls stay null.

    An infinite or too large number is bad, and so is one that is not 0 but too small for a double.
    """
    try:
        values = pc.cast(texts, pa.float64())
        wrong = np.zeros(len(texts), bool)
    except pa.ArrowInvalid:
        wrong = ~_bools(pc.match_substring_regex(texts, NUMBER.pattern), True)
        values = pc.cast(pc.if_else(pa.array(wrong), pa.scalar(None, pa.string()), texts), pa.float64())
    wrong |= not_finite(values)
    wrong[vanished(texts, values)] = True
    return Cast(_null_where(values, wrong), wrong)


def plain_numbers(texts: pa.Array, decimal_sign: str, thousands: str | None) -> pa.Array:
    """Numbers as text with a decimal point and without thousands separators; "?" for text that is not written
    correctly.

    A separator must stand before each group of three digits of the whole part, or before none: "1,04" may be meant as
    1.04, so it is neither 104 nor 1.04 here.
    """
    if thousands is not None:
        apart = pc.match_substring(texts, thousands)
        if pc.any(apart).as_py():
            sign = re.escape(thousands)
            in_threes = rf"^[+-]?[1-9]\d{{0,2}}(?:{sign}\d{{3}})+(?:{re.escape(decimal_sign)}\d*)?(?:[eE][+-]?\d+)?$"
            astray = pc.and_(apart, pc.invert(pc.match_substring_regex(texts, in_threes)))
            texts = pc.if_else(astray, pa.scalar("?"), pc.replace_substring(texts, thousands, ""))
    if decimal_sign != ".":
        # A point in a file with decimal commas is not a decimal sign, so such a string is not a number.
        texts = pc.if_else(
            pc.match_substring(texts, "."), pa.scalar("?"), pc.replace_substring(texts, decimal_sign, ".")
        )
    return texts


def not_finite(values: pa.Array) -> np.ndarray:
    """A flag per number that is infinite or NaN."""
    return ~_bools(pc.is_finite(values), True)


def convert(values: pa.Array, scale: float, offset: float, digits: int | None) -> pa.Array:
    """``values * scale + offset``, rounded to ``digits`` decimals if given (half to even).

    A result that is too large is not finite.
    """
    if scale == 1.0 and offset == 0.0 and digits is None:
        return values
    nulls = pc.is_null(values).to_numpy(zero_copy_only=False)
    numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = numbers * scale + offset if offset else numbers * scale
        if digits is not None:
            numbers = np.round(numbers, digits)
    return pa.array(numbers, mask=nulls)


def without_sentinels(values: pa.Array, sentinels: tuple[Sentinel, ...], others: dict[str, pa.Array]) -> pa.Array:
    """``values`` with null in place of sentinels (compared before unit conversion).

    Args:
        others: numeric columns of the row, for sentinels with a condition.
    """
    for sentinel in sentinels:
        mask = _bools(pc.equal(values, sentinel.value), False)
        for name, comparison, number in sentinel.when:
            mask &= _bools(_COMPARE[comparison](others[name], number), False)
        values = _null_where(values, mask)
    return values


_COMPARE = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def longs(texts: pa.Array, rule: Mapping, numbers: pa.Array) -> Cast:
    """Whole numbers of at most 2^53; a fraction, or more, is bad.

    A double near 2^53 may differ from the number in the text, a whole double may come from a string that is not whole,
    and a conversion adds errors of its own. If any of this is possible, the computation uses the text.

    Args:
        texts: numbers with a decimal point.
        rule: their conversion.
        numbers: their doubles after the conversion; null if there is no value.
    """
    nulls = pc.is_null(numbers).to_numpy(zero_copy_only=False)
    given = numbers.fill_null(0.0).to_numpy(zero_copy_only=False)
    wrong = (given != np.floor(given)) | (np.abs(given) > LARGEST_LONG)
    whole = np.where(wrong, 0, given).astype(np.int64)
    unsure = _bools(pc.greater(pc.binary_length(texts), _EXACT_DIGITS), False)
    exponents = pc.match_substring(pc.ascii_lower(texts), "e")
    unsure |= _bools(exponents, False)
    unsure = (unsure | _converts(rule)) & ~nulls & (np.abs(given) <= 2 * LARGEST_LONG)
    if unsure.any():
        at = np.flatnonzero(unsure)
        codes = texts.take(pa.array(at)).dictionary_encode()
        exact = [_whole(text, rule) for text in codes.dictionary.to_pylist()]
        index = codes.indices.to_numpy(zero_copy_only=False)
        wrong[at] = np.array([number is None for number in exact])[index]
        whole[at] = np.array([number or 0 for number in exact], np.int64)[index]
    return Cast(pa.array(whole, mask=nulls | wrong), wrong & ~nulls)


def _converts(rule: Mapping) -> bool:
    return rule.scale != 1.0 or rule.offset != 0.0 or rule.round is not None


def _whole(text: str, rule: Mapping) -> int | None:
    """The whole number that a string gives after its conversion, computed exactly; ``None`` if it gives none."""
    signals = [decimal.InvalidOperation, decimal.Inexact]
    context = decimal.Context(len(text) + 60, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=signals)
    rounding = decimal.Context(len(text) + 60, decimal.ROUND_HALF_EVEN, traps=signals[:1])
    try:
        value = decimal.Decimal(text)
        if rule.scale != 1.0 or rule.offset != 0.0:
            scaled = context.multiply(value, decimal.Decimal(repr(rule.scale)))
            value = context.add(scaled, decimal.Decimal(repr(rule.offset)))
        if rule.round is not None:
            value = value.quantize(decimal.Decimal(1).scaleb(-rule.round), context=rounding)
    except (decimal.InvalidOperation, decimal.Inexact):
        return None
    if abs(value.adjusted()) > _EXACT_DIGITS + 5:
        # Nothing so small is whole except zero, which may have any exponent; what is so large is too large.
        return None if value else 0
    number = int(value.to_integral_value())
    # A scale such as 1/60 is exact to only 53 bits, yet 120 times it must be 2.
    noise = abs(number) * _NOISE if _converts(rule) and abs(number) < _FEW else 0
    return number if abs(value - number) <= noise and abs(number) <= LARGEST_LONG else None


def booleans(texts: pa.Array) -> Cast:
    """Strings true/false, t/f, yes/no, y/n, 1/0, in upper or lower case, as booleans."""
    lower = pc.utf8_lower(texts)
    true = _bools(pc.is_in(lower, pa.array(TRUE)), False)
    false = _bools(pc.is_in(lower, pa.array(FALSE)), False)
    nulls = pc.is_null(texts).to_numpy(zero_copy_only=False)
    wrong = ~(true | false | nulls)
    return Cast(pa.array(true, mask=nulls | wrong), wrong)


def times(texts: pa.Array, form: str, day_us: int | None = None) -> Wall:
    """The times of a block.

    Digits finer than a microsecond are cut off, never rounded, so that no time moves into the next second or day.
    Numbers are read as doubles, which cannot hold every decimal, and so go to the nearest microsecond.

    Args:
        texts: cleaned strings.
        form: ``iso``, a strptime format, or a key of ``EPOCHS``.
        day_us: wall microseconds of the file's date, for times of day, which are bad without one.
    """
    missing = pc.is_null(texts).to_numpy(zero_copy_only=False)
    if form in EPOCHS:
        return _epochs(texts, form, day_us, missing)
    if form == "iso" and (plain := _plain_times(texts, missing)) is not None:
        return plain
    offset_us = np.zeros(len(texts), np.int64)
    has_offset, impossible = np.zeros(len(texts), bool), np.zeros(len(texts), bool)
    if form == "iso" or form.endswith("%z"):
        parts = pc.extract_regex(texts, _ISO if form == "iso" else _TAIL_OFFSET)
        local = pc.struct_field(parts, "local")
        offset_us, has_offset, impossible = _offsets(pc.struct_field(parts, "offset"))
    else:
        local = texts
    # Such a word is not a time: the result must not depend on when the file is read.
    local = pc.if_else(pc.is_in(local, pa.array(_PRESENT)), pa.scalar("?"), local)
    pandas_format = "ISO8601" if form == "iso" else form.removesuffix("%z").rstrip()
    if form == "iso":
        local = pc.replace_substring(local, ",", ".")
    parsed = pd.to_datetime(pd.Series(local.to_pandas()), format=pandas_format, errors="coerce")
    unread = parsed.isna().to_numpy() & ~missing
    beyond = _beyond(local, unread, pandas_format)
    bad = (unread & ~beyond) | (impossible & ~missing)
    if form.endswith("%z"):
        bad |= ~has_offset & ~missing
    beyond &= ~bad
    contradicting = _contradicting(local, parsed, pandas_format) & ~bad
    bad |= (
        _read_otherwise(local, parsed, pandas_format) | _leap_seconds(local, parsed, pandas_format)
    ) & ~contradicting
    micros = parsed.to_numpy().astype("datetime64[us]").astype(np.int64)
    if date_from_path(form):
        bad = bad | (~missing & (day_us is None))
        micros = micros - _CLOCK_DAY_US + (day_us or 0)
    wall = Wall(micros - offset_us, has_offset, bad, missing, beyond, contradicting)
    return wall._replace(micros=np.where(wall.known, wall.micros, 0))


def _plain_times(texts: pa.Array, missing: np.ndarray) -> Wall | None:
    """The times of a block in which each is written as Arrow reads it, without an offset; ``None`` for any other block.

    Arrow reads fewer ways of writing a time, and those in a tenth of the time.
    """
    try:
        micros = pc.cast(texts, pa.timestamp("us")).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    if ((micros < _FIRST_US) | (micros > _LAST_US)).any():
        return None
    none = np.zeros(len(texts), bool)
    return Wall(micros, none, none, missing, none, none)


def _read_otherwise(texts: pa.Array, parsed: pd.Series, form: str) -> np.ndarray:
    """A flag per text that can be read in more than one way or names a day that its year does not have."""
    digits = digits_of(form)
    if digits is None:
        return np.zeros(len(texts), bool)
    short = _bools(pc.less(pc.count_substring_regex(texts, "[0-9]"), digits), False)
    short &= parsed.notna().to_numpy()
    at = np.flatnonzero(short)
    codes = texts.take(pa.array(at)).dictionary_encode()
    index = codes.indices.to_numpy(zero_copy_only=False)
    first = at[np.unique(index, return_index=True)[1]]
    pairs = zip(codes.dictionary.to_pylist(), parsed.iloc[first], strict=True)
    wrong = [not tells_numbers(text, form, one.to_pydatetime(warn=False)) for text, one in pairs]
    short[at] = np.array([*wrong, False])[index]
    return short


def _leap_seconds(texts: pa.Array, parsed: pd.Series, form: str) -> np.ndarray:
    """A flag per text with second 60 or 61, which was read as part of the next minute and perhaps the next day."""
    found = np.zeros(len(texts), bool)
    if "%S" not in form:
        return found
    said = _bools(pc.match_substring_regex(texts, "6[01]"), False) & (parsed.dt.second <= 1).to_numpy()
    at = np.flatnonzero(said)
    some = pd.Series(texts.take(pa.array(at)).to_pandas())
    for second in ("60", "61"):
        found[at] |= pd.to_datetime(some, format=form.replace("%S", second), errors="coerce").notna().to_numpy()
    return found


def _contradicting(texts: pa.Array, parsed: pd.Series, form: str) -> np.ndarray:
    """A flag per text in which a redundant part, such as a weekday, contradicts the date that was read."""
    found = np.zeros(len(texts), bool)
    for letter in redundant(form):
        written = parsed.dt.strftime(f"%{letter}")
        for one, at in written.groupby(written).indices.items():
            some = pd.Series(texts.take(pa.array(at)).to_pandas())
            for agreed in agreeing(form, letter, str(one)):
                some = some[pd.to_datetime(some, format=agreed, errors="coerce").isna()]
            found[at[some.index]] = True
    return found


def _beyond(texts: pa.Array, unread: np.ndarray, form: str) -> np.ndarray:
    """Which of the ``unread`` strings are times after all, in years that pandas cannot hold."""
    found = np.zeros(len(texts), bool)
    at = np.flatnonzero(unread)
    if len(at):
        codes = texts.take(pa.array(at)).dictionary_encode()
        far = [text is not None and _is_far(text, form) for text in codes.dictionary.to_pylist()]
        found[at] = np.array([*far, False])[codes.indices.fill_null(len(far)).to_numpy(zero_copy_only=False)]
    return found


def _is_far(text: str, form: str) -> bool:
    try:
        year = (datetime.fromisoformat(text) if form == "ISO8601" else datetime.strptime(text, form)).year
    except ValueError:
        return False
    return not _FIRST_YEAR < year < _LAST_YEAR


def _epochs(texts: pa.Array, form: str, day_us: int | None, missing: np.ndarray) -> Wall:
    cast = doubles(texts)
    # Integers beyond 2^53 do not occur in these units: a double holds every microsecond until the year 2255.
    numbers = cast.values.fill_null(0.0).to_numpy(zero_copy_only=False)
    scaled = np.round(numbers * EPOCHS[form])
    bad, beyond = cast.bad, (scaled < _FIRST_US) | (scaled > _LAST_US)
    of_day = form.endswith("_of_day")
    if of_day:
        # Leap seconds and a day of 25 hours still fit; anything later belongs to another file.
        bad, beyond = bad | (numbers < 0), scaled > 25 * 60 * _US_PER_MINUTE
    micros = np.where(bad | missing | beyond, 0, scaled).astype(np.int64)
    if of_day:
        bad = bad | (day_us is None)
        micros = micros + (day_us or 0)
    nowhere = np.zeros(len(texts), bool)
    return Wall(micros, np.full(len(texts), not of_day), bad, missing, beyond & ~bad, nowhere)


def _offsets(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per row: microseconds east of UTC, whether an offset was written at all, and whether it is impossible."""
    has = ~_bools(pc.equal(pc.fill_null(texts, ""), ""), True)
    none = np.zeros(len(texts), np.int64)
    if not has.any():
        return none, has, np.zeros(len(texts), bool)
    codes = pc.dictionary_encode(texts)
    codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
    read = [_minutes(text) for text in codes.dictionary.to_pylist()]
    index = codes.indices.fill_null(0).to_numpy(zero_copy_only=False)
    minutes = np.array([number or 0 for number in read], np.int64)[index]
    impossible = np.array([number is None for number in read])[index]
    return np.where(has, minutes * _US_PER_MINUTE, 0), has, has & impossible


def _minutes(offset: str | None) -> int | None:
    if not offset or offset[0] not in "+-":
        return 0
    digits = offset[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:] or 0)
    total = hours * 60 + minutes
    if minutes > 59 or total > _FURTHEST_MINUTES:
        return None
    return -total if offset[0] == "-" else total


def _bools(array: pa.Array, when_null: bool) -> np.ndarray:
    return np.array(pc.fill_null(array, when_null).to_numpy(zero_copy_only=False))


def _null_where(values: pa.Array, mask: np.ndarray) -> pa.Array:
    return pc.if_else(pa.array(mask), pa.scalar(None, values.type), values) if mask.any() else values
