"""Errors of the YAML parser, in words that say what to write: the parser speaks of tokens, people see lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import yaml

At = tuple[int, int]
_QUOTES = "Put the string in single quotes."
_COLON = re.compile(r":(\s|$)")


class Explanation(NamedTuple):
    """What is wrong, where (1-based line and column), and what to do."""

    what: str
    at: At
    hint: str | None = None


@dataclass(frozen=True)
class _Stumble:
    """Where the parser stopped: the lines of the text, the place, and where the thing that it was reading began."""

    lines: Sequence[str]
    at: At
    begun: At

    @property
    def row(self) -> str:
        return self.lines[self.at[0] - 1]

    @property
    def before(self) -> str:
        """The line up to the place."""
        return self.row[: self.at[1] - 1]

    def letter(self, at: At) -> str:
        return self.lines[at[0] - 1][at[1] - 1 : at[1]]

    def line_above(self) -> int:
        """The last line above that is neither blank nor a comment; 0 if there is none."""
        for number in range(self.at[0] - 1, 0, -1):
            if self.lines[number - 1].strip() and not self.lines[number - 1].lstrip().startswith("#"):
                return number
        return 0


def in_words(error: yaml.MarkedYAMLError, text: str) -> Explanation:
    """The parser's problem in our words; in its own if none of ours fit.

    Args:
        error: the problem.
        text: the text that was read.
    """
    lines = text.split("\n")
    # The end of the text can be after its last line.
    at, begun = (
        None if mark is None else (min(mark.line + 1, len(lines)), mark.column + 1)
        for mark in (error.problem_mark or error.context_mark, error.context_mark)
    )
    said = f"{error.context}: {error.problem}"
    stumble = _Stumble(lines, at or (1, 1), begun or at or (1, 1))
    for sign, handler in _HANDLERS:
        if sign.search(said):
            return handler(stumble)
    return Explanation(str(error.problem or error.context), stumble.at)


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip(" "))


def _no_start(found: _Stumble) -> Explanation:
    letter = found.letter(found.at)
    if letter == "\t":
        return Explanation("the indentation of this line contains a tab", found.at, "Indent with spaces only.")
    return Explanation(f"a string must not begin with {letter} unless it is in quotes", found.at, _QUOTES)


def _sign(found: _Stumble) -> Explanation:
    letter = found.letter(found.begun)
    return Explanation(f"a string must not begin with {letter} unless it is in quotes", found.begun, _QUOTES)


def _value_here(found: _Stumble) -> Explanation:
    if _COLON.search(found.before):
        return Explanation("a string that contains a colon followed by a space needs quotes", found.at, _QUOTES)
    return _deeper(found) or _no_colon(found, found.line_above() or found.at[0])


def _deeper(found: _Stumble) -> Explanation | None:
    above = found.line_above()
    row = found.lines[above - 1] if above else ""
    if not above or _indent(found.row) <= _indent(row):
        return None
    what = f"this line is indented deeper than line {above}, whose key has a value already"
    return Explanation(what, (found.at[0], _indent(found.row) + 1), f"Begin it in column {_indent(row) + 1}.")


def _no_colon(found: _Stumble, line: int | None = None) -> Explanation:
    number = found.begun[0] if line is None else line
    row = found.lines[number - 1]
    after = ":" in row
    hint = "Write a space after the colon." if after else "Write 'key: value'; a list's items begin with '- '."
    return Explanation("this line is not 'key: value'", (number, _indent(row) + 1), hint)


def _no_key(found: _Stumble) -> Explanation:
    rest = found.row[found.at[1] - 1 :]
    if rest.startswith(":"):
        return Explanation("there is no key before the colon", found.at)
    if found.before.strip():
        hint = "Inside single quotes a quote is written twice."
        return Explanation("something follows the string in quotes", found.at, hint)
    deeper = _deeper(found)
    if deeper is not None:
        return deeper
    columns = sorted({_indent(row) + 1 for row in found.lines[: found.at[0] - 1] if _COLON.search(row)})
    listed = " or ".join(map(str, columns))
    what = f"this line begins in column {found.at[1]}, where no key above it begins"
    return Explanation(what, found.at, f"The keys of one map begin in the same column, here {listed}.")


def _no_item(found: _Stumble) -> Explanation:
    line, column = found.begun
    what = f"this line is not an item of the list that begins on line {line}"
    hint = f"Its items begin with '- ' in column {column}, and their keys two columns further; a key ends the list."
    return Explanation(what, found.at, hint)


def _unclosed(found: _Stumble) -> Explanation:
    opening = found.letter(found.begun)
    closing = {"[": "]", "{": "}"}.get(opening, "]")
    if found.at[0] > found.begun[0]:
        return Explanation(f"the {opening} has no {closing}", found.begun, f"Close it before line {found.at[0]}.")
    if found.at < found.begun:  # after the last line
        return Explanation(f"the {opening} has no {closing}", found.begun, "Close it.")
    hint = f"The {opening} is in column {found.begun[1]}."
    if found.letter(found.at) in "{}[]":
        hint = f"{hint} A string that contains a bracket or a comma takes quotes."
    return Explanation(f"here a comma or {closing} is missing", found.at, hint)


def _no_content(found: _Stumble) -> Explanation:
    return Explanation(f"there is no value before {found.letter(found.at)}", found.at, "Quote it if it is a string.")


def _open_quote(found: _Stumble) -> Explanation:
    return Explanation(
        "the quote that begins here has no end", found.begun, "Inside single quotes a quote is written twice."
    )


def _escape(found: _Stumble) -> Explanation:
    hint = "Write the string in single quotes, where a backslash is a backslash."
    return Explanation("a backslash in double quotes begins an escape sequence, and this is not one", found.at, hint)


def _item_here(found: _Stumble) -> Explanation:
    hint = "Write it as [a, b], or begin each item on a line of its own."
    return Explanation("a list with '- ' cannot begin on the line of its key", found.at, hint)


def _block(found: _Stumble) -> Explanation:
    sign = found.letter(found.begun)
    return Explanation(f"the string that {sign} announces begins on the next line", found.at, _QUOTES)


def _ended(found: _Stumble) -> Explanation:
    return Explanation(
        "the definition has ended before this line", found.at, "Is there one closing bracket too many above?"
    )


def _directive(found: _Stumble) -> Explanation:
    return Explanation("a line must not begin with %", found.begun, _QUOTES)


#: Patterns of the parser's words (the C parser's, and the Python parser's if they differ) → what they mean to people.
_HANDLERS: tuple[tuple[re.Pattern[str], Callable[[_Stumble], Explanation]], ...] = tuple(
    (re.compile(words), handler)
    for words, handler in (
        ("cannot start any token|tab character", _no_start),
        ("scanning an (alias|anchor)", _sign),
        ("mapping values are not allowed", _value_here),
        ("could not find expected ':'", _no_colon),
        ("block mapping: (did not find expected key|expected <block end>)", _no_key),
        ("block collection: (did not find|expected)", _no_item),
        ("expected ',' or '[]}]'", _unclosed),
        ("node content", _no_content),
        ("quoted scalar: found unexpected end", _open_quote),
        ("unknown escape", _escape),
        ("sequence entries are not allowed", _item_here),
        ("scanning a block scalar", _block),
        ("<document start>", _ended),
        ("scanning a directive", _directive),
    )
)
