"""Which days a definition should have results for, and what they are computed from."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import numpy as np

from chainlake.days import Days, day_number, day_of_us
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.defined.matched import PeriodDays, matched_days
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.intervals import Intervals


def names_of(definitions: Iterable[Definition]) -> set[str]:
    """The names of the definitions whose rows of ``ops.intervals`` are needed to judge the given ones."""
    return {name for d in definitions for name in (d.name, *([] if d.of is None else [d.of.name]))}


def days_of(definition: Definition, events: EventDays, intervals: Intervals) -> EventDays:
    """What a definition's days are computed from: the days of its source, or those of its pattern's published matches.

    Args:
        definition: the definition.
        events: days of its source.
        intervals: the current rows of ``ops.intervals``.
    """
    if definition.of is None:
        return events
    matched = matched_days(definition.of, events, wanted_days(definition.of, events, None), intervals)
    return matched if definition.owners is None else PeriodDays.over(matched, definition.read_range)


def wanted_days(definition: Definition, events: EventDays, asked: Days | None) -> np.ndarray:
    """The days that should have a row, as days since 1970-01-01, ascending.

    They run from the first day with events (in a chain, not before its start) to the last on which a match can be
    decided; days asked for are added. For a ranking they are the days on which the periods of such matches begin.
    """
    if definition.owners is not None and definition.of is not None:
        return definition.owners(wanted_days(definition.of, events, asked))
    days = np.empty(0, dtype=np.int64)
    last = last_day(definition, events)
    if events.first is not None and last is not None:
        first = max(events.first, definition.start or events.first)
        days = np.arange(day_number(first), day_number(last) + 1)
        # A chain's days are listed into a quiet range until its state must be empty, so it starts empty after the
        # range.
        days = days[events.listed(days, definition.late_us + (definition.memory_us or 0))]
    if asked is not None:
        days = np.union1d(days, np.arange(day_number(asked.start), day_number(asked.end)))
    return days


def last_day(definition: Definition, events: EventDays) -> date | None:
    """The last UTC day that can own a match or on which a model has events; ``None`` without events.

    A day after the last event counts only if a window that is open at the last event reaches it: a finished history
    must neither list a day that nobody will ever compute nor miss one that can hold a match.
    """
    if events.last is None:
        return None
    last_us = events.last_us
    if last_us is None or day_of_us(last_us) != events.last:
        last_us = Days.one(events.last).micros()[1] - 1
    return day_of_us(last_us + definition.late_us)
