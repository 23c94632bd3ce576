"""What a pattern may say but its author probably does not intend: one class per kind of warning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from chainlake.cep.language.errors.placed import PatternError
from chainlake.cep.language.source_text import NOWHERE, At, SourceText
from chainlake.words import closest, listed, nearest

#: How many known words are listed where none resembles the one that was written.
_LISTED = 10


class OtherLayout(PatternError):
    """The text is not laid out as ``lint --fix`` would do it."""

    @classmethod
    def of(cls, source: SourceText) -> OtherLayout:
        """For any text."""
        return cls._at(source, NOWHERE, "the layout is not standard", "lint --fix FILE writes it, comments kept.")


class MissingMetadata(PatternError):
    """The front matter leaves something out."""

    @classmethod
    def source(cls, source: SourceText) -> MissingMetadata:
        """The source whose events the pattern reads."""
        what = (
            "the front matter names no source: a lake needs one (detect, backfill, plan, status), and without it "
            "attributes and keys are not checked; match and find on files work as it is"
        )
        return cls._at(source, NOWHERE, what, "Add a line 'source: NAME' between the two --- lines.")

    @classmethod
    def description(cls, source: SourceText, at: At) -> MissingMetadata:
        """The description."""
        hint = "Add 'description: TEXT': readers of the match table see it."
        return cls._at(source, at, "the front matter has no description", hint)

    @classmethod
    def rates(cls, source: SourceText, at: At, names: Sequence[str]) -> MissingMetadata:
        """The rates of some names, though it states others."""
        what = f"rates leave out {', '.join(names)}, so the order of search is estimated instead"
        return cls._at(source, at, what, "State a rate for every positive name, or none.", key="rates")


class Unused(PatternError):
    """Something is declared, but nothing refers to it."""

    @classmethod
    def parameter(cls, source: SourceText, at: At, name: str, key: str) -> Unused:
        """A parameter or a set, declared under ``key``."""
        return cls._at(source, at, f"{name} is never used", key=key)

    @classmethod
    def function(cls, source: SourceText, at: At, name: str) -> Unused:
        """A function."""
        return cls._at(source, at, f"{name} is never called", key="functions")


class UnknownValue(PatternError):
    """The pattern names events that do not exist."""

    @classmethod
    def of_source(cls, source: SourceText, at: At, kind: str, types: Collection[str]) -> UnknownValue:
        """The source lists its types, and this is not one of them."""
        return cls._at(source, at, f"the source has no events of type {kind}", nearest(kind, types))

    @classmethod
    def kind(cls, source: SourceText, where: str, kind: str, known: Collection[str]) -> UnknownValue:
        """No event that lint looked at has the type; ``where``: which events these are."""
        return cls._at(source, NOWHERE, f"no event {where} has the type '{kind}'", key_hint(kind, known))

    @classmethod
    def value(
        cls, source: SourceText, at: At, where: str, key: str, value: str, known: Collection[str]
    ) -> UnknownValue:
        """No event that lint looked at has the key; ``key``: the key column."""
        return cls._at(source, at, f"no event {where} has the {key} '{value}'", key_hint(value, known))


class Unconnected(PatternError):
    """Events that no condition ties to each other."""

    @classmethod
    def rejecting(cls, source: SourceText, at: At, names: Sequence[str]) -> Unconnected:
        """Events that reject a match."""
        return cls._other(source, at, f"{_and(names)} shares", "any of its events rejects")

    @classmethod
    def collected(cls, source: SourceText, at: At, names: Sequence[str]) -> Unconnected:
        """Events of a set."""
        return cls._other(source, at, f"{_and(names)} shares", "all of its events are collected")

    @classmethod
    def combined(cls, source: SourceText, at: At, names: Sequence[str]) -> Unconnected:
        """Events of a match."""
        verb = "shares" if len(names) == 1 else "share"
        return cls._other(source, at, f"{_and(names)} {verb}", "every combination in the window fits")

    @classmethod
    def _other(cls, source: SourceText, at: At, who: str, so: str) -> Unconnected:
        what = f"{who} no condition with the other events, so {so}"
        return cls._at(source, at, what, "Compare an attribute of both, such as the source's key.")

    @classmethod
    def called(cls, source: SourceText, at: At, function: str, names: Iterable[str]) -> Unconnected:
        """Events that only a call of a costly function ties to each other."""
        what = (
            f"{function} is called for every pair of events that lie within the window, since no cheaper condition "
            f"relates {_and(sorted(names))}"
        )
        return cls._at(source, at, what, "Also compare an attribute of both, such as the source's key.")

    @classmethod
    def neighbours(cls, source: SourceText, at: At) -> Unconnected:
        """Neighbours in the stream of all keys."""
        what = "neighbours are events of all keys, and events of equal time are ordered by their ids"
        return cls._at(source, at, what, "SEQ STRICT OF KEY (…) looks at each key separately.")

    @classmethod
    def sets(cls, source: SourceText, at: At, one: str, other: str) -> Unconnected:
        """Two sets that are collected in the same place."""
        what = f"{one} and {other} are collected in the same place, so they are not ordered and may share events"
        return cls._at(source, at, what, "Separate them by conditions, or by an event between them.")


class WideRead(PatternError):
    """A part that reads more events than its author may think, or more than a lake allows."""

    @classmethod
    def gap(cls, source: SourceText, at: At, of: tuple[str, str], steps: int) -> WideRead:
        """PREV of an event's attribute, over any gap."""
        hint = f"Say how far: PREV({'.'.join(of)}, {steps}, 10 min); a pattern in a lake must."
        return cls._at(source, at, "PREV looks back over gaps as long as the window", hint)

    @classmethod
    def events(cls, source: SourceText, at: At, count: int) -> WideRead:
        """A window in events, without a duration."""
        what = "a lake needs a duration beside a window in events; on files and in the library, this runs without one"
        return cls._at(source, at, what, f"Say how long it may be, too: WITHIN {count} EVENTS, 12 h.")

    @classmethod
    def events_of_key(cls, source: SourceText, at: At, key: str) -> WideRead:
        """A window in events of a key, in a pattern over several keys."""
        what = (
            f"a lake counts the events of a key only if all events of a match have the same {key}; files and the "
            "library need no such condition"
        )
        return cls._at(source, at, what, f"Equate {key} of all events, or leave out OF KEY.")

    @classmethod
    def stretch(cls, source: SourceText, at: At) -> WideRead:
        """Neighbours that only a pause bounds."""
        what = "a lake has to know how long a stretch of neighbours may be"
        return cls._at(source, at, what, "Write 'limits: {longest: 12 h}' in the front matter, or WITHIN.")

    @classmethod
    def window(cls, source: SourceText, at: At) -> WideRead:
        """A window of more than a day."""
        what = "the window is larger than a day, so each day reads more than one other day"
        return cls._at(
            source, at, what, "The number of partial matches grows as the window to the power of the number of names."
        )


class Decided(PatternError):
    """A condition whose result is known before any event is seen."""

    @classmethod
    def never(cls, source: SourceText, at: At) -> Decided:
        """The condition is FALSE."""
        return cls._at(source, at, "this condition is never true, so nothing matches")

    @classmethod
    def never_together(cls, source: SourceText, at: At) -> Decided:
        """The condition excludes another one."""
        return cls._at(source, at, "this condition and an earlier one are never true together, so nothing matches")

    @classmethod
    def no_event(cls, source: SourceText, at: At) -> Decided:
        """The condition is on constants only."""
        return cls._at(source, at, "this condition mentions no event", "Write name.attribute.")

    @classmethod
    def kinds(cls, source: SourceText, at: At, kinds: tuple[str, str], *, equal: bool) -> Decided:
        """The condition asks whether values of two kinds are equal, or unequal."""
        left, right = kinds
        so = "so this is never true" if equal else "so this is true of all values there are"
        return cls._at(source, at, f"a {left} and a {right} are never equal, {so}")

    @classmethod
    def no_item(cls, source: SourceText, at: At, kind: str) -> Decided:
        """The condition looks for a value in a set of other kinds."""
        return cls._at(source, at, f"a {kind} is looked up in a set that holds none")

    @classmethod
    def by_order(cls, source: SourceText, at: At, *, true: bool) -> Decided:
        """The order of the events decides the condition."""
        return cls._at(source, at, f"SEQ makes this condition {'always' if true else 'never'} true")

    @classmethod
    def beyond_window(cls, source: SourceText, at: At) -> Decided:
        """The condition asks for more time than the window allows."""
        return cls._at(source, at, "this time is longer than the window, so the condition is never true")

    @classmethod
    def within_window(cls, source: SourceText, at: At) -> Decided:
        """The window makes the condition true."""
        return cls._at(source, at, "the window is not longer than this time, so the condition is always true")

    @classmethod
    def no_window(cls, source: SourceText, at: At) -> Decided:
        """A sequence is to fit into a window of 0."""
        return cls._at(source, at, "a sequence never fits into a window of 0, so nothing matches")

    @classmethod
    def no_events(cls, source: SourceText, at: At) -> Decided:
        """Two events or more are to be no event apart."""
        hint = "The count is that of the later event minus that of the earlier one: neighbours are 1 apart."
        return cls._at(source, at, "no two events are 0 events apart, so nothing matches", hint)


class Apart(PatternError):
    """The lists of a ranking leave some times out."""

    @classmethod
    def windows(cls, source: SourceText, at: At) -> Apart:
        """The step from one window to the next is longer than the window."""
        what = "STEP is longer than the window, so matches between two windows are in no list"
        return cls._at(source, at, what, "BUCKET has windows that follow one another.")


class WrittenTwice(PatternError):
    """A part of the query that repeats another."""

    @classmethod
    def condition(cls, source: SourceText, at: At) -> WrittenTwice:
        """A condition."""
        return cls._at(source, at, "this condition is written twice")

    @classmethod
    def branch(cls, source: SourceText, at: At) -> WrittenTwice:
        """A branch."""
        return cls._at(source, at, "this branch is written twice")


class SuspiciousText(PatternError):
    """A text literal that probably means something else."""

    @classmethod
    def null(cls, source: SourceText, at: At, value: object) -> SuspiciousText:
        """A missing value."""
        what = f"'{value}' is an ordinary string; a missing value equals nothing"
        return cls._at(source, at, what, "Use IS NULL to test for a missing value.")

    @classmethod
    def number(cls, source: SourceText, at: At, value: str) -> SuspiciousText:
        """A number that is compared by order."""
        what = f"'{value}' is a string, and strings are ordered letter by letter: '10' before '9'"
        return cls._at(source, at, what, f"Write {value} without quotes for the number.")

    @classmethod
    def two_kinds(cls, source: SourceText, at: At, attr: str, here: str, elsewhere: str) -> SuspiciousText:
        """An attribute is compared with a text in one place and with a number in another."""
        what = f"{attr} is compared with a {here} here and with a {elsewhere} elsewhere, and no value is both"
        return cls._at(source, at, what)


def _and(names: Sequence[str]) -> str:
    return " and ".join(names)


def key_hint(word: str, known: Collection[str]) -> str:
    """The hint: the word that was probably meant, or the known ones."""
    close = closest(word, known)
    return f"There are {listed(sorted(known), _LISTED)}." if close is None else f"Did you mean '{close}'?"
