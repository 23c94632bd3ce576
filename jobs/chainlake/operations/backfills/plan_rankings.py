"""Which periods of rankings a backfill has to merge; the applications that find the matches merge them, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from chainlake.days import ALWAYS, Days, day_of_us
from chainlake.detect.rankings.run import touched
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.staleness import TO_DO, Judged
from chainlake.operations.backfills.applications import Application, Part

_ONE = timedelta(days=1)


def rankings_part(
    judged: Judged, days: Days | None, states: Sequence[str], events: EventDays, found: Sequence[Application]
) -> Part | None:
    """The days whose periods are to be merged; None if there are none.

    Args:
        judged: the ranking.
        days: only the periods that matches of these days can be in; all if None.
        states: the states of days to do.
        events: days of the source.
        found: the applications that find matches; where they search for the pattern, its periods may change.
    """
    definition = judged.definition
    assert definition.of is not None and definition.owners is not None
    inside = np.ones(len(judged.numbers), bool) if days is None else touched(judged, days)
    searched = [part for one in found for part in one.parts if part.definition == definition.of.name]
    decided = sorted({(day - date(1970, 1, 1)).days for p in searched for day in (*p.days, *p.following)})
    reached = np.isin(judged.numbers, definition.owners(np.array(decided, np.int64)))
    wanted = np.isin(judged.state, states)
    if "missing" in states:
        wanted |= (judged.state == "waiting") & (judged.recorded("status") == None)  # noqa: E711 (element by element)
    to_do = wanted & inside & (judged.ready | reached)
    following = reached & ~to_do & (judged.state != "waiting")
    if not (to_do | following).any():
        return None
    positions = np.flatnonzero(to_do)
    mine, later = (tuple(judged.day(at) for at in np.flatnonzero(flags).tolist()) for flags in (to_do, following))
    known = Counter(state if state in TO_DO else "missing" for state in judged.state[positions].tolist())
    rows = int(judged.rows(np.flatnonzero(to_do | following)).sum())
    every = [span for day in (*mine, *later) if (span := reads_of(judged, day, events)) is not None]
    reads = Days(min(one.start for one in every), max(one.end for one in every)) if every else Days.one(min(mine))
    return Part(judged.name, definition.table_name, mine, later, dict(known), reads, 0, rows, True)


def reads_of(judged: Judged, day: date, events: EventDays) -> Days | None:
    """The days with matches that can be in periods that begin on ``day``, limited to days from the first event on."""
    lo, hi = judged.definition.read_range(day)
    if lo >= hi or events.first is None or events.last is None:
        return None
    if (lo, hi) == ALWAYS:
        return Days(events.first, events.last + _ONE)
    start, end = max(day_of_us(lo), events.first), day_of_us(hi - 1) + _ONE
    return Days(start, end) if start < end else None


def with_rankings(
    found: Sequence[Application], part: Part, blank: Application, judged: Judged, events: EventDays
) -> list[Application]:
    """The applications of a source, with the periods of a pattern added to what they merge.

    Args:
        found: the applications that find matches, in time order.
        part: the days on which the periods begin.
        blank: an application that computes nothing, the template for periods whose matches none of these finds; its
            days are those asked for.
        judged: the ranking.
        events: days of the source.
    """
    result = list(found)
    # A period is merged by the last application that finds matches of it, and provisionally by earlier ones.
    at: dict[int, list[date]] = {}
    further: list[date] = []
    for day in part.days:
        reads = reads_of(judged, day, events) or Days.one(day)
        numbers = [n for n, one in enumerate(found) if one.days.start < reads.end and reads.start < one.days.end]
        if numbers:
            at.setdefault(numbers[-1], []).append(day)
        else:
            further.append(day)
    for number, days in at.items():
        result[number] = replace(
            result[number], parts=(*result[number].parts, replace(part, days=tuple(days), following=()))
        )
    if further:
        # Kept within the days asked for: there, matches to be computed are announced; elsewhere they are left alone.
        spans = [reads_of(judged, day, events) or blank.days for day in further]
        looked = [min(max(one.start, blank.days.start), blank.days.end - _ONE) for one in spans]
        span = Days(min(looked), max(looked) + _ONE)
        result.append(replace(blank, days=span, parts=(replace(part, days=tuple(further), following=()),)))
        result.sort(key=lambda one: one.days.start)
    if part.following:
        _, _, name = part.definition.partition("/")
        number = next(n for n, one in reversed(list(enumerate(result))) if name in one.definitions)
        kept = [one for one in result[number].parts if one.definition != part.definition]
        own = next((one for one in result[number].parts if one.definition == part.definition), replace(part, days=()))
        result[number] = replace(result[number], parts=(*kept, replace(own, following=part.following)))
    return result
