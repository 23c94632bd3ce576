"""The states and edges of a branch's chain as data, which ``explain`` shows (docs/automata.md#the-chain)."""

from __future__ import annotations

from dataclasses import dataclass

from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.plan.steps import Forbidden, Plan, Scope


@dataclass(frozen=True)
class Test:
    """A negated name tested when a state is reached.

    Args:
        name: the negated name.
        after: nearest positive names before it; if empty, its interval begins a window before the last bound event.
        before: nearest positive names after it; if empty, its interval ends a window after the first bound event.
        clauses: its conditions with other names.
        waits: whether such events may still arrive when the state is reached.
    """

    name: str
    after: tuple[str, ...]
    before: tuple[str, ...]
    clauses: tuple[Clause, ...]
    waits: bool


@dataclass(frozen=True)
class State:
    """A state of the chain, with the edges that leave it.

    Args:
        number: 1, 2, …; the take edge leads to the next state, the last one's to F.
        name: the name that its take edge binds.
        kleene: whether that edge binds sets (iterate).
        after: nearest bound names before the name; empty for start.
        before: nearest bound names after the name; empty for finish.
        store: names whose events go into the input buffer for later.
        ignore: names whose events no longer matter; the name itself is among them, since the instance stays.
        clauses: conditions of the take edge.
        member_clauses: for a set, the conditions that each event must pass before sets are made.
        tests: negated names tested once the name is bound.
    """

    number: int
    name: str
    kleene: bool
    after: tuple[str, ...]
    before: tuple[str, ...]
    store: tuple[str, ...]
    ignore: tuple[str, ...]
    clauses: tuple[Clause, ...]
    member_clauses: tuple[Clause, ...]
    tests: tuple[Test, ...]

    @property
    def from_stream(self) -> bool:
        """Whether events of the name can still arrive; if not, the input buffer holds all of them."""
        return not self.before


def states_of(plan: Plan) -> tuple[State, ...]:
    """The states of a plan's chain, except F."""
    branch, order = plan.branch, plan.order
    found = []
    for number, step in enumerate(plan.steps):
        after, before = _nearest(branch, step.scope)
        found.append(
            State(
                number=number + 1,
                name=step.name,
                kleene=step.kleene,
                after=after,
                before=before,
                store=(*order[number + 1 :], *branch.negated),
                ignore=order[: number + 1],
                clauses=step.clauses,
                member_clauses=step.member_clauses,
                tests=tuple(_test(branch, forbidden) for forbidden in step.forbidden),
            )
        )
    return tuple(found)


def _test(branch: Branch, forbidden: Forbidden) -> Test:
    after, before = _nearest(branch, forbidden.scope)
    return Test(forbidden.name, after, before, forbidden.clauses, branch.open_right(forbidden.name))


def _nearest(branch: Branch, scope: Scope) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The bound names next to a name; bound events already keep ≺, so only these can be the tightest limits."""
    after = tuple(n for n in scope.after if not branch.after[n] & set(scope.after))
    before = tuple(n for n in scope.before if not branch.before[n] & set(scope.before))
    return after, before
