"""Runs the last two steps in reverse order, where they imply a condition between the last name and an earlier one.

With ``a.x < b.x AND b.x < c.x`` and c bound first, then b, then a, each a is also below its c. If that holds for few a,
these are listed once for each c, and for each of them the b between the two, instead of an a-list for each of the many
b. The evaluations counted are still those of the original order.
"""

from __future__ import annotations

from dataclasses import replace

from chainlake.cep.plan.steps import scope_of
from chainlake.cep.search.compiled.lists.kernel_context import KernelContext
from chainlake.cep.search.compiled.lists.listed import Listed
from chainlake.cep.search.compiled.text.comparison import Pairing


class Pairs:
    """Writes the last two steps.

    Args:
        to: the kernel's generator.
        pairing: the condition that the two steps imply.
    """

    def __init__(self, to: KernelContext, pairing: Pairing) -> None:
        plan, number = to.plan, pairing.number
        self.to, self.number = to, number
        self.middle, self.last = plan.steps[number - 1 :]
        self.passing = Listed(to, self.middle, number - 1)
        self.early = Listed(to, pairing.step(plan), number)
        scope = scope_of(plan.branch, self.middle.name, [*plan.order[: number - 1], self.last.name])
        clauses = (*self.middle.clauses, *self.last.clauses)
        self.between = Listed(to, replace(self.middle, scope=scope, clauses=clauses), number - 1, in_order=True)

    def write(self) -> None:
        """Write the loops, and the output inside them."""
        to, out, scopes, last, middle = self.to, self.to.out, self.to.scopes, self.number, self.number - 1
        to.count(self.middle)
        lo, hi = f"lo{middle}", f"hi{middle}"
        scopes.code(self.middle.name, self.middle.scope, lo, hi, out)
        out.put(f"if {hi} <= {lo}:", "    continue")
        self.early.keep(self.early.count)
        out.put("if resume != 0:", f"    p{last} = {self._place(f'g{last}')}")
        out.open("else:")
        if not to.is_limited(self.middle):
            out.put(f"E += {hi} - {lo}")
        self._count(lo, hi)
        lo, hi = f"lo{last}", f"hi{last}"
        scopes.code(self.last.name, self.early.step.scope, lo, hi, out)
        out.put(f"{self.early.count} = 0")
        out.open(f"if {hi} > {lo}:")
        self.early.fill(lo, hi)
        out.close()
        out.put(f"p{last} = 0")
        out.close()
        closed = out.depth
        out.open(f"while p{last} < {self.early.count}:")
        out.put(f"g{last} = p{last}", f"p{last} += 1", f"q{last} = {self.early.members}[g{last}]")
        to.bind(self.last.name, last)
        self._between()
        out.depth = closed

    def _between(self) -> None:
        """Write the loop over the events that fit between the bound ones."""
        to, out, number = self.to, self.to.out, self.number - 1
        lo, hi = to.make.fresh(), to.make.fresh()
        to.scopes.code(self.middle.name, self.between.step.scope, lo, hi, out)
        out.put(f"if {hi} <= {lo}:", "    continue")
        self.between.keep(self.between.count)
        out.put("if resume != 0:", f"    p{number} = {self._place(f'g{number}')}")
        out.open("else:")
        out.put(f"{self.between.count} = 0")
        self.between.fill(lo, hi)
        out.put(f"p{number} = 0")
        out.close()
        out.open(f"while p{number} < {self.between.count}:")
        out.put(f"g{number} = p{number}", f"p{number} += 1", f"q{number} = {self.between.members}[g{number}]")
        to.make.singles[self.middle.name] = f"q{number}"
        to.scopes.bind(self.middle.name, f"q{number}", f"q{number}")
        to.enter(self.last, self.number)

    def _count(self, lo: str, hi: str) -> None:
        """Count the evaluations of the last step: its scopes for all events of the preceding step that pass."""
        to, name = self.to, self.middle.name

        def scope(position: str, passed: str) -> list[str]:
            scopes, first, last = to.scopes.among(frozenset(to.scopes.first)), to.make.fresh(), to.make.fresh()
            scopes.bind(name, position, position)
            inner = type(to.out)()
            inner.depth = 0
            scopes.counted(self.last.name, self.last.scope, first, last, inner)
            return [*inner.lines, f"E += max({last} - {first}, 0) * ({passed})"]

        self.passing.each(lo, hi, scope)

    def _place(self, local: str) -> str:
        """The place where a local is saved while the output is emptied."""
        place = self.to.slots.state()
        self.to.places.append((place, local))
        return place
