"""What the three generated sources have in common: a grid of keys and times, planted cells, changing relations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from chainlake.generate.clock import Slots
from chainlake.generate.noise import below

#: Columns of a block: name → int64 array of shape (slots, keys); fractions are kept as scaled integers.
Grid = dict[str, np.ndarray]
#: Planted events: (key number, slot of the day) → the columns that the event sets.
Cells = dict[tuple[int, int], dict[str, int]]
#: A planted match: name → (key number, slot), or a list of these for a name bound to several events.
Planted = dict[str, Any]

_WINDOW_STREAM = 900
_PLANT_STREAM = 901
_CHANGE_STREAM = 902


@dataclass
class Plan:
    """What is planted into one day.

    Args:
        cells: the events that are overwritten.
        matches: pattern → the planted matches.
        changes: slots at which the relation changes, ascending, each with the number of the new relation.
        before: number of the relation at the start of the day.
    """

    cells: Cells = field(default_factory=dict)
    matches: dict[str, list[Planted]] = field(default_factory=dict)
    changes: list[tuple[int, int]] = field(default_factory=list)
    before: int = 0


class Shape(ABC):
    """A source as it is generated.

    Args:
        seed: the run's seed.
        keys: number of keys.
        full: how many of them, from the first on, have an event in every slot; patterns are planted only into these.
        patterns: number of instances of each shipped pattern planted per day.
        changes: number of changes of the planted relation per day.
    """

    source: str
    key: str
    #: Number of slots in a day of 24 hours.
    nominal: int
    #: Smallest number of keys, those in which the planted patterns and the relation lie.
    min_keys: int
    #: Number of slots around a planted match in which nothing else is planted; the match begins `lead` slots after the
    #: first of them.
    window: int
    lead: int
    #: The relations that follow each other, for the truth file.
    relations: tuple[dict[str, Any], ...]
    #: A description of the relation, for the truth file.
    relation: dict[str, Any]

    def __init__(self, seed: int, keys: int, full: int, patterns: int, changes: int) -> None:
        self.seed = seed
        self.keys = keys
        self.full = full
        self.patterns = patterns
        self.changes = changes

    @abstractmethod
    def slots(self, day: date) -> Slots:
        """The times of the local day."""

    @abstractmethod
    def key_names(self) -> list[str]:
        """The keys' names, by key number."""

    @abstractmethod
    def file_name(self, day: date) -> str:
        """The name of the day's landing file."""

    @abstractmethod
    def background(self, index: np.ndarray, keys: np.ndarray) -> Grid:
        """Values in which no shipped pattern has a match.

        Args:
            index: slot numbers since the epoch, shape (S, 1).
            keys: key numbers, shape (1, K).
        """

    @abstractmethod
    def relate(self, grid: Grid, index: np.ndarray, relation: np.ndarray, planted: np.ndarray) -> None:
        """Overwrite the response of the planted relation.

        Args:
            grid: the block, changed in place; all keys, shape (S, K).
            index: slot numbers since the epoch, shape (S, 1).
            relation: number of the relation in force at each slot, shape (S, 1).
            planted: True where a planted event lies, shape (S, K); such cells stay.
        """

    @abstractmethod
    def table(self, grid: Grid, slots: Slots, slot: np.ndarray, key: np.ndarray, names: pa.Array) -> pa.Table:
        """Rows in the form of the landing file.

        Args:
            grid: columns of shape (N,), one element per row.
            slot, key: slot of the day and key number of each row, shape (N,).
            names: the keys' names.
        """

    @abstractmethod
    def conflict(self, grid: Grid) -> Grid:
        """The same rows with different content, far from every threshold of a shipped pattern."""

    @property
    @abstractmethod
    def plants(self) -> dict[str, Callable[[int, int, int], tuple[Cells, Planted]]]:
        """Shipped pattern → a function of (index of slot 0, slot, random number) that plants one match."""

    def plan(self, slots: Slots) -> Plan:
        """What is planted into the day of `slots`, which depends only on the seed and the day."""
        plan = Plan()
        self._plan_patterns(slots, plan)
        count = self.changes
        ordinal = slots.day.toordinal()
        plan.before = (ordinal * count - 1) % len(self.relations) if count else 0
        for number in range(count):
            step = len(slots) // count
            jitter = int(below(max(step // 2, 1), self.seed, _CHANGE_STREAM, ordinal, number))
            plan.changes.append((number * step + step // 4 + jitter, (ordinal * count + number) % len(self.relations)))
        return plan

    def _plan_patterns(self, slots: Slots, plan: Plan) -> None:
        ordinal = slots.day.toordinal()
        windows = len(slots) // self.window
        order = np.argsort(below(1 << 31, self.seed, _WINDOW_STREAM, ordinal, np.arange(windows)), kind="stable")
        place = 0
        for pattern, plant in self.plants.items() if self.patterns else ():
            plan.matches[pattern] = []
            for _ in range(self.patterns):
                slot = int(order[place]) * self.window + self.lead
                number = int(below(1 << 31, self.seed, _PLANT_STREAM, ordinal, place))
                cells, match = plant(int(slots.index[0]), slot, number)
                plan.cells.update(cells)
                plan.matches[pattern].append(match)
                place += 1

    def most_patterns(self) -> int:
        """The largest number of instances of each pattern that fits into any day, even one of 23 hours."""
        return (self.nominal - self.nominal // 24) // self.window // len(self.plants)

    def block(self, slots: Slots, plan: Plan, lo: int, hi: int) -> Grid:
        """All cells of the slots `[lo, hi)`: background, planted events, relation. Columns of shape (hi - lo, keys)."""
        index = slots.index[lo:hi, None]
        keys = np.arange(self.keys, dtype=np.int64)[None, :]
        shape = (hi - lo, self.keys)
        grid = {name: np.array(np.broadcast_to(values, shape)) for name, values in self.background(index, keys).items()}
        planted = np.zeros(shape, dtype=bool)
        for (key, slot), columns in plan.cells.items():
            if lo <= slot < hi:
                planted[slot - lo, key] = True
                for name, value in columns.items():
                    grid[name][slot - lo, key] = value
        relation = np.full((hi - lo, 1), plan.before, dtype=np.int64)
        for slot, number in plan.changes:
            relation[max(slot - lo, 0) :] = number
        self.relate(grid, index, relation, planted)
        return grid
