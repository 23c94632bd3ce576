"""Days that form a chain: the errors that prevent a run from continuing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np

from chainlake.days import Days, day_number
from chainlake.errors import InputError
from chainlake.lake.records.staleness import Judged
from chainlake.words import counted


class ChainBroken(InputError):
    """A day from which later ones continue cannot be computed."""

    @classmethod
    def of(cls, definition: str, source: str, day: date) -> ChainBroken:
        """For the definition, its source, and the day, whose events are not there."""
        return cls(
            f"{definition} cannot continue from {day}: the events of that day are not final",
            hint=f"Run 'chainlake ingest {source} {day} {day + timedelta(days=1)}' first.",
        )


class ChainBlocked(InputError):
    """Days that were asked for continue from one that cannot be finished at the moment."""

    @classmethod
    def of(cls, definition: str, days: Sequence[date], why: str) -> ChainBlocked:
        """For the definition, the days that wait, and what they wait for."""
        more = f" and {counted(len(days) - 1, 'more day')}" if len(days) > 1 else ""
        return cls(
            f"{definition} cannot continue to {days[0]}{more}: {why}",
            hint="Its days form a chain: fix that day first; 'chainlake status' shows it.",
        )


def held(judged: Judged, days: Days) -> ChainBlocked | None:
    """The error for days asked for that wait for a day which their run was not meant to finish; None if none do.

    Args:
        judged: a definition on these days.
        days: the days.
    """
    place = judged.place
    assert place is not None
    others = (place.states == "audit_failed") | (place.cause < day_number(days.start))
    waits = np.flatnonzero(place.behind & (judged.state == "waiting") & others)
    if not len(waits):
        return None
    return ChainBlocked.of(judged.name, [judged.day(at) for at in waits.tolist()], judged.why(int(waits[0])))
