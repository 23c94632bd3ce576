"""Picks the best of all matches that a search finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.columns import ticks_of
from chainlake.cep.events.errors import UnfitValue
from chainlake.cep.events.previous import places
from chainlake.cep.pattern import Pattern
from chainlake.cep.ranking.best import Entries, best, padded
from chainlake.cep.ranking.keeper import Keeper
from chainlake.cep.ranking.lists import Lists, Values
from chainlake.cep.ranking.periods import periods
from chainlake.cep.ranking.rule import value_names
from chainlake.cep.ranking.score import beyond_one, scores, sort_keys
from chainlake.cep.search.bounding.thresholds import SeenLists, Thresholds
from chainlake.cep.search.found.batch import MatchBatch, concatenated
from chainlake.cep.search.statistics import BestSearch, ListCounts
from chainlake.cep.values.arrow import int64_array, numpy_of
from chainlake.schemas.table import TIMESTAMP

#: How many entries wait before those that cannot be among the best are dropped; also the size of blocks of matches.
_ROOM = 1 << 17
#: How many matches may be remembered beyond twice those that still have an entry.
_POOL = 1 << 12


def ranked(best_of: Best) -> Iterator[MatchBatch]:
    """The best matches of each list, with the columns of ``chainlake.cep.ranking.rule``, list by list and by rank.

    Args:
        best_of: all matches that can be among the best.
    """
    entries = best_of.keeper.entries()
    if entries is None:
        return
    rows, rank = best(entries, best_of.rule, final=True)
    # The lists are numbered in the order in which they were seen.
    number = best_of.sorted_lists()[entries.group[rows]]
    order = np.argsort(number, kind="stable")
    yield from best_of.rows(entries.match[rows[order]], entries.group[rows[order]], rank[order])


@dataclass
class Best:
    """The best matches so far.

    Args:
        pattern: the pattern.
        events: the events table.
        trailing: whether groups with their own window only take events from the end of a period.
        thresholds: the thresholds of a search that leaves out what cannot be among the best, or None.
        searched: how the matches are found; if None, all of them are.
        by_day: whether only matches decided on the same UTC day compete.
        pool: the matches that are remembered, each batch with the numbers of its matches.
    """

    pattern: Pattern
    events: pa.Table
    trailing: bool
    thresholds: Thresholds | None = None
    searched: BestSearch | None = None
    by_day: bool = False
    pool: list[tuple[np.ndarray, MatchBatch]] = field(default_factory=list)

    def __post_init__(self) -> None:
        ranking = self.pattern.extras.ranking
        assert ranking is not None, "only ranked patterns get here"
        self.rule = ranking.rule
        self.keeper = Keeper(self.rule, _ROOM)
        self.lists, self.per, self.distinct = Lists(), Values(), Values()
        self.names = tuple(name.name for name in self.pattern.names)
        self.place = np.asarray(numpy_of(places(self.events, None)))
        self.ts = ticks_of(self.events["ts"], "ts")
        self.seen = 0

    def add_all(self, batches: Iterable[MatchBatch]) -> None:
        """Look at matches, block by block.

        Raises:
            InputError: a criterion of a product is not from 0 to 1.
        """
        period = self.rule.period
        each = min(period.size // period.step + 1, _ROOM) if period.kind == "hop" else 1
        for batch in batches:
            largest = max((int(np.diff(offsets).max(initial=1)) for offsets, _ in batch.kleene.values()), default=1)
            block = max(_ROOM // max(each, largest), 1)
            for begin in range(0, batch.n, block):
                some = batch if batch.n <= block else batch.at(np.arange(begin, min(begin + block, batch.n)))
                self._add(some)
            if self.searched is not None:
                self.searched.complete += batch.n
            if self.thresholds is not None and self.thresholds.on:
                self._learn(self.thresholds)

    def _learn(self, thresholds: Thresholds) -> None:
        """Tell the search what a match must now reach in each list."""
        entries = self.keeper.entries()
        kept = 0 if entries is None else len(entries)
        if sum(batch.n for _, batch in self.pool) > 2 * kept + _POOL:
            self._forget()
        lists = self.lists
        thresholds.learn(SeenLists(lists.starts, lists.per, lists.days, self.per.texts), self.keeper.worst, kept)

    def _add(self, batch: MatchBatch) -> None:
        found = self.scores(batch)
        match, starts, ends = periods(self.rule.period, batch.start_us, batch.end_us)
        if self.trailing:
            good = self._trails(batch, match, ends)
            match, starts, ends = match[good], starts[good], ends[good]
        _, per, distinct = value_names(self.rule)
        per_codes = self.per.codes([batch.measures[name] for name in per], batch.n)
        days = batch.decision_us[match] // self.rule.period.day if self.by_day else None
        groups = self.lists.numbers(starts, ends, per_codes[match], days)
        unknown = np.isnan(found[:, 0])
        if self.searched is not None:
            self.searched.unscored += int(unknown.sum())
        below = np.zeros(batch.n, bool) if self.rule.least is None else found[:, 0] < self.rule.least
        self.lists.count(groups, unknown[match], below[match])
        keys = sort_keys(self.rule, found)
        good = ~(unknown | below)[match] & self.keeper.hopeful(groups, keys[match])
        match, groups = match[good], groups[good]
        rows, number = np.unique(match, return_inverse=True)
        if not len(rows):
            return
        kept = batch.at(rows)
        codes = self.distinct.codes([kept.measures[name] for name in distinct], kept.n)
        order = tuple(self._order(name, kept)[number] for name in self.names)
        self.pool.append((self.seen + np.arange(kept.n), kept))
        dropped = self.keeper.add(Entries(self.seen + number, groups, keys[match], order, codes[number]))
        self.seen += kept.n
        if dropped:
            self._forget()

    def scores(self, batch: MatchBatch) -> np.ndarray:
        """The scores of matches."""
        score = self.rule.score(self.pattern.branches[batch.branch].written)
        values = self._criteria(batch)
        found = scores(score, values)
        wrong = beyond_one(score, values)
        if wrong is not None:
            number, value = wrong
            raise UnfitValue.product(number + 1, value, self.pattern.file)
        return found

    def _criteria(self, batch: MatchBatch) -> np.ndarray:
        """The criteria of matches as doubles, NaN where one is missing."""
        names, _, _ = value_names(self.rule)
        found = np.full((batch.n, len(names)), np.nan)
        for number, name in enumerate(names):
            column = batch.measures[name]
            if not pa.types.is_null(column.type):
                found[:, number] = numpy_of(pc.fill_null(column.cast(pa.float64(), safe=False), float("nan")))
        return found

    def _trails(self, batch: MatchBatch, match: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Which entries have the events of each group with its own window that close to the end of their period."""
        good = np.ones(len(match), bool)
        for ticks, names in self.pattern.branches[batch.branch].spans:
            begins = np.min([self.ts[batch.single[name]] for name in names], axis=0)
            good &= begins[match] >= ends - ticks
        return good

    def _order(self, name: str, batch: MatchBatch) -> np.ndarray:
        """The places of the events of a name, in the form of ``Entries``."""
        if name in batch.single:
            found: np.ndarray = self.place[batch.single[name]][:, None]
            return found
        offsets, rows = batch.kleene.get(name, (np.zeros(batch.n + 1, np.int64), np.zeros(0, np.int64)))
        return padded(np.repeat(np.arange(batch.n), np.diff(offsets)), self.place[rows], batch.n)

    def _forget(self) -> None:
        """Drop the matches that have no entry left."""
        entries = self.keeper.entries()
        left = np.zeros(0, np.int64) if entries is None else np.unique(entries.match)
        pool = []
        for numbers, batch in self.pool:
            keep = np.isin(numbers, left)
            if keep.any():
                pool.append((numbers[keep], batch.only(keep)))
        self.pool = pool

    # ---- the result

    def counts(self) -> list[ListCounts]:
        """The counts of each list, in the order of the lists; None if not all matches were looked at."""
        lists, known = self.lists, self.searched is None or self.searched.all_seen
        found = []
        for i in np.argsort(self.sorted_lists()).tolist():
            counts = (lists.candidates[i], lists.excluded[i], lists.below[i]) if known else (None, None, None)
            found.append(ListCounts(lists.starts[i], lists.ends[i], self.per.texts[lists.per[i]], *counts))
        return found

    def sorted_lists(self) -> np.ndarray:
        """The place of each list in the order of their periods and values."""
        lists = self.lists
        order = sorted(range(len(lists)), key=lambda i: (lists.starts[i], self.per.texts[lists.per[i]]))
        found = np.empty(len(order), np.int64)
        found[order] = np.arange(len(order))
        return found

    def rows(self, match: np.ndarray, group: np.ndarray, rank: np.ndarray) -> Iterator[MatchBatch]:
        """Matches with the columns that rank them, in the given order; each batch is of one branch."""
        branch, at, whole = self._whole(match)
        bounds = np.flatnonzero(np.diff(branch, prepend=-1))
        for run in np.split(np.arange(len(match)), bounds[1:]):
            batch = whole[int(branch[run[0]])].at(at[run])
            yield replace(batch, measures=self._columns(batch, group[run], rank[run]))

    def _whole(self, match: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[int, MatchBatch]]:
        """For each match, its branch and its row among all matches of that branch; and these matches."""
        by_branch: dict[int, list[tuple[np.ndarray, MatchBatch]]] = {}
        for one in self.pool:
            by_branch.setdefault(one[1].branch, []).append(one)
        branch, at = np.empty(len(match), np.int64), np.empty(len(match), np.int64)
        for number, pool in by_branch.items():
            numbers = np.concatenate([some for some, _ in pool])  # ascending
            place = np.minimum(np.searchsorted(numbers, match), len(numbers) - 1)
            mine = numbers[place] == match
            branch[mine], at[mine] = number, place[mine]
        return branch, at, {n: concatenated([batch for _, batch in pool]) for n, pool in by_branch.items()}

    def _columns(self, batch: MatchBatch, group: np.ndarray, rank: np.ndarray) -> dict[str, pa.Array]:
        """The measures of ranked matches, and the columns that rank them."""
        kind, n = self.rule.period.kind, batch.n
        whole = [np.array(of, np.int64)[group] for of in (self.lists.starts, self.lists.ends)]
        ends = [pa.nulls(n) if kind == "all" else int64_array(one) for one in whole]
        if self.pattern.strict:
            ends = [one.cast(TIMESTAMP) for one in ends]
        visible = {one.name: batch.measures[one.name] for one in self.pattern.extras.measures}
        score = self.rule.score(self.pattern.branches[batch.branch].written)
        found, values = self.scores(batch), self._criteria(batch)[:, : len(score.criteria)]
        return {
            **visible,
            "scope_kind": pa.array([kind] * n, pa.string()),
            "scope_start": ends[0],
            "scope_end": ends[1],
            "per": pa.array([self.per.texts[self.lists.per[one]] for one in group.tolist()], pa.string()),
            "rank": int64_array(rank),
            "score": lists_of(found) if score.combine == "lex" else pa.array(found[:, 0], pa.float64()),
            "criteria": lists_of(values),
        }


def lists_of(values: np.ndarray) -> pa.Array:
    """The rows of a matrix as lists, NaN as null."""
    flat = values.ravel()
    numbers = pa.array(flat, pa.float64(), mask=np.isnan(flat))
    offsets = pa.array(np.arange(len(values) + 1) * values.shape[1], pa.int32())
    return pa.ListArray.from_arrays(offsets, numbers)
