"""The step that wants only the first or the last event that passes: it is searched for, without a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from chainlake.cep.plan.steps import Step
from chainlake.cep.search.compiled.lists.jumps import Jump
from chainlake.cep.search.compiled.lists.kernel_context import KernelContext
from chainlake.cep.search.compiled.text.code import Writer


class Choice(Protocol):
    """The choice among matches."""

    @property
    def backward(self) -> bool:
        """Whether the last event is the best one."""

    def note_dead_end(self, number: int, count: str) -> None:
        """Write statements that remember an event before which no event fits."""

    def prune(self, name: str, in_order: bool) -> None:
        """Write statements that skip an event with which no match is better than the best one."""


class Nearest:
    """Writes the search of the last step.

    Args:
        to: the kernel's generator.
        step: the step.
        number: its number.
        jump: the comparison by which candidates are skipped, or None.
        best: the choice among matches.
    """

    def __init__(self, to: KernelContext, step: Step, number: int, jump: Jump | None, best: Choice) -> None:
        self.to, self.step, self.number, self.jump, self.best = to, step, number, jump, best

    def write(self, apart: Sequence[str]) -> None:
        """Write the loop, which begins at the best event in scope, and what follows for an event that passes.

        Args:
            apart: locals with positions that the event must differ from.
        """
        to, out, number, name = self.to, self.to.out, self.number, self.step.name
        p, q, lo, hi, passed = (f"{letter}{number}" for letter in ("p", "q", "lo", "hi", "m"))
        back, make, closed = self.best.backward, to.make, out.depth
        make.singles[name] = q
        to.scopes.bind(name, q, q)
        prelude, first, tests = Writer(), Writer(), Writer()
        prelude.depth, first.depth, tests.depth = closed, closed + 1, closed + 1
        make.loop_over(name, prelude)
        if self.jump is not None:
            jumps = self.jump.table(make, backward=back)
            first.put(f"if not {make.clause(self.jump.clause, first)}:", f"    {p} = {jumps}[{q}]", "    continue")
        for clause in self.step.clauses:
            if self.jump is None or clause is not self.jump.clause:
                tests.put(f"if not {make.clause(clause, tests)}:", "    continue")
        make.loop_over(None, Writer())
        out.lines += prelude.lines
        out.put(f"{passed} = 0", f"{p} = {hi} - 1" if back else f"{p} = {lo}")
        out.open(f"while {p} >= {lo}:" if back else f"while {p} < {hi}:")
        out.put(f"{q} = {p}", "T += 1")
        out.lines += first.lines
        out.put(f"{p} -= 1" if back else f"{p} += 1")
        out.lines += tests.lines
        out.put(*(line for test in to.useful(name, q) for line in (f"if not {test}:", "    continue")))
        out.put(f"{passed} = 1")
        out.put(*(line for x in apart for line in (f"if {q} == {x}:", "    continue")))
        self.best.prune(name, in_order=True)
        to.forget_lists(number)
        to.enter(self.step, number)
        out.put("break")
        out.depth = closed
        self.best.note_dead_end(number, passed)
