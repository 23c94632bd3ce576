"""One model group, day by day: rows of ``models.changes`` and ``models.metrics``, and the state between days."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa

from chainlake.days import US_PER_DAY, instant
from chainlake.model_change.config.model import ModelConfig
from chainlake.model_change.detectors.periodic import best_periods, errors_by_period
from chainlake.model_change.kernel import Kernel
from chainlake.model_change.rounds.rounds import Chunk, Rounds
from chainlake.model_change.rounds.rows import ChangeRow, Coefficient, DayRows, MetricRow
from chainlake.model_change.statistics import state as states
from chainlake.model_change.statistics.records import Settings, Trace
from chainlake.model_change.statistics.statistics import Array

#: Condition number of the nodes' average matrix above which a norm of coefficients is a poor measure.
_ILL_CONDITIONED = 1e3


def settings_of(config: ModelConfig, group: str, k: int | None = None) -> Settings:
    """What the kernel needs to know of a model's group when ``k`` of its nodes take part (all by default)."""
    nodes = config.groups[group]
    return Settings(
        k=len(nodes) if k is None else k,
        m=len(config.feature_names),
        window=config.window,
        infinite=config.infinite,
        eps=config.eps,
        eps_is_share=config.eps_is_share,
        constraint=config.constraint,
        local=config.detector != "exact",
        exact=config.detector != "local",
        prediction=config.metric == "prediction",
        intercept=config.intercept,
        ridge=config.ridge,
        phi=config.phi,
        nodes_change=any(node.dated for node in nodes),
    )


class GroupMonitor:
    """One group of a model on its way through its days.

    Args:
        config: the model.
        group: its group.
        snapshot: the state to continue from; None: the model's start.

    Raises:
        ValueError: the snapshot is of another version; `states.loads` gives None for such a one.
    """

    def __init__(self, config: ModelConfig, group: str, snapshot: str | None = None):
        self.config, self.group = config, group
        self.names = [node.name for node in config.groups[group]]
        values = states.restored(snapshot)
        self.rounds = Rounds(config, group, values.get("rounds"))
        self.kernel = Kernel(settings_of(config, group, len(self.rounds.members.nodes) or None), values.get("kernel"))
        #: Rounds so far that a difference in the last bit, as on another machine, could have decided otherwise.
        self.near_ties = 0
        self._warnings: list[str] = []
        self.last_beta: Array | None = values.get("last_beta")

    @property
    def eps(self) -> float | None:
        """The threshold in force; None before the first window of a model whose eps is a share."""
        return self.kernel.state.eps if self.config.eps_is_share else self.config.eps

    @property
    def warnings(self) -> list[str]:
        """What the first windows and the values showed, one sentence each."""
        return [*self._warnings, *self.rounds.remarks]

    def snapshot(self) -> str:
        """The state after the last day, as JSON."""
        return states.dumps({"rounds": self.rounds.carried, "kernel": self.kernel.state, "last_beta": self.last_beta})

    def day(self, day: date, reduced: pa.Table) -> DayRows:
        """Monitor one UTC day.

        Args:
            day: the day; days must come in order, without gaps.
            reduced: its rounds, from `reduce.reduce_rows` (rows of other groups are ignored).

        Returns:
            rows of models.changes, and the row of models.metrics, None if the day had no usable round.
        """
        before, self.rounds.day = self.last_beta, day
        traces = self.traces(reduced)
        changes = [row for chunk, trace in traces for row in self._changes(chunk, trace)]
        return DayRows(changes, self._metrics(day, traces, before) if traces else None)

    def traces(self, reduced: pa.Table) -> list[tuple[Chunk, Trace]]:
        """Run the rounds of one UTC day; days must come in order, without gaps.

        Args:
            reduced: the day's rounds, from `reduce.reduce_rows` (rows of other groups are ignored).

        Returns:
            consecutive rounds, each chunk with what the kernel gave for it, round by round.
        """
        traces: list[tuple[Chunk, Trace]] = []
        first = True
        for chunk in self.rounds.chunks(reduced):
            if chunk.switch is not None:
                trace = self.kernel.switch(chunk.switch, chunk.x, chunk.y, chunk.gap)
            else:
                if chunk.reset or len(chunk.nodes) != self.kernel.settings.k:
                    self.kernel.reset(len(chunk.nodes))
                anchor = np.zeros(len(chunk.ts), dtype=bool)
                anchor[0] = first
                trace = self.kernel.feed(chunk.x, chunk.y, chunk.gap, anchor)
            first = False
            self.near_ties += int(trace.near_tie.sum())
            self._look_at_condition(trace)
            traces.append((chunk, trace))
            if trace.counted[-1]:
                self.last_beta = trace.beta[-1].copy()
        return traces

    def _look_at_condition(self, trace: Trace) -> None:
        """Warn if the model is ill-conditioned when it begins (docs/monitors.md#ill-conditioned-features)."""
        if self.config.metric == "coefficient" and any(event.kind == "init" for event in trace.events):
            condition = self.kernel.condition
            if condition > _ILL_CONDITIONED:
                where = f" of group {self.group}" if self.group else ""
                self._warnings.append(
                    f"the design{where} has condition number {condition:.1e}: with metric: prediction eps is in units "
                    "of the response and does not depend on the features' units"
                )

    def _changes(self, chunk: Chunk, trace: Trace) -> list[ChangeRow]:
        found: list[ChangeRow] = []
        for event in sorted(trace.events, key=lambda event: event.at):
            if event.kind == "unidentifiable" and event.beta_before is None:
                continue
            ts = instant(int(chunk.ts[event.at]))
            found.append(
                {
                    "model": self.config.name,
                    "group_id": self.group,
                    "ts": ts,
                    "kind": event.kind,
                    "round": int(chunk.number[event.at]),
                    "violators": [self.names[chunk.nodes[j]] for j in event.violators] or None,
                    "max_value": _finite(event.max_value),
                    "error_before": _finite(event.error_before),
                    "exceeded": event.exceeded,
                    "beta_before": self._beta(event.beta_before),
                    "beta_after": self._beta(event.beta_after),
                    "rounds_since_previous": event.since,
                    "event_date": ts.date(),
                }
            )
        return found

    def _beta(self, beta: Array | None) -> list[Coefficient] | None:
        if beta is None:
            return None
        return [{"feature": n, "value": float(v)} for n, v in zip(self.config.feature_names, beta, strict=True)]

    def _metrics(self, day: date, traces: list[tuple[Chunk, Trace]], before: Array | None) -> MetricRow:
        config, m = self.config, len(self.config.feature_names)
        names = ("beta", "error_local", "error_exact", "reports", "synced", "sse", "sum_y", "sum_yy", "centre_y")
        trace = {name: np.concatenate([getattr(t, name) for _, t in traces]) for name in names}
        k = np.concatenate([np.full(len(chunk.ts), len(chunk.nodes)) for chunk, _ in traces])
        counted = np.concatenate([t.counted & chunk.counts for chunk, t in traces])
        used, share = len(counted), int(k[counted].sum())
        local, exact = config.detector != "exact", config.detector != "local"
        v, replies = int(trace["reports"][counted].sum()), int((trace["synced"] * k)[counted].sum())
        error = trace["error_local" if local else "error_exact"][counted]
        max_error = float(np.nanmax(error)) if np.isfinite(error).any() else None
        per: tuple[int | None, int | None] = (None, None)
        if config.per_baseline and max_error is not None and before is not None and counted.sum() > 1:
            beta = np.concatenate([before[None], trace["beta"][counted]])
            longest = int(counted.sum()) // 2
            per = best_periods(errors_by_period(beta, min(longest, config.per_longest or longest)), max_error)
        changes = [c.counts[e.at] for c, t in traces for e in t.events if e.kind == "change"]
        return {
            "model": config.name,
            "group_id": self.group,
            "day": day,
            "rounds": used,
            "rounds_skipped": US_PER_DAY // config.round_us - used,
            "syncs": int(trace["synced"][counted].sum()) if local else None,
            "changes": int(np.sum(changes)) if exact else None,
            "reports_up": v if local else None,
            "polls_down": replies if local else None,
            "normalized_up": (v + replies) / share if local and share else None,
            "normalized_all": (v + 3 * replies) / share if local and share else None,
            # A report and a poll are one number each; a reply and a broadcast carry a symmetric matrix and a vector.
            "bytes": 8 * (v + replies + 2 * replies * (m * (m + 3) // 2)) if local else None,
            "max_error": max_error,
            "per_T": per[0],
            "per_T_mono": per[1],
            "carried_share": float(sum(int(c.carried.sum()) for c, _ in traces)) / int(k.sum()),
            "r2": _r2(trace, k, counted),
        }


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None


def _r2(trace: dict[str, Array], k: Array, counted: Array) -> float | None:
    """1 - (squared errors of the exact models) / (spread of the response), over the day's counted rounds."""
    rows = np.isfinite(trace["sse"]) & counted
    if not rows.any():
        return None
    # At anchors the sums begin again about another centre, so all are moved to the first one.
    off = trace["centre_y"][rows] - trace["centre_y"][rows][0]
    y_off = trace["sum_y"][rows] + k[rows] * off
    yy_off = trace["sum_yy"][rows] + off * (trace["sum_y"][rows] + y_off)
    sse, y, yy = (float(np.add.accumulate(one)[-1]) for one in (trace["sse"][rows], y_off, yy_off))
    spread = yy - y**2 / int(k[rows].sum())
    return _finite(1 - sse / spread) if spread > 0 else None
