"""Which strptime formats give a time, checked before a file is read: a wrong one would read every row wrongly."""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

_DIRECTIVE = re.compile(r"%(-?.|\Z)", re.DOTALL)
_KNOWN = frozenset("aAbBdfGHIjmMpSuUVwWyYz%")
_DATE = frozenset("aAbBdGjmuUVwWyY")
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
#: A time whose parts all differ, so that one that is read as another shows.
_SAMPLE = datetime(2019, 11, 28, 15, 4, 5, 678901)


class Problem(NamedTuple):
    """What is wrong with a value of a definition, and what to write instead."""

    what: str
    hint: str


def directives(form: str) -> list[str]:
    """The letters of the directives in a format, in their order."""
    return [letter for letter in _DIRECTIVE.findall(form) if letter != "%"]


def is_clock(form: str) -> bool:
    """Whether a format that `problem_of` lets through holds a time of day without a date."""
    return "%" in form and not _DATE & set(directives(form))


def replaced(form: str, letter: str, text: str) -> str:
    """The format with a text in the place of one of its directives."""
    return _DIRECTIVE.sub(lambda found: text if found[1] == letter else found[0], form)


def redundant(form: str) -> list[str]:
    """The letters of a date, such as a weekday's, without which the format still gives the whole date."""
    of_date = (letter for letter in directives(form) if letter in _DATE)
    return [letter for letter in of_date if problem_of(replaced(form, letter, "x")) is None]


def problem_of(form: str) -> Problem | None:
    """Why a strptime format cannot be used; None if it gives a time, or a time of day."""
    found = directives(form)
    return _unknown(form, found) or _incomplete(found) or _not_read_back(form)


def _unknown(form: str, found: list[str]) -> Problem | None:
    listed = f"Known are {' '.join('%' + letter for letter in sorted(_KNOWN, key=str.lower) if letter != '%')}."
    if form != form.strip():
        return Problem("begins or ends with white space, which is stripped from cells", "Leave it out.")
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
        return Problem("gives no whole date", "A date has year, month and day: %Y-%m-%d.")
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
    return Problem("does not give back the time that it writes", "E.g. '%d.%m.%Y %H:%M'.")
