"""A position among the tokens of a pattern, and questions about what comes next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from chainlake.cep.language import ast
from chainlake.cep.language.parsing.errors import TooComplex
from chainlake.cep.language.parsing.expected import Expected
from chainlake.cep.language.parsing.lexer import Token, tokens
from chainlake.cep.language.source_text import SourceText
from chainlake.definitions.duration import USUAL, is_unit

#: The most levels of parentheses, signs, groups and calls, since this parser and later passes are recursive.
_DEEPEST = 50

T = TypeVar("T")


class Cursor:
    """Reads the tokens of a text one after another.

    Args:
        source: the text, for errors.
        start: the character at which to begin.
    """

    def __init__(self, source: SourceText, start: int) -> None:
        self.source = source
        self.tokens = tokens(source, start)
        self.index = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.index]

    def ahead(self, steps: int = 1) -> Token:
        """The token that is ``steps`` after the next one."""
        return self.tokens[min(self.index + steps, len(self.tokens) - 1)]

    def take(self) -> Token:
        """Take the next token; the one after it comes next."""
        token = self.token
        if token.kind != "end":
            self.index += 1
        return token

    def nested(self, part: Callable[[], T]) -> T:
        """What ``part`` parses, one level deeper.

        Raises:
            DefinitionError: this is too deep.
        """
        self.depth += 1
        if self.depth > _DEEPEST:
            raise TooComplex.nested(self.source, self.token.at, _DEEPEST)
        found = part()
        self.depth -= 1
        return found

    def at_symbol(self, *symbols: str) -> bool:
        """Whether one of these symbols comes next."""
        return self.token.kind == "symbol" and self.token.text in symbols

    def at_keyword(self, *words: str) -> bool:
        """Whether one of these reserved words comes next."""
        return self.token.kind == "keyword" and self.token.text in words

    def at_word(self, *words: str) -> bool:
        """Whether one of these words, which are reserved only in certain places, comes next."""
        return is_word(self.token, *words)

    def accept_symbol(self, symbol: str) -> bool:
        """Take this symbol if it comes next."""
        if self.at_symbol(symbol):
            self.index += 1
            return True
        return False

    def accept_word(self, *words: str) -> Token | None:
        """Take one of these words if it comes next."""
        return self.take() if self.at_word(*words) else None

    def expect_symbol(self, symbol: str, where: str, *, other: str = "") -> Token:
        """Take this symbol.

        Raises:
            DefinitionError: something else comes next.
        """
        if not self.at_symbol(symbol):
            raise Expected.symbol(self.source, self.token, symbol, where, other)
        return self.take()

    def expect_word(self, what: str) -> Token:
        """Take a word that is not quoted.

        Raises:
            DefinitionError: something else comes next.
        """
        if self.token.kind == "quoted":
            raise Expected.plain_name(self.source, self.token, what)
        return self.expect_name(what)

    def expect_name(self, what: str) -> Token:
        """Take a word, or a name in double quotes.

        Raises:
            DefinitionError: something else comes next.
        """
        if self.token.kind not in ("word", "quoted"):
            raise Expected.name(self.source, self.token, what)
        return self.take()

    def unit(self) -> str | None:
        """The unit that comes next, or None if no word does.

        Raises:
            DefinitionError: the word is not a unit.
        """
        if self.token.kind != "word":
            return None
        token = self.take()
        if not is_unit(token.text):
            raise Expected.unit(self.source, token, USUAL)
        return token.text.lower()

    def whole_number(self, what: str) -> int:
        """Take a whole number.

        Raises:
            DefinitionError: something else comes next.
        """
        token = self.take()
        if token.kind != "number" or not token.text.isdigit():
            raise Expected.whole_number(self.source, token, what)
        return int(token.text)

    def as_condition(self, node: ast.Node, at: tuple[int, int]) -> ast.Node:
        """``node`` as a condition; ``at`` is where it begins.

        Raises:
            DefinitionError: it is a value.
        """
        if isinstance(node, ast.CONDITIONS):
            return node
        if isinstance(node, ast.Literal) and isinstance(node.value, bool):
            return ast.Const(node.value, node.at)
        raise Expected.condition(self.source, at)

    def as_value(self, node: ast.Node, at: tuple[int, int]) -> ast.Node:
        """``node`` as a value; ``at`` is where it begins.

        Raises:
            DefinitionError: it is a condition.
        """
        if isinstance(node, ast.CONDITIONS):
            raise Expected.value_not_condition(self.source, at)
        return node


def is_word(token: Token, *words: str) -> bool:
    """Whether a token is one of these words, unquoted."""
    return token.kind == "word" and token.text.upper() in words


def number(text: str) -> int | float:
    """The number that a token spells."""
    return int(text) if text.isdigit() else float(text)
