"""Splits pattern text into tokens, each with its line and column."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from chainlake.cep.language.ast.aggregates import AGGREGATES
from chainlake.cep.language.parsing.errors import Unreadable
from chainlake.cep.language.source_text import At, SourceText
from chainlake.cep.ranking.kinds import PERIODS
from chainlake.definitions.duration import UNITS, is_unit
from chainlake.words import closest

#: Reserved words; case-insensitive.
KEYWORDS = frozenset({"PATTERN", "WHERE", "WITHIN", "SEQ", "AND", "OR", "NOT", "IN", "TRUE", "FALSE"})
_SOFT = (
    "ANY AS AT BETWEEN BY CASE COLLECT COMBINE CONSUME CONTEXT DISTINCT EACH ELSE END EPISODES EVENTS FIRST FOR FROM "
    "GAP INITIATOR IS KEY LAST LEAST LIKE MATCH MATCHES MAX MAXIMAL MEASURES MIN MOST NON NONE NORM NULL OF OFFSET ON "
    "OUTERMOST OVERLAPPING PAUSE PER PICK PREV QUANTUM RANK SELECT STEP STRICT TERMINATOR THEN TIES TOP UNTIL WEIGHT "
    "WHEN WITH"
).split()

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n\f]+|\#[^\n]*)
  | (?P<number>(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<string>'(?:[^'\n]|'')*')
  | (?P<quoted>"(?:[^"\n]|"")*")
  | (?P<symbol><=|>=|==|!=|<>|\.\.|[-+*/<>=(){},.∈?])
    """,
    re.VERBOSE | re.ASCII,
)
_SAME = {"==": "=", "<>": "!=", "∈": "IN"}


#: Words of other query languages that errors recognise.
ELSEWHERE = "EVENT EVERY FOLLOWED FOLLOWEDBY SEQUENCE".split()


def soft() -> frozenset[str]:
    """Words that, like the aggregates, mean something only in certain places."""
    return frozenset({*_SOFT, *PERIODS})


#: How similar to a known word another one must be to be taken for it.
_LIKE = 0.75


def misspelt(word: str) -> str | None:
    """The word of the language, or the unit, that ``word`` resembles; None if it is one itself or resembles none."""
    known = {*KEYWORDS, *soft(), *AGGREGATES}
    if word.upper() in known or is_unit(word):
        return None
    return closest(word, [*sorted(UNITS), *sorted(known)], _LIKE)


@dataclass(frozen=True)
class Token:
    """One token.

    Args:
        kind: ``keyword``, ``word``, ``quoted`` (a name in double quotes), ``number``, ``string``, ``symbol`` or
            ``end``.
        text: keywords in upper case, symbols in their first spelling, strings and quoted names without quotes; for
            the end, what messages call it, if not the end of the pattern.
        at: 1-based (line, column).
    """

    kind: str
    text: str
    at: At

    @property
    def shown(self) -> str:
        """The token as an error message names it."""
        if self.kind == "end":
            return self.text or "the end of the pattern"
        return f"'{self.text}'"


@dataclass(frozen=True)
class Piece:
    """A piece of pattern text as it is written.

    Args:
        kind: as for a token, or ``space``, ``comment``, or ``bad`` for a character with which no token begins.
        text: the characters.
        begin: index of the first one in the whole text.
        end: index after the last one.
    """

    kind: str
    text: str
    begin: int
    end: int


def pieces(text: str, start: int = 0) -> Iterator[Piece]:
    """All of ``text`` from character ``start`` on, including comments and blanks; never raises."""
    position = start
    while position < len(text):
        match = _TOKEN.match(text, position)
        word = match.group() if match else text[position]
        kind = str(match.lastgroup) if match else "bad"
        if kind == "space" and word.startswith("#"):
            kind = "comment"
        elif word == "∈" or kind == "word" and word.upper() in KEYWORDS:
            kind = "keyword"
        yield Piece(kind, word, position, position + len(word))
        position += len(word)


def tokens(source: SourceText, start: int = 0) -> list[Token]:
    """The tokens of ``source.text`` from character ``start`` on, ended by one of kind ``end``.

    ``#`` begins a comment that ends with its line.

    Raises:
        DefinitionError: a character with which no token begins, a string or quoted name without its closing quote, an
            empty quoted name, or a number too large for a double.
    """
    text = source.text
    line = text.count("\n", 0, start) + 1
    line_start = text.rfind("\n", 0, start) + 1
    found: list[Token] = []
    position = start
    while position < len(text):
        at = (line, position - line_start + 1)
        match = _TOKEN.match(text, position)
        if match is None:
            if text[position] == "'":
                raise Unreadable.open_string(source, at)
            if text[position] == '"':
                raise Unreadable.open_name(source, at)
            raise Unreadable.character(source, at, text[position])
        kind, word = str(match.lastgroup), match.group()
        if kind == "word" and word.upper() in KEYWORDS:
            found.append(Token("keyword", word.upper(), at))
        elif kind == "string":
            found.append(Token(kind, word[1:-1].replace("''", "'"), at))
        elif kind == "quoted":
            if word == '""':
                raise Unreadable.empty_name(source, at)
            found.append(Token(kind, word[1:-1].replace('""', '"'), at))
        elif kind == "symbol":
            word = _SAME.get(word, word)
            found.append(Token("keyword" if word == "IN" else kind, word, at))
        elif kind == "number" and math.isinf(float(word)):
            raise Unreadable.large_number(source, at)
        elif kind != "space":
            found.append(Token(kind, word, at))
        if "\n" in word:
            line += word.count("\n")
            line_start = position + word.rfind("\n") + 1
        position = match.end()
    last = found[-1].at if found else (line, 1)
    end = (line, position - line_start + 1) if found and last[0] == line else last
    found.append(Token("end", "", end))
    return found
