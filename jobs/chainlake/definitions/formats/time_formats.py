"""Which strptime formats give a time, checked before a file is read, since a wrong one would misread every row."""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

_DIRECTIVE = re.compile(r"%(-?.|\Z)", re.DOTALL)
_KNOWN = frozenset("aAbBdfGHIjmMpSuUVwWyYz%")
_DATE = frozenset("aAbBdGjmuUVwWyY")
#: How many digits each directive stands for; a fraction may have any number up to six.
_DIGITS = dict.fromkeys("dHIjmMSuUVwWyYGf", 2) | {"Y": 4, "G": 4, "j": 3, "u": 1, "w": 1, "f": 6}
_RUN_TOGETHER = re.compile(rf"%[{''.join(_DIGITS)}]%[{''.join(_DIGITS)}]")
#: Directives that count days or weeks within a year: some years have more than others.
_COUNTED = frozenset("jUWV")
_ANY_NUMBER = 1 << 30
_OFFSET = re.compile(r"\s*([Zz]|[+-]\d\d(:?\d\d)*(\.\d+)?)\Z")
#: Leading zeros of a number.
_PADDING = re.compile(r"(?<!\d)0+(?=\d)")
_INSTEAD = {
    "s": "Use format: epoch_s for seconds since 1970.",
    "Z": "Names of zones are not read; 'zone' says which one is meant, and %z reads +02:00.",
    "T": "Write %H:%M:%S.",
    "R": "Write %H:%M.",
    "F": "Write %Y-%m-%d.",
    "D": "Write %m/%d/%y.",
    "e": "Write %d, which also reads a day of one digit.",
    "k": "Write %H, which also reads an hour of one digit.",
    "h": "Write %b.",
    "P": "Write %p.",
    "L": "Write %f.",
    "N": "Write %f.",
}
#: A time whose parts all differ, so that one read as another is noticed.
_SAMPLE = datetime(2019, 11, 28, 15, 4, 5, 678901)


class Problem(NamedTuple):
    """What is wrong with a value of a definition, and what to write instead."""

    what: str
    hint: str


def directives(form: str) -> list[str]:
    """The letters of the directives in a format, in order."""
    return [letter for letter in _DIRECTIVE.findall(form) if letter != "%"]


def is_clock(form: str) -> bool:
    """Whether a format that ``problem_of`` accepts holds a time of day without a date."""
    return "%" in form and not _DATE & set(directives(form))


def _replaced(form: str, letter: str, text: str) -> str:
    """The format with a string in place of one of its directives."""
    return _DIRECTIVE.sub(lambda found: text if found[1] == letter else found[0], form)


@lru_cache(maxsize=256)
def redundant(form: str) -> tuple[str, ...]:
    """The letters of date directives, such as a weekday's, without which the format still gives the whole date.

    An unusable format has none.
    """
    if problem_of(form) is not None:
        return ()
    of_date = (letter for letter in directives(form) if letter in _DATE)
    return tuple(letter for letter in of_date if problem_of(_replaced(form, letter, "x")) is None)


@lru_cache(maxsize=256)
def digits_of(form: str) -> int | None:
    """The number of digits from which on a string is surely read correctly; ``None`` if it always is.

    Shorter strings need ``tells_numbers``. With nothing between its parts, 2024111 could be a day in January or in
    November. Day 366 of 2019, or its week 53, would be read as a day of 2020, however it is written. A fraction that
    does not end the format may have any number of digits.
    """
    if "%f" in form.removesuffix("%z").rstrip().removesuffix("%f"):
        return None
    if _COUNTED & set(directives(form)) - set(redundant(form)):
        return _ANY_NUMBER
    return None if _RUN_TOGETHER.search(form.replace("%%", "")) is None else digit_range(form)[1]


def digit_range(form: str) -> tuple[int, int]:
    """The least and the most digits that a date in a format has."""
    numbers = [letter for letter in directives(form) if letter in _DIGITS]
    literal = sum(sign.isdigit() for sign in _DIRECTIVE.sub("", form))
    least = sum(_DIGITS[letter] if letter in "yYG" else 1 for letter in numbers)
    return literal + least, literal + sum(_DIGITS[letter] for letter in numbers)


def tells_numbers(text: str, form: str, found: datetime) -> bool:
    """Whether a string can only mean ``found``.

    It may lack zeros at its start or after a character that is not a digit (93000 is half past nine), and digits at the
    end of a fraction.
    """
    if form.endswith("%z"):
        form, text = form.removesuffix("%z").rstrip(), _OFFSET.sub("", text)
    given, whole = (_PADDING.sub("", one).lower().split() for one in (text, found.strftime(form)))
    if given and whole and form.endswith("%f"):
        whole[-1] = whole[-1][:-6] + whole[-1][-6:].rstrip("0")
        given[-1] = given[-1][: len(whole[-1])]
    return given == whole


def agreeing(form: str, letter: str, written: str) -> list[str]:
    """Formats that together read exactly those strings of ``form`` in which one redundant directive agrees with the
    date.

    Args:
        form: a format.
        letter: letter of a directive that is redundant in it.
        written: what ``strftime`` writes for this directive and the date that was read.
    """
    ways = [written]
    if written.isdigit():
        ways = sorted({written.lstrip("0").zfill(digits) for digits in (1, 2, 3)})
    return [_replaced(form, letter, way) for way in ways]


def contradicted(text: str, form: str, found: datetime) -> str | None:
    """The letter of the first redundant directive whose text contradicts ``found``, the date read; else None."""
    for letter in redundant(form):
        if not any(_reads(text, one) for one in agreeing(form, letter, found.strftime(f"%{letter}"))):
            return letter
    return None


def _reads(text: str, form: str) -> bool:
    try:
        datetime.strptime(text, form)
    except ValueError:
        return False
    return True


def problem_of(form: str) -> Problem | None:
    """Why a strptime format cannot be used; None if it gives a time, or a time of day."""
    found = directives(form)
    return _unknown(form, found) or _incomplete(found) or _not_read_back(form)


def _unknown(form: str, found: list[str]) -> Problem | None:
    listed = f"Known are {' '.join('%' + letter for letter in sorted(_KNOWN, key=str.lower) if letter != '%')}."
    if form != form.strip():
        return Problem("begins or ends with white space, which is stripped from cells", "Leave it out.")
    if any(sign in form for sign in "\n\r\0"):
        return Problem("contains a line break, which no cell does", "Write it on one line.")
    for letter in found:
        if letter == "":
            return Problem("ends with a lone %", "Write %% for the sign itself.")
        if letter[0] == "-":
            return Problem(f"%{letter} is not known", f"Write %{letter[1:]}, which also reads a number of one digit.")
        if letter not in _KNOWN:
            return Problem(f"%{letter} is not known", _INSTEAD.get(letter, listed))
        if found.count(letter) > 1:
            return Problem(f"%{letter} is given twice", "Name every part of a time once.")
    if "z" in found and not form.endswith("%z"):
        return Problem("%z is not at the end", "Only an offset that ends the text can be read.")
    return None


def _incomplete(found: list[str]) -> Problem | None:
    has = set(found)
    month_day = "d" in has and has & set("mbB")
    week_day = has & set("UW") and has & set("waA")
    whole = (has & set("yY") and (month_day or "j" in has or week_day)) or {"G", "V"} <= has and has & set("uwaA")
    if has & _DATE and not whole:
        return Problem("does not give a complete date", "A date has year, month and day: %Y-%m-%d.")
    # Python reads these and ignores the week, but pandas, which reads whole columns, refuses them.
    if "G" in has and ("j" in has or not ("V" in has and has & set("uwaA"))):
        return Problem("%G is the year of a week: it gives a date with %V and a weekday only", "Write %Y.")
    if has & set("UW") and not (has & set("waA") and has & set("yY")):
        return Problem("the number of a week gives a date with a year and a weekday only", "E.g. %Y %U %a.")
    hour = has & set("HI")
    if not whole and not hour:
        return Problem("gives neither a date nor an hour", "E.g. '%d.%m.%Y %H:%M'.")
    if {"H", "I"} <= has:
        return Problem("%H and %I both give the hour", "Write %H, or %I with %p.")
    if "I" in has and "p" not in has:
        return Problem("%I without %p leaves open which half of the day is meant", "Write %H for hours from 0 to 23.")
    if "p" in has and "I" not in has:
        return Problem("%p without %I changes nothing", "Write %I for hours from 1 to 12.")
    for finer, coarser in (("M", hour), ("S", "M" in has), ("f", "S" in has)):
        if finer in has and not coarser:
            return Problem(f"%{finer} is given without the part above it", "E.g. %H:%M:%S.%f.")
    return None


def _not_read_back(form: str) -> Problem | None:
    plain = form.removesuffix("%z").rstrip()
    try:
        text = _SAMPLE.strftime(plain)
        back = datetime.strptime(text, plain)
    except (ValueError, re.error) as error:
        return Problem(f"cannot be read: {error}", "E.g. '%d.%m.%Y %H:%M'.")
    if (is_clock(form) or back.date() == _SAMPLE.date()) and back.strftime(plain) == text:
        return None
    return Problem("does not read back the time that it writes", "E.g. '%d.%m.%Y %H:%M'.")
