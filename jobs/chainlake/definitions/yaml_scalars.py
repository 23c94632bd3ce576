"""Where a YAML scalar ends, and where one of its characters is, despite quotes, escapes and folds."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: The hint for a string without quotes that ends earlier than it should.
COMMENT = "A # after a space begins a comment: put the whole string in double quotes."


def is_open(text: object) -> bool:
    """Whether a value is a string with an unclosed parenthesis or quote."""
    return isinstance(text, str) and (text.count("(") > text.count(")") or text.count("'") % 2 == 1)


def is_cut(lines: Sequence[str], begin: tuple[int, int], text: str, at: tuple[int, int]) -> bool:
    """Whether a comment cuts off a scalar without quotes, inside a string that begins with a quote at ``at``.

    Args:
        lines: lines of the file.
        begin: line and column of the scalar, 1-based.
        text: its text.
        at: line and column of the place, 1-based.
    """
    behind = lines[begin[0] - 1][begin[1] - 1 + len(text) :]
    return lines[at[0] - 1][at[1] - 1 : at[1]] in ("'", '"') and re.match(r"\s+#", behind) is not None


def place_of(lines: Sequence[str], begin: tuple[int, int], text: str, at: tuple[int, int]) -> tuple[int, int]:
    """The place in the file of a character of a scalar.

    Args:
        lines: lines of the file.
        begin: line and column of the scalar, 1-based, including its quotes and signs.
        text: the scalar's text.
        at: 1-based line and column of the character in ``text``, or the place after its end.

    Returns:
        1-based line and column in the file; ``begin`` if characters are written as numeric escapes, or if the file no
        longer has that text.
    """
    line, column = begin[0] - 1, begin[1] - 1
    block = line < len(lines) and lines[line][column : column + 1] in ("|", ">")
    line, column = (line + 1, 0) if block else (line, column)
    before = "\n".join(text.split("\n")[: at[0] - 1])
    wanted = len(before) + (at[0] > 1) + at[1] - 1
    # YAML may fold blanks and add escapes, but every other character is in the file, in order.
    found = begin
    for number, letter in enumerate(text):
        if letter.isspace() and number < wanted:
            continue
        if number > wanted or letter.isspace():
            break
        line, column = _next(lines, line, column, letter)
        if line == len(lines):
            return begin
        found = (line + 1, column + 1)
        column += 1
        if number == wanted:
            return found
    return found[0], found[1] + 1


def _next(lines: Sequence[str], line: int, column: int, letter: str) -> tuple[int, int]:
    """Where a character occurs next, 0-based; the end of the file if it does not, or if a word comes before it."""
    while line < len(lines):
        at = lines[line].find(letter, column)
        if any(skipped.isalnum() for skipped in lines[line][column : at if at >= 0 else None]):
            break
        if at >= 0:
            return line, at
        line, column = line + 1, 0
    return len(lines), 0
