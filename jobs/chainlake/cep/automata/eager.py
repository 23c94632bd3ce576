"""The eager automaton of a partial order: each event is bound when it arrives, so there is a state per set of names.

For a sequence, it is the lazy chain in the order of the sequence, which ``chainlake.cep.automata.simulate`` runs
instead. This one is for AND, where no single order will do: 2^n states, n * 2^(n-1) take edges.
"""

from __future__ import annotations

from collections.abc import Callable

from chainlake.cep.automata.automaton import Instance, Setting
from chainlake.cep.automata.scalar import Bound
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.plan.steps import routing, scope_of


def is_sequence(branch: Branch) -> bool:
    """Whether ≺ orders all positive names."""
    return all(one in branch.before[other] for one, other in zip(branch.positive, branch.positive[1:], strict=False))


def unfit(branch: Branch) -> str | None:
    """Why a branch has no eager automaton, or None."""
    if is_sequence(branch):
        single_after_set = any(
            one in branch.kleene and other not in branch.kleene
            for one, other in zip(branch.positive, branch.positive[1:], strict=False)
        )
        return "a repeated event before a single one: sets are bound last" if single_after_set else None
    if branch.kleene or branch.negated:
        return "AND with a repeated or forbidden event"
    return None


class Eager:
    """The eager automaton of one branch without Kleene and NOT.

    Args:
        setting: branch, events, counters.
    """

    def __init__(self, setting: Setting) -> None:
        self._in, self._meter, self._ts = setting, setting.meter, setting.ts
        routed = {clause for clauses in routing(setting.branch).values() for clause in clauses}
        self._clauses = [c for c in setting.branch.clauses if c.names and c not in routed]
        self._tests: dict[tuple[frozenset[str], str], Callable[[Bound], bool]] = {}
        self._root = Instance()
        self._live: list[Instance] = []

    def arrive(self, row: int) -> None:
        """Process one event; events come in the order of their rows."""
        now, kept = self._ts[row], []
        for instance in self._live:
            if now > instance.start + self._in.window:
                self._meter.died(instance.rows)
            else:
                kept.append(instance)
        self._live = kept
        names = self._in.names_of(row)
        for instance in (self._root, *kept):  # instances born below do not see the event again
            for name in names:
                self._take(instance, name, row)

    def finish(self) -> None:
        """The end of the data: nothing waits for it."""

    def _take(self, instance: Instance, name: str, row: int) -> None:
        branch, bound = self._in.branch, instance.bound
        if name in bound or not all(n in bound for n in branch.before[name]):
            return
        low, high = self._in.range_of(scope_of(branch, name, tuple(bound)), instance)
        if not low <= self._ts[row] <= high:
            return
        self._meter.costs.evaluations += 1
        extended = self._in.extended(instance, name, (row,), row)
        if not self._test(frozenset(bound), name)(extended.bound):
            return
        if extended.stage == len(branch.positive):
            self._in.accept(extended.bound)
        else:
            self._meter.born(extended.rows)
            self._live.append(extended)

    def _test(self, bound: frozenset[str], name: str) -> Callable[[Bound], bool]:
        """The clauses of the edge that takes ``name`` when ``bound`` are bound."""
        if (bound, name) not in self._tests:
            ready = tuple(c for c in self._clauses if name in c.names and c.names <= bound | {name})
            self._tests[bound, name] = self._in.conditions.all_of(ready, frozenset())
        return self._tests[bound, name]
