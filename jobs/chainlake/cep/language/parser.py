"""Tokens to abstract syntax: a recursive-descent parser with errors that say where and what next."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from chainlake.cep.language import ast
from chainlake.cep.language.lexer import Token, tokens
from chainlake.cep.language.source_text import SourceText
from chainlake.definitions.duration import UNITS, is_unit, seconds

AGGREGATES = frozenset({"AVG", "SUM", "MIN", "MAX", "COUNT"})
#: Levels of parentheses, signs, groups and calls, and operators in a row: this parser and later passes are recursive.
_DEEPEST = 50
_LONGEST = 150
_COMPARE = frozenset({"<", "<=", ">", ">=", "=", "!="})


def parse(source: SourceText, start: int = 0) -> ast.Query:
    """The query that begins at character ``start`` of ``source``.

    Raises:
        DefinitionError: with line and column, for anything that the grammar does not allow.
    """
    return _Parser(source, start).query()


class _Parser:
    def __init__(self, source: SourceText, start: int) -> None:
        self.source = source
        self.tokens = tokens(source, start)
        self.index = 0
        self.depth = 0

    # ---- token helpers

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    @property
    def next(self) -> Token:
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.index += 1
        return token

    def nested(self, part: Callable[[], ast.Node]) -> ast.Node:
        """What ``part`` parses, one level further in."""
        self.depth += 1
        self.check_depth()
        node = part()
        self.depth -= 1
        return node

    def check_depth(self) -> None:
        if self.depth > _DEEPEST:
            raise self.source.error(
                f"the query is nested more than {_DEEPEST} levels deep",
                self.token.at,
                hint="Write it with fewer parts.",
            )

    def at_symbol(self, *symbols: str) -> bool:
        return self.token.kind == "symbol" and self.token.text in symbols

    def at_keyword(self, *words: str) -> bool:
        return self.token.kind == "keyword" and self.token.text in words

    def at_word(self, word: str) -> bool:
        """Whether a word that is reserved in this place only comes next."""
        return self.token.kind == "word" and self.token.text.upper() == word

    def accept_symbol(self, symbol: str) -> bool:
        if self.at_symbol(symbol):
            self.index += 1
            return True
        return False

    def expect_symbol(self, symbol: str, where: str, *, other: str = "") -> Token:
        if not self.at_symbol(symbol):
            wanted = f"'{symbol}' or '{other}'" if other else f"'{symbol}'"
            raise self.source.error(f"{wanted} is expected {where}, not {self.token.shown}", self.token.at)
        return self.take()

    def expect_word(self, what: str) -> Token:
        if self.token.kind != "word":
            hint = "This word is reserved; choose another." if self.token.kind == "keyword" else None
            raise self.source.error(f"{what} is expected, not {self.token.shown}", self.token.at, hint=hint)
        return self.take()

    # ---- query and structure

    def query(self) -> ast.Query:
        if not self.at_keyword("PATTERN"):
            raise self.source.error(f"a query begins with PATTERN, not {self.token.shown}", self.token.at)
        self.take()
        branches = self.alternatives() if self.at_keyword("OR") else (self.branch(where=False),)
        where = self.condition_after_where()
        if not self.at_keyword("WITHIN"):
            raise self.source.error(
                f"WITHIN is expected, not {self.token.shown}", self.token.at, hint="End the query with WITHIN 10 min."
            )
        within = self.within()
        if self.token.kind != "end":
            raise self.source.error(f"nothing may follow the window, but {self.token.shown} does", self.token.at)
        return ast.Query(branches, where, within)

    def alternatives(self) -> tuple[ast.Branch, ...]:
        opening = self.take()
        self.expect_symbol("(", "after OR")
        branches = [self.branch(where=True)]
        while self.accept_symbol(","):
            branches.append(self.branch(where=True))
        self.expect_symbol(")", "after the branches of OR")
        if len(branches) < 2:
            raise self.source.error("OR needs at least two branches", opening.at)
        return tuple(branches)

    def branch(self, *, where: bool) -> ast.Branch:
        at = self.token.at
        structure = self.structure()
        return ast.Branch(structure, self.condition_after_where() if where else None, at)

    def condition_after_where(self) -> ast.Node | None:
        if not self.at_keyword("WHERE"):
            return None
        self.take()
        return self.condition()

    def structure(self) -> ast.Structure:
        token = self.token
        if self.at_keyword("OR"):
            raise self.source.error("OR is only allowed at the top", token.at, hint="Write one branch per alternative.")
        if self.at_keyword("NOT"):
            raise self.source.error("a branch needs a positive event", token.at, hint="NOT belongs inside SEQ or AND.")
        if self.at_keyword("SEQ", "AND"):
            return self.group()
        return self.event()

    def group(self) -> ast.Group:
        opening = self.take()
        self.depth += 1
        self.check_depth()
        self.expect_symbol("(", f"after {opening.text}")
        items: list[ast.Structure] = []
        while True:
            item = self.negated() if self.at_keyword("NOT") else self.structure()
            # SEQ in SEQ and AND in AND say nothing that the outer group does not say.
            items.extend(item.items if isinstance(item, ast.Group) and item.kind == opening.text else (item,))
            if not self.accept_symbol(","):
                break
        self.expect_symbol(")", f"inside {opening.text}", other=",")
        self.depth -= 1
        return ast.Group(opening.text, tuple(items), opening.at)

    def negated(self) -> ast.Event:
        opening = self.take()
        self.expect_symbol("(", "after NOT")
        if self.at_keyword("SEQ", "AND", "OR", "NOT"):
            raise self.source.error(
                "NOT takes one event, not a structure", self.token.at, hint="Write one NOT for each forbidden event."
            )
        event = self.event(negated=True)
        self.expect_symbol(")", "after the event of NOT")
        return ast.Event(event.type, event.name, False, True, opening.at)

    def event(self, *, negated: bool = False) -> ast.Event:
        kind = self.expect_word("an event type")
        kleene = self.at_symbol("*", "+")
        if kleene:
            star = self.take()
            if negated:
                raise self.source.error("NOT takes no repeated event", star.at, hint=f"NOT({kind.text}) is enough.")
        name = self.take().text if self.token.kind == "word" else kind.text
        return ast.Event(kind.text, name, kleene, False, kind.at)

    def within(self) -> ast.Within:
        opening = self.take()
        token = self.take()
        if token.kind not in ("number", "word"):
            raise self.source.error(f"a duration is expected after WITHIN, not {token.shown}", token.at)
        value = _number(token.text) if token.kind == "number" else token.text
        return ast.Within(value, self.unit(), opening.at)

    def unit(self) -> str | None:
        if self.token.kind != "word":
            return None
        token = self.take()
        if not is_unit(token.text):
            raise self.source.error(
                f"'{token.text}' is not a unit", token.at, hint=f"Units are {', '.join(sorted(UNITS))}."
            )
        return token.text.lower()

    # ---- conditions: conditions and values share parentheses, so both are parsed by one set of rules

    def condition(self) -> ast.Node:
        at = self.token.at
        node = self.disjunction()
        return self.as_condition(node, at)

    def as_condition(self, node: ast.Node, at: tuple[int, int]) -> ast.Node:
        if isinstance(node, ast.CONDITIONS):
            return node
        if isinstance(node, ast.Literal) and isinstance(node.value, bool):
            return ast.Const(node.value, node.at)
        raise self.source.error("a condition is expected, not a value", at, hint="Compare it: a.up = TRUE.")

    def as_value(self, node: ast.Node, at: tuple[int, int]) -> ast.Node:
        if isinstance(node, ast.CONDITIONS):
            raise self.source.error("a value is expected, not a condition", at)
        return node

    def disjunction(self) -> ast.Node:
        return self.chain("OR", self.conjunction, ast.Any)

    def conjunction(self) -> ast.Node:
        return self.chain("AND", self.negation, ast.All)

    def chain(self, word: str, part: Callable[[], ast.Node], make: type[ast.All] | type[ast.Any]) -> ast.Node:
        at = self.token.at
        first = part()
        if not self.at_keyword(word):
            return first
        found = [self.as_condition(first, at)]
        while self.at_keyword(word):
            self.take()
            place = self.token.at
            found.append(self.as_condition(part(), place))
        return make(tuple(found), at)

    def negation(self) -> ast.Node:
        if self.at_keyword("NOT"):
            at = self.take().at
            place = self.token.at
            return ast.Not(self.as_condition(self.nested(self.negation), place), at)
        return self.comparison()

    def comparison(self) -> ast.Node:
        at = self.token.at
        left = self.sum()
        token = self.token
        if token.kind == "symbol" and token.text in _COMPARE:
            self.take()
            place = self.token.at
            right = self.as_value(self.sum(), place)
            if self.token.kind == "symbol" and self.token.text in _COMPARE:
                raise self.source.error(
                    "comparisons cannot be chained", self.token.at, hint="Write a.x < b.x AND b.x < c.x."
                )
            return ast.Compare(token.text, self.as_value(left, at), right, token.at)
        negated = self.at_keyword("NOT") and self.next.kind == "keyword" and self.next.text == "IN"
        if negated:
            self.take()
        if self.at_keyword("IN"):
            token = self.take()
            return ast.Member(self.as_value(left, at), negated, self.items(), token.at)
        return self.null_test(left, at) if self.at_word("IS") else left

    def null_test(self, left: ast.Node, at: tuple[int, int]) -> ast.Node:
        token = self.take()
        negated = self.at_keyword("NOT")
        if negated:
            self.take()
        if not self.at_word("NULL"):
            raise self.source.error(
                f"NULL or NOT NULL is expected after IS, not {self.token.shown}",
                self.token.at,
                hint="Other values are compared with =.",
            )
        self.take()
        return ast.IsNull(self.as_value(left, at), negated, token.at)

    def items(self) -> tuple[ast.Node, ...] | str:
        if not self.at_symbol("{"):
            return self.expect_word("a set {…} or the name of a set").text
        self.take()
        found = [self.item()]
        while self.accept_symbol(","):
            found.append(self.item())
        self.expect_symbol("}", "in a set", other=",")
        return tuple(found)

    def item(self) -> ast.Node:
        token = self.take()
        if token.kind == "symbol" and token.text == "-" and self.token.kind == "number":
            return ast.Literal(-_number(self.take().text), token.at)
        if token.kind == "number":
            return ast.Literal(_number(token.text), token.at)
        if token.kind == "string":
            return ast.Literal(token.text, token.at)
        if token.kind == "word":
            return ast.Word(token.text, token.at)
        raise self.source.error(f"a set holds numbers, strings and words, not {token.shown}", token.at)

    # ---- values

    def sum(self) -> ast.Node:
        return self.operators(("+", "-"), self.term)

    def term(self) -> ast.Node:
        return self.operators(("*", "/"), self.factor)

    def operators(self, symbols: tuple[str, ...], part: Callable[[], ast.Node]) -> ast.Node:
        at = self.token.at
        node = part()
        count = 0
        while self.at_symbol(*symbols):
            token = self.take()
            count += 1
            if count > _LONGEST:
                raise self.source.error(f"more than {_LONGEST} operators in a row", token.at)
            place = self.token.at
            right = self.as_value(part(), place)
            node = ast.Arithmetic(token.text, self.as_value(node, at), right, token.at)
        return node

    def factor(self) -> ast.Node:
        token = self.take()
        if token.kind == "symbol" and token.text == "-":
            place = self.token.at
            of = self.as_value(self.nested(self.factor), place)
            if isinstance(of, ast.Literal) and isinstance(of.value, int | float) and not isinstance(of.value, bool):
                return ast.Literal(-of.value, token.at)
            return ast.Negative(of, token.at)
        if token.kind == "symbol" and token.text == "(":
            node = self.nested(self.disjunction)
            self.expect_symbol(")", "to close the parenthesis")
            return node
        if token.kind == "number":
            value = _number(token.text)
            if self.token.kind == "word" and not self.at_word("IS"):
                unit = str(self.unit())
                return ast.Duration(seconds(value, unit), None, token.at)
            return ast.Literal(value, token.at)
        if token.kind == "string":
            return ast.Literal(token.text, token.at)
        if token.kind == "keyword" and token.text in ("TRUE", "FALSE"):
            return ast.Literal(token.text == "TRUE", token.at)
        if token.kind == "word":
            return self.identifier(token)
        raise self.source.error(f"a value is expected, not {token.shown}", token.at)

    def identifier(self, token: Token) -> ast.Node:
        if self.accept_symbol("."):
            return ast.Ref(token.text, self.expect_word("an attribute").text, token.at)
        if self.at_symbol("("):
            self.take()
            if token.text.upper() in AGGREGATES:
                return self.aggregate(token)
            self.depth += 1
            self.check_depth()
            args = [self.argument()]
            while self.accept_symbol(","):
                args.append(self.argument())
            self.expect_symbol(")", f"after the arguments of {token.text}")
            self.depth -= 1
            return ast.Call(token.text.lower(), tuple(args), token.at)
        if self.token.kind == "word" and is_unit(self.token.text):
            unit = self.take().text
            return ast.Duration(Fraction(UNITS[unit.lower()]), token.text, token.at)
        return ast.Word(token.text, token.at)

    def argument(self) -> ast.Node:
        place = self.token.at
        return self.as_value(self.sum(), place)

    def aggregate(self, token: Token) -> ast.Node:
        function = token.text.upper()
        name = self.expect_word(f"the event name that {function} ranges over").text
        attr = self.expect_word("an attribute").text if self.accept_symbol(".") else None
        if attr is None and function != "COUNT":
            raise self.source.error(f"{function} needs an attribute: {function}({name}.x)", token.at)
        self.expect_symbol(")", f"after the argument of {function}")
        return ast.Aggregate(function, name, attr, token.at)


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)
