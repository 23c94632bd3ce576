"""Errors where the grammar of patterns expects something other than what is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from chainlake.cep.language.errors.placed import PatternError
from chainlake.cep.language.source_text import At, SourceText

_EPISODES = "EPISODES BY door PAUSE 10 min: matches of one door at most 10 minutes apart are one row."


class Found(Protocol):
    """A token that is where another one is expected."""

    @property
    def kind(self) -> str:
        """Its kind, such as ``keyword``."""

    @property
    def text(self) -> str:
        """Its text."""

    @property
    def at(self) -> At:
        """Its place."""

    @property
    def shown(self) -> str:
        """The token as a message names it."""


#: The clauses of a query in their order.
ORDER = (
    "The order is PATTERN, WHERE, WITHIN, PAUSE, MAXIMAL or OUTERMOST, CONTEXT, SELECT, PICK, CONSUME, PER, MEASURES, "
    "EPISODES, RANK BY, TOP."
)


class Expected(PatternError):
    """Something else is where the grammar expects a certain part; each constructor names that part."""

    @classmethod
    def _not(cls, source: SourceText, found: Found, what: str, hint: str | None = None) -> Expected:
        return cls._at(source, found.at, f"{what}, not {found.shown}", hint)

    @classmethod
    def start(cls, source: SourceText, found: Found, *, elsewhere: bool) -> Expected:
        """PATTERN; ``elsewhere``: whether the query begins as in another language."""
        hint = "E.g. PATTERN SEQ(Open a, Close b) WHERE a.door = b.door WITHIN 5 min."
        return cls._not(source, found, "a query begins with PATTERN", hint if elsewhere else None)

    @classmethod
    def symbol(cls, source: SourceText, found: Found, symbol: str, where: str, other: str) -> Expected:
        """A symbol, or ``other`` unless it is empty; ``where``: its place, in words."""
        wanted = f"'{symbol}' or '{other}'" if other else f"'{symbol}'"
        return cls._not(source, found, f"{wanted} is expected {where}")

    @classmethod
    def word(cls, source: SourceText, found: Found, word: str, where: str = "") -> Expected:
        """A word; ``where``: its place, in words, or empty."""
        return cls._not(source, found, " ".join(part for part in (word, "is expected", where) if part))

    @classmethod
    def of_ranking(cls, source: SourceText, found: Found, word: str, where: str) -> Expected:
        """A word of RANK BY and TOP."""
        hints = {
            "STEP": "HOP 1 h STEP 15 min.",
            "PER": "TOP 10 PER DAY; TOP 10 PER ALL has one list.",
            "LEAST": "AT MOST follows DISTINCT ON; AT LEAST is the smallest score.",
        }
        return cls._not(source, found, f"{word} is expected {where}", hints.get(word))

    @classmethod
    def name(cls, source: SourceText, found: Found, what: str) -> Expected:
        """A name; ``what``: of what, in words."""
        hint = None
        if found.kind == "keyword":
            hint = f'This word is reserved; choose another, or write "{found.text.lower()}" in double quotes.'
        return cls._not(source, found, f"{what} is expected", hint)

    @classmethod
    def plain_name(cls, source: SourceText, found: Found, what: str) -> Expected:
        """A name that is not quoted."""
        said = f"{what} is expected, and only types and attributes are written in double quotes"
        return cls._at(source, found.at, said)

    @classmethod
    def event_name(cls, source: SourceText, found: Found, kind: str) -> Expected:
        """The name of an event after its type, ``kind``."""
        return cls._not(source, found, f"a name is expected after {kind}", "Conditions call the event by its name.")

    @classmethod
    def ranged(cls, source: SourceText, found: Found, function: str) -> Expected:
        """The name of the events over which an aggregate ranges."""
        return cls._not(source, found, f"the event name that {function} ranges over is expected")

    @classmethod
    def measure_name(cls, source: SourceText, found: Found) -> Expected:
        """The name of a measure."""
        hint = "MEASURES LAST(b.price) - a.price AS rise."
        return cls._not(source, found, "AS and a name are expected after a measure", hint)

    @classmethod
    def choice(cls, source: SourceText, found: Found, what: str, words: Sequence[str]) -> Expected:
        """One of some words."""
        return cls._not(source, found, f"{what} is expected", f"One of {', '.join(words)}.")

    @classmethod
    def whole_number(cls, source: SourceText, found: Found, what: str) -> Expected:
        """A whole number; ``what``: of what, in words."""
        return cls._not(source, found, f"{what} is expected", "Write a whole number without a sign, such as 2.")

    @classmethod
    def consumption(cls, source: SourceText, found: Found) -> Expected:
        """What CONSUME uses up."""
        hint = "Write one of all, none, initiator, or the names that are used up, such as CONSUME a, b."
        return cls._not(source, found, "all, none, initiator or an event name is expected", hint)

    @classmethod
    def share(cls, source: SourceText, found: Found, function: str) -> Expected:
        """The share that an aggregate takes."""
        return cls._not(source, found, "a number from 0 to 1 is expected", f"{function}(b.x, 0.9).")

    @classmethod
    def amount(cls, source: SourceText, found: Found, after: str) -> Expected:
        """A number or a duration in a ranking."""
        return cls._not(source, found, f"a number or a duration is expected after {after}")

    @classmethod
    def duration(cls, source: SourceText, found: Found, after: str) -> Expected:
        """A duration."""
        return cls._not(source, found, f"a duration is expected after {after}", f"{after} 5 min.")

    @classmethod
    def value(cls, source: SourceText, found: Found) -> Expected:
        """A value."""
        return cls._not(source, found, "a value is expected")

    @classmethod
    def value_not_name(cls, source: SourceText, found: Found) -> Expected:
        """A value, where there is a name in double quotes."""
        text = found.text
        hint = f"Strings take single quotes: '{text}'. Attributes follow a name: a.\"{text}\"."
        return cls._at(source, found.at, f'"{text}" is a name, and a value is expected', hint)

    @classmethod
    def value_not_condition(cls, source: SourceText, at: At) -> Expected:
        """A value, where there is a condition."""
        hint = "CASE WHEN … THEN 1 ELSE 0 END turns a condition into a number."
        return cls._at(source, at, "a value is expected, not a condition", hint)

    @classmethod
    def condition(cls, source: SourceText, at: At) -> Expected:
        """A condition, where there is a value."""
        return cls._at(source, at, "a condition is expected, not a value", "Compare it: a.up = TRUE.")

    @classmethod
    def null(cls, source: SourceText, found: Found) -> Expected:
        """NULL or NOT NULL after IS."""
        hint = "Other values are compared with =."
        return cls._not(source, found, "NULL or NOT NULL is expected after IS", hint)

    @classmethod
    def text(cls, source: SourceText, found: Found, word: str) -> Expected:
        """The text of LIKE or MATCHES."""
        hint = "E.g. LIKE 'BA%', or MATCHES '^BA[CD]'."
        return cls._not(source, found, f"a string in single quotes is expected after {word}", hint)

    @classmethod
    def item(cls, source: SourceText, found: Found) -> Expected:
        """An item of a set."""
        return cls._not(source, found, "a set holds numbers, strings and words", "IN {1, 2}, or IN {'a', 'b'}.")

    @classmethod
    def unit(cls, source: SourceText, found: Found, units: str) -> Expected:
        """A unit of time; ``units``: the usual ones."""
        return cls._at(source, found.at, f"'{found.text}' is not a unit", f"Units are {units}.")

    @classmethod
    def braces(cls, source: SourceText, at: At) -> Expected:
        """Braces around a set."""
        return cls._at(source, at, "a set is written in braces", "IN {1, 2}; or the name of a set under sets:.")

    @classmethod
    def criterion(cls, source: SourceText, found: Found) -> Expected:
        """A criterion of a ranking."""
        hint = "RANK BY MAX(b.price - a.price): the largest first; MIN(…): the smallest."
        return cls._not(source, found, "MAX or MIN is expected", hint)

    @classmethod
    def top(cls, source: SourceText, found: Found) -> Expected:
        """How many matches a ranking keeps."""
        hint = "Say how many matches are kept: TOP 10 PER DAY, or TOP 10 PER ALL."
        return cls._not(source, found, "TOP is expected after RANK BY", hint)

    @classmethod
    def period(cls, source: SourceText, found: Found, periods: Sequence[str]) -> Expected:
        """The period of a ranking."""
        return cls._not(source, found, "a period is expected after PER", f"One of {', '.join(periods)}.")

    @classmethod
    def zone(cls, source: SourceText, found: Found) -> Expected:
        """The time zone of a period."""
        hint = "PER DAY IN 'America/New_York'."
        return cls._not(source, found, "a time zone in single quotes is expected", hint)

    @classmethod
    def of_episodes(cls, source: SourceText, found: Found, word: str, where: str) -> Expected:
        """A word of EPISODES."""
        return cls._not(source, found, f"{word} is expected {where}", _EPISODES)

    @classmethod
    def episodes_key(cls, source: SourceText, at: At) -> Expected:
        """The key that the matches of an episode have in common."""
        return cls._at(source, at, "what the matches of an episode have in common is missing", _EPISODES)


class WindowExpected(Expected):
    """WITHIN, or what may replace it, is missing; ``at_end``: whether the text ends there."""

    at_end: bool

    @classmethod
    def before(cls, source: SourceText, found: Found) -> WindowExpected:
        """A clause that follows WITHIN stands in its place."""
        error = cls._at(source, found.at, f"WITHIN is expected before {found.text.upper()}", ORDER)
        return error.holding(at_end=False)

    @classmethod
    def of(cls, source: SourceText, found: Found, *, sequence: bool, conditions: bool) -> WindowExpected:
        """For the token that is there; ``sequence``: whether other languages write sequences like this;
        ``conditions``: whether conditions come before it."""
        hint = "A sequence is written SEQ(A a, B b)." if sequence else "End the query with WITHIN 10 min."
        if conditions and found.kind != "end":
            hint = f"Conditions are joined by AND and OR. {hint}"
        error = cls._at(source, found.at, f"WITHIN is expected, not {found.shown}", hint)
        return error.holding(at_end=found.kind == "end")
