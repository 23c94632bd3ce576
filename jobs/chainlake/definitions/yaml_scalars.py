"""Where a character of a YAML scalar stands in its file, whatever quotes, escapes and folds lie between."""

from __future__ import annotations

from collections.abc import Sequence


def place_of(lines: Sequence[str], begin: tuple[int, int], text: str, at: tuple[int, int]) -> tuple[int, int]:
    """The place of a character.

    Args:
        lines: of the file.
        begin: line and column of the scalar, 1-based, its quotes and signs included.
        text: what the scalar says.
        at: line and column of the character in ``text``, or the place behind its end.

    Returns:
        1-based line and column of the file; ``begin`` where the file no longer says that text.
    """
    line, column = begin[0] - 1, begin[1] - 1
    block = column < len(lines[line]) and lines[line][column] in "|>" if line < len(lines) else False
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
        while line < len(lines) and (column := lines[line].find(letter, column)) < 0:
            line, column = line + 1, 0
        if line == len(lines):
            return begin
        found = (line + 1, column + 1)
        column += 1
        if number == wanted:
            return found
    return found[0], found[1] + 1
