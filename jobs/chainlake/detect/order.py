"""The binding order of a pattern's run: estimated from counts and a small sample, and recorded with what it cost. The
order never affects the matches. Small inputs are sampled completely, large ones in a few whole buckets: whole,
because events drawn one by one do not show how often two of them meet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import numpy as np
import pyarrow as pa

from chainlake.cep.estimate.cost import Density, Model
from chainlake.cep.estimate.rates import stated_rates
from chainlake.cep.estimate.selectivity import neighbours, pass_rates
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.order import choose_order
from chainlake.cep.plan.steps import routing
from chainlake.cep.search.choosing.seconds import best_order
from chainlake.cep.search.hindsight import Sample, sample_of
from chainlake.cep.search.statistics import BestSearches
from chainlake.detect.division.counts import Ask, Draw, Survey
from chainlake.detect.stage import Found
from chainlake.detect.work import Work
from chainlake.lake.records import ops
from chainlake.paths import Home
from chainlake.schemas.ops_rows import BestCounts, OrderOrigin, PlanRow

#: Inputs of at most this many events are sampled completely: their order is then the best, and costs some 10 ms.
WHOLE = 20_000
#: Events in a sample of a larger input: as many as take some ms and contain each name often.
SAMPLE = 6_000
#: The most buckets in a sample, so that no single hour speaks for a year.
SAMPLED_BUCKETS = 16
#: The most buckets that are counted: counts of a year for ten names take some 100 kB.
COUNTED_BUCKETS = 4_096
#: The least length of a bucket, in windows, so that most events that can meet lie in one bucket.
WINDOWS = 3


class Stated(TypedDict):
    """What an order was chosen from.

    Args:
        ingested: rates per name, from the counts of ingest.
        counted: events per name.
        passing: per branch, the names of a pair, joined by a blank → the fraction of pairs that pass.
        declared: rates in the front matter, if the order was chosen by them.
    """

    ingested: Mapping[str, float]
    counted: Mapping[str, float]
    passing: Sequence[Mapping[str, float]]
    declared: NotRequired[Mapping[str, float]]


@dataclass(frozen=True)
class SearchPlan:
    """How a pattern is searched, and why.

    Args:
        how: ``declared`` (rates in the front matter) or ``estimated`` (cost model).
        orders: binding order of each branch.
        stated: what the order was chosen from.
        estimated: per branch, order (names joined by blanks) → estimated evaluations.
        regret: evaluations beyond those of the best orders in hindsight, as a fraction, on the sample; None if not
            known.
        models: cost model of each branch.
    """

    how: OrderOrigin
    orders: tuple[tuple[str, ...], ...]
    stated: Stated
    estimated: list[dict[str, float]]
    regret: float | None
    models: tuple[Model, ...] = field(repr=False, compare=False)


def ask_of(pattern: Pattern, reads: Sequence[tuple[int, int]]) -> Ask:
    """What to count for a pattern that reads the events in some ranges ``[lo, hi)`` µs."""
    span = max(hi for _, hi in reads) - min(lo for lo, _ in reads)
    length = int(max(WINDOWS * (pattern.reach_us + 1), -(-span // COUNTED_BUCKETS)))
    return Ask(pattern, tuple(reads), length)


def draw_of(ask: Ask, survey: Survey, key: str, rows: int) -> Draw:
    """The sample to be drawn.

    Args:
        ask: the pattern.
        survey: where its events are.
        key: the source's key column.
        rows: number of events on the days read.
    """
    if rows <= WHOLE:
        buckets, thinning = survey.numbers.tolist(), [1] * len(survey.counts)
    else:
        buckets, thinning = draw_buckets(survey.numbers, survey.counts)
    columns = frozenset(ask.pattern.columns_needed | ask.pattern.carried | {key})
    return Draw(ask, tuple(buckets), tuple(thinning), columns)


def choose_plan(
    draw: Draw, survey: Survey, rows: pa.Table, key: str, ingested: Iterable[Mapping[str, object]]
) -> SearchPlan:
    """The plan of one run.

    Args:
        draw: how the sample was drawn.
        survey: where the pattern's events are.
        rows: the sample.
        key: the source's key column.
        ingested: rows of ``ops.rates`` of these days.
    """
    pattern = draw.ask.pattern
    sample = sample_of(pattern, rows)
    everything = len(draw.buckets) == len(survey.numbers) and max(draw.thinning, default=1) == 1
    models = sample.models if everything else _models(draw.ask, sample, survey.counts)
    counted = {name: max(m.totals.get(name, 0.0) for m in models) for m in models for name in m.totals}
    stated: Stated = {
        "ingested": stated_rates(pattern, key, ingested),
        "counted": {name: round(count, 1) for name, count in counted.items()},
        "passing": [
            {" ".join(sorted(names)): float(f"{rate:.3g}") for names, rate in model.pass_rates.items()}
            for model in models
        ],
    }
    called = any(branch.called for branch in pattern.branches)
    declared = dict(pattern.front.rates)
    by_rates = bool(declared) and all(name.name in declared for name in pattern.names)
    if by_rates:
        stated["declared"] = declared
        orders = tuple(choose_order(branch, declared) for branch in pattern.branches)
    else:
        orders = tuple(best_order(model, "auto") for model in models)
    return SearchPlan(
        "declared" if by_rates else "estimated",
        orders,
        stated,
        [_rounded(model.estimates([order, choose_order(model.branch, model.totals)]))
         for model, order in zip(models, orders, strict=True)],
        # The regret is known only from searches, and no function is called before the work is divided.
        sample.regret(orders) if max(draw.thinning, default=1) == 1 and not called else None,
        models,
    )  # fmt: skip


def _rounded(estimates: Mapping[str, float]) -> dict[str, float]:
    return {order: float(f"{cost:.4g}") for order, cost in estimates.items()}


def _models(ask: Ask, sample: Sample, counts: np.ndarray) -> tuple[Model, ...]:
    """The models of the whole input, from its counts per name and bucket and the pass rates of the sample."""
    pattern = ask.pattern
    share = min(1.0, pattern.window_us / ask.length) if pattern.window_us else 1.0
    models, at = [], 0
    for number, branch in enumerate(pattern.branches):
        names = list(routing(branch))
        density = {name: counts[at + i] for i, name in enumerate(names) if name in branch.positive}
        at += len(names)
        totals = {name: float(buckets.sum()) for name, buckets in density.items()}
        if branch.stream is not None:
            models.append(neighbours(branch, totals))
            continue
        rates = pass_rates(branch, sample.data, sample.candidates[number], pattern.window_us)
        models.append(Model(branch, totals, Density(density, np.ones(counts.shape[1]), share), rates))
    return tuple(models)


def draw_buckets(numbers: np.ndarray, counts: np.ndarray) -> tuple[list[int], list[int]]:
    """Choose buckets to look at, so that each name is seen often but the rows are few.

    Args:
        numbers: numbers of the buckets.
        counts: events per name and bucket, shape (names, buckets).

    Returns:
        the numbers of the chosen buckets, ascending, which are spread evenly over each name's events and chosen for
        the rarest name first; and per name the n of which every n-th event in them is to be taken, 1 unless a single
        bucket is too large.
    """
    chosen: list[int] = []
    ends = np.cumsum(counts, axis=1)
    present = [int(name) for name in np.argsort(counts.sum(axis=1), kind="stable") if counts[name].any()]
    for place in range(1, 1 + SAMPLED_BUCKETS // max(len(present), 1)):
        # The places are 1/2, 1/4, 3/4, 1/8, …, so that the choice is spread evenly wherever it ends.
        at = int(f"{place:b}"[::-1], 2) / (1 << place.bit_length())
        for name in present:
            bucket = int(np.searchsorted(ends[name], at * ends[name][-1], "right"))
            if bucket not in chosen and (not chosen or counts[:, [*chosen, bucket]].sum() <= SAMPLE):
                chosen.append(bucket)
    sums = counts[:, chosen].sum(axis=1)
    each = SAMPLE / len(counts)
    whole = sums.sum() <= SAMPLE
    return numbers[sorted(chosen)].tolist(), [1 if whole else max(1, int(np.ceil(total / each))) for total in sums]


def counted_best(best: BestSearches) -> BestCounts:
    """How the best matches of a ranked pattern were found, as columns of ``ops.plans``; empty for other patterns."""
    if not best.ways:
        return {}
    return {
        "strategy": ", ".join(dict.fromkeys(strategy for strategy, _ in best.ways)),
        "why_not": "; ".join(dict.fromkeys(why for _, why in best.ways if why)) or None,
        "partial": best.partial,
        "bounds": best.tried,
        "pruned": best.cut,
        "scored": best.complete,
    }


def record_plan(home: Home, item: Work, plan: SearchPlan, found: Found, run_id: str) -> None:
    """Write one row per day to ``ops.plans``.

    Evaluations are counted per run; a run of several days records them on its last.

    Args:
        home: the installation.
        item: the pattern and its days.
        plan: how it was searched.
        found: what was found.
        run_id: the run.
    """
    last = max(item.fingerprints)
    left_out = {"long_stretches": found.long_stretches, "unscored": found.best.unscored}
    stated = {**plan.stated, **{what: number for what, number in left_out.items() if number}}
    best = counted_best(found.best)
    rows: list[PlanRow] = [
        {
            "definition": item.name,
            "day": day,
            "join_order": [" ".join(order) for order in plan.orders],
            "how": plan.how,
            "stated": json.dumps(stated, sort_keys=True),
            "estimated": json.dumps(plan.estimated),
            "regret": plan.regret,
            "evaluations": found.evaluations if day == last else None,
            "evaluations_neg": found.evaluations_neg if day == last else None,
            "strategy": counts.get("strategy"),
            "why_not": counts.get("why_not"),
            "partial": counts.get("partial"),
            "bounds": counts.get("bounds"),
            "pruned": counts.get("pruned"),
            "scored": counts.get("scored"),
            "matches": found.per_day.get(day, 0),
            "pair_evals": found.pair_evals if day == last else None,
            "pair_memo_hits": found.pair_memo_hits if day == last else None,
            "replication": found.replication if day == last else None,
            "longest_task": found.longest_task if day == last else None,
        }
        for day in item.fingerprints
        for counts in [best if day == last else BestCounts()]
    ]
    ops.append(home, "plans", rows, run_id)
