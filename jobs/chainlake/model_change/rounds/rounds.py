"""A group's rounds: which exist, what is carried forward, the model's columns in each (docs/semantics.md#rounds)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import day_of_us
from chainlake.model_change.config.aggregates import AGGREGATES
from chainlake.model_change.config.features import LARGEST, Feature, values_of
from chainlake.model_change.config.series import SeriesConfig
from chainlake.model_change.rounds.carry import fill_forward
from chainlake.model_change.rounds.membership import Membership, Switch
from chainlake.model_change.statistics.statistics import Array
from chainlake.model_change.unobserved import of_no_round, of_no_round_at, of_no_value, unobserved


@dataclass
class Chunk:
    """Consecutive complete rounds with one node set and no reset between them.

    ``reset`` says that the window starts again at the first round, ``switch`` that the node set changes there (such a
    chunk is one round long); ``nodes`` are the nodes' places among all nodes of the group; ``number`` counts the
    group's existing rounds of the UTC day from 0; ``counts`` says which rounds metrics count: those from the model's
    ``count_from`` on; ``gap`` is the number of rounds since the one before; ``carried`` is the number of nodes in a
    round with a value that was carried forward.
    """

    reset: bool
    ts: Array
    number: Array
    counts: Array
    x: Array
    y: Array
    gap: Array
    carried: Array
    nodes: Array
    switch: Switch | None


@dataclass
class Carry:
    """What one day's rounds hand to the next: last values (keys, columns), their ages in rounds (limited to the first
    that is too old), the history that transforms need, which keys ever had an event, the number of rounds so far (up
    to those that metrics count), and which nodes take part."""

    last: Array
    age: Array
    history: Array
    heard: Array
    seen: int = 0
    last_ts: int | None = None
    reset_due: bool = False
    spans: dict[str, Array] = field(default_factory=dict)
    members: dict[str, Any] = field(default_factory=dict)


class Rounds:
    """Turns a group's reduced rows into chunks of complete rounds.

    Args:
        config: the model.
        group: its group.
        carry: where earlier rows left off, from `carried`; None for the model's start.
    """

    def __init__(self, config: SeriesConfig, group: str, carry: dict[str, Any] | None = None):
        self.config, self.group = config, group
        self.nodes = config.groups[group]
        self.keys = config.keys(group)
        self.k = len(self.nodes)
        #: How many values so far were too large to be used, and in how many rounds of nodes what is made of them was.
        self.beyond = self.made_beyond = 0
        #: How many lengths of a round so far had events, and none with a value.
        self.without_value = 0
        entries = (config.response, *config.features)
        #: In how many rounds so far each node took part, and, by the name of each entry, had a value.
        self.rounds = np.zeros(self.k, np.int64)
        self.valued = {entry.base: np.zeros(self.k, np.int64) for entry in entries if entry.of is not None}
        #: The last day whose rounds were made.
        self.day: date | None = None
        self._places = [np.array([self.keys.index(key) for key in node.keys]) for node in self.nodes]
        shape = (len(self.keys), len(config.columns))
        self.carry = (
            Carry(**carry)
            if carry
            else Carry(
                np.full(shape, np.nan), np.zeros(shape, np.int64), self._no_history(), np.zeros(shape[0], np.int64)
            )
        )
        self.members = (
            Membership(**self.carry.members)
            if self.carry.members
            else Membership.start(self.k, len(config.feature_names))
        )

    @property
    def carried(self) -> dict[str, Any]:
        """What the next day continues from."""
        return {**vars(self.carry), "members": vars(self.members)}

    @property
    def remarks(self) -> list[str]:
        """What the values showed, one sentence each."""
        found = [] if self.day is None else unobserved(self.config, self.group, self.carry.heard, self.day)
        observed = np.array([self.carry.heard[places].all() for places in self._places])
        for name, count in self.valued.items():
            silent = (self.rounds > 0) & observed & (count == 0)
            names = [node.name for node, mine in zip(self.nodes, silent, strict=True) if mine]
            if count.any() and names:
                found.append(of_no_round_at(self.group, name, names, int(self.rounds[silent].max())))
            elif self.rounds.any() and not count.any():
                found.append(of_no_round(self.group, name, int(self.rounds.max())))
        if self.without_value and not self.rounds.any():
            found.append(of_no_value(self.group, self.config.columns, self.without_value))
        if self.beyond:
            found.append(f"{self.beyond} values beyond {LARGEST:g} in size were taken as not reported")
        if self.made_beyond:
            found.append(
                f"in {self.made_beyond} rounds of nodes a transform, a power or a mean of several keys went beyond "
                f"{LARGEST:g} in size: these rounds were not used"
            )
        return found

    def _no_history(self) -> Array:
        return np.zeros((0, len(self.keys), len(self.config.columns)))

    def _declared(self, ts: Array) -> Array:
        """(n, K) whether the model names a node at each time."""
        return np.stack([node.takes_part(ts) for node in self.nodes], axis=1)

    def chunks(self, reduced: pa.Table) -> list[Chunk]:
        """The complete rounds of a day.

        Args:
            reduced: one row per key and round, from `reduce.reduce_rows`; rows of other keys are ignored.
        """
        ts, values = self._pivot(reduced)
        cut = [0]
        limit = self.config.session_gap_us
        if limit is not None and self.config.on_gap == "reset":
            longest = limit + self.config.round_us
            cut += (np.flatnonzero(np.diff(ts) >= longest) + 1).tolist()
            if len(ts) and self.carry.last_ts is not None and ts[0] - self.carry.last_ts >= longest:
                self._forget()
        found = []
        for lo, hi in zip(cut, [*cut[1:], len(ts)], strict=True):
            if lo:
                self._forget()
            if hi > lo:
                found += self._complete(ts[lo:hi], values[lo:hi], lo)
        if len(ts):
            self._drop_spent(day_of_us(int(ts[-1])))
        return found

    def _drop_spent(self, day: date) -> None:
        """Drop everything from the carry that no later round reads, so that a state holds nothing without effect."""
        config, c = self.config, self.carry
        entries = (config.response, *config.features)
        named = {feature.key for feature in entries}
        staying = {key for node in self.nodes if not node.ended(day) for key in node.keys} | named
        gone = np.array([key not in staying for key in self.keys])
        # Transforms read values of earlier rounds however old they are, and a range still to be found takes any value.
        open_ranges = any(f.scale is not None and f.low is None and str(i - 1) not in c.spans
                          for i, f in enumerate(entries))  # fmt: skip
        plain = not open_ranges and max(feature.reach for feature in entries) == 0
        c.last[gone[:, None] | (plain & (c.age > config.max_carry))] = np.nan
        c.history[:, gone] = np.nan
        c.age = np.where(np.isnan(c.last), 0, np.minimum(c.age, config.max_carry + 1))

    def _forget(self) -> None:
        c = self.carry
        c.last, c.age = np.full_like(c.last, np.nan), np.zeros_like(c.age)
        c.history, c.reset_due = self._no_history(), True
        self.members.forget()

    def _pivot(self, reduced: pa.Table) -> tuple[Array, Array]:
        """Existing rounds in order, and their (rounds, keys, columns) values, NaN where nothing was reported."""
        config = self.config
        key = pc.index_in(reduced["key"], value_set=pa.array(self.keys, pa.string())).to_numpy(zero_copy_only=False)
        mine = ~np.isnan(key.astype(float))
        at = reduced["round_us"].to_numpy()[mine]
        key = key[mine].astype(np.int64)
        self.carry.heard[key] = 1
        ts, row = np.unique(at, return_inverse=True)
        values = np.full((len(ts), len(self.keys), len(config.columns)), np.nan)
        for i, name in enumerate(config.columns):
            column = pc.cast(reduced[name], pa.float64()).to_numpy(zero_copy_only=False)[mine]
            usable = np.abs(column) <= LARGEST
            self.beyond += int(np.sum(~usable & ~np.isnan(column)))
            values[row, key, i] = np.where(usable, column, np.nan)
        # An event whose values are all missing reports nothing: rounds of such events only would carry old values on.
        reported = ~np.isnan(values).all(axis=2)
        self.without_value += int(np.sum(~reported.any(axis=1)))
        nodes = np.stack([reported[:, places].any(axis=1) for places in self._places], axis=1) & self._declared(ts)
        exists = nodes.sum(axis=1) >= config.min_nodes
        return ts[exists], values[exists]

    def _complete(self, ts: Array, values: Array, before: int) -> list[Chunk]:
        """The complete rounds of a segment of a day that has ``before`` rounds before it."""
        config, c = self.config, self.carry
        filled, age, c.last, c.age = fill_forward(values, c.last, c.age)
        h = len(c.history)
        with_history = np.concatenate([c.history, filled])
        declared = self._declared(ts)
        entries = (config.response, *config.features)
        reach = max(f.reach for f in entries)
        c.history = with_history[len(with_history) - min(reach, len(with_history)) :].copy()
        y, *columns = (self._values(i - 1, f, with_history, declared)[h:] for i, f in enumerate(entries))
        self.rounds += declared.sum(axis=0)
        for entry, made in zip(entries, (y, *columns), strict=True):
            if entry.of is not None:
                self.valued[entry.base] += (~np.isnan(made[:, :, 0])).sum(axis=0)
        x, y = np.concatenate(columns, axis=2), y[:, :, 0]
        ages = [(self._age(f, age), f.key is None) for f in entries if f.of is not None]
        oldest = np.max([found for found, _ in ages], axis=0)
        own = np.max([found if mine else np.zeros_like(found) for found, mine in ages], axis=0)
        # False for what is not a number, and for powers beyond what sums of squares can hold.
        ok = (np.abs(x) <= LARGEST).all(axis=2) & (np.abs(y) <= LARGEST) & (oldest <= config.max_carry)
        self.made_beyond += int(np.sum((np.abs(x) > LARGEST).any(axis=2) | (np.abs(y) > LARGEST)))
        number = np.arange(len(ts))
        counts = c.seen + number >= config.counted_from
        c.seen = min(c.seen + len(ts), config.counted_from)
        number += before
        c.last_ts = int(ts[-1])
        segments = self.members.split(ts, x, y, ok, declared, window=config.window, round_us=config.round_us)
        found = []
        for s in segments:
            grid = np.ix_(s.rounds, s.nodes)
            carried = (own[grid] > 0).sum(axis=1)
            reset, c.reset_due = c.reset_due or s.anew, False
            found.append(
                Chunk(
                    reset,
                    ts[s.rounds],
                    number[s.rounds],
                    counts[s.rounds],
                    x[grid],
                    y[grid],
                    s.gap,
                    carried,
                    s.nodes,
                    s.switch,
                )  # fmt: skip
            )
        return found

    def _values(self, index: int, feature: Feature, values: Array, declared: Array) -> Array:
        if feature.of is None:
            return np.ones((len(values), self.k, 1))
        own = self._own(feature, values)
        return values_of(feature, own, self._span(index, feature, own, declared))

    def _own(self, feature: Feature, values: Array) -> Array:
        """(rounds, K) values of the feature's column at every node, before transforms."""
        assert feature.of is not None
        column = values[:, :, self.config.columns.index(feature.of)]
        if feature.key is not None:
            return np.repeat(column[:, [self.keys.index(feature.key)]], self.k, axis=1)
        if feature.member is not None:
            return column[:, [places[feature.member - 1] for places in self._places]]
        together = AGGREGATES[self.config.aggregate].of_keys
        return np.stack(
            [column[:, p[0]] if len(p) == 1 else together(column[:, p], axis=1) for p in self._places], axis=1
        )

    def _age(self, feature: Feature, age: Array) -> Array:
        """(rounds, K) rounds since the oldest of the values behind `_own` was reported."""
        column = age[:, :, self.config.columns.index(str(feature.of))]
        if feature.key is not None:
            return np.repeat(column[:, [self.keys.index(feature.key)]], self.k, axis=1)
        places = [p if feature.member is None else p[[feature.member - 1]] for p in self._places]
        return np.stack([column[:, p].max(axis=1) for p in places], axis=1)

    def _span(self, index: int, feature: Feature, own: Array, declared: Array) -> tuple[float, float] | None:
        """Raw values at the ends of a polynomial's scale: as given, or from the first round in which all are known."""
        if feature.scale is None:
            return None
        if feature.low is not None and feature.high is not None:
            return feature.low, feature.high
        frozen = self.carry.spans.get(str(index))
        if frozen is None:
            now = own[len(own) - len(declared) :]
            full = np.flatnonzero((~np.isnan(now) | ~declared).all(axis=1) & declared.any(axis=1))
            if not len(full):
                return 0.0, 1.0
            first = now[full[0]][declared[full[0]]]
            frozen = self.carry.spans[str(index)] = np.array([first.min(), first.max()])
        return float(frozen[0]), float(frozen[1])
