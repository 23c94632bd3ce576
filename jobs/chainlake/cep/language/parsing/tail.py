"""Parses what follows the conditions of a query: windows, which matches are kept, what is computed from them."""

from __future__ import annotations

from chainlake.cep.language import ast
from chainlake.cep.language.parsing.conditions import Conditions
from chainlake.cep.language.parsing.cursor import is_word, number
from chainlake.cep.language.parsing.errors import Duplicate, Misplaced, WrongCall
from chainlake.cep.language.parsing.expected import Expected
from chainlake.cep.language.parsing.lexer import Token

CONTEXTS = ("unrestricted", "recent", "chronicle", "continuous", "cumulative")
SELECTS = ("each", "first", "last", "per_initiator")
#: How a selection may begin.
SELECTING = ("CONTEXT", "SELECT", "PICK", "CONSUME", "PER")
#: Words after a number that are not its unit.
_AFTER_WINDOW = (
    *("PAUSE", "MAXIMAL", "OUTERMOST", *SELECTING, "MEASURES", "EPISODES", "RANK", "TOP"),
    *("FROM", "EVENTS"),
)


class Tail(Conditions):
    """The grammar of what follows the conditions."""

    def windows(self) -> tuple[ast.Within | None, tuple[ast.EventWindow, ...]]:
        """``WITHIN 1 h, 25 EVENTS, GAP 3 EVENTS OF KEY``: at most one duration, and windows in events."""
        within: ast.Within | None = None
        counted: list[ast.EventWindow] = []
        while True:
            opening = self.take()  # WITHIN, or a comma
            if self.at_word("GAP") and self.ahead().kind == "number" or is_word(self.ahead(), "EVENTS"):
                counted.append(self.event_window())
            elif within is not None:
                raise Duplicate.duration(self.source, self.token.at)
            else:
                within = self.duration("WITHIN", opening)
            if not self.at_symbol(","):
                break
        if len({window.gap for window in counted}) < len(counted):
            raise Duplicate.event_window(self.source, counted[-1].at)
        return within, tuple(counted)

    def event_window(self) -> ast.EventWindow:
        """``25 EVENTS`` or ``GAP 25 EVENTS``, with ``OF KEY``."""
        at = self.token.at
        gap = self.accept_word("GAP") is not None
        count = self.whole_number("a number of events")
        if not self.accept_word("EVENTS"):
            raise Expected.word(self.source, self.token, "EVENTS")
        by_key = self.accept_word("OF") is not None
        if by_key and not self.accept_word("KEY"):
            raise Expected.word(self.source, self.token, "KEY", "after OF")
        return ast.EventWindow(count, gap, by_key, at)

    def window(self, word: str) -> ast.Within:
        """A word and a duration."""
        return self.duration(word, self.take())

    def duration(self, word: str, opening: Token) -> ast.Within:
        """A duration after a word."""
        token = self.take()
        if token.kind not in ("number", "word"):
            raise Expected.duration(self.source, token, word)
        value = number(token.text) if token.kind == "number" else token.text
        return ast.Within(value, None if self.at_word(*_AFTER_WINDOW) else self.unit(), opening.at)

    # ---- which matches

    def selection(self) -> ast.Selection:
        """``CONTEXT``, ``SELECT`` or ``PICK``, then ``CONSUME``, then ``PER``; each is optional."""
        at = self.token.at
        context = self.choice("a context", CONTEXTS) if self.accept_word("CONTEXT") else ""
        select = self.choice("a selection", SELECTS) if not context and self.accept_word("SELECT") else ""
        picks = self.picks() if not context and not select and self.at_word("PICK") else ()
        if self.at_word("CONTEXT", "SELECT", "PICK"):
            raise Duplicate.selection(self.source, self.token.at)
        consume = self.consume() if self.at_word("CONSUME") else None
        per = self.choice("what is published at a time", ("match", "terminator")) if self.accept_word("PER") else ""
        if context and (consume is not None or per):
            raise Duplicate.consumption(self.source, at, context)
        return ast.Selection(context, select, picks, consume, per, at)

    def choice(self, what: str, words: tuple[str, ...]) -> str:
        """One of some words, in any case."""
        if self.token.kind != "word" or self.token.text.lower() not in words:
            raise Expected.choice(self.source, self.token, what, words)
        return self.take().text.lower()

    def picks(self) -> tuple[ast.Pick, ...]:
        """``PICK first a, last b within 5 s from c``."""
        self.take()
        found = [self.pick()]
        while self.accept_symbol(","):
            found.append(self.pick())
        return tuple(found)

    def pick(self) -> ast.Pick:
        """One clause of PICK."""
        at = self.token.at
        last = self.choice("first or last", ("first", "last")) == "last"
        name = self.expect_word("an event name").text
        within = self.window("within") if self.at_keyword("WITHIN") else None
        origin = self.expect_word("an event name").text if self.accept_word("FROM") else None
        if (within is None) != (origin is None):
            raise WrongCall.distance(self.source, at, name)
        return ast.Pick(last, name, within, origin, at)

    def consume(self) -> str | tuple[str, ...]:
        """``CONSUME all``, ``none``, ``initiator``, or names."""
        self.take()
        if self.at_word("ALL", "NONE", "INITIATOR") and not self.ahead_symbol("."):
            word = self.take().text.lower()
            if self.at_symbol(","):
                raise Misplaced.consumed(self.source, self.token, word)
            return word
        if self.token.kind != "word":
            raise Expected.consumption(self.source, self.token)
        names = [self.take().text]
        while self.accept_symbol(","):
            names.append(self.expect_word("an event name").text)
        return tuple(names)

    def ahead_symbol(self, symbol: str) -> bool:
        """Whether a symbol follows the next token."""
        return self.ahead().kind == "symbol" and self.ahead().text == symbol

    # ---- what is computed

    def measures(self) -> tuple[ast.Measure, ...]:
        """``MEASURES value AS name, …``."""
        self.take()
        found = [self.measure()]
        while self.accept_symbol(","):
            found.append(self.measure())
        return tuple(found)

    def measure(self) -> ast.Measure:
        """One measure."""
        place = self.token.at
        value = self.as_value(self.sum(), place)
        if not self.accept_word("AS"):
            raise Expected.measure_name(self.source, self.token)
        return ast.Measure(value, self.expect_word("the name of a measure").text, place)

    # ---- what happens to the matches

    def episodes(self) -> ast.Episodes:
        """``EPISODES BY a.attr PAUSE 10 min``."""
        self.take()
        if not self.accept_word("BY"):
            raise Expected.of_episodes(self.source, self.token, "BY", "after EPISODES")
        key = self.token
        if is_word(key, "PAUSE") and self.ahead().kind == "number":
            raise Expected.episodes_key(self.source, key.at)
        name, attr = "", self.expect_name("what the matches of an episode have in common").text
        if key.kind == "word" and self.accept_symbol("."):
            name, attr = attr, self.expect_name("an attribute").text
        if not self.at_word("PAUSE"):
            raise Expected.of_episodes(self.source, self.token, "PAUSE", "here")
        return ast.Episodes(name, attr, self.window("PAUSE"), key.at)
