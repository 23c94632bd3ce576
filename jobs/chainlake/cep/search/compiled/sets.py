"""Kleene closure in the kernel: the usable events of a name, then every non-empty set of them, one step per set.

Sets come in the order of a depth-first walk, in which each differs from an earlier one only by its last member, so
sums, counts, minima and maxima are kept per depth and cost one operation per set.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.language import ast
from chainlake.cep.language.ast import ANY_SIZE
from chainlake.cep.plan.steps import Step
from chainlake.cep.search.compiled.lists.kernel_context import KernelContext
from chainlake.cep.search.compiled.text.code import NULL, Code, Writer
from chainlake.cep.search.compiled.text.errors import NotCompilable
from chainlake.cep.search.compiled.text.expressions import Group
from chainlake.cep.search.compiled.text.facts import Size

#: Aggregates that are updated member by member.
_ADDED = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})


class Sets:
    """Writes the loops of a step that binds sets.

    Args:
        to: the kernel's generator.
        step: the step.
        number: its number.
    """

    def __init__(self, to: KernelContext, step: Step, number: int) -> None:
        self.to, self.step, self.number = to, step, number
        self.name = step.name
        self.count = Size(("size", self.name), partial(_size_of, self.name))
        self.group = Group(self._room("j", "members"), self._room("j", "picked"), f"d{number}")
        self.updates: list[tuple[str, str, str]] = []

    def write(self) -> None:
        """Write the whole step, and what follows it."""
        to, k = self.to, self.number
        out, make, slots = to.out, to.make, to.slots
        group = self.group
        count, anchor, stop, depth = f"m{k}", f"a{k}", f"s{k}", f"d{k}"
        lo, hi = f"lo{k}", f"hi{k}"
        if to.scopes.first:
            to.scopes.code(self.name, self.step.scope, lo, hi, out)
            out.put(f"if {hi} <= {lo}:", "    continue")
        else:
            out.put(f"{lo} = 0", f"{hi} = {to.size(self.name)}")
        kept = [(slots.state(), value) for value in (count, anchor, depth)]
        to.places += kept
        out.open("if resume == 0:")
        self._usable(lo, hi, count)
        out.put(f"{anchor} = 0", f"{depth} = 0")
        out.close()
        out.open("else:")
        out.put(*(f"{value} = {place}" for place, value in kept))
        out.close()
        out.put(f"{stop} = 0", f"{anchor} -= 1")
        out.open(f"while {anchor} + 1 < {count}:")
        out.put(f"{anchor} += 1")
        self._stop(count, anchor, stop)
        out.put(f"go{k} = 1 - resume")
        out.open("while True:")
        self._next(anchor, stop, depth)
        make.groups[self.name] = group
        to.scopes.bind(self.name, f"{group.members}[{anchor}]", group.position(depth))
        if self.step.clauses:
            out.open("if resume == 0:")
            for clause in self.step.clauses:
                test = make.clause(clause, out)
                out.put(f"if not {test}:", "    continue")
            out.close()
        to.enter(self.step, k)
        out.close(2)

    def _usable(self, lo: str, hi: str, count: str) -> None:
        """Write the loop that collects the events that may be members."""
        to, step, name = self.to, self.step, self.name
        out, make = to.out, to.make
        p, q = make.fresh(), make.fresh()
        apart = to.apart_from(step.scope, name)
        prelude, body = Writer(), Writer()
        prelude.depth, body.depth = out.depth, out.depth + 1
        make.singles[name] = q
        if not make.groups:
            make.loop_over(name, prelude)
        for clause in step.member_clauses:
            test = make.clause(clause, body)
            body.put(f"if not {test}:", "    continue")
        make.loop_over(None, Writer())
        del make.singles[name]
        out.lines += prelude.lines
        out.put(f"{count} = 0", f"{p} = {lo}")
        out.open(f"while {p} < {hi}:")
        out.put(f"{q} = {p}", f"{p} += 1")
        for x in apart:
            out.put(f"if {q} == {x}:", "    continue")
        to.not_in_sets(step.scope, name, q)
        if step.member_clauses:
            out.put("EP += 1", "T += 1")
        out.lines += body.lines
        out.put(f"{self.group.members}[{count}] = {q}", f"{count} += 1")
        out.close()

    def _stop(self, count: str, anchor: str, stop: str) -> None:
        """Find where the window of the first member ends, and check the set that reaches there against the limit."""
        to, members = self.to, self.group.members
        out, make = to.out, to.make
        table = to.scopes.table(self.name, self.name, to.scopes.window + 1)
        end = make.fresh()
        out.put(f"if {stop} < {anchor}:", f"    {stop} = {anchor}")
        out.put(f"{end} = {table}[{members}[{anchor}]]")
        out.open(f"while {stop} < {count} and {members}[{stop}] < {end}:")
        out.put(f"{stop} += 1")
        out.close()
        if len(self.to.plan.branch.kleene) > 1:
            return  # run.py takes NumPy if a set of such a branch could exceed the limit
        ticks = to.scopes.ticks(self.name)
        start, last, bound = make.fresh(), make.fresh(), make.fresh()
        out.put(f"{start} = {ticks}[{members}[{anchor}]]", f"{last} = {ticks}[{members}[{stop} - 1]]")
        if to.scopes.first:
            to.scopes.time("first", bound, out)
            out.put(f"if {bound} < {start}:", f"    {start} = {bound}")
            to.scopes.time("last", bound, out)
            out.put(f"if {bound} > {last}:", f"    {last} = {bound}")
        to.unless_owned(start, last, "continue")
        out.open(f"if {stop} - {anchor} > {to.most_usable(self.step)}:")
        to.too_many(f"{stop} - {anchor}")
        out.close()

    def _next(self, anchor: str, stop: str, depth: str) -> None:
        """Go to the next set with this first member, and update its aggregates."""
        out, k = self.to.out, self.number
        picked, x = self.group.picked, f"x{k}"
        out.open("if resume == 0:")
        out.open(f"if go{k} == 1:")
        out.put(f"{depth} = 0", f"{x} = {anchor}")
        if self.step.size.least > 1:
            out.put(f"if {x} >= {self._end(stop, '0')}:", "    break")
        out.close()
        out.open("else:")
        out.put(f"{x} = {picked}[{depth}] + 1")
        if self.step.size == ANY_SIZE:
            out.open(f"if {x} < {stop}:")
            out.put(f"{depth} += 1")
            out.close()
            out.open("else:")
            out.put(f"{depth} -= 1", f"if {depth} < 1:", "    break", f"{x} = {picked}[{depth}] + 1")
            out.close(2)
        else:
            self._next_of_size(x, stop, depth)
        out.put(f"go{k} = 0", f"{picked}[{depth}] = {x}")
        if self.step.size.least > 1:
            self._aggregates(x, depth)
            out.put(f"if {depth} < {self.step.size.least - 1}:", "    continue", "E += 1", "T += 1")
        else:
            out.put("E += 1", "T += 1")
            self._aggregates(x, depth)
        out.close()
        out.open("else:")
        out.put(f"go{k} = 0")
        out.close()

    def _next_of_size(self, x: str, stop: str, depth: str) -> None:
        """Go on where sets have a size: none grows beyond it, and none begins that cannot become large enough."""
        out, picked, most = self.to.out, self.group.picked, self.step.size.most
        grows = "" if most is None else f" and {depth} < {most - 1}"
        out.open(f"if {x} < {self._end(stop, f'{depth} + 1')}{grows}:")
        out.put(f"{depth} += 1")
        out.close()
        out.open("else:")
        out.put(
            f"while {depth} >= 1 and {x} >= {self._end(stop, depth)}:",
            f"    {depth} -= 1",
            f"    {x} = {picked}[{depth}] + 1",
        )
        out.put(f"if {depth} < 1:", "    break")
        out.close(2)

    def _end(self, stop: str, depth: str) -> str:
        """The first event that is too late to be a member at this depth."""
        least = self.step.size.least
        return stop if least < 2 else f"min({stop}, {stop} - {least - 1} + {depth})"

    def _aggregates(self, x: str, depth: str) -> None:
        to = self.to
        position = to.make.fresh()
        to.out.put(f"{position} = {self.group.members}[{x}]")
        for node in to.plan.aggregates_of(self.name):
            self.group.aggregates[node] = self._aggregate(node, position, depth)

    def _aggregate(self, node: ast.Aggregate, position: str, depth: str) -> Code:
        """Write statements that add one member; returns the code of the aggregate over all (``values.aggregate``)."""
        to, name = self.to, self.name
        slots, out = to.slots, to.out
        if node.distinct or node.function not in _ADDED:
            raise NotCompilable.aggregate(node.function, node.distinct)
        if node.attr is None:
            return Code(f"({depth} + 1)", "i", "number", None, (self.count,))
        to.make.singles[name] = position
        value = to.make.column(name, ast.Ref(name, node.attr))
        del to.make.singles[name]
        if value.dtype == "0":
            return Code(slots.number(0, "no count"), "i", "number", None, ()) if node.function == "COUNT" else NULL
        good = value.valid or (f"{value.text} == {value.text}" if value.dtype == "f" else "True")
        count = self._room("i", "COUNT", node.attr)
        if slots.first_time(("counted", name, node.attr)):
            self._add(count, depth, f"1 if {good} else 0")
        if node.function == "COUNT":
            return Code(f"{count}[{depth}]", "i", "number", None, (self.count,))
        if node.function in ("SUM", "AVG"):
            total = self._room("f", "SUM", node.attr)
            if slots.first_time(("summed", name, node.attr)):
                self._add(total, depth, f"float({value.text}) if {good} else 0.0")
            text = f"{total}[{depth}] / {count}[{depth}]" if node.function == "AVG" else f"{total}[{depth}]"
            return Code(f"({text} if {count}[{depth}] != 0 else {slots.nan})", "f", value.kind)
        best = self._room("f" if value.dtype == "f" else "i", node.function, node.attr)
        sign, old, new = "<" if node.function == "MIN" else ">", to.make.fresh(), to.make.fresh()
        out.put(f"{new} = {value.text}")
        out.open(f"if {depth} > 0 and {count}[{depth} - 1] != 0:")
        out.put(f"{old} = {best}[{depth} - 1]", f"if not ({good}) or not {new} {sign} {old}:", f"    {new} = {old}")
        out.close()
        out.put(f"{best}[{depth}] = {new}")
        if value.dtype == "f":
            return Code(f"({best}[{depth}] if {count}[{depth}] != 0 else {slots.nan})", "f", value.kind)
        return Code(f"{best}[{depth}]", "i", value.kind, f"{count}[{depth}] != 0", value.size)

    def _room(self, letter: str, what: str, attr: str | None = None) -> str:
        """An array with a place for each candidate and one more."""
        return self.to.slots.array(letter, partial(_places, self.name), ("room", what, self.name, attr))

    def _add(self, stack: str, depth: str, value: str) -> None:
        added = self.to.make.fresh()
        self.to.out.put(
            f"{added} = {value}",
            f"if {depth} > 0:",
            f"    {added} = {stack}[{depth} - 1] + {added}",
            f"{stack}[{depth}] = {added}",
        )


def _size_of(name: str, scan: Scan) -> int:
    return len(scan.candidates[name])


def _places(name: str, scan: Scan) -> np.ndarray:
    return np.zeros(len(scan.candidates[name]) + 1)
