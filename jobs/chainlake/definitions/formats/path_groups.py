"""Whether the groups of a path's expression can match valid values, checked before any file lands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import inf
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from chainlake.definitions.formats.time_formats import Problem, digit_range


class Digits(NamedTuple):
    """How many digits the strings that an expression matches can have; bounds may be too wide, but never too narrow.

    Args:
        least, most: bounds for any text.
        alone: the most digits in a text of digits only, which may be empty; ``None`` if there is no such text.
        longest: the most characters of any kind.
    """

    least: float
    most: float
    alone: float | None
    longest: float


_NONE = Digits(0, 0, 0, 0)
_ANY = Digits(0, inf, inf, inf)
_DIGITS = [ord(sign) for sign in "0123456789"]
#: Character class → whether it contains digits, and whether it contains others.
_CLASSES = {
    sre.CATEGORY_DIGIT: (True, False),
    sre.CATEGORY_NOT_DIGIT: (False, True),
    sre.CATEGORY_SPACE: (False, True),
    sre.CATEGORY_NOT_SPACE: (True, True),
    sre.CATEGORY_WORD: (True, True),
    sre.CATEGORY_NOT_WORD: (False, True),
}
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)


def digits_of_group(pattern: re.Pattern[str], name: str) -> Digits:
    """The digits of the strings that a named group of an expression matches."""
    wanted = pattern.groupindex[name]
    (found,) = (p for group, p in _groups(_parser.parse(pattern.pattern, pattern.flags)) if group == wanted)
    return _sequence(found)


def field_problem(name: str, digits: Digits, date_format: str) -> Problem | None:
    """Why no text of a path's field ``date``, ``key`` or ``revision`` can be a valid value; None if some can.

    Args:
        name: name of the field.
        digits: the digits of its strings.
        date_format: format of the date; if blank, a date has eight digits.
    """
    if name == "revision" and not digits.alone:
        what = "the field 'revision' cannot match digits alone, but a revision is a whole number"
        return Problem(what, r"E.g. (?P<revision>\d+); leave what surrounds the number outside the group.")
    if name == "key" and not digits.longest:
        return Problem(
            "the field 'key' can match only an empty string, but every event needs a key", r"E.g. (?P<key>[A-Z]+)."
        )
    if name == "date":
        least, most = digit_range(date_format) if date_format else (8, 8)
        if not (digits.least <= most and least <= digits.most):
            needed = f"{least}" if least == most else f"{least} to {most}"
            more = " or more" if digits.most == inf else f" to {digits.most:g}"
            given = f"{digits.least:g}{more if digits.least != digits.most else ''}"
            of = f"of the format '{date_format}'" if date_format else "YYYYMMDD"
            hint = r"E.g. (?P<date>\d{8}), or path: {pattern: …, date_format: '%d%m%y'}."
            return Problem(f"the field 'date' has {given} digits, but a date {of} has {needed}", hint)
    return None


def _groups(value: Any) -> Iterator[tuple[int | None, Any]]:
    """Number and content of the groups of a parsed expression, at any depth."""
    if isinstance(value, tuple) and value and value[0] is sre.SUBPATTERN:
        yield value[1][0], value[1][3]
    if isinstance(value, tuple | list | _parser.SubPattern):
        for part in value:
            yield from _groups(part)


def _sequence(parts: Iterable[tuple[Any, Any]]) -> Digits:
    found = [_one(kind, value) for kind, value in parts]
    alone = [one.alone for one in found]
    return Digits(
        sum(one.least for one in found),
        sum(one.most for one in found),
        None if None in alone else sum(number for number in alone if number is not None),
        sum(one.longest for one in found),
    )


def _either(ways: Iterable[Digits]) -> Digits:
    found = list(ways)
    alone = [one.alone for one in found if one.alone is not None]
    most, longest = (max(numbers) for numbers in zip(*((one.most, one.longest) for one in found), strict=True))
    return Digits(min(one.least for one in found), most, max(alone, default=None), longest)


def _one(kind: Any, value: Any) -> Digits:
    """What one element of a parsed expression matches."""
    if kind is sre.SUBPATTERN:
        return _sequence(value[3])
    if kind is sre.ATOMIC_GROUP:
        return _sequence(value)
    if kind is sre.BRANCH:
        return _either(map(_sequence, value[1]))
    if kind in _REPEATS:
        return _repeated(value[0], inf if value[1] is sre.MAXREPEAT else value[1], _sequence(value[2]))
    if kind in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
        return _NONE
    if kind in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
        return _sign(kind, value)
    # What remains depends on another group: what it matched, or whether it did.
    return _ANY


def _repeated(least: float, most: float, one: Digits) -> Digits:
    if most == 0:
        return _NONE
    alone = one.alone if one.alone is not None or least else 0
    # 0 times infinity is 0 here: nothing, repeated without end, is nothing.
    up = [number * most if number else number for number in (one.most, alone, one.longest)]
    return Digits(one.least * least, up[0] or 0, up[1], up[2] or 0)


def _sign(kind: Any, value: Any) -> Digits:
    """One character."""
    digit, other = True, True
    if kind is sre.LITERAL:
        digit, other = value in _DIGITS, value not in _DIGITS
    elif kind is sre.IN:
        negated = value[0][0] is sre.NEGATE
        held = [_held(*item) for item in (value[1:] if negated else value)]
        digits = {code for codes, _ in held for code in codes}
        digit = len(digits) < len(_DIGITS) if negated else bool(digits)
        # A negated class is taken to match other characters; one that excludes all but digits is not looked for.
        other = negated or any(others for _, others in held)
    return Digits(0 if other else 1, 1 if digit else 0, 1 if digit else None, 1)


def _held(kind: Any, value: Any) -> tuple[list[int], bool]:
    """The digits that an item of a character class contains, and whether it contains anything else."""
    if kind is sre.LITERAL:
        value = (value, value)
    if kind in (sre.LITERAL, sre.RANGE):
        codes = [code for code in _DIGITS if value[0] <= code <= value[1]]
        return codes, value[1] - value[0] >= len(codes)
    digit, other = _CLASSES[value]
    return (_DIGITS if digit else []), other
