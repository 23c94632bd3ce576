"""What is wrong with events that are passed to the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from chainlake.errors import InputError

_FORM = "An event is {'id': 1, 'type': 'A', 'ts': 0, 'attrs': {'price': 2.5}}; attrs may be left out."
_CONFLICT = "An id must identify a single event across all files."
_BEYOND = "Whole numbers lie within ±2^63; give larger ones as doubles."
_SEQ = "It orders events of equal time. Rename the attribute."


class UnfitEvent(InputError):
    """An event does not have the form that it must have."""

    @classmethod
    def no_events(cls, kind: str) -> UnfitEvent:
        """What was given is not events at all."""
        return cls(f"events must be dicts or an Arrow table, not {kind}", hint=_FORM)

    @classmethod
    def no_dict(cls, number: int, kind: str) -> UnfitEvent:
        """An event is not a dict; ``number`` counts from 1."""
        return cls(f"event {number} is not a dict, but {kind}", hint=_FORM)

    @classmethod
    def lacks(cls, field: str, event: Mapping[str, Any]) -> UnfitEvent:
        """An event has no ``id``, ``type`` or ``ts``."""
        return cls(f"an event has no {field}: {dict(event)}", key=field)

    @classmethod
    def no_attrs(cls, number: int, kind: str) -> UnfitEvent:
        """The attributes of an event are not a dict."""
        return cls(f"the attrs of event {number} are not a dict, but {kind}", key="attrs", hint=_FORM)

    @classmethod
    def no_name(cls, name: object) -> UnfitEvent:
        """The name of an attribute is not a valid name."""
        return cls(f"an attribute is called {ascii(name)}, which is not a name", key="attrs")

    @classmethod
    def taken_name(cls, name: str) -> UnfitEvent:
        """An attribute has the name of a field that every event has."""
        return cls(f"an attribute cannot be called {name}", key=name)

    @classmethod
    def conflict(cls, id_: object) -> UnfitEvent:
        """Two different events have one id."""
        return cls(f"two different events have the id {id_}", key="id", hint=_CONFLICT)


class UnfitTimes(InputError):
    """Times of events with which nothing can be computed."""

    @classmethod
    def kinds(cls) -> UnfitTimes:
        """The times are of different kinds, or of a kind that is not a time."""
        return cls("ts must be whole numbers, or datetimes, in all events", key="ts")

    @classmethod
    def beyond(cls, error: OverflowError) -> UnfitTimes:
        """A time is too large to store."""
        return cls(f"a ts does not fit into 64 bits: {error}", key="ts")

    @classmethod
    def too_far(cls, most: int, tick: int) -> UnfitTimes:
        """A time is too large to compute with."""
        what = f"timestamps must be within ±2^62 ({most}) ticks, but one is {tick}"
        return cls(what, key="ts", hint="State times in a coarser unit, or from a later zero.")

    @classmethod
    def no_calendar(cls, period: str) -> UnfitTimes:
        """A time has no date, and a ranking asks for its day, week or month."""
        what = f"an event is outside the years 1 to 9999, so it has no {period}"
        return cls(what, key="ts", hint="PER BUCKET and PER HOP need no calendar.")


class UnfitColumn(InputError):
    """A column, or an attribute, holds what the engine cannot work with."""

    @classmethod
    def absent(cls, name: str) -> UnfitColumn:
        """There is no such column."""
        return cls(f"the events have no column {name}", key=name)

    @classmethod
    def no_history(cls, name: str) -> UnfitColumn:
        """There is no such column, and a derived column needs it."""
        return cls(f"the events have no column {name}, which a history needs", key=name)

    @classmethod
    def incomplete(cls, name: str, missing: int) -> UnfitColumn:
        """Some events have no value."""
        return cls(f"{missing} events have no {name}", key=name)

    @classmethod
    def no_time(cls, name: str, kind: pa.DataType) -> UnfitColumn:
        """The column does not hold times."""
        return cls(f"{name} is neither a timestamp nor a whole number, but {kind}", key=name)

    @classmethod
    def beyond(cls, name: str, error: Exception) -> UnfitColumn:
        """A whole number is too large."""
        return cls(f"{name} holds a number beyond 64 bits: {error}", key=name, hint=_BEYOND)

    @classmethod
    def number_beyond(cls, name: str) -> UnfitColumn:
        """A whole number of an event that was given as a dict is too large."""
        return cls(f"{name} holds a number beyond 64 bits", key=name, hint="Give it as a double.")

    @classmethod
    def inexact(cls, name: str, value: int) -> UnfitColumn:
        """A whole number among doubles would change."""
        hint = "Give all of them as whole numbers, or this one as a double."
        return cls(f"{name} holds {value}, which cannot be kept exactly alongside doubles", key=name, hint=hint)

    @classmethod
    def two_kinds(cls, name: str) -> UnfitColumn:
        """Its values are of kinds that cannot be compared."""
        return cls(f"the attribute {name} holds values of different kinds", key=name)

    @classmethod
    def no_unicode(cls, name: str, text: str | None) -> UnfitColumn:
        """A string has half of a surrogate pair; ``text``: the text, if it is known."""
        what = f"{name} holds a string that is not Unicode" + ("" if text is None else f": {ascii(text)}")
        return cls(what, key=name, hint="Half of a surrogate pair is not a character; decode the text it came from.")

    @classmethod
    def unusable(cls, name: str, kind: pa.DataType) -> UnfitColumn:
        """A condition names a column whose values are of a kind that conditions cannot use."""
        return cls(f"{name} holds {kind}, which conditions cannot use", key=name)

    @classmethod
    def no_numbers(cls, name: str, kind: pa.DataType) -> UnfitColumn:
        """A history is made of a column that does not hold numbers."""
        return cls(f"{name} holds {kind}, but a history needs numbers", key=name)

    @classmethod
    def seq(cls, kind: pa.DataType) -> UnfitColumn:
        """``seq``, the place among events of one time, does not hold whole numbers."""
        return cls(f"seq holds {kind}, but whole numbers are expected", key="seq", hint=_SEQ)

    @classmethod
    def episode_key(cls, written: str, attr: str, kind: pa.DataType) -> UnfitColumn:
        """The key of episodes is of a type that cannot be compared."""
        what = (
            f"{written} holds values of type {kind}, but the key of an episode must be a string, a number or a boolean"
        )
        return cls(what, key=attr, hint="After BY, name the attribute that tells series apart.")

    @classmethod
    def severity(cls, name: str, kind: pa.DataType) -> UnfitColumn:
        """The measure by which an episode's matches are put in order is not a number."""
        what = f"{name} holds values of type {kind}, but matches can be ordered only by numbers"
        return cls(what, key=name, hint="Give a measure that is not a number another name.")


class UnfitValue(InputError):
    """What a pattern computes from events cannot be used."""

    @classmethod
    def beyond(cls, written: str) -> UnfitValue:
        """An expression gives whole numbers that are too large."""
        what = f"{written} gives whole numbers beyond 64 bits"
        return cls(what, hint="Compute with doubles: multiply by 1.0.")

    @classmethod
    def product(cls, criterion: int, value: float, file: str | None) -> UnfitValue:
        """A criterion that is to be multiplied is not a number from 0 to 1; ``criterion`` counts from 1."""
        what = f"COMBINE product takes numbers from 0 to 1, but criterion {criterion} is {value:g} in a match"
        return cls(what, file=file, key="COMBINE", hint="NORM makes such numbers: MAX(a.x) NORM 0 .. 100.")


class NoKey(InputError):
    """A pattern asks for the series of an event, and no key is given."""

    @classmethod
    def of_window(cls) -> NoKey:
        """A window counts events of a key."""
        return cls("a window in EVENTS OF KEY needs a key", hint="Say which column the key is.")
