"""What the event-order automata of a branch share: routing, buffers, scopes, instances (docs/automata.md)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from chainlake.cep.automata.meter import Meter
from chainlake.cep.automata.scalar import Bound, Conditions
from chainlake.cep.conditions.evaluate import Candidates
from chainlake.cep.events.clock import MOST_TICKS
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.plan.steps import Scope

#: Before and after every ts.
NEVER, ALWAYS = -MOST_TICKS, MOST_TICKS


class Buffer:
    """The events stored for one name, in time order.

    Args:
        ts: ts of every row of the run.
        meter: counts what is created and dropped.
    """

    def __init__(self, ts: list[int], meter: Meter) -> None:
        self._ts, self._meter = ts, meter
        self._rows: list[int] = []
        self._times: list[int] = []
        self._head = 0

    def store(self, row: int) -> None:
        """Append an event, which is not earlier than the others."""
        self._rows.append(row)
        self._times.append(self._ts[row])
        self._meter.stored(row)

    def drop_before(self, ts: int) -> None:
        """Forget events earlier than ``ts``."""
        head = bisect_left(self._times, ts, self._head)
        for row in self._rows[self._head : head]:
            self._meter.dropped(row)
        self._head = head
        if head > len(self._rows) // 2:
            del self._rows[:head], self._times[:head]
            self._head = 0

    def between(self, low: int, high: int) -> list[int]:
        """The rows with ts in the closed range."""
        first = bisect_left(self._times, low, self._head)
        return self._rows[first : bisect_right(self._times, high, first)]


@dataclass
class Instance:
    """An automaton instance: a match buffer and its position in the automaton.

    Args:
        stage: number of the step that binds next (0 for the initial instance).
        bound: the match buffer: name to row, or to the rows of a set.
        rows: all bound rows.
        start: smallest bound ts.
        end: largest bound ts.
        members: rows that a set of the next step may have.
        low: smallest ts of events for the next step.
        high: largest ts of events for the next step.
    """

    stage: int = 0
    bound: Bound = field(default_factory=dict)
    rows: tuple[int, ...] = ()
    start: int = ALWAYS
    end: int = NEVER
    members: list[int] = field(default_factory=list)
    low: int = NEVER
    high: int = ALWAYS


@dataclass
class Setting:
    """What an automaton needs to run.

    Args:
        branch: the branch.
        ts: ts of every sorted row of the run's events.
        window: in ticks.
        candidates: the events that each name accepts.
        conditions: compiles clauses.
        meter: counts costs.
        accept: called with each match.
        stored: the names that have input buffers.
        parts: the part of every sorted row, if events of different parts never meet: those of other keys, for sets.
    """

    branch: Branch
    ts: list[int]
    window: int
    candidates: dict[str, Candidates]
    conditions: Conditions
    meter: Meter
    accept: Callable[[Bound], None]
    stored: frozenset[str]
    parts: list[int] | None = None

    def __post_init__(self) -> None:
        nothing: Bound = {}
        possible = self.conditions.all_of(tuple(c for c in self.branch.clauses if not c.names), frozenset())(nothing)
        self._routes: dict[int, list[str]] = {}
        for name, candidates in self.candidates.items() if possible else ():
            for row in candidates.rows.tolist():
                self._routes.setdefault(row, []).append(name)
        self.buffers = {name: Buffer(self.ts, self.meter) for name in self.branch.types}

    def names_of(self, row: int) -> list[str]:
        """The names that the event is routed to."""
        return self._routes.get(row, [])

    def meets(self, row: int, rows: Sequence[int]) -> bool:
        """Whether an event may be in a match that already has these events."""
        return self.parts is None or not rows or self.parts[row] == self.parts[rows[0]]

    def extended(self, instance: Instance, name: str, rows: tuple[int, ...], bound: int | tuple[int, ...]) -> Instance:
        """The instance after binding ``name`` to ascending ``rows``, at the next stage."""
        return Instance(
            instance.stage + 1,
            {**instance.bound, name: bound},
            instance.rows + rows,
            min(instance.start, self.ts[rows[0]]),
            max(instance.end, self.ts[rows[-1]]),
        )

    def range_of(self, scope: Scope, instance: Instance) -> tuple[int, int]:
        """The closed range of ts that is in scope and in window (docs/automata.md#scopes)."""
        low, high = instance.end - self.window, instance.start + self.window
        for name in scope.after:
            low = max(low, self.ts[_rows(instance.bound[name])[-1]] + 1)
        for name in scope.before:
            high = min(high, self.ts[_rows(instance.bound[name])[0]] - 1)
        return low, high

    def store(self, row: int, names: Iterable[str]) -> None:
        """Put an event into the input buffer of each of ``names`` that has one."""
        for name in names:
            if name in self.stored:
                self.buffers[name].store(row)


def _rows(bound: int | tuple[int, ...]) -> tuple[int, ...]:
    return bound if isinstance(bound, tuple) else (bound,)
