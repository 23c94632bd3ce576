"""Steps whose passing candidates are listed first and bound then.

A list is filled without a jump per candidate: each is written, and the end of the list moves on if it passes. Where a
tenth or a half of the candidates pass, a processor guesses such jumps wrongly so often that they cost more than all
tests. A list can also outlive the event bound last, if its conditions look at earlier ones only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jobs.cep.compiled.expressions import Test
from jobs.cep.plan import Step

if TYPE_CHECKING:
    from jobs.cep.compiled.generate import Generator


class Listed:
    """Writes the list of a step.

    Args:
        to: the kernel's generator; its ``lists`` say to which earlier step's event the list belongs.
        step: the step.
        number: its number.
    """

    def __init__(self, to: Generator, step: Step, number: int) -> None:
        self.to, self.step, self.number = to, step, number
        #: whether the list is made anew for each binding of the step before
        self.fresh = to.lists[number] == number - 1
        self.made, self.count = f"v{number}", f"m{number}"
        candidates = to.candidates[step.name]
        # One more than all: what does not pass is written behind those that do.
        self.members = to.slots.later("j", lambda: np.zeros(len(candidates) + 1, np.int32), ("list", step.name))

    def write(self) -> None:
        """Make the list, if there is none yet."""
        if self.fresh:
            self._keep(self.count)
            self._fill(f"lo{self.number}", f"hi{self.number}")
            self._skip_if_nothing_follows()
        elif self.number not in self.to.ahead:
            self._fill_once()

    def open_loop(self, lo: str, hi: str) -> list[Test]:
        """Open the loop over the list; gives what is left to be passed."""
        number, out = self.number, self.to.out
        out.open(f"while p{number} < {self.count}:")
        out.put(f"g{number} = p{number}", f"p{number} += 1", f"q{number} = {self.members}[g{number}]")
        return [] if self.fresh else [Test([], f"(q{number} >= {lo}) & (q{number} < {hi})")]

    def _keep(self, *values: str) -> None:
        """Keep locals while the output is emptied."""
        for value in values:
            place = self.to.slots.state()
            self.to.places.append((place, value))
            self.to.kept.append(f"{value} = {place}")

    def _fill_once(self) -> None:
        """Make a list that belongs to an earlier event, as far as the names up to that one say."""
        to, out, step, number = self.to, self.to.out, self.step, self.number
        self._keep(self.made, self.count)
        bound = frozenset(to.plan.order[: to.lists[number] + 1])
        lo, hi = f"first{number}", f"last{number}"
        out.open(f"if {self.made} == 0:")
        to.scopes.among(bound).code(step.name, step.scope.among(bound), lo, hi, out)
        out.put(f"{self.count} = 0", f"{self.made} = 1")
        out.open(f"if {hi} > {lo}:")
        self._fill(lo, hi)
        out.close(2)

    def _fill(self, lo: str, hi: str) -> None:
        to, out, number = self.to, self.to.out, self.number
        skip = to.skips.get(number)
        q = f"q{number}"
        out.put(f"{self.count} = 0")
        to.begin(number, lo, hi)
        closed = out.depth
        tests = to.scan(self.step, number, lo, hi)
        if any(test.statements for test in tests):
            for test in tests:
                out.lines += test.statements
                out.put(f"if not {test.text}:", "    continue")
            out.put(f"{self.members}[{self.count}] = {q}", f"{self.count} += 1")
        else:
            passed = " & ".join(f"({test.text})" for test in tests) or "1"
            out.put(f"{self.members}[{self.count}] = {q}", f"{self.count} += {passed}")
        if skip:
            to.next_stretch(number, closed, skip)
        out.depth = closed

    def _skip_if_nothing_follows(self) -> None:
        """Where the next step's list is empty whatever is bound here, only count its evaluations."""
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
        scopes.code(following.name, following.scope, lo, hi, out)
        out.put(f"E += max({hi} - {lo}, 0)")
        out.close()
        out.put(f"{self.count} = 0")
        out.close(2)
