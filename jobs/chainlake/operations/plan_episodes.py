"""Which days of episodes a long stretch of days needs: they are made by the applications that find the matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np

from chainlake.days import Days
from chainlake.lake.records.event_days import COMPUTABLE, EventDays
from chainlake.lake.records.staleness import TO_DO, Judged, event_states, inside


def episode_days(judged: Judged, days: Days | None, states: Sequence[str], events: EventDays, found: bool) -> list[int]:
    """Positions of the days of episodes that are to be made.

    Args:
        judged: the episodes of a pattern.
        days: only these days; all if None.
        states: of days that are to do.
        events: days of the source.
        found: whether matches of the pattern are to be found, after which days are ready that are not yet.
    """
    wanted = np.isin(judged.state, states)
    if "missing" in states:
        wanted |= (judged.state == "waiting") & (judged.noted("status") == None)  # noqa: E711 (element by element)
    ready = judged.ready
    if found:
        ready = ready | np.isin(event_states(events, judged.numbers), COMPUTABLE)
    if days is not None:
        ready = ready & inside(judged.numbers, days)
    return [int(at) for at in np.flatnonzero(wanted & ready)]


def placed(spans: Sequence[Days], days: Sequence[date], chunk: int) -> tuple[dict[int, list[date]], list[list[date]]]:
    """Which application makes which days.

    Args:
        spans: the days of the applications that find matches, in the order of time.
        days: to be made, ascending.
        chunk: days of an application at most.

    Returns:
        by number of the application its days; and the days of further applications.
    """
    mine: dict[int, list[date]] = {}
    further: list[list[date]] = []
    for day in days:
        at = next((n for n, span in reversed(list(enumerate(spans))) if span.start <= day), None)
        if at is not None and day < max(spans[at].end, spans[at].start + timedelta(days=chunk)):
            mine.setdefault(at, []).append(day)
        elif further and day < further[-1][0] + timedelta(days=chunk):
            further[-1].append(day)
        else:
            further.append([day])
    return mine, further


def states_of(judged: Judged, positions: Sequence[int]) -> dict[str, int]:
    """How many of some days are in which state; those that wait for their matches are missing."""
    found = (str(judged.state[at]) for at in positions)
    return dict(Counter(state if state in TO_DO else "missing" for state in found))
