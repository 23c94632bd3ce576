"""One model and the days to replay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from chainlake.catalog.models import LoadedModel
from chainlake.days import Days
from chainlake.lake.records.event_days import EventDays
from chainlake.monitoring.states import KeptStates
from chainlake.paths import Home

STEP = "monitor"


#: Days that a model is replayed at a time.
STRETCH = 90


_ONE = timedelta(days=1)


@dataclass(frozen=True)
class Replay:
    """One model and the days to publish.

    Args:
        model: the model.
        days: consecutive days; those before the model's start are published empty.
        snapshots: state per group at the end of the day before the first; empty to begin anew.
        fingerprints: of every day.
    """

    model: LoadedModel
    days: Days
    snapshots: dict[str, str]
    fingerprints: dict[date, str]


def stretches(home: Home, item: Replay, event_days: EventDays) -> Iterator[Replay]:
    """A replay in stretches of ``STRETCH`` days, each to be published before the next is asked for.

    Years of rounds do not fit into memory at once, and what is published is not lost when a later day fails. Each goes
    on from the state that the one before it published; where that is not there, because a day's input moved meanwhile,
    the days that follow are left to the next run.

    Args:
        home: the installation.
        item: the whole replay.
        event_days: the source's days, pinned.
    """
    at, snapshots = item.days.start, item.snapshots
    fresh = max(item.model.config.start, event_days.first or item.model.config.start)
    while at < item.days.end:
        days = Days(at, min(at + timedelta(days=STRETCH), item.days.end))
        yield Replay(item.model, days, snapshots, {day: item.fingerprints[day] for day in days})
        if fresh < days.end < item.days.end:
            kept = KeptStates(home, [item.model.config.name])
            reached, snapshots = kept.last(item.model, fresh, days.end, event_days)
            if reached != days.end:
                return
        at = days.end
