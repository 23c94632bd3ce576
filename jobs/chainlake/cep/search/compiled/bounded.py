"""Bounds in the kernel: a partial match is dropped if its best completion is below the thresholds of its lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.language import ast
from chainlake.cep.plan.steps import Step, scope_of
from chainlake.cep.search.bounding.arrays import TINY, Columns
from chainlake.cep.search.bounding.cut import MOST_WINDOWS, Cutter
from chainlake.cep.search.bounding.extremes import LEVELS
from chainlake.cep.search.bounding.score import Bound
from chainlake.cep.search.bounding.thresholds import TRIED, WORTH, Bounds
from chainlake.cep.search.compiled.lists.kernel_context import KernelContext
from chainlake.cep.search.compiled.text.slots import Arguments

#: Smaller than all scores, and still a finite number for comparisons.
_NONE = "-1.7e308"
#: What is counted: partial matches, those compared with a threshold, those cut, and whether bounds are used.
_COUNTED = ("made", "tried", "cut", "on")


@dataclass(frozen=True)
class BoundSlots:
    """The slots whose content belongs to one search, by what they hold.

    Args:
        theta: the threshold of each list.
        order: the candidates of the first name, most promising first.
        bounds: the bound of each of these candidates.
        sizes: how many candidates these are, and how many lists a period has.
        low, high: by name, the first and last period that a match with each candidate can be in.
        per: by name, the number of each candidate's values of ``FOR EACH``.
        state: the places in the state of what is counted.
    """

    theta: str
    order: str
    bounds: str
    sizes: tuple[str, str]
    low: Mapping[str, str]
    high: Mapping[str, str]
    per: Mapping[str, str]
    state: Mapping[str, int]

    def put(self, given: Arguments, cutter: Cutter, first: str) -> None:
        """Set the arrays of a search.

        Args:
            given: the arguments of the kernel.
            cutter: has the thresholds and the scan.
            first: the name that is bound first.
        """
        thresholds, scan = cutter.bounded.thresholds, cutter.scan
        order, bounds = cutter.order(first)
        given.put(self.theta, thresholds.theta)
        given.put(self.order, order.astype(np.int32))
        given.put(self.bounds, np.ascontiguousarray(bounds, np.float64))
        for slot, number in zip(self.sizes, (len(order), len(thresholds.per)), strict=True):
            given.set_number(slot, number)
        for name in self.low:
            given.put(self.low[name], np.ascontiguousarray(cutter.periods_of(name).low, np.int32))
            given.put(self.high[name], np.ascontiguousarray(cutter.periods_of(name).high, np.int32))
        for name, slot in self.per.items():
            codes = cutter.bounded.per[name][scan.candidates[name].rows]
            given.put(slot, np.ascontiguousarray(codes, np.int32))

    def begin(self, given: Arguments, cutter: Cutter) -> None:
        """Set the counts so far, and whether bounds are on."""
        thresholds = cutter.bounded.thresholds
        counted = (thresholds.counts.partial, thresholds.counts.tried, thresholds.counts.cut, thresholds.on)
        for what, number in zip(_COUNTED, counted, strict=True):
            given.state[self.state[what]] = number

    def count(self, given: Arguments, cutter: Cutter) -> None:
        """Take over the counts of a call."""
        thresholds = cutter.bounded.thresholds
        counts, state = thresholds.counts, given.state
        counts.partial, counts.tried, counts.cut, on = (int(state[self.state[what]]) for what in _COUNTED)
        if thresholds.on and not on:
            thresholds.on, counts.switched_off = False, True


class Kernel(KernelContext, Protocol):
    """A kernel under construction that has bounds."""


@dataclass
class Bounded:
    """Writes the comparisons of partial matches with thresholds.

    Args:
        to: the kernel's generator.
        bounds: what bounds depend on.
    """

    to: Kernel
    bounds: Bounds
    bound_slots: BoundSlots = field(init=False)

    def __post_init__(self) -> None:
        slots, names = self.to.slots, self.to.plan.order
        periods = names if self.bounds.period != "all" else ()
        state = {}
        for what in _COUNTED:
            place = slots.state()
            state[what] = int(place[3:-1])
            self.to.kept.append(f"{what} = {place}")
        self.bound_slots = BoundSlots(
            slots.array("f", None, "theta"),
            slots.array("j", None, "most promising"),
            slots.array("f", None, "bounds of the first"),
            (slots.number(0, "promising"), slots.number(0, "lists of a period")),
            {name: slots.array("j", None, ("low", name)) for name in periods},
            {name: slots.array("j", None, ("high", name)) for name in periods},
            {name: slots.array("j", None, ("per", name)) for name in sorted(self.bounds.per or ())},
            state,
        )

    @property
    def returned(self) -> list[str]:
        """Statements that save the counts."""
        return [f"st[{place}] = {what}" for what, place in self.bound_slots.state.items()]

    def write(self, step: Step, number: int) -> None:
        """Write the comparison that follows once the event of a step is bound."""
        out, make = self.to.out, self.to.make
        last = number == len(self.to.plan.steps) - 1
        if not last:
            out.put("made += 1")
        bound = self.to.plan.order[: number + 1]
        per = next((name for name in bound if name in self.bound_slots.per), None)
        if self.bound_slots.per and per is None:
            return
        out.open("if on != 0:")
        theta = make.fresh()
        self._threshold(theta, bound, per, whole=last)
        out.open(f"if {theta} > {_NONE}:")
        out.put("tried += 1")
        out.put(f"if tried == {TRIED} and cut < {WORTH} * tried:", "    on = 0")
        if number == 0:
            test = f"{self.bound_slots.bounds}[{make.singles[step.name]}] < {theta}"
            one_list = self.bounds.period == "all" and not self.bound_slots.per
            out.put(f"if {test}:", "    cut += 1", "    break" if one_list else "    continue")
        else:
            values = _Values(self, bound)
            score = Bound(values).score(self.bounds.score, self.bounds.nodes)
            out.put(f"if {score} < {theta}:", "    cut += 1", "    continue")
        out.close(2)

    def _threshold(self, theta: str, bound: tuple[str, ...], per: str | None, *, whole: bool) -> None:
        """Write statements that set ``theta`` to the smallest threshold of the lists that are still possible."""
        out, make, given = self.to.out, self.to.make, self.bound_slots
        code = f"{given.per[per]}[{make.singles[per]}]" if per is not None else "0"
        if self.bounds.period == "all":
            out.put(f"{theta} = {given.theta}[{code}]")
            return
        low, high, other, at = (make.fresh() for _ in range(4))
        known = whole or self.bounds.end in bound
        if not known or self.bounds.period != "first":
            self._extreme(low, [f"{given.low[name]}[{make.singles[name]}]" for name in bound], ">")
        if not known or self.bounds.period != "last":
            self._extreme(high, [f"{given.high[name]}[{make.singles[name]}]" for name in bound], "<")
        each = given.sizes[1]
        if known and self.bounds.period != "hop":
            out.put(f"{theta} = {given.theta}[{low if self.bounds.period == 'last' else high} * {each} + {code}]")
            return
        out.put(f"{theta} = {_NONE}")
        out.put(f"if {high} < {low}:", "    tried += 1", "    cut += 1", "    continue")
        out.open(f"if {high} - {low} < {MOST_WINDOWS}:")
        out.put(f"{theta} = {given.theta}[{low} * {each} + {code}]", f"{at} = {low} + 1")
        out.open(f"while {at} <= {high}:")
        out.put(f"{other} = {given.theta}[{at} * {each} + {code}]", f"{at} += 1")
        out.put(f"if {other} < {theta}:", f"    {theta} = {other}")
        out.close(2)

    def _extreme(self, result: str, values: list[str], sign: str) -> None:
        self.to.out.put(f"{result} = {values[0]}")
        for value in values[1:]:
            other = self.to.make.fresh()
            self.to.out.put(f"{other} = {value}", f"if {other} {sign} {result}:", f"    {result} = {other}")


class _Values:
    """Writes bounds (``bounding.score.Algebra``): each value is a local, or an entry of an array.

    Args:
        of: the writer of comparisons.
        bound: the names that are bound.
    """

    def __init__(self, of: Bounded, bound: tuple[str, ...]) -> None:
        self._of, self._bound = of, frozenset(bound)
        self._free: dict[str, tuple[str, str]] = {}
        to = of.to
        for step in to.plan.steps[len(bound) :]:
            lo, hi = to.make.fresh(), to.make.fresh()
            to.scopes.code(step.name, scope_of(to.plan.branch, step.name, bound), lo, hi, to.out)
            to.out.put(f"if {hi} <= {lo}:", "    cut += 1", "    continue")
            self._free[step.name] = lo, hi

    def bound(self, names: frozenset[str]) -> bool:
        """As ``Algebra`` says."""
        return names <= self._bound

    def leaf(self, name: str, node: ast.Node, upper: bool) -> str:
        """As ``Algebra`` says."""
        to = self._of.to
        if name in self._bound:
            values = to.slots.array("f", self._made("values", name, node), ("doubles", name, node.written))
            return f"{values}[{to.make.singles[name]}]"
        key = name, node.written, upper
        table = to.slots.array("f", self._made("table", name, node, upper), ("extremes", *key))
        shift = to.slots.number_of(False, self._made("shift", name, node, upper), ("extremes shift", *key))
        width = to.slots.number_of(False, self._made("width", name, node, upper), ("extremes width", *key))
        levels = to.slots.array("j", _levels, "levels")
        first, end, level, found, other = (to.make.fresh() for _ in range(5))
        lo, hi = self._free[name]
        to.out.put(
            f"{first} = {lo} >> {shift}",
            f"{end} = (({hi} - 1) >> {shift}) + 1",
            f"{level} = {levels}[{end} - {first}]",
            f"{found} = {table}[{level} * {width} + {first}]",
            f"{other} = {table}[{level} * {width} + {end} - (1 << {level})]",
            f"if {other} {'>' if upper else '<'} {found}:",
            f"    {found} = {other}",
        )
        return found

    def constant(self, node: ast.Node) -> str:
        """As ``Algebra`` says."""
        strict = self._of.bounds.strict
        return self._of.to.slots.number_of(
            True, lambda scan: Columns(scan, strict).constant(node), ("a double", node.written)
        )

    def number(self, value: float) -> str:
        """As ``Algebra`` says."""
        return self._of.to.slots.number(value, ("number", value))

    def seconds(self, value: str, node: ast.Node) -> str:
        """As ``Algebra`` says."""
        strict = self._of.bounds.strict
        unit = self._of.to.slots.number_of(True, lambda scan: Columns(scan, strict).unit(node), ("unit", node.written))
        return self._local(f"{value} / {unit}")

    def apply(self, op: str, left: str, right: str, upper: bool) -> str:
        """As ``Algebra`` says."""
        if op in ("least", "greatest"):
            one, other = self._local(left), self._local(right)
            self._of.to.out.put(f"if {other} {'<' if op == 'least' else '>'} {one}:", f"    {one} = {other}")
            return one
        return self._widened(self._local(f"{left} {op} {right}"), upper)

    def over(self, upper: bool, *ends: str) -> str:
        """As ``Algebra`` says."""
        low, high, least, most = map(self._local, ends)
        out, found, other = self._of.to.out, self._local(_infinite(upper)), self._of.to.make.fresh()
        out.open(f"if {least} > {TINY} or {most} < -{TINY}:")
        out.put(f"{found} = {low} / {least}")
        if len(set(ends)) > 2:
            for x, y in ((low, most), (high, least), (high, most)):
                out.put(
                    f"{other} = {x} / {y}", f"if {other} {'>' if upper else '<'} {found}:", f"    {found} = {other}"
                )
        out.close()
        return self._widened(found, upper)

    def size(self, upper: bool, low: str, high: str) -> str:
        """As ``Algebra`` says."""
        out, low, high = self._of.to.out, self._local(low), self._local(high)
        found = self._local(f"abs({low})")
        other = self._local(f"abs({high})")
        out.put(f"if {other} {'>' if upper else '<'} {found}:", f"    {found} = {other}")
        if not upper:
            out.put(f"if {low} <= 0 and {high} >= 0:", f"    {found} = 0.0")
        return found

    def root(self, value: str) -> str:
        """As ``Algebra`` says."""
        found = self._local(value)
        self._of.to.out.put(f"if {found} < 0:", f"    {found} = 0.0", f"{found} = math.sqrt({found})")
        return found

    def _local(self, text: str) -> str:
        found = self._of.to.make.fresh()
        self._of.to.out.put(f"{found} = {text}")
        return found

    def _widened(self, found: str, upper: bool) -> str:
        self._of.to.out.put(f"if {found} != {found}:", f"    {found} = {_infinite(upper)}")
        return found

    def _made(self, what: str, name: str, node: ast.Node, upper: bool = True) -> Callable[[Scan], Any]:
        return partial(_made, what, name, node, upper, self._of.bounds.strict)


def _made(what: str, name: str, node: ast.Node, upper: bool, strict: bool, scan: Scan) -> np.ndarray | int:
    """A name's values in a scan, or the table, shift or width of their extremes, as ``what`` says."""
    columns = Columns(scan, strict)
    if what == "values":
        return columns.values(name, node)
    key = "extremes", name, node.written, upper
    if key not in scan.arrays:
        found = columns.extremes(name, node, upper)
        scan.arrays[key] = found.table, np.array([found.shift, found.width])
    table, numbers = scan.arrays[key]
    return table if what == "table" else int(numbers[0 if what == "shift" else 1])


def _levels(scan: Scan) -> np.ndarray:
    return LEVELS


def _infinite(upper: bool) -> str:
    return "math.inf" if upper else "-math.inf"
