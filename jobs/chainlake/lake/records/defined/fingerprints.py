"""What days are made from, as fingerprints: they change if and only if a day's input does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np

from chainlake.days import day_of, day_of_us
from chainlake.digests import text_digest
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.event_days import EventDays


def fingerprint(definition: Definition, day: date, event_days: EventDays) -> str:
    """Hash of the input of ``day``: it changes if and only if a checksum in the day's read range does.

    A chained day, such as a model's, also depends on the day before it: see ``chainlake.lake.records.chain``.

    Args:
        definition: the pattern or model.
        day: UTC day.
        event_days: the source's days, pinned if a computation follows.
    """
    if definition.start is not None and day < definition.start:
        return _digest(["before the start"])
    return _digest(event_days.checksums(*definition.read_range(day)))


def _digest(parts: list[str]) -> str:
    return text_digest("\n".join(parts))


def event_states(events: EventDays, numbers: np.ndarray) -> np.ndarray:
    """Status of each day's events; empty if no ingest has passed the day."""
    return _dense(events, "states", lambda day: events.status(day) or "", numbers)


def fingerprints(definition: Definition, events: EventDays, numbers: np.ndarray) -> np.ndarray:
    """The :func:`fingerprint` of each day; a read range moves with its day, so that one day tells its reach."""
    if not len(numbers):
        return np.empty(0, dtype=object)
    first = day_of(int(numbers[0]))
    lo, hi = definition.read_range(first)
    key: Any = ("prints", definition.start, first - day_of_us(lo), day_of_us(hi - 1) - first)
    if definition.owners is not None:
        # A ranking's periods differ in length, and a day can have several of them.
        key = ("prints", definition.name)
    return _dense(events, key, lambda day: fingerprint(definition, day, events), numbers)


def _dense(events: EventDays, key: Any, value: Callable[[date], str], numbers: np.ndarray) -> np.ndarray:
    """The ``value`` of each day, computed once per key and day and kept beside the rows it comes from."""
    known: dict[int, str]
    found: np.ndarray
    known, before, found = events.memo.setdefault(key, ({}, np.empty(0, dtype=np.int64), np.empty(0, dtype=object)))
    if not np.array_equal(numbers, before):
        for number in numbers.tolist():
            if number not in known:
                known[number] = value(day_of(number))
        found = np.array([known[number] for number in numbers.tolist()], dtype=object)
        # Most definitions of a source have the same days.
        events.memo[key] = (known, numbers, found)
    return found
