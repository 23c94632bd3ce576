"""Where a YAML scalar ends, and where a character of it stands, whatever quotes, escapes and folds lie between."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: What to do where a text without quotes ends earlier than it should.
COMMENT = "A # behind a blank begins a comment of the file: put the whole text in double quotes."


def is_open(text: object) -> bool:
    """Whether a value is a text with a parenthesis or a quote that it does not close."""
    return isinstance(text, str) and (text.count("(") > text.count(")") or text.count("'") % 2 == 1)


def is_cut(lines: Sequence[str], begin: tuple[int, int], text: str, at: tuple[int, int]) -> bool:
    """Whether a scalar without quotes ends where a comment begins, within what begins with a quote at a place.

    Args:
        lines: of the file.
        begin: line and column of the scalar, 1-based.
        text: what it says.
        at: the place.
    """
    behind = lines[begin[0] - 1][begin[1] - 1 + len(text) :]
    return lines[at[0] - 1][at[1] - 1 : at[1]] in ("'", '"') and re.match(r"\s+#", behind) is not None


def place_of(lines: Sequence[str], begin: tuple[int, int], text: str, at: tuple[int, int]) -> tuple[int, int]:
    """The place of a character.

    Args:
        lines: of the file.
        begin: line and column of the scalar, 1-based, its quotes and signs included.
        text: what the scalar says.
        at: line and column of the character in ``text``, or the place behind its end.

    Returns:
        1-based line and column of the file; ``begin`` where characters are written by their number, or the file no
        longer says that text.
    """
    line, column = begin[0] - 1, begin[1] - 1
    block = line < len(lines) and lines[line][column : column + 1] in ("|", ">")
    line, column = (line + 1, 0) if block else (line, column)
    before = "\n".join(text.split("\n")[: at[0] - 1])
    wanted = len(before) + (at[0] > 1) + at[1] - 1
    # YAML may fold blanks and add escapes, but each character that is no blank stands in the file, in order.
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
    """Where a character comes next, 0-based; the end of the file where it does not, or another word does before it."""
    while line < len(lines):
        at = lines[line].find(letter, column)
        if any(skipped.isalnum() for skipped in lines[line][column : at if at >= 0 else None]):
            break
        if at >= 0:
            return line, at
        line, column = line + 1, 0
    return len(lines), 0
