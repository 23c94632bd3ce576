"""Value-aware search: if a clause compares a candidate with bound values, only candidates that pass are touched.

Blocks of 2^shift neighbouring candidates are sorted by the compared value, so those that pass come first in each
block: the search pays one look per block and one per passing candidate, not one per candidate in scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log, log2, sqrt

import numpy as np

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.plan.steps import Plan, Step
from chainlake.cep.search.compiled.lists.jumps import Jump
from chainlake.cep.search.compiled.lists.sorted_blocks import sorted_blocks
from chainlake.cep.search.compiled.passing.choice import all_limits, in_passes, step_limits
from chainlake.cep.search.compiled.passing.comparisons import PreFilter
from chainlake.cep.search.compiled.passing.leave_out import Together, only_passing
from chainlake.cep.search.compiled.text.code import Writer
from chainlake.cep.search.compiled.text.comparison import Pairing, comparison, pairing_of
from chainlake.cep.search.compiled.text.expressions import Expressions
from chainlake.cep.search.compiled.text.facts import Facts, Form, form_of
from chainlake.cep.search.compiled.text.slots import Slots

#: Seconds for one candidate tested in order, one look into a block, one passing candidate, and one candidate sorted.
TEST, LOOK, PASS, SORT = 1.2e-9, 5e-9, 1.5e-9, 12e-9
#: Seconds to find, for one candidate, where a search continues.
JUMP = 11e-9
#: One event is searched for if that is estimated to take at most this many times the seconds of a list, since lists by
#: value have been seen to take 1.4 to 1.8 times their estimate, and searches no more than theirs.
NEAREST = 1.2
#: With at least this many visits per event of an earlier step, one list for all of them pays.
LISTED = 1.5
#: The last two steps are run in reverse order if that takes at most this share of the seconds that lists take.
PAIRED = 0.9
#: The assumed share of candidates that pass a condition about which nothing is known.
GUESS = 0.3
#: How many values are drawn to estimate how many candidates pass.
DRAWN = 256


@dataclass(frozen=True)
class Skip:
    """A value test by which a loop skips candidates.

    Args:
        name: the name whose candidates are searched.
        clause: the clause, which is nothing but this comparison.
        op: ``candidate op bound``.
        candidate: the value of the candidate.
        bound: the value that is bound.
        shift: 2^shift candidates are sorted together.
    """

    name: str
    clause: Clause
    op: str
    candidate: ast.Node
    bound: ast.Node
    shift: int

    @property
    def key(self) -> tuple[str, str, str, int]:
        """A key that is equal if the same values are sorted in the same way."""
        return self.name, self.candidate.written, self.op, self.shift

    def blocks(self, scan: Scan) -> tuple[np.ndarray, ...]:
        """The sorted values, and the candidates to which they belong."""
        if self.key not in scan.arrays:
            values = scan.value(self.name, self.candidate).values
            scan.arrays[self.key] = sorted_blocks(values, self.shift, self.op in (">", ">="))
        return scan.arrays[self.key]

    def shift_in(self, slots: Slots) -> str:
        """The constant that holds the shift."""
        return slots.number(self.shift, ("shift", self.key))

    def open_loop(self, make: Expressions, out: Writer, number: int, hi: str, size: str, value: str) -> None:
        """Open two loops, over blocks and over what passes in each; ``q`` is the candidate's position."""
        form, slots = make.form(self.name, self.candidate), make.slots
        assert can_be_sorted(form), "chosen for values that can be sorted"
        if isinstance(self.candidate, ast.Ref):
            slots.reads(self.name, self.candidate.attr)
        ordered = slots.array(form.letter, lambda scan: self.blocks(scan)[0], ("sorted", self.key))
        permuted = slots.array("j", lambda scan: self.blocks(scan)[1], ("places", self.key))
        p, b, e, shift = f"p{number}", f"b{number}", f"e{number}", self.shift_in(slots)
        out.open(f"while ({b} << {shift}) < {hi}:")
        out.put(f"{e} = ({b} + 1) << {shift}", f"if {e} > {size}:", f"    {e} = {size}")
        if self.op == "=":
            low, high, middle = make.fresh(), make.fresh(), make.fresh()
            out.put(f"{low} = {p}", f"{high} = {e}")
            out.open(f"while {low} < {high}:")
            out.put(f"{middle} = ({low} + {high}) >> 1")
            out.put(f"if {ordered}[{middle}] < {value}:", f"    {low} = {middle} + 1")
            out.put("else:", f"    {high} = {middle}")
            out.close()
            out.put(f"{p} = {low}")
        op = "==" if self.op == "=" else self.op
        out.open(f"while {p} < {e} and {ordered}[{p}] {op} {value}:")
        out.put(f"q{number} = {permuted}[{p}]", f"{p} += 1", "T += 1")


@dataclass(frozen=True)
class LoopPlan:
    """How the loops of a kernel are run.

    Args:
        skips: by step number, the value test by which the step skips candidates.
        lists: by the number of a later step with conditions, which lists what passes, the number of the step to whose
            event the list belongs.
        passes: what leaves candidates out before the search, one pass after another.
        searches: by the number of a step that looks for one event, the comparison by which it skips others, or None.
        pairing: the condition with which the last two steps are run in reverse order; None if they are not.
    """

    skips: Mapping[int, Skip]
    lists: Mapping[int, int]
    passes: tuple[Together, ...] = ()
    searches: Mapping[int, Jump | None] = field(default_factory=dict)
    pairing: Pairing | None = None

    @property
    def limited(self) -> frozenset[str]:
        """The names whose candidates are left out if they cannot pass."""
        return frozenset(one.name for together in self.passes for one in together)


def can_be_sorted(form: Form) -> bool:
    """Whether values of a form can be searched by value: numbers, codes or times without a mask of nulls."""
    return form.letter in ("f", "i") and not form.nullable


def choose_selecting(plan: Plan, scan: Scan, single: int | None) -> LoopPlan:
    """The same as ``choose_loops`` for a search of which only the matches count, not what it evaluates.

    Candidates that no event of another name fits are left out first, and the loops are chosen for what is left.
    """
    second = plan.steps[1].name if len(plan.steps) > 1 else plan.order[0]
    scope = _scope_size(plan.branch, second, [plan.order[0]], scan)
    passes = all_limits(plan, scan, 2 * LOOK, scope, TEST)
    loops = choose_loops(plan, only_passing(scan, passes), single, every=False, limits=False)
    return replace(loops, passes=passes)


def choose_loops(
    plan: Plan, scan: Scan, single: int | None = None, *, every: bool = True, limits: bool = True
) -> LoopPlan:
    """How the loops of ``plan`` are run: where skipping by value, and lists that serve several bindings, should pay.

    Args:
        plan: the plan.
        scan: the events and candidates to search.
        single: the step that wants only one event; it is searched for unless a list serves several bindings.
        every: whether all matches are wanted, in any order.
        limits: whether candidates may be left out; evaluations count them all the same.

    A step whose conditions look only at some of the bound names finds the same candidates, apart from the window, for
    all bindings of the others: if it is entered often per event of the last of these names, they are listed once.
    """
    prefilters: list[PreFilter] = []
    skips: dict[int, Skip] = {}
    lists: dict[int, int] = {}
    searches: dict[int, Jump | None] = {}
    pairing: Pairing | None = None
    order = list(plan.order)
    bound: list[str] = []
    #: how many bindings enter each step
    entered = [1.0]
    for number, step in enumerate(plan.steps):
        key = list_key(order, number, step.clauses)
        if entered[number] <= LISTED * entered[max(key, 0) + 1 if number else 0]:
            key = number - 1
        search = None
        if number == single and key == number - 1:
            search = _search(step, scan, bound, _scope_size(plan.branch, step.name, bound, scan), entered[number])
        if search is not None:
            _, searches[number] = search
        elif number and step.clauses and not step.kleene:
            lists[number], visits, seen = key, entered[key + 1], bound[: key + 1]
            if visits and len(scan.candidates[step.name]):
                size = _scope_size(plan.branch, step.name, seen, scan)
                options = [
                    option
                    for clause in step.clauses
                    if (option := _option(step, clause, scan, seen, size, visits)) is not None
                ]
                price, skip = min(options, key=lambda option: option[0], default=(size * TEST, None))
                limited = _with_what_follows(plan, scan)
                if every and lists.get(number - 1) == number - 2 and key == number - 1:
                    found = _paired(plan, scan, entered, price)
                    if found is not None:
                        pairing, price, skip, size = found
                        visits = entered[number - 1]
                        limited = replace(plan, steps=(*plan.steps[:-1], pairing.step(plan)))
                spent = (price * visits, size * visits)
                left = step_limits(limited, number, scan, prefilters, spent, TEST) if limits else []
                prefilters += left
                if skip is not None and not left:
                    skips[number] = skip
        scope = _scope_size(plan.branch, step.name, bound, scan)
        passing = 1.0
        for clause in step.clauses:
            passing *= _passing(step, clause, scan)
        entered.append(entered[number] * scope * passing)
        bound.append(step.name)
    return LoopPlan(skips, lists, in_passes(prefilters), searches, pairing)


def _following(plan: Plan, scan: Scan) -> Pairing | None:
    """The condition that the last two steps imply, if it holds for the types of these events."""
    pairing = pairing_of(plan)
    if pairing is None:
        return None
    refs = [side for one in (pairing.clause, *plan.steps[-1].clauses) for side in one.literals[0].parts()]
    forms = {form_of(scan.data.columns[side.attr]) for side in refs if isinstance(side, ast.Ref)}
    # Between doubles and whole numbers, rounding can break the implication.
    return pairing if len(forms) == 1 and all(map(can_be_sorted, forms)) else None


def _with_what_follows(plan: Plan, scan: Scan) -> Plan:
    """The plan with the implied condition, if any, among the conditions of its last step."""
    pairing = _following(plan, scan)
    if pairing is None:
        return plan
    last = plan.steps[-1]
    return replace(plan, steps=(*plan.steps[:-1], replace(last, clauses=(pairing.clause, *last.clauses))))


def _paired(
    plan: Plan, scan: Scan, entered: Sequence[float], price: float
) -> tuple[Pairing, float, Skip | None, float] | None:
    """How the last two steps are run in reverse order, if that is estimated to pay.

    Args:
        plan: the plan.
        scan: the events and candidates to search.
        entered: how many bindings enter each step.
        price: seconds per visit of the last step, run as it is.

    Returns:
        the pairing, the seconds per visit of the last name's list, what it skips by, and how many are in scope.
    """
    pairing = _following(plan, scan)
    if pairing is None:
        return None
    middle, early = plan.steps[-2], pairing.step(plan)
    bound, visits = list(plan.order[:-2]), entered[-2]
    size = _scope_size(plan.branch, early.name, bound, scan)
    option = _option(early, pairing.clause, scan, bound, size, visits)
    listing, skip = (size * TEST, None) if option is None else option
    left = size * _passing(early, pairing.clause, scan)
    between = _scope_size(plan.branch, middle.name, [*bound, early.name], scan) * TEST + 2 * LOOK
    if visits * (listing + left * between) > PAIRED * entered[-1] * (price + 2 * LOOK):
        return None
    return pairing, listing, skip, size


def _search(step: Step, scan: Scan, bound: list[str], scope: float, visits: float) -> tuple[float, Jump | None] | None:
    """Seconds per visit of a search for one event, and the comparison that skips others; None if a list takes less."""
    size = len(scan.candidates[step.name])
    tests, listed, jumps = scope, scope * TEST, list[tuple[float, Jump]]()
    for clause in step.clauses:
        compared_by = _compared(step, clause, scan, bound)
        if compared_by is None:
            continue
        op, mine, other = compared_by
        compared = _bound_values(other, scan)
        shares = np.array([GUESS]) if compared is None else _shares(op, scan.value(step.name, mine).values, compared)
        listed = min(listed, by_value(scope, float(shares.mean()), visits, size)[0])
        if len(step.clauses) == 1:
            # How many are tested on average until one passes; all if none does.
            some = np.maximum(shares, 1e-6)
            tests = float(((1.0 - (1.0 - np.minimum(some, 1.0 - 1e-6)) ** max(scope, 1.0)) / some).mean())
        if op != "=":
            jumps.append((float(shares.mean()), Jump(step.name, clause, op, mine)))
    price, found = tests * TEST, list[Jump]()
    jumping = LOOK * (1.0 + log(1.0 + scope)) + JUMP * size / max(visits, 1.0)
    if jumps and jumping < price:
        price, found = jumping, [min(jumps, key=lambda jump: jump[0])[1]]
    return (price, next(iter(found), None)) if not step.clauses or price <= NEAREST * listed else None


def by_value(scope: float, share: float, visits: float, size: float) -> tuple[float, int]:
    """Seconds per visit of a loop, and the shift of its blocks if it skips by value, or 0 if it does not.

    Args:
        scope: how many candidates are in scope.
        share: the share of them that pass the comparison.
        visits: how often the loop is entered.
        size: how many candidates would be sorted.
    """
    in_order = scope * TEST
    shift = max(3, min(16, round(log2(sqrt(max(scope, 1.0) * LOOK / (max(share, 1e-3) * PASS))))))
    blocks = scope / (1 << shift) + 1.0
    price = blocks * LOOK + share * (scope + (1 << shift)) * PASS + SORT * size / max(visits, 1.0)
    return (price, shift) if price < 0.8 * in_order else (in_order, 0)


def list_key(order: Sequence[str], number: int, clauses: Sequence[Clause]) -> int:
    """The step of the latest bound name that the clauses of step ``number`` look at."""
    named = frozenset[str]().union(*(clause.names for clause in clauses)) - {order[number]}
    return max((order.index(name) for name in named), default=number - 1)


def _passing(step: Step, clause: Clause, scan: Scan) -> float:
    """About what share of a step's candidates passes a clause; a guess unless it is a comparison with one name."""
    compared = comparison(step.name, clause)
    if compared is None:
        return GUESS
    op, mine, other = compared
    value, bound = scan.value(step.name, mine), _bound_values(other, scan)
    if bound is None or not isinstance(value.values, np.ndarray):
        return GUESS
    return _share(op, value.values, bound)


def _option(
    step: Step,
    clause: Clause,
    scan: Scan,
    bound: list[str],
    scope: float,
    visits: float,
) -> tuple[float, Skip] | None:
    """The cost of skipping by ``clause``, and the test; None if that is not possible or does not pay."""
    compared_by = _compared(step, clause, scan, bound)
    if compared_by is None:
        return None
    op, mine, other = compared_by
    value, compared = scan.value(step.name, mine), _bound_values(other, scan)
    share = GUESS if compared is None else _share(op, value.values, compared)
    price, shift = by_value(scope, share, visits, len(value.values))
    if not shift:
        return None
    return price, Skip(step.name, clause, op, mine, other, shift)


def _compared(step: Step, clause: Clause, scan: Scan, bound: list[str]) -> tuple[str, ast.Node, ast.Node] | None:
    """The comparison that a clause is, if it can rule out candidates by value; else None."""
    compared_by = comparison(step.name, clause)
    if compared_by is None:
        return None
    _, mine, other = compared_by
    value = scan.value(step.name, mine)
    if not can_be_sorted(form_of(value)):
        return None
    probe = Expressions(Slots(), Facts(scan))
    probe.singles = dict.fromkeys(bound, "0")
    code = probe.value(other, Writer())
    return compared_by if code.dtype in "fi" and code.kind == value.kind else None


def _bound_values(node: ast.Node, scan: Scan) -> np.ndarray | None:
    """The values with which candidates are compared, if one name decides them; else None."""
    if len(node.names) != 1:
        return None
    found = scan.value(next(iter(node.names)), node)
    return found.values if isinstance(found.values, np.ndarray) else None


def _share(op: str, values: np.ndarray, compared: np.ndarray) -> float:
    """About what share of pairs passes."""
    shares = _shares(op, values, compared)
    return float(shares.mean())


def _shares(op: str, values: np.ndarray, compared: np.ndarray) -> np.ndarray:
    """About what share of values passes, for a sample of the values with which they are compared."""
    mine = np.sort(values[:: max(1, len(values) // DRAWN)])
    others = compared[:: max(1, len(compared) // DRAWN)]
    below, through = np.searchsorted(mine, others, "left"), np.searchsorted(mine, others, "right")
    passing = {
        "<": below, "<=": through, "=": through - below, ">": len(mine) - through, ">=": len(mine) - below,
    }[op]  # fmt: skip
    return passing / len(mine) if len(mine) and len(others) else np.zeros(1)


def _scope_size(branch: Branch, name: str, bound: list[str], scan: Scan) -> float:
    """About how many candidates of ``name`` are in scope when ``bound`` are bound, judged by the last of these."""
    candidates, window = scan.candidates, scan.window
    if not bound:
        return float(len(candidates[name]))
    last = bound[-1]
    ts = candidates[last].ts
    ts = ts[:: max(1, len(ts) // DRAWN)]
    of = candidates[name].ts
    lo = np.searchsorted(of, ts + 1 if last in branch.before[name] else ts - window, "left")
    hi = np.searchsorted(of, ts if last in branch.after[name] else ts + window + 1, "left")
    return float(np.maximum(hi - lo, 0).mean()) if len(ts) else 0.0
