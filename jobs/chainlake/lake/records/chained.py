"""The chain of a definition as ``ops`` records it, and what to say about a day that depends on an earlier one."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date

import numpy as np

from chainlake.days import US_PER_DAY, day_number, day_of
from chainlake.lake.records.chain import Chain, ChainState
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.event_days import COMPUTABLE, EventDays, waiting_for
from chainlake.lake.records.intervals import Intervals


def begins(definition: Definition, events: EventDays) -> date | None:
    """The last of the first days that start from the empty state: the later of the start and the first day with events.

    None if there are no events or no start; then all days start from the empty state.
    """
    if events.first is None or definition.start is None:
        return None
    return max(definition.start, events.first)


def begins_anew(definition: Definition, events: EventDays, day: date) -> bool:
    """Whether a day starts from the empty state, whatever came before."""
    return bool(anew(definition, events, np.array([day_number(day)]))[0])


def anew(definition: Definition, events: EventDays, numbers: np.ndarray) -> np.ndarray:
    """Which of some days, as days since 1970-01-01, start from the empty state, whatever came before.

    They are the first ones and, if the state's memory is limited, the days before which there was no event for that
    long.
    """
    last = begins(definition, events)
    if last is None:
        return np.ones(len(numbers), dtype=bool)
    found: np.ndarray = numbers <= day_number(last)
    if definition.memory_us is not None:
        filled = _filled(events)
        at = np.searchsorted(filled, numbers)
        before = np.concatenate([[np.iinfo(np.int64).min], filled])[at]
        found |= before < (numbers * US_PER_DAY - definition.memory_us) // US_PER_DAY
    return found


def _filled(events: EventDays) -> np.ndarray:
    """The days that have or may have events, as days since 1970-01-01, ascending; kept with the rows they come from."""
    known = events.memo.get("filled")
    if known is None:
        days = sorted(day for day in events.rows if events.checksum(day))
        known = events.memo["filled"] = np.array([day_number(day) for day in days], dtype=np.int64)
    found: np.ndarray = known
    return found


def can_be_computed(events: EventDays, day: date) -> bool:
    """Whether a day's events are final; before the first event there is nothing to wait for."""
    status = events.status(day)
    return status in COMPUTABLE or (status is None and events.first is not None and day < events.first)


def chain_of(
    definition: Definition,
    events: EventDays,
    numbers: np.ndarray,
    ready: np.ndarray,
    same: np.ndarray,
    intervals: Intervals,
    at: np.ndarray,
) -> Chain:
    """The chain of a definition.

    Args:
        definition: a definition with a start.
        events: days of its source.
        numbers: its days, as days since 1970-01-01, ascending.
        ready: whether a day's events are ready to be computed from.
        same: whether its row is from today's input, definition, engine and table.
        intervals: the current rows of ``ops.intervals``.
        at: row of ``intervals`` per day, -1 if there is none.
    """
    column, status = intervals.columns, intervals.columns["status"][at]
    # No state crosses an edit of the definition, or another engine.
    live = (status == "done") & (column["definition_hash"][at] == definition.definition_hash)
    live &= column["engine_version"][at] == definition.engine_version
    return Chain(
        numbers=numbers,
        own=same & (status == "done"),
        refused=same & (status == "audit_failed"),
        ready=ready,
        anew=anew(definition, events, numbers),
        state_in=column["state_in"][at],
        state_out=np.where(live, column["state_out"][at], np.array(None, dtype=object)),
    )


def dense(chain: Chain, definition: Definition, events: EventDays, end: date) -> Chain:
    """All days of a chain, from the first one recorded, or from :func:`begins` if earlier, to the one before
    ``end``.
    """
    last = begins(definition, events)
    first = [int(chain.numbers[0])] if len(chain.numbers) else [day_number(end) - 1]
    lo, hi = min([*first, *([] if last is None else [day_number(last)])]), day_number(end)
    some = Chain(**{f.name: getattr(chain, f.name)[chain.numbers < hi] for f in fields(chain)})
    return some.dense(
        lo,
        max(lo + 1, hi),
        lambda number: can_be_computed(events, day_of(number)),
        lambda number: begins_anew(definition, events, day_of(number)),
    )


@dataclass(frozen=True)
class Place:
    """What chained days depend on before them, one array per field.

    Args:
        chain: the chain, with all its days.
        behind: whether a day follows or waits for an earlier one.
        cause: that day, as days since 1970-01-01.
        states: state of that day.
        events: status of that day's events.
        unfinished: whether a day is to do once it waits for no earlier day, however those turn out.
    """

    chain: Chain
    behind: np.ndarray
    cause: np.ndarray
    states: np.ndarray
    events: np.ndarray
    unfinished: np.ndarray

    @classmethod
    def of(cls, chain: Chain, found: ChainState, states: np.ndarray, events: np.ndarray) -> Place:
        """From how the days stand, their states, and the status of their events."""
        behind, cause = found.waiting | found.following, found.cause
        return cls(chain, behind, chain.numbers[cause], states[cause], events[cause], found.unfinished)

    def kept(self, some: np.ndarray) -> Place:
        """The entries of some days, given as a flag per day; the chain stays whole."""
        columns = (self.behind, self.cause, self.states, self.events, self.unfinished)
        return Place(self.chain, *(column[some] for column in columns))

    def why(self, position: int) -> str:
        """Why a day that is behind another one follows or waits for it, in one line."""
        day, state = day_of(int(self.cause[position])), str(self.states[position])
        if self.events[position] not in COMPUTABLE:
            return f"{day} before it: {waiting_for(str(self.events[position]))}"
        if state == "audit_failed":
            return f"{day} before it: its audit failed"
        return f"{day} before it is {state}; it may turn out to be unaffected"
