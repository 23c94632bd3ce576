"""Steps whose passing candidates are first listed and then bound.

A list is filled without a branch per candidate: each candidate is written, and the end of the list moves on if it
passes. If a tenth or a half of the candidates pass, a processor mispredicts such branches so often that they cost more
than all tests. A list can also outlive the event bound last, if its conditions look only at earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chainlake.cep.plan.steps import Step
from chainlake.cep.search.compiled.lists.kernel_context import KernelContext
from chainlake.cep.search.compiled.text.code import Writer


class Listed:
    """Writes the list of a step.

    Args:
        to: the kernel's generator; its ``lists`` say to which earlier step's event the list belongs.
        step: the step.
        number: its number.
        in_order: whether candidates are tested one after another, whatever ``skips`` say.
    """

    def __init__(self, to: KernelContext, step: Step, number: int, *, in_order: bool = False) -> None:
        self.to, self.step, self.number = to, step, number
        self.skip = None if in_order else to.skips.get(number)
        #: whether the list is made again for each binding of the preceding step
        self.fresh = to.lists[number] == number - 1
        self.made, self.count = f"v{number}", f"m{number}"
        name = step.name
        self.members = to.slots.array("j", lambda scan: np.empty(len(scan.candidates[name]), np.int32), ("list", name))

    def write(self) -> None:
        """Write the making of the list, if there is none yet."""
        if self.fresh:
            self.keep(self.count)
            self.to.out.put(f"{self.count} = 0")
            self.fill(f"lo{self.number}", f"hi{self.number}")
            self._skip_if_nothing_follows()
        elif self.number not in self.to.ahead:
            self._fill_once()

    def open_loop(self, lo: str, hi: str) -> None:
        """Open the loop over the members of the list that are in scope."""
        q, out = f"q{self.number}", self.to.out
        out.open(f"while p{self.number} < {self.count}:")
        g, p = f"g{self.number}", f"p{self.number}"
        at = f"{self.count} - 1 - {g}" if self.to.backward else g
        out.put(f"{g} = {p}", f"{p} += 1", f"{q} = {self.members}[{at}]")
        if not self.fresh:
            out.put(f"if not ({q} >= {lo}) & ({q} < {hi}):", "    continue")

    def keep(self, *values: str) -> None:
        """Save locals while the output is emptied."""
        for value in values:
            place = self.to.slots.state()
            self.to.places.append((place, value))
            self.to.kept.append(f"{value} = {place}")

    def _fill_once(self) -> None:
        """Make a list that belongs to an earlier event, with the scope that the names up to that event give."""
        to, out, step, number = self.to, self.to.out, self.step, self.number
        self.keep(self.made, self.count)
        bound = frozenset(to.plan.order[: to.lists[number] + 1])
        lo, hi = f"first{number}", f"last{number}"
        out.open(f"if {self.made} == 0:")
        to.scopes.among(bound).code(step.name, step.scope.among(bound), lo, hi, out)
        out.put(f"{self.count} = 0", f"{self.made} = 1")
        out.open(f"if {hi} > {lo}:")
        self.fill(lo, hi)
        out.close(2)

    def fill(self, lo: str, hi: str) -> None:
        """Add those of the candidates from ``lo`` to ``hi`` that pass to the empty list."""
        self.each(lo, hi, lambda q, passed: [f"{self.members}[{self.count}] = {q}", f"{self.count} += {passed}"])

    def each(self, lo: str, hi: str, statements: Callable[[str, str], list[str]]) -> None:
        """Write a loop over the candidates from ``lo`` to ``hi``.

        Args:
            lo, hi: locals with positions.
            statements: gives what is done with a candidate, from the local with its position and an expression that is
                1 or true if it passes. If no test needs a branch per candidate, there is none.
        """
        out, number, skip = self.to.out, self.number, self.skip
        p, q, b = (f"{letter}{number}" for letter in ("p", "q", "b"))
        if skip:
            shift = skip.shift_in(self.to.slots)
            out.put(f"{b} = {lo} >> {shift}", f"{p} = {b} << {shift}")
        else:
            out.put(f"{p} = {lo}", f"T += {hi} - {lo}")
        closed = out.depth
        tests = self._open_pass(lo, hi)
        if any(needed for needed, _ in tests):
            for needed, test in tests:
                out.lines += needed
                out.put(f"if not {test}:", "    continue")
            out.put(*statements(q, "1"))
        else:
            out.put(*statements(q, " & ".join(f"({test})" for _, test in tests) or "1"))
        if skip:
            out.depth = closed + 1
            out.put(f"{b} += 1", f"{p} = {b} << {shift}")
        out.depth = closed

    def _open_pass(self, lo: str, hi: str) -> list[tuple[list[str], str]]:
        """Open the loop over candidates; returns the tests: statements, and an expression without side effects."""
        to, out, name, skip = self.to, self.to.out, self.step.name, self.skip
        p, q, make = f"p{self.number}", f"q{self.number}", self.to.make
        make.singles[name] = q
        prelude = Writer()
        prelude.depth = out.depth
        make.loop_over(name, prelude)
        tests: list[tuple[list[str], str]] = []
        value, valid = "", None
        if skip:
            bound = make.value(skip.bound, Writer())
            value, valid = bound.text, bound.valid
            tests.append(([], f"({q} >= {lo}) & ({q} < {hi})"))
        for clause in self.step.clauses:
            if skip is None or clause is not skip.clause:
                body = Writer()
                body.depth = out.depth + (2 if skip else 1)
                test = make.clause(clause, body)
                tests.append((body.lines, test))
        tests += [([], test) for test in to.useful(name, q)]
        make.loop_over(None, Writer())
        out.lines += prelude.lines
        if valid is not None:
            # If nothing can pass, the loop ends before its first block.
            out.put(f"if not {valid}:", f"    b{self.number} = {hi}")
        if skip:
            skip.open_loop(make, out, self.number, hi, to.size(name), value)
        else:
            out.open(f"while {p} < {hi}:")
            out.put(f"{q} = {p}", f"{p} += 1")
        return tests

    def _skip_if_nothing_follows(self) -> None:
        """If the next step's list is empty whatever is bound here, only count its evaluations."""
        to, out, number = self.to, self.to.out, self.number
        if to.lists.get(number + 1, number) >= number or self.step.forbidden:
            return
        following = to.plan.steps[number + 1]
        if self.step.scope.apart_from or following.scope.apart_from:
            return
        after = Listed(to, following, number + 1)
        to.ahead.add(number + 1)
        p, q, lo, hi = (to.make.fresh() for _ in range(4))
        out.open(f"if {self.count} > 0:")
        after._fill_once()
        del to.make.singles[following.name]
        out.open(f"if {after.count} == 0:")
        out.put(f"{p} = 0")
        out.open(f"while {p} < {self.count}:")
        out.put(f"{q} = {self.members}[{p}]", f"{p} += 1")
        scopes = to.scopes.among(frozenset(to.scopes.first))
        scopes.bind(self.step.name, q, q)
        scopes.counted(following.name, following.scope, lo, hi, out)
        out.put(f"E += max({hi} - {lo}, 0)")
        out.close()
        out.put(f"{self.count} = 0")
        out.close(2)
