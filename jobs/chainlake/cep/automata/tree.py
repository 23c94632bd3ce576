"""The tree automaton: at each step, each instance chooses the name with the fewest events.

The rule is in docs/automata.md#tree. Used events are kept as one row number per name: rows arrive in ascending order,
a choice uses *all* available events, and the scope of a child lies within its parent's, so the used events in scope are
exactly those up to the last row that had arrived when the name was chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from chainlake.cep.automata.automaton import NEVER, Instance, Setting
from chainlake.cep.automata.scalar import Bound
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.plan.steps import routing, scope_of

#: The names bound so far, in order: a state of the tree.
Selection = tuple[str, ...]


@dataclass(frozen=True)
class State:
    """A state of the tree: built when an instance first reaches it, freed when the last one has left.

    Args:
        unbound: the names that can be chosen, in pattern order.
        followed: the unbound names that a bound name follows, so that their events can no longer arrive.
        joined: the unbound names that share a clause with a bound name.
        tests: for each name, the conditions of the edge that takes it.
    """

    unbound: tuple[str, ...]
    followed: frozenset[str]
    joined: frozenset[str]
    tests: dict[str, tuple[Callable[[Bound], bool], ...]]


@dataclass
class Node:
    """An instance in the tree.

    Args:
        order: its state.
        at: its match buffer.
        used: for each name, the last row that the instance has tried for it.
        ranges: for each name, the closed range of ts in scope and in window.
    """

    order: Selection
    at: Instance
    used: dict[str, int]
    ranges: dict[str, tuple[int, int]]


def unfit(branch: Branch) -> str | None:
    """Why a branch has no tree, or None."""
    if branch.kleene:
        return "a repeated event: ad hoc selectivity is defined for single events only"
    if branch.negated:
        return "NOT: ad hoc selectivity is defined without negation only"
    return None


class Tree:
    """The tree of one branch without Kleene and NOT.

    Args:
        setting: branch, events, counters.
    """

    def __init__(self, setting: Setting) -> None:
        self._in, self._meter, self._ts = setting, setting.meter, setting.ts
        #: live instances per state, including the root
        self.states: Counter[Selection] = Counter({(): 1})
        self._meter.state_made()
        self._known: dict[Selection, State] = {}
        routed = {clause for clauses in routing(setting.branch).values() for clause in clauses}
        self._tests = [
            (c.names, setting.conditions.all_of((c,), frozenset()))
            for c in setting.branch.clauses
            if c.names and c not in routed
        ]
        self._last = -1
        self._now = NEVER
        self._root = Node((), Instance(), dict.fromkeys(setting.branch.positive, -1), {})
        self._ranges(self._root)
        self._live: list[Node] = []

    def arrive(self, row: int) -> None:
        """Process one event; events come in the order of their rows."""
        self._now, self._last = self._ts[row], row
        kept = []
        for node in self._live:
            if self._now > node.at.start + self._in.window:
                self._end(node)
            else:
                kept.append(node)
        self._live = kept
        self._trim()
        names = self._in.names_of(row)
        self._in.store(row, names)
        live, self._live = self._live, []
        survivors = []
        for node in live:
            if self._concerns(node, names) and not self._step(node):
                self._end(node)
            else:
                survivors.append(node)
        if names:
            self._step(self._root)
        self._live = survivors + self._live

    def finish(self) -> None:
        """The end of the data: nothing waits for it."""

    def _concerns(self, node: Node, names: list[str]) -> bool:
        return any(name in node.ranges and node.ranges[name][0] <= self._now <= node.ranges[name][1] for name in names)

    def _trim(self) -> None:
        """Forget events in no instance's window; the root needs the last window before now."""
        oldest = min([self._now, *(node.at.end for node in self._live)]) - self._in.window
        for buffer in self._in.buffers.values():
            buffer.drop_before(oldest)

    def _step(self, node: Node) -> bool:
        """Choose a name and try its events, if every name has some; False if the instance can never continue."""
        state = self._state(node.order)
        counts, available = {}, {}
        for name in state.unbound:
            rows = [r for r in self._in.buffers[name].between(*self._window(node, name)) if r not in node.at.rows]
            counts[name] = len(rows)
            available[name] = [r for r in rows if r > node.used[name]]
        if not all(available.values()):
            return all(available[name] for name in state.followed)
        chosen = min(state.unbound, key=lambda name: (counts[name], name not in state.joined))
        node.used[chosen] = self._last
        for row in available[chosen]:
            self._meter.costs.evaluations += 1
            at = self._in.extended(node.at, chosen, (row,), row)
            if not all(test(at.bound) for test in state.tests[chosen]):
                continue
            if at.stage == len(self._in.branch.positive):
                self._in.accept(at.bound)
            else:
                self._begin(Node((*node.order, chosen), at, dict(node.used), {}))
        return chosen not in state.followed

    def _begin(self, node: Node) -> None:
        self._ranges(node)
        self._meter.born(node.at.rows)
        if node.order not in self.states:
            self._meter.state_made()
        self.states[node.order] += 1
        if self._step(node):
            self._live.append(node)
        else:
            self._end(node)

    def _end(self, node: Node) -> None:
        self._meter.died(node.at.rows)
        self.states[node.order] -= 1
        if not self.states[node.order]:
            self._meter.state_freed()
            del self.states[node.order]
            del self._known[node.order]

    def _window(self, node: Node, name: str) -> tuple[int, int]:
        if node is self._root:
            return self._now - self._in.window, self._now
        return node.ranges[name]

    def _ranges(self, node: Node) -> None:
        for name in self._state(node.order).unbound:
            scope = scope_of(self._in.branch, name, node.order)
            node.ranges[name] = self._in.range_of(scope, node.at)

    def _state(self, order: Selection) -> State:
        if order not in self._known:
            branch, bound = self._in.branch, set(order)
            unbound = tuple(name for name in branch.positive if name not in bound)
            self._known[order] = State(
                unbound,
                frozenset(name for name in unbound if branch.after[name] & bound),
                frozenset(name for name in unbound if any(name in names and names & bound for names, _ in self._tests)),
                {
                    name: tuple(test for names, test in self._tests if name in names and names <= bound | {name})
                    for name in unbound
                },
            )
        return self._known[order]
