"""``LIKE`` and ``MATCHES``: tests of strings."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.values.arrow import text_array


def test_of(text: str, regex: bool) -> Callable[[pa.Array], pa.Array]:
    """A function that tells which strings fit a pattern of ``LIKE`` or, with ``regex``, a regular expression."""
    expression = text if regex else _expression(text)
    return lambda texts: pc.match_substring_regex(texts, expression)


def problem_of(text: str, regex: bool) -> str | None:
    """What is wrong with a pattern, or None."""
    if not regex:
        rest = text.replace("\\\\", "")
        wrong = [after for after in rest.split("\\")[1:] if after[:1] not in ("%", "_")]
        return None if not wrong else "a backslash must be followed by %, _ or another backslash"
    try:
        # Arrow looks at an expression only when there is a string to search.
        pc.match_substring_regex(text_array([""]), text)
    except pa.ArrowInvalid as error:
        return str(error).partition("Invalid regular expression: ")[2] or str(error)
    return None


def _expression(pattern: str) -> str:
    """A pattern of LIKE as a regular expression for whole strings."""
    found = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            found.append(_literal(next(characters)))
        else:
            found.append({"%": ".*", "_": "."}.get(character) or _literal(character))
    return rf"\A(?s:{''.join(found)})\z"


def _literal(character: str) -> str:
    return character if character.isalnum() or ord(character) > 127 else rf"\x{{{ord(character):x}}}"
