"""The binding order of a pattern's run: estimated from counts and a small sample, and kept with what it cost.

The order never shows in the matches. Small inputs are looked at whole. Of large ones Spark counts each name's events
per stretch of time, and a few whole stretches come to the driver: whole, because events drawn one by one say nothing
of how often two of them meet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from chainlake.cep.estimate.cost import Density, Model
from chainlake.cep.estimate.rates import stated_rates
from chainlake.cep.estimate.selectivity import pass_rates
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.order import choose_order
from chainlake.cep.plan.steps import routing
from chainlake.cep.search.hindsight import Sample, sample_of
from chainlake.cep.search.seconds import best_order
from chainlake.detect.counts.spark_counts import SampleCounts
from chainlake.detect.tasks.slices import Cells, Estimate, Slice
from chainlake.detect.work import Work
from chainlake.lake.records import ops
from chainlake.paths import Home

#: Inputs of up to so many events are looked at whole.
WHOLE = 20_000
#: Events of a sample of larger ones, stretches that it is made of, stretches that are counted, and the windows of one.
SAMPLE = 6_000
SAMPLED_STRETCHES = 16
COUNTED_STRETCHES = 4_096
WINDOWS = 3


@dataclass(frozen=True)
class Plan:
    """How a pattern is searched, and why.

    Args:
        how: ``declared`` (rates of the front matter) or ``estimated`` (cost model).
        orders: binding order of each branch.
        stated: what the order was chosen from: rates per name, pass rates per pair.
        estimated: per branch, order (names joined by blanks) to estimated evaluations.
        regret: share of evaluations over the best orders in hindsight, on the sample; None if not sampled.
        work: estimate of the work by time and key.
        counts: where the events are.
    """

    how: str
    orders: tuple[tuple[str, ...], ...]
    stated: dict[str, Any]
    estimated: list[dict[str, float]]
    regret: float | None
    work: Estimate = field(repr=False, compare=False)
    counts: Cells = field(repr=False, compare=False)


class Look(Cells, Protocol):
    """How the candidates of a run are looked at: by Spark, or in the files."""

    def whole(self, columns: Sequence[str]) -> pa.Table:
        """All candidates."""
        ...

    def stretches(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Events per stretch of ``length`` µs: the numbers (ts // length) of the stretches that hold any, ascending,
        and the events per name of each, float64 of shape (names, stretches)."""
        ...

    def drawn(self, length: int, stretches: Sequence[int], thinning: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Candidates in some stretches, per name 1/n of its events, in any order.

        Which rows these are depends on their ids alone.

        Returns:
            ``columns``, and ``_is{i}``: whether a row was counted for the i-th name.
        """
        ...


def choose_plan(
    look: Look,
    pattern: Pattern,
    key: str,
    cut: Sequence[Slice],
    rows: int,
    ingested: Iterable[Mapping[str, object]],
) -> Plan:
    """The plan of one run.

    Args:
        look: the events with ts in the read ranges.
        pattern: the pattern.
        key: the source's key column.
        cut: the run's slices.
        rows: events on the days read, as ingest counted them.
        ingested: rows of ``ops.rates`` of these days.
    """
    columns = sample_columns(pattern, key)
    counts: Cells
    scale: tuple[dict[str, float], ...]
    if rows <= WHOLE:
        # In the order that the sample has, too, so that its rows are the table's.
        table = look.whole(columns).sort_by([("ts", "ascending"), ("event_id", "ascending")])
        sample = sample_of(pattern, table)
        models, scale, whole = sample.models, ({},) * len(pattern.branches), True
        counts = SampleCounts(sample, None if pattern.partition_key is None else table[pattern.partition_key])
    else:
        sample, models, scale, whole = _sampled(look, pattern, columns, cut)
        counts = look
    counted = {name: max(m.totals.get(name, 0.0) for m in models) for m in models for name in m.totals}
    stated: dict[str, Any] = {
        "ingested": stated_rates(pattern, key, ingested),
        "counted": {name: round(count, 1) for name, count in counted.items()},
        "passing": [
            {" ".join(sorted(names)): float(f"{rate:.3g}") for names, rate in model.pass_rates.items()}
            for model in models
        ],
    }
    declared = dict(pattern.front.rates)
    by_rates = bool(declared) and all(name.name in declared for name in pattern.names)
    if by_rates:
        stated["declared"] = declared
        orders = tuple(choose_order(branch, declared) for branch in pattern.branches)
    else:
        orders = tuple(best_order(model, "auto") for model in models)
    return Plan(
        "declared" if by_rates else "estimated",
        orders,
        stated,
        [_rounded(model.estimates([order, choose_order(model.branch, model.totals)]))
         for model, order in zip(models, orders, strict=True)],
        sample.regret(orders) if whole else None,
        Estimate(pattern, models, orders, scale),
        counts,
    )  # fmt: skip


def _rounded(estimates: Mapping[str, float]) -> dict[str, float]:
    return {order: float(f"{cost:.4g}") for order, cost in estimates.items()}


def sample_columns(pattern: Pattern, key: str) -> list[str]:
    """What is looked at of the events; ``key`` is the source's key column."""
    return sorted(pattern.columns_needed | {key})


def stretch_length(pattern: Pattern, cut: Sequence[Slice]) -> int:
    """The length of the stretches that are counted, µs."""
    span = max(s.read[1] for s in cut) - min(s.read[0] for s in cut)
    return int(max(WINDOWS * (pattern.window_us + 1), -(-span // COUNTED_STRETCHES)))


def _sampled(
    look: Look, pattern: Pattern, columns: Sequence[str], cut: Sequence[Slice]
) -> tuple[Sample, tuple[Model, ...], tuple[dict[str, float], ...], bool]:
    """The sample of a large input, the models of the whole of it, and whether the sample's stretches are whole.

    The third value is, per branch and name, the share of the events counted for a name that it really accepts.
    """
    length = stretch_length(pattern, cut)
    tests = [(number, name) for number, branch in enumerate(pattern.branches) for name in routing(branch)]
    stretches, counts = look.stretches(length)
    chosen, thinning = draw_stretches(stretches, counts)
    rows = look.drawn(length, chosen, thinning, columns)
    rows = rows.sort_by([("ts", "ascending"), ("event_id", "ascending")])
    sample = sample_of(pattern, rows.select(list(columns)))
    share = min(1.0, pattern.window_us / length) if pattern.window_us else 1.0
    models, scale = _models(pattern, sample, rows, tests, counts, share)
    return sample, models, scale, max(thinning, default=1) == 1


def _models(
    pattern: Pattern,
    sample: Sample,
    rows: pa.Table,
    tests: Sequence[tuple[int, str]],
    counts: np.ndarray,
    share: float,
) -> tuple[tuple[Model, ...], tuple[dict[str, float], ...]]:
    """The models of the whole input: the counts, times the share that passes what was not tested, in the sample."""
    models, scale = [], []
    for number, branch in enumerate(pattern.branches):
        density: dict[str, np.ndarray] = {}
        shares: dict[str, float] = {}
        for i, (of, name) in enumerate(tests):
            if of == number and name in branch.positive:
                flagged = rows[f"_is{i}"].to_numpy()
                passed = sample.data.rows[sample.candidates[number][name].rows]
                shares[name] = float((flagged[passed].sum() + 0.5) / (flagged.sum() + 0.5))
                density[name] = counts[i] * shares[name]
        totals = {name: float(stretches.sum()) for name, stretches in density.items()}
        rates = pass_rates(branch, sample.data, sample.candidates[number], pattern.window_us)
        models.append(Model(branch, totals, Density(density, np.ones(counts.shape[1]), share), rates))
        scale.append(shares)
    return tuple(models), tuple(scale)


def draw_stretches(numbers: np.ndarray, counts: np.ndarray) -> tuple[list[int], list[int]]:
    """Which stretches to look at, so that each name is seen often and the rows are few.

    Args:
        numbers: of the stretches.
        counts: events per name and stretch, shape (names, stretches).

    Returns:
        the numbers of the stretches, spread evenly over each name's events, the rarest name's first; and per name the
        share 1/n of its events in them that is to be taken, 1 unless a single stretch is too large.
    """
    chosen: list[int] = []
    ends = np.cumsum(counts, axis=1)
    present = [int(name) for name in np.argsort(counts.sum(axis=1), kind="stable") if counts[name].any()]
    for place in range(1, 1 + SAMPLED_STRETCHES // max(len(present), 1)):
        # 1/2, 1/4, 3/4, 1/8, …: wherever the rows are enough, what was taken lies evenly.
        at = int(f"{place:b}"[::-1], 2) / (1 << place.bit_length())
        for name in present:
            stretch = int(np.searchsorted(ends[name], at * ends[name][-1], "right"))
            if stretch not in chosen and (not chosen or counts[:, [*chosen, stretch]].sum() <= SAMPLE):
                chosen.append(stretch)
    sums = counts[:, chosen].sum(axis=1)
    each = SAMPLE / len(counts)
    whole = sums.sum() <= SAMPLE
    return numbers[sorted(chosen)].tolist(), [1 if whole else max(1, int(np.ceil(total / each))) for total in sums]


def record_plan(
    home: Home, item: Work, per_day: Mapping[date, int], counts: Mapping[str, int], plan: Plan, run_id: str
) -> None:
    """One row per day in ``ops.plans``. Evaluations are counted per run; a run of several days notes them at its last.

    Args:
        home: the installation.
        item: the pattern and its days.
        per_day: matches per day.
        counts: ``evaluations`` and ``evaluations_neg`` of the run.
        plan: how it was searched.
        run_id: the run.
    """
    last = max(item.fingerprints)
    row = {
        "definition": item.compiled.definition.name,
        "join_order": [" ".join(order) for order in plan.orders],
        "how": plan.how,
        "stated": json.dumps(plan.stated, sort_keys=True),
        "estimated": json.dumps(plan.estimated),
        "regret": plan.regret,
    }
    rows = [
        row
        | {
            "day": day,
            "evaluations": counts["evaluations"] if day == last else None,
            "evaluations_neg": counts["evaluations_neg"] if day == last else None,
            "matches": per_day.get(day, 0),
        }
        for day in item.fingerprints
    ]
    ops.append(home, "plans", rows, run_id)
