"""Parses ``RANK BY`` and ``TOP``: which matches are the best."""

from __future__ import annotations

from chainlake.cep.language import ast
from chainlake.cep.language.parsing.cursor import is_word, number
from chainlake.cep.language.parsing.errors import Misplaced
from chainlake.cep.language.parsing.expected import Expected
from chainlake.cep.language.parsing.tail import Tail
from chainlake.cep.ranking.kinds import COMBINES, PERIODS
from chainlake.definitions.duration import UNITS, is_unit, seconds

#: How a ranking may begin.
RANKING = ("RANK", "TOP")
#: Periods that may follow the number of matches at once.
_WITHOUT_PER = tuple(word for word, calendar in PERIODS.items() if calendar is None)
#: What may follow the period, each once and in this order.
_OPTIONS = ("FOR", "DISTINCT", "NON", "AT", "QUANTUM")
_AFTER_AMOUNT = (
    "NORM", "WEIGHT", "COMBINE", "TOP", "WITH", "PER", "BY", "OFFSET", "STEP", *_WITHOUT_PER, *_OPTIONS,
)  # fmt: skip


class Ranked(Tail):
    """The grammar of rankings."""

    def score(self, *, branch: bool = False) -> ast.Score | None:
        """``RANK BY criterion, … [COMBINE word]``, in a branch of OR if ``branch``; None if no RANK comes next."""
        at = self.token.at
        if not self.accept_word("RANK"):
            return None
        self.expect_one("BY", "after RANK")
        criteria = [self.criterion()]
        # After a branch of OR, a comma may also begin the next branch.
        while self.at_symbol(",") and (is_word(self.ahead(), "MAX", "MIN") or not branch):
            self.take()
            criteria.append(self.criterion())
        combine = self.choice("how criteria are combined", tuple(COMBINES)) if self.accept_word("COMBINE") else ""
        return ast.Score(tuple(criteria), combine, at)

    def criterion(self) -> ast.Criterion:
        """``MAX(value)`` or ``MIN(value)``, with ``NORM`` and ``WEIGHT``."""
        token = self.token
        if not self.accept_word("MAX", "MIN"):
            raise Expected.criterion(self.source, token)
        self.expect_symbol("(", f"after {token.text}")
        value = self.nested(self.argument)
        self.expect_symbol(")", f"after the value of {token.text}")
        norm = None
        if self.accept_word("NORM"):
            low = self.amount("NORM")
            self.expect_symbol("..", "between the ends of NORM")
            norm = (low, self.amount(".."))
        weight = self.amount("WEIGHT") if self.accept_word("WEIGHT") else None
        return ast.Criterion(token.text.upper() == "MAX", value, norm, weight, token.at)

    def ranking(self) -> ast.Ranking:
        """``[RANK BY …] TOP 10 [WITH TIES] PER DAY …``."""
        score = self.score()
        at = self.token.at
        if not self.accept_word("TOP"):
            raise Expected.top(self.source, self.token)
        count = self.amount("TOP")
        ties = self.accept_word("WITH") is not None
        if ties:
            self.expect_one("TIES", "after WITH")
        if not self.at_word(*_WITHOUT_PER):
            self.expect_one("PER", "after the number of matches")
        period = self.period()
        per = self.values("FOR", "EACH")
        distinct = self.values("DISTINCT", "ON")
        most = None
        if distinct and self.at_word("AT") and is_word(self.ahead(), "MOST"):
            self.take()
            self.take()
            most = self.amount("AT MOST")
        non_overlapping = self.accept_word("NON") is not None
        if non_overlapping:
            self.expect_one("OVERLAPPING", "after NON")
        least = None
        if self.accept_word("AT"):
            self.expect_one("LEAST", "after AT")
            least = self.amount("AT LEAST")
        quantum = self.amount("QUANTUM") if self.accept_word("QUANTUM") else None
        if self.at_word(*_OPTIONS):
            raise Misplaced.of_ranking(self.source, self.token)
        return ast.Ranking(score, count, period, ties, per, distinct, most, non_overlapping, least, quantum, at)

    def period(self) -> ast.Period:
        """What follows ``PER``."""
        at = self.token.at
        word = self.accept_word(*PERIODS)
        if word is None:
            raise Expected.period(self.source, self.token, tuple(PERIODS))
        kind = word.text.lower()
        size = step = offset = None
        zone, by_first = "", False
        if PERIODS[word.text.upper()] is not None and self.at_keyword("IN"):
            self.take()
            token = self.take()
            if token.kind != "string":
                raise Expected.zone(self.source, token)
            zone = token.text
        if kind in ("bucket", "hop"):
            size = self.amount(word.text.upper())
        if kind == "hop":
            self.expect_one("STEP", "after the length of a window")
            step = self.amount("STEP")
        if kind == "bucket" and self.accept_word("BY"):
            by_first = self.choice("the event that counts", ("last", "first")) == "first"
        if kind in ("bucket", "hop") and self.accept_word("OFFSET"):
            offset = self.amount("OFFSET")
        return ast.Period(kind, zone, size, step, by_first, offset, at)

    def values(self, word: str, other: str) -> tuple[ast.Node, ...]:
        """Values after two words, or none if the first one does not come next."""
        if not self.accept_word(word):
            return ()
        self.expect_one(other, f"after {word}")
        found = [self.argument()]
        while self.accept_symbol(","):
            found.append(self.argument())
        return tuple(found)

    def amount(self, after: str) -> ast.Node:
        """A number, a duration, or a parameter, with its sign."""
        token = self.take()
        sign = -1 if token.kind == "symbol" and token.text == "-" else 1
        if sign < 0:
            token = self.take()
        if token.kind == "number":
            value = sign * number(token.text)
            if self.token.kind == "word" and (is_unit(self.token.text) or not self.at_word(*_AFTER_AMOUNT)):
                return ast.Duration(seconds(value, str(self.unit())), None, token.at)
            return ast.Literal(value, token.at)
        if token.kind == "word" and sign > 0 and not is_word(token, *_AFTER_AMOUNT):
            if self.token.kind == "word" and is_unit(self.token.text):
                return ast.Duration(UNITS[self.take().text.lower()], token.text, token.at)
            return ast.Word(token.text, token.at)
        raise Expected.amount(self.source, token, after)

    def expect_one(self, word: str, where: str) -> None:
        """Take a word.

        Raises:
            DefinitionError: something else comes next.
        """
        if not self.accept_word(word):
            raise Expected.of_ranking(self.source, self.token, word, where)
