"""The best rows of each list: a total order, then a walk along it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chainlake.cep.ranking.rule import Rule

#: The place of an event that a match does not bind: after all bound events.
UNBOUND = np.iinfo(np.int64).max
#: Follows the last event of a set, so that a set comes before a longer one that begins with it.
NO_MORE = -1


@dataclass(frozen=True)
class Entries:
    """Matches in lists; a match may be in several.

    Args:
        match: the number of the match.
        group: the number of the list.
        keys: the sort keys of the matches, the smallest first; shape (entries, numbers of a score).
        order: for each name, the places of its events in the order of all events, ``UNBOUND`` for none; those of a set
            ascend and are filled up with ``NO_MORE``; shape (entries, largest set).
        distinct: the number of the values of ``DISTINCT ON``, or zeros.
    """

    match: np.ndarray
    group: np.ndarray
    keys: np.ndarray
    order: tuple[np.ndarray, ...]
    distinct: np.ndarray

    def __len__(self) -> int:
        return len(self.match)

    def at(self, rows: np.ndarray) -> Entries:
        """The entries at ``rows``."""
        return Entries(
            self.match[rows],
            self.group[rows],
            self.keys[rows],
            tuple(places[rows] for places in self.order),
            self.distinct[rows],
        )


def joined(parts: Sequence[Entries]) -> Entries:
    """All entries of some parts (at least one)."""
    if len(parts) == 1:
        return parts[0]
    order = []
    for places in zip(*(part.order for part in parts), strict=True):
        width = max(one.shape[1] for one in places)
        order.append(np.concatenate([_filled(one, width) for one in places]))
    return Entries(
        np.concatenate([part.match for part in parts]),
        np.concatenate([part.group for part in parts]),
        np.concatenate([part.keys for part in parts]),
        tuple(order),
        np.concatenate([part.distinct for part in parts]),
    )


def _filled(places: np.ndarray, width: int) -> np.ndarray:
    missing = width - places.shape[1]
    return np.pad(places, ((0, 0), (0, missing)), constant_values=NO_MORE) if missing else places


def padded(row: np.ndarray, place: np.ndarray, n: int) -> np.ndarray:
    """The places of the events of one name, in the form of ``Entries.order``.

    Args:
        row: the row of each event.
        place: the place of each event.
        n: how many rows there are.
    """
    order = np.lexsort([place, row])
    sizes = np.bincount(row, minlength=n)
    found = np.full((n, max(int(sizes.max(initial=0)), 1)), NO_MORE, np.int64)
    found[sizes == 0, 0] = UNBOUND
    column = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    found[row[order], column] = place[order]
    return found


def best(entries: Entries, rule: Rule, *, final: bool) -> tuple[np.ndarray, np.ndarray]:
    """The entries that are kept.

    Args:
        entries: of any lists.
        rule: how many are kept, and which exclude each other.
        final: whether these are all entries; if not, all that may still be kept beside others are kept.

    Returns:
        rows of the entries, list by list with the best first, and the rank of each, from 1.
    """
    if not len(entries):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    columns = [column for places in reversed(entries.order) for column in reversed(places.T)]
    order = np.lexsort([*columns, *reversed(entries.keys.T), entries.group])
    group = entries.group[order]
    begins = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    sizes = np.diff(np.append(begins, len(group)))
    rank = np.arange(len(group)) - np.repeat(begins, sizes) + 1
    if rule.non_overlapping and not final:
        return order, rank
    if rule.non_overlapping or rule.distinct:
        kept = _walked(entries, order, begins, rule)
        order, rank = order[kept[0]], kept[1]
        return order, rank
    keep = rank <= rule.count
    if rule.with_ties:
        at = np.repeat(order[np.minimum(begins + rule.count, begins + sizes) - 1], sizes)
        keep |= (entries.keys[order] == entries.keys[at]).all(axis=1)
    return order[keep], rank[keep]


def _walked(entries: Entries, order: np.ndarray, begins: np.ndarray, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """The rows of each list that no better row excludes, as places in ``order``, and their ranks."""
    keys = entries.keys[order]
    distinct = entries.distinct[order].tolist()
    events = [places[order] for places in entries.order] if rule.non_overlapping else []
    ends = np.append(begins[1:], len(order))
    found: list[int] = []
    ranks: list[int] = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        used: set[int] = set()
        seen: dict[int, int] = {}
        rank, worst = 0, 0
        for at in range(begin, end):
            if rank >= rule.count and not (rule.with_ties and (keys[at] == keys[worst]).all()):
                break
            if rule.distinct and seen.get(distinct[at], 0) >= rule.most:
                continue
            if rule.non_overlapping:
                mine = {int(one) for places in events for one in places[at] if one not in (UNBOUND, NO_MORE)}
                if not mine.isdisjoint(used):
                    continue
                used |= mine
            seen[distinct[at]] = seen.get(distinct[at], 0) + 1
            rank, worst = rank + 1, at
            found.append(at)
            ranks.append(rank)
    return np.array(found, np.int64), np.array(ranks, np.int64)
