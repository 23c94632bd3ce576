"""Names and words that have no meaning, or another meaning, where they are."""

from __future__ import annotations

from collections.abc import Iterable

from chainlake.cep.language.errors.placed import PatternError
from chainlake.cep.language.source_text import NOWHERE, At, SourceText
from chainlake.words import counted, nearest

KnownNames = Iterable[object]


class UnknownEvent(PatternError):
    """No event has this name."""

    @classmethod
    def of(cls, source: SourceText, at: At, name: str, known: KnownNames) -> UnknownEvent:
        """No event of the pattern has it."""
        return cls._at(source, at, f"there is no event named {name}", nearest(name, known))

    @classmethod
    def here(cls, source: SourceText, at: At, name: str, known: KnownNames) -> UnknownEvent:
        """No event that a condition or a value may mention here has it."""
        return cls._at(source, at, f"there is no event named {name} here", nearest(name, known))

    @classmethod
    def in_match(cls, source: SourceText, at: At, name: str, known: KnownNames) -> UnknownEvent:
        """No event of a match has it."""
        return cls._at(source, at, f"there is no event named {name} in a match", nearest(name, known))

    @classmethod
    def of_one(cls, source: SourceText, at: At, name: str, attr: str) -> UnknownEvent:
        """Expressions of one event name no events; ``attr``: the attribute asked for, as it must be written."""
        hint = f"All attributes are those of one event: write {attr}."
        return cls._at(source, at, f"there is no event named {name} here", hint)

    @classmethod
    def of_output(cls, source: SourceText, at: At, name: str, known: KnownNames) -> UnknownEvent:
        """No event whose attribute ``output`` could list has it."""
        return cls._at(source, at, f"output: there is no event named {name}", nearest(name, known), key="output")

    @classmethod
    def of_rates(cls, source: SourceText, at: At, name: str, known: KnownNames) -> UnknownEvent:
        """No event that could have a rate has it."""
        what = f"rates: there is no positive event named {name}"
        return cls._at(source, at, what, nearest(name, known), key="rates")

    @classmethod
    def counted(cls, source: SourceText, at: At, name: str, sets: KnownNames) -> UnknownEvent:
        """No set that ``output`` could count has it."""
        what = f"output: COUNT({name}) needs a set, but there is none called {name}"
        return cls._at(source, at, what, nearest(name, sets), key="output")


class UnknownAttribute(PatternError):
    """The events have no such attribute, or none that may be used here."""

    @classmethod
    def of(cls, source: SourceText, at: At, attr: str, known: KnownNames) -> UnknownAttribute:
        """The events have no such attribute."""
        return cls._at(source, at, f"the events have no attribute {attr}", nearest(attr, known))

    @classmethod
    def of_one(cls, source: SourceText, at: At, attr: str, known: KnownNames) -> UnknownAttribute:
        """The events have no such attribute; in an expression of one event, it may be a string without quotes."""
        text = f"Strings take single quotes: '{attr}'." if attr.isidentifier() else None
        hint = " ".join(part for part in (nearest(attr, known), text) if part) or None
        return cls._at(source, at, f"the events have no attribute {attr}", hint)

    @classmethod
    def history(cls, source: SourceText, at: At, attr: str) -> UnknownAttribute:
        """The attribute is a history of the source, in an expression of one event."""
        hint = "Features of a model look back with transform: lag N, or diff."
        return cls._at(source, at, f"{attr} is a history, which patterns can read but models cannot", hint)

    @classmethod
    def fixed(cls, source: SourceText, at: At, name: str, attr: str) -> UnknownAttribute:
        """The attribute is a column that every events table has; ``name``: the event's."""
        hint = f"Patterns may use {name}.id and {name}.ts."
        return cls._at(source, at, f"{attr} is a fixed column, not an attribute", hint)

    @classmethod
    def of_output(cls, source: SourceText, at: At, attr: str, known: KnownNames) -> UnknownAttribute:
        """The events have no such attribute that ``output`` could list."""
        what = f"output: the events have no attribute {attr}"
        return cls._at(source, at, what, nearest(attr, known), key="output")

    @classmethod
    def derived(cls, source: SourceText, at: At, attr: str) -> UnknownAttribute:
        """The attribute is computed when events are read."""
        hint = "List the attribute it is a history of."
        return cls._at(source, at, f"output: {attr} is derived and never stored", hint, key="output")


class UnknownParameter(PatternError):
    """There is no parameter, or no set, of this name."""

    @classmethod
    def of(cls, source: SourceText, at: At, name: str, known: KnownNames) -> UnknownParameter:
        """There is no such parameter."""
        return cls._at(source, at, f"there is no parameter {name}", nearest(name, known))

    @classmethod
    def or_word(cls, source: SourceText, at: At, name: str, known: KnownNames) -> UnknownParameter:
        """There is no such parameter, and a bare word is not a string here."""
        what = f"there is no parameter {name}, and a bare word may only be compared with = or !="
        return cls._at(source, at, what, nearest(name, known) or "Declare it under params: in the front matter.")

    @classmethod
    def of_set(cls, source: SourceText, at: At, name: str, known: KnownNames) -> UnknownParameter:
        """There is no such set."""
        return cls._at(source, at, f"there is no set {name}", nearest(name, known))


class UnfitParameter(PatternError):
    """A parameter is not what is needed in its place."""

    @classmethod
    def negative(cls, source: SourceText, at: At, name: object, value: str, word: str) -> UnfitParameter:
        """A duration is below 0; ``word``: of what, such as "window"."""
        which = "the first and the last event" if word == "window" else "two neighbouring events"
        what = f"{name} is {value}, and a {word} cannot be negative"
        return cls._at(source, at, what, f"It is the longest time between {which}.")

    @classmethod
    def no_duration(cls, source: SourceText, at: At, name: object) -> UnfitParameter:
        """The parameter is not a duration."""
        return cls._at(source, at, f"{name} is not a duration")

    @classmethod
    def no_number(cls, source: SourceText, at: At, name: str | None) -> UnfitParameter:
        """The parameter is not a number."""
        return cls._at(source, at, f"{name} is not a number")

    @classmethod
    def no_text(cls, source: SourceText, at: At, name: str, known: KnownNames) -> UnfitParameter:
        """The pattern of LIKE or MATCHES is not a string; ``name`` is "it" unless it is a word."""
        return cls._at(source, at, f"{name} is not a string", nearest(name, known) or "Write it in single quotes.")

    @classmethod
    def a_set(cls, source: SourceText, at: At, name: str) -> UnfitParameter:
        """The parameter is a set, and one value is needed."""
        return cls._at(source, at, f"{name} is a set, not a value", f"Write IN {name}.")

    @classmethod
    def no_set(cls, source: SourceText, at: At, name: str) -> UnfitParameter:
        """The parameter is one value, and a set is needed."""
        return cls._at(source, at, f"{name} is one value, not a set", "Declare it as a list.")

    @classmethod
    def given(cls, source: SourceText, name: str, problem: str) -> UnfitParameter:
        """A caller's value for it cannot be used; ``problem``: what is wrong, in words that follow the name."""
        return cls._at(source, NOWHERE, f"the parameter {name} {problem}", key=name)


class UnfitWord(PatternError):
    """A bare word that cannot be a string."""

    @classmethod
    def event(cls, source: SourceText, at: At, name: str) -> UnfitWord:
        """The word is the name of an event."""
        hint = f"Write {name}.attribute, or '{name}' in quotes for the string."
        return cls._at(source, at, f"'{name}' is an event name, not a value", hint)

    @classmethod
    def null(cls, source: SourceText, at: At, word: str) -> UnfitWord:
        """The word is NULL; ``word``: as it is written."""
        what = "a missing value equals nothing, so NULL cannot be compared or computed with"
        return cls._at(source, at, what, f"Write IS NULL or IS NOT NULL, or '{word}' in quotes for the string.")


class UnknownFunction(PatternError):
    """There is no function of this name."""

    @classmethod
    def of(cls, source: SourceText, at: At, name: str, known: KnownNames) -> UnknownFunction:
        """For a name in a call."""
        return cls._at(source, at, f"there is no function {name}", nearest(name, known))


class UnfitFunction(PatternError):
    """A function cannot be declared, or cannot be called like this."""

    @classmethod
    def takes(cls, source: SourceText, at: At, name: str, takes: tuple[int, int], given: int) -> UnfitFunction:
        """A function does not take this many arguments; ``takes``: how many it takes, at least and at most."""
        least, most = takes
        number = counted(least, "value") if least == most else f"{least} to {most} values"
        return cls._at(source, at, f"{name} takes {number}, not {given}")

    @classmethod
    def no_code(cls, source: SourceText, at: At, name: str, known: KnownNames) -> UnfitFunction:
        """A function is declared, but its code is not given."""
        return cls._at(source, at, f"there is no code for {name}", nearest(name, known), key="functions")

    @classmethod
    def of_language(cls, source: SourceText, at: At, name: str) -> UnfitFunction:
        """A function is declared that the language already has."""
        what = f"{name} is a function of the language"
        return cls._at(source, at, what, "Choose another name.", key="functions")

    @classmethod
    def of_pairs(cls, source: SourceText, at: At, name: str, aggregate: str) -> UnfitFunction:
        """A function of pairs is called inside an aggregate."""
        what = f"{name} is called for pairs of events, but {aggregate} takes all events of a set"
        return cls._at(source, at, what, "Compare it in a condition instead.")
