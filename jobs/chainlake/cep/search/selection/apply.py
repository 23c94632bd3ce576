"""From all matches of a search to those that the pattern wants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.dataset import ticks_of
from chainlake.cep.policy import Policy
from chainlake.cep.search.batch import MatchBatch
from chainlake.cep.search.selection.order import NONE, Ranked
from chainlake.cep.search.selection.resolve import Published, published
from chainlake.cep.values.arrow import int64_array, numpy_of


def selected(
    policy: Policy, names: tuple[str, ...], events: pa.Table, batches: Iterable[MatchBatch]
) -> Iterator[MatchBatch]:
    """The matches that a policy publishes, in the order in which they are published.

    Args:
        policy: which are wanted.
        names: the positive names in the order written.
        events: the table in which the matches were found.
        batches: all matches of single events.
    """
    every = [batch for batch in batches if batch.n]
    if not every:
        return
    rows = np.full((sum(batch.n for batch in every), len(names)), NONE, np.int64)
    begin = np.cumsum([0, *(batch.n for batch in every)])
    for first, batch in zip(begin, every, strict=False):
        for name, bound in batch.single.items():
            rows[first : first + batch.n, names.index(name)] = bound
    order, times = _order(events)
    place = np.empty(len(order) + 1, np.int64)
    place[order] = np.arange(len(order))
    place[NONE] = NONE
    wanted = published(Ranked(place[rows], times), names, policy)
    origin = np.searchsorted(begin, wanted.rows, "right") - 1
    if policy.accumulates:
        yield from _accumulated(names, wanted, [every[number].branch for number in origin], order, times)
        return
    bounds = np.flatnonzero(np.diff([every[number].branch for number in origin], prepend=-1))
    for run in np.split(np.arange(len(origin)), bounds[1:]) if len(origin) else ():
        yield _run(every, [(int(origin[i]), int(wanted.rows[i] - begin[origin[i]])) for i in run])


def _order(events: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the events in the order of (ts, seq, id), and their times in that order."""
    ts = ticks_of(events["ts"], "ts")
    keys = {"ts": int64_array(ts)}
    if "seq" in events.column_names:
        keys["seq"] = pc.fill_null(events["seq"].cast(pa.int64()), 0)
    keys["id"] = events["event_id"]
    order = numpy_of(pc.sort_indices(pa.table(keys), [(name, "ascending") for name in keys])).astype(np.int64)
    return order, ts[order]


def _run(every: list[MatchBatch], places: list[tuple[int, int]]) -> MatchBatch:
    """Matches of one branch from several batches, in the order given."""
    numbers = sorted({number for number, _ in places})
    parts = [every[number] for number in numbers]
    begin = dict(zip(numbers, np.cumsum([0, *(part.n for part in parts)]), strict=False))
    at = np.array([begin[number] + i for number, i in places], np.int64)

    def joined(arrays: Iterable[np.ndarray]) -> np.ndarray:
        found: np.ndarray = np.concatenate(list(arrays))[at]
        return found

    measures = {
        name: pa.concat_arrays([part.measures[name] for part in parts]).take(int64_array(at))
        for name in parts[0].measures
    }
    return MatchBatch(
        parts[0].branch,
        len(at),
        joined(part.start_us for part in parts),
        joined(part.end_us for part in parts),
        joined(part.decision_us for part in parts),
        {name: joined(part.single[name] for part in parts) for name in parts[0].single},
        {},
        measures,
    )


def _accumulated(
    names: tuple[str, ...], wanted: Published, branches: list[int], order: np.ndarray, times: np.ndarray
) -> Iterator[MatchBatch]:
    """A row per terminator, whose names are bound to sets; rows in a batch bind the same names."""
    sets = wanted.sets or ()
    bound = [tuple(len(ranks) > 0 for ranks in one) for one in sets]
    first = 0
    while first < len(sets):
        last = first + 1
        while last < len(sets) and bound[last] == bound[first]:
            last += 1
        some = sets[first:last]
        ends = times[[max(int(ranks[-1]) for ranks in one if len(ranks)) for one in some]]
        starts = times[[min(int(ranks[0]) for ranks in one if len(ranks)) for one in some]]
        groups = {}
        for column, name in enumerate(names):
            if bound[first][column]:
                sizes = [len(one[column]) for one in some]
                groups[name] = (np.cumsum([0, *sizes]), order[np.concatenate([one[column] for one in some])])
        yield MatchBatch(branches[first], len(some), starts, ends, ends, {}, groups)
        first = last
