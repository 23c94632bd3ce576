"""The version of the parser that a row of ``ops.files`` was made by: files of another version are read again."""

from __future__ import annotations

from chainlake.definitions.formats.time_formats import digits_of, redundant
from chainlake.definitions.source import Source

#: Bumped by hand when the same bytes and the same source definition can give other rows than before.
PARSER_VERSION = 5
#: The version that reads the same from files of all sources but those of ``_changed``.
_UNCHANGED = 4


def parser_version(source: Source) -> int:
    """The version for the files of a source: the last one that changed what is read from them."""
    return PARSER_VERSION if _changed(source) else _UNCHANGED


def _changed(source: Source) -> bool:
    """Whether version 5 looks at more of its times: a weekday beside the date, numbers with nothing between them."""
    forms = [form.time.format for form in source.formats]
    return any(redundant(form) or digits_of(form) for form in forms) or bool(redundant(source.path.date_format))
