"""The lazy chain automaton in event order, with all operators (docs/automata.md#the-run).

A negated name is tested in one of two ways (docs/automata.md#negation). *First chance* tests it as soon as everything
it depends on is bound, *post-processing* once all positive names are, the most frequent negated name first. If
forbidden events may still arrive, the instance searches the buffer, then listens until the window of its binding has
passed, and continues only if none came. So with first chance, it makes exactly the evaluations of the batch run, which
knows all events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

from chainlake.cep.automata.automaton import ALWAYS, NEVER, Instance, Setting
from chainlake.cep.automata.scalar import Bound
from chainlake.cep.errors import TooManyMembers
from chainlake.cep.plan.sizes import most_usable
from chainlake.cep.plan.steps import Forbidden, Plan


@dataclass
class Waiting:
    """An instance that waits for a forbidden event.

    Args:
        instance: the instance.
        tests: the tests that it must still pass; it waits in the first one.
        range: closed range of ts in which a forbidden event rejects.
    """

    instance: Instance
    tests: tuple[Forbidden, ...]
    range: tuple[int, int]


class Chain:
    """The chain of one branch.

    Args:
        setting: branch, events, counters.
        plan: the branch's plan; its order is the chain's.
        post: whether negation is by post-processing, not at the first chance.
        members: largest number of events whose subsets are all enumerated.
    """

    def __init__(self, setting: Setting, plan: Plan, *, post: bool, members: int) -> None:
        self._in, self._steps, self._most = setting, plan.steps, members
        branch, conditions = setting.branch, setting.conditions
        self._meter, self._costs, self._ts = setting.meter, setting.meter.costs, setting.ts
        kleene = branch.kleene
        self._member_tests = [conditions.all_of(step.member_clauses, kleene - {step.name}) for step in plan.steps]
        self._tests = [conditions.all_of(step.clauses, kleene) for step in plan.steps]
        every = {forbidden.name: forbidden for step in plan.steps for forbidden in step.forbidden}
        self._hits: dict[str, Callable[[Bound], bool]] = {
            name: conditions.all_of(forbidden.clauses, kleene) for name, forbidden in every.items()
        }
        self._forbidden = [step.forbidden for step in plan.steps]
        if post:
            frequent = sorted(every.values(), key=lambda forbidden: -len(setting.candidates[forbidden.name]))
            self._forbidden = [*[()] * (len(plan.steps) - 1), tuple(frequent)]
        self._open_right = {name for name in every if branch.open_right(name)}
        self._now = NEVER
        self._root = Instance()
        self._live: list[Instance] = []
        self._waiting: list[Waiting] = []

    def arrive(self, row: int) -> None:
        """Process one event; events come in the order of their rows."""
        self._now = self._ts[row]
        self._expire()
        self._trim()
        names = self._in.names_of(row)
        self._in.store(row, names)
        live, waiting = list(self._live), list(self._waiting)  # instances born below must not see the event again
        if self._steps[0].name in names:
            self._offer(self._root, row)
        for instance in live:
            if self._steps[instance.stage].name in names and instance.low <= self._now <= instance.high:
                self._offer(instance, row)
        for entry in waiting:
            if entry.tests[0].name in names and entry.range[0] <= self._now <= entry.range[1]:
                if self._rejects(entry.instance, entry.tests[0], row):
                    self._waiting.remove(entry)
                    self._meter.died(entry.instance.rows)

    def finish(self) -> None:
        """The end of the data: nothing can arrive any more."""
        self._now = ALWAYS
        self._expire()

    def _expired(self, instance: Instance) -> bool:
        return self._now > instance.start + self._in.window

    def _expire(self) -> None:
        """End instances whose window has passed; those that waited for a forbidden event continue."""
        kept = []
        for instance in self._live:
            if self._expired(instance):
                self._meter.died((*instance.rows, *instance.members))
            else:
                kept.append(instance)
        self._live = kept
        passed = [entry for entry in self._waiting if self._expired(entry.instance)]
        self._waiting = [entry for entry in self._waiting if not self._expired(entry.instance)]
        for entry in passed:
            self._meter.died(entry.instance.rows)
            self._reach(entry.instance, entry.tests[1:])

    def _trim(self) -> None:
        """Forget events older than a window, except those that waiting instances may need when they continue."""
        bounds = dict.fromkeys(self._in.buffers, self._now - self._in.window)
        for entry in self._waiting:
            later = {forbidden.name for forbidden in entry.tests[1:]}
            for step, forbidden in zip(
                self._steps[entry.instance.stage :], self._forbidden[entry.instance.stage :], strict=True
            ):
                later |= {step.name, *(f.name for f in forbidden)}
            for name in later:
                bounds[name] = min(bounds[name], entry.instance.end - self._in.window)
        for name, buffer in self._in.buffers.items():
            buffer.drop_before(bounds[name])

    def _offer(self, instance: Instance, row: int) -> None:
        """Try the event on the instance's edge: one binding, or all sets that it makes with earlier members."""
        if not self._in.meets(row, instance.rows):
            return
        step = self._steps[instance.stage]
        if step.kleene:
            self._iterate(instance, row)
            return
        self._evaluate(instance, self._in.extended(instance, step.name, (row,), row))

    def _iterate(self, instance: Instance, row: int) -> None:
        step = self._steps[instance.stage]
        if step.member_clauses:
            self._costs.evaluations_pre += 1
            if not self._member_tests[instance.stage]({**instance.bound, step.name: row}):
                return
        oldest = self._ts[row] - self._in.window
        recent = [member for member in instance.members if self._ts[member] >= oldest]
        others = [member for member in recent if self._in.meets(row, (member,))]
        most = most_usable(step.size, self._most)
        if len(others) >= most:
            raise TooManyMembers.in_event_order(len(others) + 1, step.name, most)
        largest = len(others) if step.size.most is None else min(len(others), step.size.most - 1)
        for size in range(step.size.least - 1, largest + 1):
            for chosen in combinations(others, size):
                rows = (*chosen, row)
                self._evaluate(instance, self._in.extended(instance, step.name, rows, rows))
        if instance is self._root:
            instance.members = [*recent, row]  # it never ends, so it keeps only one window
        else:
            instance.members.append(row)
            self._meter.kept(row)

    def _evaluate(self, instance: Instance, extended: Instance) -> None:
        """One edge-condition evaluation."""
        self._costs.evaluations += 1
        if self._tests[instance.stage](extended.bound):
            self._reach(extended, self._forbidden[instance.stage])

    def _reach(self, instance: Instance, tests: tuple[Forbidden, ...]) -> None:
        """Pass the negation tests of the state just reached, or wait in one of them; then continue."""
        for number, test in enumerate(tests):
            low, high = self._in.range_of(test.scope.among(instance.bound), instance)
            for row in self._in.buffers[test.name].between(low, high):
                if self._rejects(instance, test, row):
                    return
            if test.name in self._open_right and not self._expired(instance):
                self._meter.born(instance.rows)
                self._waiting.append(Waiting(instance, tests[number:], (low, high)))
                return
        if instance.stage == len(self._steps):
            self._in.accept(instance.bound)
        else:
            self._enter(instance)

    def _rejects(self, instance: Instance, test: Forbidden, row: int) -> bool:
        """Test one negated name's event; an event of the binding itself never rejects."""
        if row in instance.rows or not self._in.meets(row, instance.rows):
            return False
        self._costs.evaluations_neg += 1
        return self._hits[test.name]({**instance.bound, test.name: row})

    def _enter(self, instance: Instance) -> None:
        """Search the buffer for the next name, then stay for the stream if such events can still arrive."""
        step = self._steps[instance.stage]
        self._meter.born(instance.rows)
        instance.low, instance.high = self._in.range_of(step.scope, instance)
        for row in self._in.buffers[step.name].between(instance.low, instance.high):
            if row not in instance.rows:
                self._offer(instance, row)
        if not step.scope.before and not self._expired(instance):
            self._live.append(instance)
        else:
            self._meter.died((*instance.rows, *instance.members))
