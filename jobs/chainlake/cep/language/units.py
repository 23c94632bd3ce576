"""Duration units of the language as exact seconds."""

from __future__ import annotations

import re
from fractions import Fraction

_SPELLINGS = {
    Fraction(1, 1000): "ms millisecond milliseconds",
    Fraction(1): "s sec secs second seconds",
    Fraction(60): "m min mins minute minutes",
    Fraction(3600): "h hr hrs hour hours",
    Fraction(86400): "d day days",
    Fraction(604800): "w week weeks",
}

#: A number of a text such as ``30 min``, short enough to be computed with.
_NUMBER = re.compile(r"[+-]?[\d.]{1,40}(/\d{1,40})?([eE][+-]?\d{1,2})?")

#: Unit spelling -> seconds.
UNITS: dict[str, Fraction] = {word: size for size, words in _SPELLINGS.items() for word in words.split()}


def seconds(value: int | float, unit: str) -> Fraction:
    """``value unit`` in exact seconds; the decimal digits of ``value`` count as written."""
    return Fraction(repr(value)) * UNITS[unit.lower()]


def is_unit(word: str) -> bool:
    """Whether ``word`` spells a unit (in any case)."""
    return word.lower() in UNITS


def parse_duration(text: str) -> Fraction | None:
    """Seconds of a text such as ``30 min``, or None if it is not a duration."""
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
