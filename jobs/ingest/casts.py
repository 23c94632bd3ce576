"""Texts to typed columns, a whole block at once; every function also says which rows it could not read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from jobs.ingest.formats import EPOCHS, date_from_path
from jobs.ingest.mappings import Sentinel

_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_ISO = (
    r"^(?P<local>\d{4}-?\d\d-?\d\d(?:[T ]\d\d(?::?\d\d(?::?\d\d(?:[.,]\d+)?)?)?)?)"
    r"\s*(?P<offset>[Zz]|UTC|[+-]\d\d(?::?\d\d)?)?$"
)
_TAIL_OFFSET = r"^(?P<local>.*?)\s*(?P<offset>[Zz]|UTC|[+-]\d\d(?::?\d\d)?)$"
_TRUE = ("true", "t", "yes", "y", "1")
_FALSE = ("false", "f", "no", "n", "0")
_MAX_LONG = 2.0**53
_US_PER_MINUTE = 60_000_000
#: The day that a text without a date is given by pandas, 1 January 1900.
_CLOCK_DAY_US = -25_567 * 24 * 60 * _US_PER_MINUTE
#: Instants that pandas (nanoseconds in 64 bits) and Spark can both hold.
_FIRST_US, _LAST_US = -9_223_372_036_000_000, 9_223_372_036_000_000


class Cast(NamedTuple):
    """A typed column, and which rows had a text that is not of that type (bool per row; their value is null)."""

    values: pa.Array
    bad: np.ndarray


class Wall(NamedTuple):
    """Times as read: microseconds (int64, 0 where not known), whether each is UTC already, and what failed.

    ``beyond`` are numbers that are no time of any calendar, since they are too large.
    """

    micros: np.ndarray
    is_utc: np.ndarray
    bad: np.ndarray
    missing: np.ndarray
    beyond: np.ndarray


def clean(texts: pa.Array, nulls: tuple[str, ...]) -> pa.Array:
    """Texts without surrounding white space, null where they are one of ``nulls``."""
    stripped = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.is_in(stripped, pa.array(nulls, pa.string())), pa.scalar(None, pa.string()), stripped)


def doubles(texts: pa.Array, decimal: str = ".", thousands: str | None = None) -> Cast:
    """Texts as float64; nulls stay null. An infinite or over-large number is bad."""
    if thousands is not None:
        texts = pc.replace_substring(texts, thousands, "")
    if decimal != ".":
        # A point in a file with decimal commas is no decimal sign: such a text is not a number here.
        texts = pc.if_else(pc.match_substring(texts, "."), pa.scalar("?"), pc.replace_substring(texts, decimal, "."))
    try:
        values = pc.cast(texts, pa.float64())
        wrong = np.zeros(len(texts), bool)
    except pa.ArrowInvalid:
        wrong = ~_bools(pc.match_substring_regex(texts, _NUMBER), True)
        values = pc.cast(pc.if_else(pa.array(wrong), pa.scalar(None, pa.string()), texts), pa.float64())
    wrong |= ~_bools(pc.is_finite(values), True)
    return Cast(_null_where(values, wrong), wrong)


def convert(values: pa.Array, scale: float, offset: float, digits: int | None) -> pa.Array:
    """``values * scale + offset``, rounded to ``digits`` decimals if given (half to even)."""
    if scale == 1.0 and offset == 0.0 and digits is None:
        return values
    nulls = pc.is_null(values).to_numpy(zero_copy_only=False)
    numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False)
    numbers = numbers * scale + offset if offset else numbers * scale
    if digits is not None:
        numbers = np.round(numbers, digits)
    return pa.array(numbers, mask=nulls)


def without_sentinels(values: pa.Array, sentinels: tuple[Sentinel, ...], others: dict[str, pa.Array]) -> pa.Array:
    """``values`` with null where a sentinel stands (compared before unit conversion).

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


def longs(values: Cast) -> Cast:
    """Whole numbers from float64 values; a fraction, or more than 2^53, is bad."""
    numbers = values.values.fill_null(0.0).to_numpy(zero_copy_only=False)
    wrong = (numbers != np.floor(numbers)) | (np.abs(numbers) > _MAX_LONG)
    nulls = pc.is_null(values.values).to_numpy(zero_copy_only=False)
    return Cast(pa.array(np.where(wrong, 0, numbers).astype(np.int64), mask=nulls | wrong), values.bad | wrong)


def booleans(texts: pa.Array) -> Cast:
    """true/false, t/f, yes/no, y/n, 1/0 in any case."""
    lower = pc.utf8_lower(texts)
    true = _bools(pc.is_in(lower, pa.array(_TRUE)), False)
    false = _bools(pc.is_in(lower, pa.array(_FALSE)), False)
    nulls = pc.is_null(texts).to_numpy(zero_copy_only=False)
    wrong = ~(true | false | nulls)
    return Cast(pa.array(true, mask=nulls | wrong), wrong)


def times(texts: pa.Array, form: str, day_us: int | None = None) -> Wall:
    """Times of a block.

    Args:
        texts: cleaned texts.
        form: ``iso``, a strptime format, or a key of ``EPOCHS``.
        day_us: wall microseconds of the file's date, for times of day; they are bad without one.

    Digits finer than a microsecond are cut off, never rounded: no time moves into the next second or day. Numbers are
    read as doubles, which do not hold every decimal, and so go to the nearest microsecond.
    """
    missing = pc.is_null(texts).to_numpy(zero_copy_only=False)
    if form in EPOCHS:
        return _epochs(texts, form, day_us, missing)
    offset_us = np.zeros(len(texts), np.int64)
    has_offset = np.zeros(len(texts), bool)
    if form == "iso" or form.endswith("%z"):
        parts = pc.extract_regex(texts, _ISO if form == "iso" else _TAIL_OFFSET)
        local = pc.struct_field(parts, "local")
        offset_us, has_offset = _offsets(pc.struct_field(parts, "offset"))
    else:
        local = texts
    pandas_format = "ISO8601" if form == "iso" else form.removesuffix("%z").rstrip()
    if form == "iso":
        local = pc.replace_substring(local, ",", ".")
    parsed = pd.to_datetime(pd.Series(local.to_pandas()), format=pandas_format, errors="coerce")
    bad = parsed.isna().to_numpy() & ~missing
    if form.endswith("%z"):
        bad |= ~has_offset & ~missing
    micros = parsed.to_numpy().astype("datetime64[us]").astype(np.int64)
    if date_from_path(form):
        bad = bad | (~missing & (day_us is None))
        micros = micros - _CLOCK_DAY_US + (day_us or 0)
    micros = np.where(bad | missing, 0, micros - offset_us)
    return Wall(micros, has_offset, bad, missing, np.zeros(len(texts), bool))


def _epochs(texts: pa.Array, form: str, day_us: int | None, missing: np.ndarray) -> Wall:
    cast = doubles(texts)
    # Integers beyond 2^53 do not occur in these units; a double holds every microsecond until the year 2255.
    numbers = cast.values.fill_null(0.0).to_numpy(zero_copy_only=False)
    scaled = np.round(numbers * EPOCHS[form])
    bad, beyond = cast.bad, (scaled < _FIRST_US) | (scaled > _LAST_US)
    of_day = form.endswith("_of_day")
    if of_day:
        # Leap seconds and a day of 25 hours still fit; anything further belongs to another file.
        bad, beyond = bad | (numbers < 0), scaled > 25 * 60 * _US_PER_MINUTE
    micros = np.where(bad | missing | beyond, 0, scaled).astype(np.int64)
    if of_day:
        bad = bad | (day_us is None)
        micros = micros + (day_us or 0)
    return Wall(micros, np.full(len(texts), not of_day), bad, missing, beyond & ~bad)


def _offsets(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds east of UTC, and where an offset was written at all."""
    has = ~_bools(pc.equal(pc.fill_null(texts, ""), ""), True)
    result = np.zeros(len(texts), np.int64)
    if not has.any():
        return result, has
    codes = pc.dictionary_encode(texts)
    codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
    minutes = np.array([_minutes(text) for text in codes.dictionary.to_pylist()] or [0], np.int64)
    index = codes.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return np.where(has, minutes[index] * _US_PER_MINUTE, 0), has


def _minutes(offset: str | None) -> int:
    if not offset or offset[0] not in "+-":
        return 0
    digits = offset[1:].replace(":", "")
    total = int(digits[:2]) * 60 + int(digits[2:] or 0)
    return -total if offset[0] == "-" else total


def _bools(array: pa.Array, when_null: bool) -> np.ndarray:
    return pc.fill_null(array, when_null).to_numpy(zero_copy_only=False).copy()


def _null_where(values: pa.Array, mask: np.ndarray) -> pa.Array:
    return pc.if_else(pa.array(mask), pa.scalar(None, values.type), values) if mask.any() else values
