"""Durations: one grammar for sources, patterns and models, in exact fractions of a second."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

_SPELLINGS = {
    Fraction(1, 1000): "ms millisecond milliseconds",
    Fraction(1): "s sec secs second seconds",
    Fraction(60): "m min mins minute minutes",
    Fraction(3600): "h hr hrs hour hours",
    Fraction(86400): "d day days",
    Fraction(604800): "w week weeks",
}

#: The number in a string such as ``30 min``, short enough to compute with.
_NUMBER = re.compile(r"[+-]?[0-9.]{1,40}(/[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?")

#: Unit spelling → seconds.
UNITS: dict[str, Fraction] = {word: size for size, words in _SPELLINGS.items() for word in words.split()}
#: The spellings that hints name; all are accepted.
USUAL = "ms, s, min, h, d, w"


def seconds(value: int | float, unit: str) -> Fraction:
    """``value unit`` in exact seconds; the decimal digits of ``value`` count as written."""
    return Fraction(repr(value)) * UNITS[unit.lower()]


def is_unit(word: str) -> bool:
    """Whether ``word`` spells a unit (in any case)."""
    return word.lower() in UNITS


def parse_duration(text: str) -> Fraction | None:
    """The seconds in a string such as ``30 min``, or None if it is not a duration.

    >>> parse_duration("1.5 h"), parse_duration("5 minutes"), parse_duration("500ms")
    (Fraction(5400, 1), Fraction(300, 1), Fraction(1, 2))
    >>> parse_duration("soon"), parse_duration("30")
    (None, None)
    """
    number = text.strip()
    split = len(number)
    while split and (number[split - 1].isalpha()):
        split -= 1
    digits, unit = number[:split].strip(), number[split:]
    if not is_unit(unit) or not _NUMBER.fullmatch(digits):
        return None
    try:
        value = Fraction(digits)
    except (ValueError, ZeroDivisionError):
        return None
    return value * UNITS[unit.lower()]


def parse_span(text: str) -> timedelta | None:
    """The same as a ``timedelta``, to the nearest microsecond; None also if it is negative or too long."""
    found = parse_duration(text)
    if found is None or found < 0:
        return None
    try:
        return timedelta(microseconds=round(found * 1_000_000))
    except OverflowError:
        return None
