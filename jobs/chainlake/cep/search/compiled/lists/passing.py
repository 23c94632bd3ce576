"""Leaves out candidates that cannot pass, whatever is bound before them, before the search, but still counts them.

If a clause compares a candidate with what is bound, one pass over blocks of neighbouring events finds the value that is
most easily passed among the bound name's events in reach, and keeps the candidates that pass it. If frequent events
are compared with rare ones, few are left, and nothing else of the others is gathered, sorted or looked at. Evaluations
count all candidates in scope, which are counted by rows of the events.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from chainlake.cep.conditions.evaluate import Candidates
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.language import ast
from chainlake.cep.plan.steps import Plan
from chainlake.cep.search.compiled import machine
from chainlake.cep.search.compiled.text.comparison import comparison
from chainlake.cep.search.compiled.text.facts import Form, form_of
from chainlake.cep.search.compiled.text.slots import Table
from chainlake.cep.values.values import Value

#: How many candidates are drawn to estimate how many can pass.
_DRAWN = 256
_SMALLER = ("<", "<=")
_PASSES = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
#: A block has 2^_SHIFT neighbouring events.
_SHIFT = 7
#: In a block where at most this many events pass, events are skipped eight at a time.
_MANY = 6


@dataclass(frozen=True)
class PreFilter:
    """A comparison of a candidate with an event bound before it.

    Args:
        name: the name whose candidates are compared.
        attr: their attribute.
        op: ``candidate op bound``.
        other: the name bound before.
        other_attr: its attribute.
        before: whether events of ``other`` may come before the candidate.
        behind: whether they may come after it.
    """

    name: str
    attr: str
    op: str
    other: str
    other_attr: str
    before: bool
    behind: bool


def prefilters_of(plan: Plan, number: int, data: Dataset) -> list[PreFilter]:
    """The comparisons of a step with single events that are bound before it."""
    step, branch, bound = plan.steps[number], plan.branch, plan.order[:number]
    found: list[PreFilter] = []
    if step.kleene or step.scope.apart_from:
        return found
    for clause in step.clauses:
        match comparison(step.name, clause):
            case (op, ast.Ref(_, attr), ast.Ref(other, other_attr)) if op != "=" and other in bound:
                form = form_of(data.columns[attr])
                if other not in branch.kleene and _is_ordered(form) and form == form_of(data.columns[other_attr]):
                    before, behind = (other not in names[step.name] for names in (branch.after, branch.before))
                    found.append(PreFilter(step.name, attr, op, other, other_attr, before, behind))
    return found


def share_left(scan: Scan, prefilter: PreFilter, earlier: Sequence[PreFilter]) -> float:
    """About what share of its candidates ``prefilter`` leaves if the bound names have the prefilters ``earlier``."""
    rows = scan.candidates[prefilter.name].rows
    rows = rows[:: max(1, len(rows) // _DRAWN)]
    if not len(rows):
        return 1.0
    values, limit = scan.data.columns[prefilter.attr].values.take(rows), _limit(scan, prefilter, earlier, rows)
    return float(_PASSES[prefilter.op](values, limit).mean())


def _limit(scan: Scan, prefilter: PreFilter, earlier: Sequence[PreFilter], rows: np.ndarray) -> np.ndarray:
    """About which values the candidates of some rows must pass; prefilters of the bound name limit these, too."""
    bound, largest = scan.candidates[prefilter.other], prefilter.op in _SMALLER
    values = bound.column(prefilter.other_attr).values
    nothing = _nothing(values.dtype.kind == "f", largest)
    ts, first = scan.data.ts, rows >> _SHIFT << _SHIFT
    last = np.minimum(first + (1 << _SHIFT), len(ts)) - 1
    begin = np.searchsorted(ts, ts[first] - scan.window, "left") if prefilter.before else first
    end = np.searchsorted(ts, ts[last] + scan.window, "right") if prefilter.behind else last
    lo = np.searchsorted(bound.rows, begin >> _SHIFT << _SHIFT)
    hi = np.searchsorted(bound.rows, ((end >> _SHIFT) + 1) << _SHIFT)
    best, worst = (np.fmax, np.fmin) if largest else (np.fmin, np.fmax)
    ends = np.stack([lo, np.maximum(lo, hi)], 1).ravel()
    found: np.ndarray = np.where(hi > lo, best.reduceat(np.append(values, nothing), ends)[::2], nothing)
    for one in earlier:
        if (one.name, one.attr, one.op in _SMALLER) == (prefilter.other, prefilter.other_attr, largest):
            wider = replace(one, before=one.before or prefilter.before, behind=one.behind or prefilter.behind)
            found = worst(found, _limit(scan, wider, earlier, rows))
    return found


def only_passing(scan: Scan, prefilters: Iterable[PreFilter]) -> Scan:
    """The scan without candidates that cannot pass ``prefilters``; ``counted`` has all candidates of these names."""
    candidates, before = dict(scan.candidates), dict[Hashable, tuple[np.ndarray, ...]]()
    for prefilter in prefilters:
        candidates[prefilter.name], marked = _passing(
            scan, candidates[prefilter.name], candidates[prefilter.other], prefilter
        )
        before.setdefault(_marks_before(prefilter.name), (marked,))
    counted = {prefilter.name: scan.candidates[prefilter.name] for prefilter in prefilters}
    return replace(scan, candidates=candidates, counted=counted, arrays=before) if counted else scan


def counted_before(scan: Scan, tables: Sequence[Table], at: Mapping[tuple[str, int], np.ndarray]) -> list[np.ndarray]:
    """For each candidate of a bound name, how many of all candidates of another name are before its ts plus a shift.

    Args:
        scan: the scan, with ``counted`` candidates.
        tables: for each, the bound name, the other name, and the shift.
        at: for bound names and shifts other than 0, how many events are before; int32.

    Returns:
        for each table, one number per candidate of the bound name; int32.
    """
    whole, shorts, found, numbers = list[np.ndarray](), list[np.ndarray](), list[np.ndarray](), [len(tables)]
    ts = np.ascontiguousarray(scan.data.ts, np.int64)
    for bound, name, shift in tables:
        rows = np.ascontiguousarray(scan.candidates[bound].rows, np.int64)
        found.append(np.empty(len(rows), np.int32))
        whole += [scan.counted[name].marks.view(np.int64), rows, ts]
        places = at[bound, shift] if shift else found[-1]
        shorts += [places, *scan.arrays[_marks_before(name)], found[-1]]
        numbers += [len(rows), shift]
    if found:
        kernel = machine.load(_COUNTED)
        kernel([], whole, [], shorts, machine.NOTHING, np.array(numbers, np.int64), machine.NOTHING)
    return found


def _marks_before(name: str) -> Hashable:
    return "marks before", name


def _is_ordered(form: Form) -> bool:
    return form.letter in ("f", "i") and not form.nullable


def _nothing(floating: bool, largest: bool) -> float | int:
    """The limit that no value passes, for stretches without bound events."""
    return (-np.inf if largest else np.inf) if floating else (-(2**63) if largest else 2**63 - 1)


def _passing(scan: Scan, of: Candidates, bound: Candidates, prefilter: PreFilter) -> tuple[Candidates, np.ndarray]:
    """The candidates that pass the comparison with one of the events of ``bound`` within a window of their block.

    The numbers returned with them are how many marks of ``of`` come before each group of eight.
    """
    data, column = scan.data, scan.data.columns[prefilter.attr].values
    ts = np.ascontiguousarray(data.ts, np.int64)
    floating, largest = column.dtype.kind == "f", prefilter.op in _SMALLER
    kind = np.float64 if floating else np.int64
    best = np.full((len(ts) >> _SHIFT) + 1, _nothing(floating, largest), kind)
    rows, times, found = np.empty(len(of) + 1, np.int64), np.empty(len(of), np.int64), np.empty(len(of), kind)
    values: list[np.ndarray] = [np.ascontiguousarray(bound.column(prefilter.other_attr).values, kind), best]
    values += [np.ascontiguousarray(column, kind), found]
    words = of.marks.view(np.int64)
    before = np.empty(len(words), np.int32)
    numbers = np.array([len(bound), len(ts), scan.window, prefilter.before, prefilter.behind, len(words)])
    hits = np.empty(1 << _SHIFT, bool)
    whole: list[np.ndarray] = [np.ascontiguousarray(bound.rows, np.int64), ts, rows, words, hits.view(np.int64), times]
    floats, ints = (values, whole) if floating else ([], [*values, *whole])
    kernel = machine.load(_passing_source(floating, prefilter.op))
    n = kernel(floats, ints, [of.marks, hits], [before], machine.NOTHING, numbers, machine.NOTHING)
    left = Candidates(data, rows[:n])
    left.learn(rows[:n], times[:n], {prefilter.attr: Value(found[:n], None, data.columns[prefilter.attr].kind)})
    return left, before


@cache
def _passing_source(floating: bool, op: str) -> str:
    table, first = ("F", 0) if floating else ("I", 4)
    better = ">" if op in _SMALLER else "<"
    return f"""def kernel(F, I, B, J, kf, ki, st):
    bound = {table}[0]
    best = {table}[1]
    values = {table}[2]
    found = {table}[3]
    bound_rows = I[{first}]
    ts = I[{first + 1}]
    rows = I[{first + 2}]
    words = I[{first + 3}]
    hit_words = I[{first + 4}]
    times = I[{first + 5}]
    marks = B[0]
    hits = B[1]
    before = J[0]
    size = ki[1]
    window = ki[2]
    blocks = (size + {(1 << _SHIFT) - 1}) >> {_SHIFT}
    i = 0
    while i < ki[0]:
        block = bound_rows[i] >> {_SHIFT}
        limit = best[block]
        while i < ki[0] and bound_rows[i] >> {_SHIFT} == block:
            limit = bound[i] if bound[i] {better} limit else limit
            i += 1
        best[block] = limit
    low = 0
    high = 0
    n = 0
    for block in range(blocks):
        begin = block << {_SHIFT}
        end = begin + {1 << _SHIFT}
        if end > size:
            end = size
        first = ts[begin] - window
        last = ts[end - 1] + window
        while low < block and ts[(low << {_SHIFT}) + {(1 << _SHIFT) - 1}] < first:
            low += 1
        while high + 1 < blocks and ts[(high + 1) << {_SHIFT}] <= last:
            high += 1
        i = low if ki[3] != 0 else block
        stop = high if ki[4] != 0 else block
        limit = best[i]
        while i < stop:
            i += 1
            if best[i] {better} limit:
                limit = best[i]
        count = end - begin
        for k in range(count):
            hits[k] = (marks[begin + k] != 0) & (values[begin + k] {op} limit)
        for k in range(count, {1 << _SHIFT}):
            hits[k] = 0
        total = 0
        for word in range({1 << _SHIFT - 3}):
            total += hit_words[word]
        total = {_marks_in("total")}
        i = n
        if total > {_MANY}:
            for k in range(count):
                rows[n] = begin + k
                n += hits[k]
        elif total != 0:
            for word in range({1 << _SHIFT - 3}):
                if hit_words[word] != 0:
                    for k in range(word << 3, (word << 3) + 8):
                        rows[n] = begin + k
                        n += hits[k]
        for k in range(i, n):
            times[k] = ts[rows[k]]
            found[k] = values[rows[k]]
    total = 0
    for word in range(ki[5]):
        before[word] = total
        total += {_marks_in("words[word]")}
    return n
"""


def _marks_in(word: str) -> str:
    """Code for the number of marks among eight that are read as one number."""
    return f"((({word} * 0x0101010101010101) >> 56) & 255)"


#: Counts how many marks are before given rows; if the shift is 0, before the first event of each row's time.
_COUNTED = f"""def kernel(F, I, B, J, kf, ki, st):
    for job in range(ki[0]):
        words = I[3 * job]
        rows = I[3 * job + 1]
        ts = I[3 * job + 2]
        at = J[3 * job]
        before = J[3 * job + 1]
        found = J[3 * job + 2]
        n = ki[2 * job + 1]
        if ki[2 * job + 2] != 0:
            for i in range(n):
                row = int(at[i])
                lower = words[row >> 3] & ((1 << ((row & 7) << 3)) - 1)
                found[i] = before[row >> 3] + {_marks_in("lower")}
            continue
        first = -1
        for i in range(n):
            row = rows[i]
            if row > 0 and ts[row - 1] == ts[row]:
                if first < 0 or ts[first] != ts[row]:
                    first = row
                    while first > 0 and ts[first - 1] == ts[first]:
                        first -= 1
                row = first
            lower = words[row >> 3] & ((1 << ((row & 7) << 3)) - 1)
            found[i] = before[row >> 3] + {_marks_in("lower")}
    return 0
"""
