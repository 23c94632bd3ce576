"""Which comparisons pass so few candidates that leaving the others out pays, judged by a few candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.plan.steps import Plan
from chainlake.cep.search.compiled.passing.comparisons import SMALLER, PreFilter, all_prefilters, prefilters_of
from chainlake.cep.search.compiled.passing.leave_out import Together
from chainlake.cep.search.compiled.passing.sweep import BLOCK, SHIFT

#: How many candidates are drawn to estimate how many can pass.
_DRAWN = 256
#: Seconds per event to compare it, and to find the best values among those that it is compared with.
COMPARE, EXTREME = 0.7e-9, 0.8e-9
#: Seconds to gather a candidate's values, and to leave candidates out, whatever their number.
GATHER, LIMIT = 4e-9, 100e-6
#: Seconds that a candidate takes before anything is tested: it is gathered, and its scopes are looked up.
PREPARED = 12e-9
#: Candidates are left out if that takes at most this share of the seconds needed otherwise.
LIMITED = 0.8
_PASSES = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def step_limits(
    plan: Plan, number: int, scan: Scan, earlier: Sequence[PreFilter], unlimited: tuple[float, float], test: float
) -> list[PreFilter]:
    """The prefilters of a step, by names bound before it, that leave few enough candidates to pay.

    Args:
        plan: the plan.
        number: the number of the step.
        scan: the events and candidates to search.
        earlier: the prefilters of earlier steps.
        unlimited: the seconds of the step without prefilters, and how many tests a search in order makes.
        test: the seconds of a test.
    """
    rows, count = len(scan.data.ts), len(scan.candidates[plan.steps[number].name])
    seconds, tests = unlimited
    cheapest, found, left = seconds + count * GATHER, list[PreFilter](), 1.0
    for prefilter in prefilters_of(plan, number, scan.data):
        share = left * share_left(scan, prefilter, earlier)
        spent = LIMIT + (len(found) + 1) * rows * (COMPARE + EXTREME) + share * (tests * test + count * GATHER)
        if spent <= LIMITED * cheapest:
            cheapest, found, left = spent, [*found, prefilter], share
    return found


def in_passes(prefilters: Sequence[PreFilter]) -> tuple[Together, ...]:
    """Prefilters in as few passes as possible in which each looks at names as earlier ones leave them."""
    passes: list[list[PreFilter]] = []
    for prefilter in prefilters:
        if not passes or prefilter.other in {one.name for one in passes[-1]}:
            passes.append([])
        passes[-1].append(prefilter)
    return tuple(map(tuple, passes))


def all_limits(plan: Plan, scan: Scan, visit: float, scope: float, test: float) -> tuple[Together, ...]:
    """The prefilters, by any name of a match, with which few enough candidates are left to pay, in one pass.

    They are for a search that does not count what it leaves out: an event that nothing in reach fits is in no match.

    Args:
        plan: the plan.
        scan: the events and candidates to search.
        visit: the seconds that one candidate of the first name takes, apart from tests.
        scope: how many candidates of the second name are tested for each of the first.
        test: the seconds of a test.
    """
    rows, found, limits = len(scan.data.ts), list[PreFilter](), set[tuple[str, str, bool]]()
    all_spent, all_gained = LIMIT, 0.0
    each, searched = PREPARED + visit + scope * test, 0.0
    for number, name in enumerate(plan.order):
        count = len(scan.candidates[name])
        if number:
            each = PREPARED + (searched * scope * test / max(count, 1) if number == 1 else 0.0)
        drawn = _drawn(scan, name)
        left, share = np.ones(len(drawn), bool), 1.0
        options = [(one, _passes(scan, one, (), drawn)) for one in all_prefilters(plan, scan.data) if one.name == name]
        for prefilter, passes in sorted(options, key=lambda option: float(option[1].mean()) if len(drawn) else 1.0):
            limit = (prefilter.other, prefilter.other_attr, prefilter.op in SMALLER)
            now = float((left & passes).mean()) if len(drawn) else 1.0
            spent = rows * (COMPARE + (0.0 if limit in limits else EXTREME))
            gained = count * (share - now) * each
            if spent <= LIMITED * gained:
                found.append(prefilter)
                limits.add(limit)
                left, share = left & passes, now
                all_spent, all_gained = all_spent + spent, all_gained + gained
        if not number:
            searched = count * share
    return (tuple(found),) if found and all_spent <= LIMITED * all_gained else ()


def share_left(scan: Scan, prefilter: PreFilter, earlier: Sequence[PreFilter]) -> float:
    """About what share of its candidates ``prefilter`` leaves if the bound names have the prefilters ``earlier``."""
    drawn = _drawn(scan, prefilter.name)
    return float(_passes(scan, prefilter, earlier, drawn).mean()) if len(drawn) else 1.0


def _drawn(scan: Scan, name: str) -> np.ndarray:
    """The rows of some candidates."""
    rows = scan.candidates[name].rows
    return rows[:: max(1, len(rows) // _DRAWN)]


def _passes(scan: Scan, prefilter: PreFilter, earlier: Sequence[PreFilter], rows: np.ndarray) -> np.ndarray:
    """Which candidates of some rows are left."""
    values = scan.data.columns[prefilter.attr].values.take(rows)
    found: np.ndarray = _PASSES[prefilter.op](values, _limit(scan, prefilter, earlier, rows))
    return found


def _limit(scan: Scan, prefilter: PreFilter, earlier: Sequence[PreFilter], rows: np.ndarray) -> np.ndarray:
    """About which values the candidates of some rows must pass; prefilters of the bound name limit these, too."""
    bound, largest = scan.candidates[prefilter.other], prefilter.op in SMALLER
    values = bound.column(prefilter.other_attr).values
    least, most = (-np.inf, np.inf) if values.dtype.kind == "f" else (-(2**63), 2**63 - 1)
    none = least if largest else most
    ts, first = scan.data.ts, rows >> SHIFT << SHIFT
    last = np.minimum(first + BLOCK, len(ts)) - 1
    begin = np.searchsorted(ts, ts[first] - scan.window, "left") if prefilter.before else first
    end = np.searchsorted(ts, ts[last] + scan.window, "right") if prefilter.behind else last
    lo = np.searchsorted(bound.rows, begin >> SHIFT << SHIFT)
    hi = np.searchsorted(bound.rows, ((end >> SHIFT) + 1) << SHIFT)
    best, worst = (np.fmax, np.fmin) if largest else (np.fmin, np.fmax)
    ends = np.stack([lo, np.maximum(lo, hi)], 1).ravel()
    found: np.ndarray = np.where(hi > lo, best.reduceat(np.append(values, none), ends)[::2], none)
    for one in earlier:
        if (one.name, one.attr, one.op in SMALLER) == (prefilter.other, prefilter.other_attr, largest):
            wider = replace(one, before=one.before or prefilter.before, behind=one.behind or prefilter.behind)
            found = worst(found, _limit(scan, wider, earlier, rows))
    return found
