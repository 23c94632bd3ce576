"""The version of the parser that made a row of ``ops.files``; files of another version are read again."""

from __future__ import annotations

from chainlake.definitions.formats.time_formats import digits_of, redundant
from chainlake.definitions.source import Source

#: A version is added by hand whenever the same bytes and source definition can give other rows than before.
_UNCHANGED, _CHECKED_TIMES, _NO_LEAP_SECONDS = 4, 5, 6


def parser_version(source: Source) -> int:
    """The parser version for the files of a source: the last one that changed what is read from them."""
    forms = [form.time.format for form in source.formats]
    if any("%S" in form for form in forms):
        return _NO_LEAP_SECONDS
    # The format has a weekday beside the date, or numbers with nothing between them.
    checked = any(redundant(form) or digits_of(form) for form in forms) or redundant(source.path.date_format)
    return _CHECKED_TIMES if checked else _UNCHANGED
