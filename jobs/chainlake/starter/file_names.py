"""What a file's name says: the name of its source, what varies from file to file, and a date."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime

#: Digits that vary from file to file: a number that stands alone, a long one such as a date, or the one at the end.
#: Others, as in i80 or 5min, belong to a word.
_VARIES = re.compile(r"(?<![^\W_])\d+(?![^\W_])|\d{6,}|\d+$", re.ASCII)
#: Forms of a date in a file's name: as regular expression, and as format.
_DATES = ((r"\d{4}-\d\d-\d\d", "%Y-%m-%d"), (r"\d{8}", "%Y%m%d"))


def stem_of(name: str) -> str:
    """A file's name without its suffixes."""
    return name.split(".")[0]


def source_name(name: str) -> str:
    """A name for the source of a file: the file's name without what varies, and without suffixes."""
    plain = re.sub(r"[\W_]+", "_", _VARIES.sub("_", stem_of(name)), flags=re.ASCII).strip("_").lower()
    return plain[:90] if plain and plain[0].isalpha() else "events"


def glob_of(name: str) -> str:
    """A glob for files whose names differ only in what varies."""
    return _varied(stem_of(name), lambda text: re.sub(r"([\[\]?*])", r"[\1]", text), "*") + ".*"


def path_of(name: str) -> str | None:
    """A regular expression that reads the date of such files; None if the name has no date, or several."""
    stem, found = stem_of(name), _dated(name)
    if found is None:
        return None
    place, (regex, _) = found
    parts = (stem[: place.start()], stem[place.end() :])
    before, after = (_varied(part, lambda text: re.sub(r"([.^$*+?{}\[\]|()\\'])", ".", text), r"\d+") for part in parts)
    return f"{before}(?P<date>{regex}){after}"


def expected_of(name: str) -> str | None:
    """The glob by which ``expect`` would name the file of a day; None if the name has no date."""
    stem, found = stem_of(name), _dated(name)
    if found is None:
        return None
    place, (_, form) = found
    return f"{stem[: place.start()]}{{date:{form}}}*"


def date_of(name: str) -> date | None:
    """The date in a file's name; None if it has none, or several."""
    found = _dated(name)
    if found is None:
        return None
    place, (_, form) = found
    try:
        return datetime.strptime(place[0], form).date()
    except ValueError:
        return None


def _dated(name: str) -> tuple[re.Match[str], tuple[str, str]] | None:
    for regex, form in _DATES:
        places = list(re.finditer(rf"(?<!\d){regex}(?!\d)", stem_of(name)))
        if len(places) == 1:
            return places[0], (regex, form)
    return None


def _varied(stem: str, literal: Callable[[str], str], wild: str) -> str:
    found, at = "", 0
    for place in _VARIES.finditer(stem):
        found, at = found + literal(stem[at : place.start()]) + wild, place.end()
    return found + literal(stem[at:])
