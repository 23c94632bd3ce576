"""One group of learners, day by day: rows of ``models.learners`` and ``models.metrics``, and their state."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa

from chainlake.days import US_PER_DAY, day_start_us, instant
from chainlake.model_change.errors import Diverged
from chainlake.model_change.learning.config import LearningConfig
from chainlake.model_change.learning.learners import Shared, Sync
from chainlake.model_change.rounds.rounds import Chunk
from chainlake.model_change.rounds.rows import Coefficient, DayRows, LearnerRow
from chainlake.model_change.rounds.series_run import SeriesRun
from chainlake.model_change.statistics.statistics import Array
from chainlake.schemas.models import LearnerKind


class LearningRun(SeriesRun[LearningConfig]):
    """A group of learners on its way through its days; arguments as for `SeriesRun`.

    Alongside each learner two others learn from the same examples: one never shares, and one shares unconditionally at
    every check. Their losses show what sharing is worth.

    Raises:
        ValueError: the snapshot is of another version; `states.loads` gives None for such a one.
    """

    def __init__(self, config: LearningConfig, group: str, snapshot: str | None = None):
        super().__init__(config, group, snapshot)
        m = len(config.feature_names)
        self.shared = Shared.start(self.k, m)
        #: Weights of the learners that never share, and of those that always do.
        self.alone, self.plain = np.zeros((self.k, m)), np.zeros((self.k, m))
        #: How many checks were due up to the end of the last day with rounds, less one that the next round has to make
        #: up for; None before the first round.
        self.checks: int | None = None
        self._largest = 0.0
        if self.values:
            self.shared = Shared(self.values["weights"], self.values["reference"], self.values["violations"])
            self.alone, self.plain = self.values["alone"], self.values["plain"]
            self.checks = self.values["checks"]

    @property
    def warnings(self) -> list[str]:
        """What the values showed, one sentence each."""
        found = list(super().warnings)
        limit = self.config.rule.largest_rate(self._largest)
        if self._largest and self.config.learning_rate > limit:
            found.append(
                f"learning_rate {self.config.learning_rate:g} is above {limit:.3g}, up to which no step drives weights "
                f"apart: the largest example has the norm {self._largest**0.5:.3g}"
            )
        return found

    def snapshot(self) -> str:
        """The state after the last day, as JSON."""
        shared = self.shared
        return self.kept(
            weights=shared.weights, reference=shared.reference, violations=shared.violations,
            alone=self.alone, plain=self.plain, checks=self.checks,
        )  # fmt: skip

    def day(self, day: date, reduced: pa.Table) -> DayRows:
        """Learn from one UTC day; arguments and result as `daily.GroupMonitor.day`, with rows of models.learners."""
        chunks = self.chunks(day, reduced)
        if not chunks:
            return DayRows([], None)
        rows: list[LearnerRow] = []
        syncs: list[Sync] = []
        worst: float | None = None
        sums = np.zeros((4, self.k))
        checks = self._checks_before(int(chunks[0].ts[0])) if self.checks is None else self.checks
        for chunk in chunks:
            self._largest = max(self._largest, float((chunk.x**2).sum(axis=2).max()))
            for at in range(len(chunk.ts)):
                with np.errstate(over="ignore", invalid="ignore"):  # the result is checked
                    self._learn(chunk, at, sums)
                passed = self._checks_before(int(chunk.ts[at]) + self.config.round_us)
                sync = None
                if passed > checks:
                    sync, checks = self._checked(), passed
                    worst = max(worst or 0.0, self.shared.divergence)
                if sync is not None:
                    syncs.append(sync)
                    rows += self._synced(chunk, at, sync)
        passed = self._checks_before(day_start_us(day) + US_PER_DAY)
        self.checks = passed if passed == checks else passed - 1
        last = chunks[-1], len(chunks[-1].ts) - 1
        rounds = sum(len(chunk.ts) for chunk in chunks)
        for j in range(self.k):
            loss, alone, plain, errors = sums[:, j].tolist()
            rows.append({
                **self._row(*last, "day", j), "rounds": rounds, "loss": loss, "loss_alone": alone, "loss_static": plain,
                "errors": int(errors), "weights": self._weights(self.shared.weights[j]),
            })  # fmt: skip
        up, down = sum(sync.up for sync in syncs), sum(sync.down for sync in syncs)
        metrics = self.metrics(
            day, chunks, (up, down), syncs=len(syncs), changes=sum(sync.full for sync in syncs),
            bytes=8 * len(self.config.feature_names) * (up + down), max_error=worst,
        )  # fmt: skip
        return DayRows(rows, metrics)

    def _learn(self, chunk: Chunk, at: int, sums: Array) -> None:
        """One step of all learners on the examples of a round; their losses are added to the day's."""
        rule, shared = self.config.rule, self.shared
        x, y = chunk.x[at], chunk.y[at]
        if rule.loss.responses is not None:
            y = rule.loss.responses(y)
        sums[3] += rule.loss.wrong((shared.weights * x).sum(axis=-1), y)
        weights, loss = rule.step(np.stack([shared.weights, self.alone, self.plain]), x, y)
        shared.weights, self.alone, self.plain = weights
        sums[:3] += loss
        if not np.isfinite(weights).all():
            raise Diverged.at(self.config.name, instant(int(chunk.ts[at])), self.config.file)

    def _checks_before(self, us: int) -> int:
        """How many checks are due up to a time.

        They are due at fixed times: counted from the last one, a single late round would move all that follow.
        """
        return (us - day_start_us(self.config.start)) // (self.config.every * self.config.round_us)

    def _checked(self) -> Sync | None:
        """The result of a check, None if it found nothing."""
        self.plain = np.tile(self.plain.mean(axis=0), (self.k, 1))
        return self.shared.average() if self.config.radius is None else self.shared.check(self.config.radius)

    def _synced(self, chunk: Chunk, at: int, sync: Sync) -> list[LearnerRow]:
        violators, weights = set(sync.violators), self._weights(sync.model)
        kind: LearnerKind = "sync" if sync.full else "balanced"
        return [
            {**self._row(chunk, at, kind, j), "divergence": sync.divergence, "weights": weights,
             "violator": j in violators}
            for j in sorted(sync.balanced)
        ]  # fmt: skip

    def _row(self, chunk: Chunk, at: int, kind: LearnerKind, j: int) -> LearnerRow:
        ts = instant(int(chunk.ts[at]))
        return {"model": self.config.name, "group_id": self.group, "ts": ts, "kind": kind, "learner": self.names[j],
                "round": int(chunk.number[at]), "event_date": ts.date()}  # fmt: skip

    def _weights(self, weights: Array) -> list[Coefficient]:
        return [{"feature": n, "value": float(v)} for n, v in zip(self.config.feature_names, weights, strict=True)]
