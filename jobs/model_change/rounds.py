"""Rounds of one group: which exist, what is carried forward, and the model's columns in each (spec 4.3, design §6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.model_change.carry import fill_forward
from jobs.model_change.config import ModelConfig
from jobs.model_change.features import Feature, values_of
from jobs.model_change.statistics import Array


@dataclass
class Chunk:
    """Consecutive complete rounds without a reset between them.

    ``reset`` says that the window starts anew at the first of them; ``number`` counts the group's existing rounds from
    0 at the model's first; ``carried`` counts the nodes of a round with a value that was carried forward.
    """

    reset: bool
    ts: Array
    number: Array
    x: Array
    y: Array
    gap: Array
    carried: Array


@dataclass
class Carry:
    """What rounds hand on: last values (keys, columns), their ages in rounds, and the history that transforms need."""

    last: Array
    age: Array
    history: Array
    seen: int = 0
    last_ts: int | None = None
    last_used: int | None = None
    reset_due: bool = False
    spans: dict[str, Array] = field(default_factory=dict)


class Rounds:
    """Turns the reduced rows of a group into chunks of complete rounds.

    Args:
        config: the model.
        group: its group.
        carry: where earlier rows stopped, from `carry.__dict__`; None for the model's start.
    """

    def __init__(self, config: ModelConfig, group: str, carry: dict[str, Any] | None = None):
        self.config = config
        self.keys = config.keys(group)
        self.k = len(config.groups[group])
        shape = (len(self.keys), len(config.columns))
        self.carry = (
            Carry(**carry) if carry else Carry(np.full(shape, np.nan), np.zeros(shape, np.int64), self._no_history())
        )

    def _no_history(self) -> Array:
        return np.zeros((0, len(self.keys), len(self.config.columns)))

    def chunks(self, reduced: pa.Table) -> list[Chunk]:
        """The complete rounds of a day.

        Args:
            reduced: one row per key and round, as `reduce.reduce_rows` gives them; rows of other keys are ignored.
        """
        ts, values = self._pivot(reduced)
        cut = [0]
        limit = self.config.session_gap_us
        before = np.concatenate([[self.carry.last_ts if self.carry.last_ts is not None else -1], ts[:-1]])
        if limit is not None and self.config.on_gap == "reset":
            quiet = ts - before - self.config.round_us
            cut += [int(i) for i in np.flatnonzero((quiet >= limit) & (before >= 0)) if i > 0]
            if len(ts) and self.carry.last_ts is not None and quiet[0] >= limit:
                self._forget()
        found = []
        for lo, hi in zip(cut, [*cut[1:], len(ts)], strict=True):
            if lo:
                self._forget()
            if hi > lo:
                found.append(self._complete(ts[lo:hi], values[lo:hi]))
        return [chunk for chunk in found if len(chunk.ts)]

    def _forget(self) -> None:
        c = self.carry
        c.last, c.age = np.full_like(c.last, np.nan), np.zeros_like(c.age)
        c.history, c.reset_due = self._no_history(), True

    def _pivot(self, reduced: pa.Table) -> tuple[Array, Array]:
        """Existing rounds in order, and (rounds, keys, columns) values with NaN where nothing was reported."""
        config = self.config
        key = pc.index_in(reduced["key"], value_set=pa.array(self.keys, pa.string())).to_numpy(zero_copy_only=False)
        mine = ~np.isnan(key.astype(float))
        at = reduced["round_us"].to_numpy()[mine]
        key = key[mine].astype(np.int64)
        ts, row = np.unique(at, return_inverse=True)
        values = np.full((len(ts), len(self.keys), len(config.columns)), np.nan)
        for i, name in enumerate(config.columns):
            column = pc.cast(reduced[name], pa.float64()).to_numpy(zero_copy_only=False)[mine]
            values[row, key, i] = np.where(np.isfinite(column), column, np.nan)
        reported = np.zeros((len(ts), self.k), dtype=bool)
        reported[row[key < self.k], key[key < self.k]] = True
        exists = reported.sum(axis=1) >= config.min_nodes
        return ts[exists], values[exists]

    def _complete(self, ts: Array, values: Array) -> Chunk:
        config, c = self.config, self.carry
        filled, age, c.last, c.age = fill_forward(values, c.last, c.age)
        h = len(c.history)
        with_history = np.concatenate([c.history, filled])
        reach = max(f.reach for f in (config.response, *config.features))
        c.history = with_history[len(with_history) - min(reach, len(with_history)) :].copy()
        x = np.concatenate([self._values(i, f, with_history) for i, f in enumerate(config.features)], axis=2)[h:]
        y = self._values(-1, config.response, with_history)[h:, :, 0]
        used = sorted({config.columns.index(f.of) for f in (config.response, *config.features) if f.of is not None})
        oldest = age[:, : self.k][:, :, used].max(axis=2) if used else np.zeros((len(ts), self.k), np.int64)
        good = ~(np.isnan(x).any(axis=(1, 2)) | np.isnan(y).any(axis=1)) & (age.max(axis=(1, 2)) <= config.max_carry)
        number = c.seen + np.arange(len(ts))
        c.seen += len(ts)
        c.last_ts = int(ts[-1])
        times = ts[good]
        reset = c.reset_due and len(times) > 0
        before = (
            np.concatenate([[times[0] - config.round_us if c.last_used is None else c.last_used], times[:-1]])
            if len(times)
            else times
        )
        if len(times):
            c.last_used, c.reset_due = int(times[-1]), False
        return Chunk(
            reset,
            times,
            number[good],
            x[good],
            y[good],
            (times - before) // config.round_us,
            (oldest[good] > 0).sum(axis=1),
        )

    def _values(self, index: int, feature: Feature, values: Array) -> Array:
        if feature.of is None:
            return np.ones((len(values), self.k, 1))
        column = values[:, :, self.config.columns.index(feature.of)]
        return values_of(feature, column, self.keys, self.k, self._span(index, feature, column))

    def _span(self, index: int, feature: Feature, column: Array) -> tuple[float, float] | None:
        """Raw values at the ends of a polynomial's scale: as given, or those of the first round where all are known."""
        if feature.scale is None:
            return None
        if feature.low is not None and feature.high is not None:
            return feature.low, feature.high
        frozen = self.carry.spans.get(str(index))
        if frozen is None:
            full = np.flatnonzero(~np.isnan(column[:, : self.k]).any(axis=1))
            if not len(full):
                return 0.0, 1.0
            first = column[full[0], : self.k]
            frozen = self.carry.spans[str(index)] = np.array([first.min(), first.max()])
        return float(frozen[0]), float(frozen[1])
