"""The segments of a pattern's days: each starts on a day that starts from the empty state, whatever came before.
Segments do not depend on each other, so what stops one does not stop the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from chainlake.days import Days, day_number, day_of
from chainlake.lake.records.chain import Chain
from chainlake.lake.records.chained import begins_anew, can_be_computed
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.staleness import Judged


@dataclass(frozen=True)
class Segment:
    """Days of a chain that continue from one another, starting with one that starts from the empty state.

    Args:
        chain: the days, without gaps, up to the last one that a run looks at.
        to_do: the ones among them that are to do, as days since 1970-01-01, ascending.
        published: the day after the last of them that was ever published; the first of them if none was.
        recorded: the days about which something is recorded under today's definition and engine.
    """

    chain: Chain
    to_do: tuple[int, ...]
    published: int
    recorded: frozenset[int]

    @property
    def first(self) -> int:
        """The first day that is to do."""
        return self.to_do[0]


def segments(judged: Judged, to_do: np.ndarray, events: EventDays) -> list[Segment]:
    """The segments of a pattern in which something is to do, ascending.

    Args:
        judged: the pattern, with all its days.
        to_do: a flag per day that the run is to compute.
        events: the days of its source.
    """
    definition = judged.definition
    assert judged.place is not None
    chain, numbers = judged.place.chain, judged.place.chain.numbers
    published = np.array([version is not None for version in judged.recorded("published_version")], dtype=bool)
    published |= judged.recorded("status") == "done"
    same = judged.recorded("definition_hash") == definition.definition_hash
    recorded = frozenset(numbers[same & (judged.recorded("engine_version") == definition.engine_version)].tolist())
    bounds = [*np.flatnonzero(chain.anew).tolist(), len(numbers)]
    if bounds[0] != 0:
        bounds = [0, *bounds]
    found = []
    for lo, hi in zip(bounds, bounds[1:], strict=False):
        mine, there = (numbers[lo:hi][some[lo:hi]].tolist() for some in (to_do, published))
        if not mine:
            continue
        behind = there[-1] + 1 if there else int(numbers[lo])
        end = max(mine[-1] + 1, behind)
        part = Chain(**{f.name: getattr(chain, f.name)[lo:hi][numbers[lo:hi] < end] for f in fields(chain)})
        whole = part.dense(
            int(numbers[lo]),
            end,
            lambda number: can_be_computed(events, day_of(number)),
            lambda number: begins_anew(definition, events, day_of(number)),
        )
        found.append(Segment(whole, tuple(mine), behind, recorded))
    return found


def to_do_flags(judged: Judged, days: Days, states: Sequence[str]) -> np.ndarray:
    """A flag per day of a pattern that a run is to compute: it is among ``days``, ready, and in one of ``states``."""
    inside = (judged.numbers >= day_number(days.start)) & (judged.numbers < day_number(days.end))
    found: np.ndarray = inside & judged.ready & np.isin(judged.state, states)
    return found
