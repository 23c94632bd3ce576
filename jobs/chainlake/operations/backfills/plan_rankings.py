"""Which periods of rankings a backfill has to merge; the applications that find the matches merge them, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial

import numpy as np

from chainlake.days import ALWAYS, Days, day_number, day_of_us
from chainlake.detect.rankings.run import touched
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.staleness import Judged
from chainlake.operations.backfills.applications import Application
from chainlake.operations.backfills.derived_days import DerivedDays, Share

_ONE = timedelta(days=1)


def rankings_days(
    judged: Judged, days: Days | None, states: Sequence[str], events: EventDays, found: Sequence[Application]
) -> DerivedDays | None:
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
    decided = sorted({day_number(day) for part in searched for day in (*part.days, *part.following)})
    reached = np.isin(judged.numbers, definition.owners(np.array(decided, np.int64)))
    wanted = np.isin(judged.state, states)
    if "missing" in states:
        wanted |= (judged.state == "waiting") & (judged.recorded("status") == None)  # noqa: E711 (element by element)
    to_do = wanted & inside & (judged.ready | reached)
    following = reached & ~to_do & (judged.state != "waiting")
    if not (to_do | following).any():
        return None
    unsure = to_do & judged.by_input_alone & reached
    mine, later, may = (tuple(map(judged.day, np.flatnonzero(flags).tolist())) for flags in (to_do, following, unsure))
    return DerivedDays(judged, mine, later, frozenset(may), partial(_reads_of_all, judged, events))


def _reads_of_all(judged: Judged, events: EventDays, days: Sequence[date]) -> Days:
    every = [span for day in days if (span := reads_of(judged, day, events)) is not None]
    return Days(min(one.start for one in every), max(one.end for one in every)) if every else Days.one(days[0])


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
    found: Sequence[Application], days: DerivedDays, blank: Application, events: EventDays
) -> list[Application]:
    """The applications of a source, with the periods of a pattern added to what they merge.

    Args:
        found: the applications that find matches, in time order.
        days: the days on which the periods begin.
        blank: an application that computes nothing, the template for periods whose matches none of these finds; its
            days are those asked for.
        events: days of the source.
    """
    shares, further = [Share(one) for one in found], list[date]()
    # A period is merged by the last application that finds matches of it, and provisionally by earlier ones.
    for day in days.to_do:
        reads = reads_of(days.judged, day, events) or Days.one(day)
        reaching = [one for one in shares if one.application.days.start < reads.end]
        reaching = [one for one in reaching if reads.start < one.application.days.end]
        (reaching[-1].to_do if reaching else further).append(day)
    if further:
        # Kept within the days asked for: there, matches to be computed are announced; elsewhere they are left alone.
        spans = [reads_of(days.judged, day, events) or blank.days for day in further]
        looked = [min(max(one.start, blank.days.start), blank.days.end - _ONE) for one in spans]
        shares.append(Share(replace(blank, days=Days(min(looked), max(looked) + _ONE)), further))
        shares.sort(key=lambda one: one.application.days.start)
    if days.following:
        next(one for one in reversed(shares) if one.has(days)).following.extend(days.following)
    return [one.whole(days) for one in shares]
