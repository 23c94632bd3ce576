"""What other values of eps, W and phi would have cost and found: the sweeps of the report's figures 4.5 to 4.9."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
import pyarrow as pa

from chainlake.errors import InputError
from chainlake.model_change.config.model import ModelConfig
from chainlake.model_change.days.traces import GroupTrace, trace_group
from chainlake.model_change.detectors.periodic import best_periods, errors_by_period
from chainlake.model_change.statistics.statistics import Array

#: Multiples of the model's own eps that are tried if no values are given.
STEPS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
#: Longest period tried for the periodic baseline unless the model gives one: trying all costs rounds x periods.
LONGEST_PERIOD = 1000


@dataclass(frozen=True)
class Outcome:
    """One setting, over all groups of the model.

    Args:
        eps: as the model file would give it (a share if the model's own eps is one).
        window: W.
        phi: of the AR(1) errors, None for ordinary least squares.
        rounds: counted rounds of all groups.
        syncs: synchronisations of the local detector.
        exceeded: how many of them came when the error really was above eps.
        up: messages up per node and round; sending every row is 1.
        both: messages in both directions per node and round.
        up_bytes: bytes up, as a share of the bytes of sending every row.
        max_error: largest error after resolution, in the unit of ``eps``.
        exact: changes that the exact detector found.
        exact_us: their times, microseconds.
        period: longest period whose errors stay within those of the local detector; None if none do.
        period_mono: longest period for which this holds, and for every shorter one as well.
        periodic_error: largest error with ``period``, in the unit of ``eps``; None if ``period`` is.
        capped: whether the longest period tried was good enough, so that a longer one may be as well.
    """

    eps: float
    window: int
    phi: float | str | None
    rounds: int
    syncs: int
    exceeded: int
    up: float
    both: float
    up_bytes: float
    max_error: float
    exact: int
    exact_us: tuple[int, ...]
    period: int | None
    period_mono: int | None
    periodic_error: float | None
    capped: bool

    @property
    def periodic_up(self) -> float | None:
        """Messages up per node and round that the periodic baseline sends with ``period``."""
        return None if self.period is None else 1 / self.period


def sweep(
    config: ModelConfig,
    reduced: pa.Table,
    first: date,
    end: date,
    *,
    eps: Sequence[float] = (),
    windows: Sequence[int] = (),
    phis: Sequence[float | str | None] = (),
) -> Iterator[Outcome]:
    """Run a model with every combination of the given settings; a setting not given keeps the model's own value.

    Args:
        config: the model; both detectors run, whatever it says, with its constraint.
        reduced: rounds of the days, from `reduce.reduce_rows`.
        first, end: the days ``[first, end)``; the first window begins on ``first``.
        eps: thresholds, as in the model file; by default `STEPS` times the model's.
        windows: lengths W in rounds.
        phis: AR(1) coefficients, ``"fit"``, or None for ordinary least squares.

    Raises:
        InputError: no window is ever complete, so there is nothing to compare.
    """
    for window in windows or (config.window,):
        for phi in phis or (config.phi,):
            periods: list[Array] | None = None
            for threshold in sorted(eps) or [step * config.eps for step in STEPS]:
                tried = replace(config, detector="both", start=first, window=window, phi=phi, eps=threshold)
                traces = [trace_group(tried, group, reduced, first, end) for group in tried.groups]
                traces = [trace for trace in traces if trace.counted.any()]
                if not traces:
                    raise NoWindow.of(config, window, first, end)
                if periods is None:
                    # Exact models do not depend on the threshold: one table of periodic errors serves all thresholds.
                    periods = _periodic_errors(traces, config.per_longest or LONGEST_PERIOD)
                yield _outcome(tried, threshold, traces, periods)


def _periodic_errors(traces: list[GroupTrace], longest: int) -> list[Array]:
    """Per group, the largest error of each period, whose first synchronisation is at the first counted round."""
    longest = max(1, min(longest, *(int(trace.counted.sum()) // 2 for trace in traces)))
    return [errors_by_period(trace.beta[trace.counted], longest) for trace in traces]


def _outcome(config: ModelConfig, eps: float, traces: list[GroupTrace], periods: list[Array]) -> Outcome:
    m = len(config.feature_names)
    syncs = exceeded = reports = replies = rounds = 0
    sent = 0.0
    worst, changes, units = [], [], []
    within = np.ones(min(map(len, periods)), dtype=bool)
    for trace, errors in zip(traces, periods, strict=True):
        counted = trace.counted
        syncs += int(trace.synced[counted].sum())
        exceeded += sum(bool(event.exceeded) for _, event in trace.of_kind("sync"))
        reports += int(trace.reports[counted].sum())
        replies += int((trace.nodes * trace.synced)[counted].sum())
        rounds += int(counted.sum())
        sent += float(trace.nodes[counted].sum())
        known = trace.error_local[counted]
        largest = float(np.nanmax(known)) if np.isfinite(known).any() else 0.0
        within &= errors[: len(within)] <= largest
        units.append(eps / trace.eps if trace.eps else 1.0)
        worst.append(largest * units[-1])
        changes += [int(trace.ts[at]) for at, _ in trace.of_kind("change")]
    period, mono = best_periods(np.where(within, 0.0, 1.0), 0.5)
    return Outcome(
        eps=eps,
        window=config.window,
        phi=config.phi,
        rounds=rounds,
        syncs=syncs,
        exceeded=exceeded,
        up=(reports + replies) / sent,
        both=(reports + 3 * replies) / sent,
        # A report is one number, a reply is a symmetric matrix and a vector, a row is its features and the response.
        up_bytes=(reports + replies * (m * (m + 3) // 2)) / (sent * (m + 1)),
        max_error=max(worst),
        exact=len(changes),
        exact_us=tuple(sorted(changes)),
        period=period,
        period_mono=mono,
        periodic_error=(
            None if period is None else max(e[period - 1] * unit for e, unit in zip(periods, units, strict=True))
        ),
        capped=period == len(within),
    )


class NoWindow(InputError):
    """No window of a model is complete on the given days."""

    @classmethod
    def of(cls, config: ModelConfig, window: int, first: date, end: date) -> NoWindow:
        """For the model, the length of the window, and the days, ``end`` excluded."""
        return cls(
            f"no window of {window} rounds is complete from {first} to {end}",
            file=config.file,
            hint="Use more days or a shorter window, and check that these days have events.",
        )
