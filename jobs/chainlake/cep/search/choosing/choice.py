"""The order in which a branch is searched: the one requested, or the cheapest one on these events or on similar ones.

Measuring what orders cost takes longer than a search of few events, so a choice is remembered beside the pattern. It is
used again for events with about as many candidates of each name, about as many of them in a window, and the same kinds
of columns; and it is forgotten once a search does much more or less than the one before. Any order finds the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import log2

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.errors import UnfitOrder
from chainlake.cep.estimate.cost import Model
from chainlake.cep.estimate.selectivity import measure, upper_bound
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.order import choose_order, given_order
from chainlake.cep.plan.steps import Plan, make_plan
from chainlake.cep.search.choosing.backend import UNKNOWN, Estimate
from chainlake.cep.search.choosing.seconds import best_order
from chainlake.cep.search.compiled.text.facts import form_of

#: If the upper bound of the evaluations is at least this, a run with a given order measures how many there really are.
WORTH_MEASURING = 2_000_000
#: Counts are similar if their ratio is at most about the fourth root of 2.
_STEPS_PER_DOUBLE = 4
#: A choice is kept while a search takes at most this many times, and at least this fraction of, the evaluations before.
_ALIKE = 2.0
#: Differences of fewer evaluations than this do not matter.
_FEW = 1000


@dataclass(frozen=True)
class OrderRequest:
    """How to choose an order.

    Args:
        order: the order, if it is given.
        rates: events per name in any common unit; None takes the front matter's.
        by: without order and rates, ``cost`` or ``frequency``.
        backend: the backend whose seconds count.
        first: the name that is bound first in any case, or None.
    """

    order: tuple[str, ...] | None = None
    rates: tuple[tuple[str, float], ...] | None = None
    by: str = "cost"
    backend: str = "auto"
    first: str | None = None


@dataclass(frozen=True)
class Choice:
    """The order of a branch.

    Args:
        plan: the plan of that order.
        how: where the order came from: ``given``, ``declared``, ``measured`` or ``estimated``.
        estimate: what the order is estimated to cost.
        evaluations: E of the previous search, if there was one.
    """

    plan: Plan
    how: str
    estimate: Estimate = UNKNOWN
    evaluations: int | None = None

    def held(self, evaluations: int) -> bool:
        """Whether a search with this many evaluations was similar to the previous one."""
        before = evaluations if self.evaluations is None else self.evaluations
        return (before + _FEW) / _ALIKE <= evaluations + _FEW <= (before + _FEW) * _ALIKE


def likeness(scan: Scan) -> Hashable:
    """A value that is equal for scans of one branch on which the same choice is likely to be the best."""
    ts = scan.data.ts
    span = float(ts[-1]) - float(ts[0]) if len(ts) else 0.0
    counts = tuple(_step(len(of)) for of in scan.candidates.values())
    forms = tuple(form_of(value) for value in scan.data.columns.values())
    return counts, _step(span / max(scan.window, 1)), forms, scan.data.clock is None


def _step(count: float) -> int:
    return round(_STEPS_PER_DOUBLE * log2(count + 1.0))


def choose(pattern: Pattern, branch: Branch, scan: Scan, request: OrderRequest) -> Choice:
    """The choice for a branch on the events of a scan.

    Raises:
        UsageError: order or rates do not fit the pattern.
    """
    order, how, model = order_of(pattern, branch, scan, request)
    if model is None and request.backend == "auto":
        model = upper_bound(branch, scan.candidates, scan.window)
        if model.evaluations(order) > WORTH_MEASURING:
            model = measure(branch, scan.data, scan.candidates, scan.window)
    estimate = Estimate.of(model, order) if model is not None and request.backend == "auto" else UNKNOWN
    return Choice(make_plan(branch, order), how, estimate)


def order_of(
    pattern: Pattern, branch: Branch, scan: Scan, request: OrderRequest
) -> tuple[tuple[str, ...], str, Model | None]:
    """The binding order of a branch, where it came from (as ``Choice.how``), and the cost model if it came from one.

    Raises:
        UsageError: order or rates do not fit the pattern.
    """
    if request.order is not None:
        return _beginning(given_order(branch, request.order), request), "given", None
    stated: Mapping[str, float] = pattern.front.rates if request.rates is None else dict(request.rates)
    if stated and all(name in stated for name in branch.positive):
        order = choose_order(branch, {name: float(stated[name]) for name in branch.positive})
        return _beginning(order, request), "declared", None
    if request.rates is not None:
        missing = [name for name in branch.positive if name not in stated]
        raise UnfitOrder.no_rates(missing)
    if request.by == "cost":
        model = measure(branch, scan.data, scan.candidates, scan.window)
        return best_order(model, request.backend, request.first), "estimated", model
    frequency = {name: float(len(scan.candidates[name])) for name in branch.positive}
    return _beginning(choose_order(branch, frequency), request), "measured", None


def _beginning(order: tuple[str, ...], request: OrderRequest) -> tuple[str, ...]:
    """The order, with the name in front that must come first."""
    return order if request.first is None else (request.first, *(name for name in order if name != request.first))
