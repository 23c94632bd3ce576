"""Remembers matches block by block: of each list, only those that may still be among its best."""

from __future__ import annotations

import numpy as np

from chainlake.cep.ranking.best import Entries, best, joined
from chainlake.cep.ranking.rule import Rule


class Keeper:
    """Remembers the best entries of each list.

    Args:
        rule: how many are kept, and which exclude each other.
        room: how many entries may wait before those that can no longer be kept are dropped.
    """

    def __init__(self, rule: Rule, room: int) -> None:
        self._rule, self._room = rule, room
        self._parts: list[Entries] = []
        self._waiting, self._kept = 0, 0
        self._worst = np.zeros(0)

    @property
    def worst(self) -> np.ndarray:
        """For the first lists, the first sort key of the last row kept; infinite where a list is not full."""
        return self._worst

    def hopeful(self, groups: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Which entries may be among the best: all except those that are worse than every kept row of a full list."""
        if not len(self._worst):
            return np.ones(len(groups), bool)
        known = groups < len(self._worst)
        worst = np.where(known, self._worst[np.where(known, groups, 0)], np.inf)
        found: np.ndarray = keys[:, 0] <= worst
        return found

    def add(self, entries: Entries) -> bool:
        """Remember entries; tells whether entries that can no longer be kept were dropped."""
        if not len(entries):
            return False
        self._parts.append(entries)
        self._waiting += len(entries)
        # Entries that are kept anyway should not be sorted again for every block.
        if self._waiting <= max(self._room, 2 * self._kept):
            return False
        self.entries()
        return True

    def entries(self) -> Entries | None:
        """All entries that may still be among the best; None if there are none."""
        if not self._parts:
            return None
        whole = joined(self._parts)
        rows, rank = best(whole, self._rule, final=False)
        kept = whole.at(rows)
        if not self._rule.non_overlapping and len(kept):
            self._worst = np.full(int(kept.group.max()) + 1, np.inf)
            full = rank == self._rule.count
            self._worst[kept.group[full]] = kept.keys[full, 0]
        self._parts, self._waiting, self._kept = [kept], len(kept), len(kept)
        return kept
