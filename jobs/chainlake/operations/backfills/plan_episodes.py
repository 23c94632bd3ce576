"""Which days of episodes a backfill has to make; the applications that find the matches make them, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from chainlake.days import Days, day_number
from chainlake.lake.records.staleness import Judged, inside
from chainlake.operations.backfills.applications import Application
from chainlake.operations.backfills.derived_days import DerivedDays, Share

_ONE = timedelta(days=1)


def episodes_days(
    judged: Judged, days: Days | None, states: Sequence[str], found: Sequence[Application]
) -> DerivedDays | None:
    """The days on which a pattern's episodes are to be made; None if there are none.

    Args:
        judged: the episodes.
        days: only these days; all if None.
        states: the states of days to do.
        found: the applications that find matches; where they search for the pattern, its days will be ready.
    """
    assert judged.definition.of is not None
    assert judged.place is not None
    recorded = judged.recorded("status") != None  # noqa: E711 (element by element)
    wanted = np.isin(judged.state, states)
    # Days that wait for an earlier day may themselves be to do: the applications first do what they wait for.
    wanted |= (judged.state == "waiting") & np.where(recorded, judged.place.unfinished, "missing" in states)
    searched = [part for one in found for part in one.parts if part.definition == judged.definition.of.name]
    again = [day_number(day) for part in searched for day in (*part.days, *part.following)]
    ready = judged.ready | np.isin(judged.numbers, again)
    to_do = wanted & (ready if days is None else ready & inside(judged.numbers, days))
    begins = [*judged.numbers[to_do][:1].tolist(), *again]
    # Where matches turn out to differ, their episodes are made again, and later ones for as long as it matters.
    behind = np.zeros(len(judged.numbers), dtype=bool)
    if begins and recorded.any():
        behind = (judged.numbers >= min(begins)) & (judged.numbers <= judged.numbers[recorded][-1]) & ready & ~to_do
    if not (to_do | behind).any():
        return None
    unsure = to_do & judged.by_input_alone & np.isin(judged.numbers, again)
    # Whether nothing was open before a day depends on the matches of earlier days.
    unsure |= to_do & judged.by_state_alone & judged.place.chain.anew & (judged.numbers > min(again, default=np.inf))
    mine, following, may = (tuple(map(judged.day, np.flatnonzero(flags).tolist())) for flags in (to_do, behind, unsure))
    return DerivedDays(judged, mine, following, frozenset(may), _from_first_to_last)


def _from_first_to_last(days: Sequence[date]) -> Days:
    return Days(days[0], days[-1] + _ONE)


def with_episodes(found: Sequence[Application], days: DerivedDays, blank: Application, chunk: int) -> list[Application]:
    """The applications of a source, with the days of a pattern's episodes added to what they compute.

    Args:
        found: the applications that find matches, in time order.
        days: the days.
        blank: an application that computes nothing, the template for days that none of these covers.
        chunk: largest number of days in an application.
    """
    shares, further = [Share(one) for one in found], list[Share]()
    longest = timedelta(days=chunk)
    for day in days.to_do:
        of = next((one for one in reversed(shares) if one.application.days.start <= day), None)
        if of is not None and day < max(of.application.days.end, of.application.days.start + longest):
            of.to_do.append(day)
        elif further and day < further[-1].to_do[0] + longest:
            further[-1].to_do.append(day)
        else:
            further.append(Share(replace(blank, days=Days.one(day)), [day]))
    for one in (one for one in (*shares, *further) if one.to_do):
        span = one.application.days
        one.application = replace(one.application, days=Days(span.start, max(span.end, one.to_do[-1] + _ONE)))
    shares = sorted((*shares, *further), key=lambda one: one.application.days.start)
    if days.following:
        # Days that may follow are given to the first application that has the pattern.
        next(one for one in shares if one.has(days)).following.extend(days.following)
    return [one.whole(days) for one in shares]
