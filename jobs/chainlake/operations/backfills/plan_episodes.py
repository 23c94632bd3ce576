"""Which days of episodes a backfill has to make; the applications that find the matches make them, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from chainlake.days import Days, day_number
from chainlake.lake.records.event_days import COMPUTABLE, EventDays
from chainlake.lake.records.staleness import TO_DO, Judged, event_states, inside
from chainlake.operations.backfills.applications import Application, Part

_ONE = timedelta(days=1)


def episodes_part(
    judged: Judged, days: Days | None, states: Sequence[str], events: EventDays, found: Sequence[Application]
) -> Part | None:
    """The days on which a pattern's episodes are to be made; None if there are none.

    Args:
        judged: the episodes.
        days: only these days; all if None.
        states: the states of days to do.
        events: days of the source.
        found: the applications that find matches; where they search for the pattern, its days will be ready.
    """
    assert judged.definition.of is not None
    assert judged.place is not None
    recorded = judged.recorded("status") != None  # noqa: E711 (element by element)
    wanted = np.isin(judged.state, states)
    # Days that wait for an earlier day may themselves be to do: the applications first do what they wait for.
    wanted |= (judged.state == "waiting") & np.where(recorded, judged.place.unfinished, "missing" in states)
    searched = [part for one in found for part in one.parts if part.definition == judged.definition.of.name]
    ready = judged.ready
    if searched:
        ready = ready | np.isin(event_states(events, judged.numbers), COMPUTABLE)
    asked = ready if days is None else ready & inside(judged.numbers, days)
    positions = np.flatnonzero(wanted & asked)
    begins = [
        *judged.numbers[positions[:1]].tolist(),
        *(day_number(d) for p in searched for d in (*p.days, *p.following)),
    ]
    # Where matches turn out to differ, their episodes are made again, and later ones for as long as it matters.
    behind = np.zeros(len(judged.numbers), dtype=bool)
    if begins and recorded.any():
        behind = (judged.numbers >= min(begins)) & (judged.numbers <= judged.numbers[recorded][-1]) & ready
        behind[positions] = False
    following = tuple(judged.day(at) for at in np.flatnonzero(behind).tolist())
    if not len(positions) and not following:
        return None
    waits = np.where(recorded, "stale", "missing")
    known = Counter(np.where(np.isin(judged.state, TO_DO), judged.state, waits)[positions].tolist())
    mine = tuple(judged.day(at) for at in positions.tolist())
    rows = int(judged.rows(np.flatnonzero(behind)).sum() + judged.rows(positions).sum())
    every = sorted((*mine, *following))
    reads = Days(every[0], every[-1] + _ONE)
    return Part(judged.name, judged.definition.table_name, mine, following, dict(known), reads, 0, rows, True)


def with_part(found: Sequence[Application], part: Part, blank: Application, chunk: int) -> list[Application]:
    """The applications of a source, with the days of a pattern's episodes added to what they compute.

    Args:
        found: the applications that find matches, in time order.
        part: the days.
        blank: an application that computes nothing, the template for days that none of these covers.
        chunk: largest number of days in an application.
    """
    # Days that may follow are given to the first application that has the pattern.
    result, later, part = list(found), part.following, replace(part, following=())
    further: list[list[date]] = []
    mine: dict[int, list[date]] = {}
    for day in part.days:
        at = next((n for n, one in reversed(list(enumerate(result))) if one.days.start <= day), None)
        if at is not None and day < max(result[at].days.end, result[at].days.start + timedelta(days=chunk)):
            mine.setdefault(at, []).append(day)
        elif further and day < further[-1][0] + timedelta(days=chunk):
            further[-1].append(day)
        else:
            further.append([day])
    for at, some in mine.items():
        one = result[at]
        span = Days(one.days.start, max(one.days.end, some[-1] + _ONE))
        result[at] = replace(one, days=span, parts=(*one.parts, replace(part, days=tuple(some))))
    for some in further:
        span = Days(some[0], some[-1] + _ONE)
        result.append(replace(blank, days=span, parts=(replace(part, days=tuple(some)),)))
    result.sort(key=lambda one: one.days.start)
    if later:
        _, _, of = part.definition.partition("/")
        at = next(n for n, one in enumerate(result) if of in one.definitions)
        kept = [one for one in result[at].parts if one.definition != part.definition]
        own = next((one for one in result[at].parts if one.definition == part.definition), replace(part, days=()))
        result[at] = replace(result[at], parts=(*kept, replace(own, following=later)))
    return result
