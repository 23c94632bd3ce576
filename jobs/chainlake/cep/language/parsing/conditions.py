"""Conditions and values. They share parentheses, so one set of rules parses both."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from chainlake.cep.language import ast
from chainlake.cep.language.parsing.cursor import Cursor, is_word, number
from chainlake.cep.language.parsing.errors import Duplicate, TooComplex, WrongCall
from chainlake.cep.language.parsing.expected import Expected
from chainlake.cep.language.parsing.lexer import Token, misspelt, soft
from chainlake.definitions.duration import UNITS, is_unit, seconds

#: The most operators in a row, since later passes are recursive.
_LONGEST = 150
_COMPARE = frozenset({"<", "<=", ">", ">=", "=", "!="})


class Conditions(Cursor):
    """The grammar of conditions and values."""

    def condition_after_where(self) -> ast.Node | None:
        """The condition after WHERE, or None if there is no WHERE."""
        if not self.at_keyword("WHERE"):
            return None
        self.take()
        return self.condition()

    def condition(self) -> ast.Node:
        """A condition."""
        at = self.token.at
        return self.as_condition(self.disjunction(), at)

    def disjunction(self) -> ast.Node:
        """Conditions joined by OR."""
        return self.chain("OR", self.conjunction, ast.Any)

    def conjunction(self) -> ast.Node:
        """Conditions joined by AND."""
        return self.chain("AND", self.negation, ast.All)

    def chain(self, word: str, part: Callable[[], ast.Node], make: type[ast.All] | type[ast.Any]) -> ast.Node:
        """Parts joined by a word."""
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
        """NOT with a condition, or a comparison."""
        if self.at_keyword("NOT"):
            at = self.take().at
            place = self.token.at
            return ast.Not(self.as_condition(self.nested(self.negation), place), at)
        return self.comparison()

    def comparison(self) -> ast.Node:
        """A comparison, a test of one value, or a value on its own."""
        at = self.token.at
        left = self.sum()
        token = self.token
        if token.kind == "symbol" and token.text in _COMPARE:
            self.take()
            place = self.token.at
            right = self.as_value(self.sum(), place)
            if self.token.kind == "symbol" and self.token.text in _COMPARE:
                raise Duplicate.comparison(self.source, self.token.at)
            return ast.Compare(token.text, self.as_value(left, at), right, token.at)
        if self.at_word("IS"):
            return self.null_test(left, at)
        following = self.ahead() if self.at_keyword("NOT") else token
        tests = is_word(following, "BETWEEN", "LIKE", "MATCHES")
        if not tests and not (following.kind == "keyword" and following.text == "IN"):
            return left
        negated = following is not token
        if negated:
            self.take()
        left = self.as_value(left, at)
        if self.at_word("BETWEEN"):
            return self.between(left, negated)
        if self.at_word("LIKE", "MATCHES"):
            return self.text_test(left, negated)
        at = self.take().at
        return ast.Member(left, negated, self.items(), at)

    def null_test(self, left: ast.Node, at: tuple[int, int]) -> ast.Node:
        """``IS [NOT] NULL``."""
        token = self.take()
        negated = self.at_keyword("NOT")
        if negated:
            self.take()
        if not self.at_word("NULL"):
            raise Expected.null(self.source, self.token)
        self.take()
        return ast.IsNull(self.as_value(left, at), negated, token.at)

    def between(self, value: ast.Node, negated: bool) -> ast.Node:
        """``BETWEEN low AND high``, as two comparisons."""
        token = self.take()
        place = self.token.at
        low = self.as_value(self.sum(), place)
        if not self.at_keyword("AND"):
            raise Expected.word(self.source, self.token, "AND", "after BETWEEN and a value")
        self.take()
        place = self.token.at
        high = self.as_value(self.sum(), place)
        inside = ast.All((ast.Compare(">=", value, low, token.at), ast.Compare("<=", value, high, token.at)), token.at)
        return ast.Not(inside, token.at) if negated else inside

    def text_test(self, value: ast.Node, negated: bool) -> ast.Node:
        """``LIKE 'pattern'`` or ``MATCHES 'expression'``."""
        token = self.take()
        pattern = self.take()
        if pattern.kind not in ("string", "word"):
            raise Expected.text(self.source, pattern, token.text.upper())
        of: ast.Node = ast.Literal(pattern.text, pattern.at)
        if pattern.kind == "word":
            of = ast.Word(pattern.text, pattern.at)
        return ast.Like(value, of, negated, token.text.upper() == "MATCHES", token.at)

    def items(self) -> tuple[ast.Node, ...] | str:
        """The items of a set, or its name."""
        if self.at_symbol("("):
            raise Expected.braces(self.source, self.token.at)
        if not self.at_symbol("{"):
            return self.expect_word("a set {…} or the name of a set").text
        self.take()
        found = [self.one_item()]
        while self.accept_symbol(","):
            found.append(self.one_item())
        self.expect_symbol("}", "in a set", other=",")
        return tuple(found)

    def one_item(self) -> ast.Node:
        """One item of a set."""
        token = self.take()
        if token.kind == "symbol" and token.text == "-" and self.token.kind == "number":
            return ast.Literal(-number(self.take().text), token.at)
        if token.kind == "number":
            return ast.Literal(number(token.text), token.at)
        if token.kind == "string":
            return ast.Literal(token.text, token.at)
        if token.kind == "word":
            return ast.Word(token.text, token.at)
        raise Expected.item(self.source, token)

    # ---- values

    def sum(self) -> ast.Node:
        """Terms joined by + and -."""
        return self.operators(("+", "-"), self.term)

    def term(self) -> ast.Node:
        """Factors joined by * and /."""
        return self.operators(("*", "/"), self.factor)

    def operators(self, symbols: tuple[str, ...], part: Callable[[], ast.Node]) -> ast.Node:
        """Parts joined by operators, from left to right."""
        at = self.token.at
        node = part()
        count = 0
        while self.at_symbol(*symbols):
            token = self.take()
            count += 1
            if count > _LONGEST:
                raise TooComplex.in_a_row(self.source, token.at, _LONGEST)
            place = self.token.at
            right = self.as_value(part(), place)
            node = ast.Arithmetic(token.text, self.as_value(node, at), right, token.at)
        return node

    def factor(self) -> ast.Node:
        """A value without operators, or anything in parentheses."""
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
            return self.number_with_unit(token)
        if token.kind == "string":
            return ast.Literal(token.text, token.at)
        if token.kind == "keyword" and token.text in ("TRUE", "FALSE"):
            return ast.Literal(token.text == "TRUE", token.at)
        if token.kind == "word":
            return self.identifier(token)
        if token.kind == "quoted":
            raise Expected.value_not_name(self.source, token)
        raise Expected.value(self.source, token)

    def number_with_unit(self, token: Token) -> ast.Node:
        """A number, or a duration."""
        value = number(token.text)
        if self.token.kind != "word" or not is_unit(self.token.text) and self.goes_on():
            return ast.Literal(value, token.at)
        return ast.Duration(seconds(value, str(self.unit())), None, token.at)

    def goes_on(self) -> bool:
        """Whether the next word is not a misspelt unit, but belongs to what follows a number."""
        following = self.ahead()
        begins = following.kind == "symbol" and following.text in {".", "(", *_COMPARE}
        return begins or self.at_word(*soft()) or not is_unit(misspelt(self.token.text) or "s")

    def identifier(self, token: Token) -> ast.Node:
        """What a word stands for, which depends on what follows it."""
        if self.accept_symbol("."):
            return ast.Ref(token.text, self.expect_name("an attribute").text, token.at)
        if self.at_symbol("("):
            return self.nested(lambda: self.applied(token))
        if is_word(token, "CASE") and self.at_word("WHEN"):
            return self.nested(lambda: self.case(token))
        if self.token.kind == "word" and is_unit(self.token.text):
            unit = self.take().text
            return ast.Duration(Fraction(UNITS[unit.lower()]), token.text, token.at)
        return ast.Word(token.text, token.at)

    def applied(self, token: Token) -> ast.Node:
        """An aggregate, PREV, or a function with its arguments."""
        self.take()
        word = token.text.upper()
        if word in ast.AGGREGATES:
            return self.aggregate(token)
        if word == "PREV":
            return self.prev(token)
        args = [self.argument()]
        while self.accept_symbol(","):
            args.append(self.argument())
        self.expect_symbol(")", f"after the arguments of {token.text}")
        return ast.Call(token.text.lower(), tuple(args), token.at)

    def argument(self) -> ast.Node:
        """One argument of a function."""
        place = self.token.at
        return self.as_value(self.sum(), place)

    def aggregate(self, token: Token) -> ast.Node:
        """An aggregate whose name and parenthesis have been read."""
        function = token.text.upper()
        known = ast.AGGREGATES[function]
        distinct = self.at_word("DISTINCT") and self.ahead().kind == "word"
        if distinct:
            self.take()
            if not known.counts:
                raise WrongCall.distinct(self.source, token.at)
        if self.token.kind != "word" and not self.at_symbol("(", "-"):
            raise Expected.ranged(self.source, self.token, function)
        place = self.token.at
        of = self.argument()
        share = self.share(function) if known.share else None
        self.expect_symbol(")", f"after the argument of {function}")
        if isinstance(of, ast.Ref):
            return ast.Aggregate(function, of.name, of.attr, token.at, distinct, share)
        if isinstance(of, ast.Word):
            if not known.counts or distinct:
                raise WrongCall.no_attribute(self.source, token.at, function, of.name)
            return ast.Aggregate(function, of.name, None, token.at)
        if of.aggregated or len(of.plain) != 1:
            raise WrongCall.several_names(self.source, place, function)
        return ast.Aggregate(function, next(iter(of.plain)), None, token.at, distinct, share, of)

    def share(self, function: str) -> float:
        """The second argument of an aggregate that takes a share."""
        self.expect_symbol(",", f"after the first argument of {function}")
        found = self.take()
        if found.kind != "number" or not 0 <= float(found.text) <= 1:
            raise Expected.share(self.source, found, function)
        return float(found.text)

    def prev(self, token: Token) -> ast.Node:
        """``PREV``, whose name and parenthesis have been read."""
        name = self.expect_word("an event name").text
        self.expect_symbol(".", "after the event name of PREV")
        attr = self.expect_name("an attribute").text
        steps, gap = 1, None
        if self.accept_symbol(","):
            at = self.token.at
            steps = self.whole_number("the number of events to go back")
            if not 1 <= steps <= 1000:
                raise WrongCall.steps(self.source, at)
            if self.accept_symbol(","):
                gap = self.argument()
        self.expect_symbol(")", "after the arguments of PREV")
        return ast.Prev(name, attr, steps, gap, at=token.at)

    def case(self, token: Token) -> ast.Node:
        """``CASE``, whose first word has been read."""
        whens = []
        while self.accept_word("WHEN"):
            condition = self.condition()
            if not self.accept_word("THEN"):
                raise Expected.word(self.source, self.token, "THEN", "in CASE")
            whens.append((condition, self.argument()))
        otherwise = self.argument() if self.accept_word("ELSE") else None
        if not self.accept_word("END"):
            raise Expected.word(self.source, self.token, "END", "after CASE")
        return ast.Case(tuple(whens), otherwise, token.at)
