"""The arrays and numbers of one kernel. The code refers to them by number, so equal plans have equal code."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import DTypeLike

from chainlake.cep.conditions.scan import Scan

#: Places in the state that a kernel and its caller share; the places of the levels follow.
STATUS, FOUND, EVALUATIONS, EVALUATIONS_NEG, EVALUATIONS_PRE, TESTS, TOO_MANY, FIRST_FREE = range(8)
#: What a kernel returns.
DONE, FULL, LIMIT = range(3)

#: Makes an array for the events of a scan. It must not depend on the events for which the code was made.
Make = Callable[[Scan], np.ndarray]
#: A table from the candidates of the first name to how many of the second name are before their ts plus a shift.
Table = tuple[str, str, int]
#: By letter, the table and the dtype.
_TABLES: dict[str, tuple[str, DTypeLike]] = {
    "f": ("F", np.float64), "i": ("I", np.int64), "b": ("B", np.bool_), "j": ("J", np.int32),
}  # fmt: skip
_NOTHING: dict[str, np.ndarray] = {letter: np.zeros(1, kind) for letter, (_, kind) in _TABLES.items()}


@dataclass
class Arguments:
    """The arguments of a kernel for the events of one scan; arrays by letter."""

    arrays: dict[str, list[np.ndarray]]
    floats: np.ndarray
    ints: np.ndarray
    state: np.ndarray

    def put(self, name: str, values: np.ndarray) -> None:
        """Set the array that the code calls ``name``."""
        letter, _, number = name.partition("_")
        self.arrays[letter][int(number)] = values

    def array(self, name: str) -> np.ndarray:
        """The array that the code calls ``name``."""
        letter, _, number = name.partition("_")
        return self.arrays[letter][int(number)]

    def set_number(self, name: str, value: int) -> None:
        """Set the whole number that the code calls ``name``."""
        self.ints[int(name.partition("_")[2])] = value


@dataclass
class _Numbers:
    """Constants: those that are known, and functions that give the others."""

    known: list[float] = field(default_factory=list)
    later: list[tuple[int, Callable[[Scan], float]]] = field(default_factory=list)

    def made(self, scan: Scan, kind: DTypeLike) -> np.ndarray:
        """All constants, for the events of a scan."""
        found: np.ndarray = np.array(self.known, kind)
        for number, make in self.later:
            found[number] = make(scan)
        return found


class Slots:
    """Arrays of float64 (``F``), int64 (``I``), bool (``B``), int32 (``J``), and constants (``kf``, ``ki``).

    Every method that adds one returns its name in the code. Equal keys get the same slot. Arrays are made only when the
    kernel is run, so that making its code is cheap, and the code serves other events.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, list[Make | None]] = {letter: [] for letter in _TABLES}
        self.float_constants, self.int_constants = _Numbers(), _Numbers()
        self.states = FIRST_FREE
        self.header: list[str] = []
        #: for each name, which attributes of its candidates are read, of those that are numbers without a mask of nulls
        self.read: dict[str, set[str]] = {}
        #: the tables of scopes: among the searched candidates, and among all
        self.tables: dict[Table, None] = {}
        self.counted: dict[Table, None] = {}
        self._named: dict[Hashable, str] = {}
        self.nan = self.number(float("nan"), "nan")

    def array(self, letter: str, make: Make | None, key: Hashable) -> str:
        """An array (f, i, b or j) that ``make`` makes when the kernel is run; without it, the runner sets it."""
        if key in self._named:
            return self._named[key]
        found = self.arrays[letter]
        found.append(make)
        return self._add(key, letter, _TABLES[letter][0], len(found) - 1)

    def reads(self, name: str, attr: str | None = None) -> None:
        """Note that a name's candidates are read, and one of their attributes: numbers without a mask of nulls."""
        self.read.setdefault(name, set()).update([] if attr is None else [attr])

    def number(self, value: float | int, key: Hashable) -> str:
        """A constant: float or int (bool counts as int); the code does not depend on its value."""
        if key in self._named:
            return self._named[key]
        return self._number(isinstance(value, float), value if isinstance(value, float) else int(value), None, key)

    def number_of(self, floating: bool, make: Callable[[Scan], float], key: Hashable) -> str:
        """A constant that ``make`` computes when the kernel is run."""
        return self._named[key] if key in self._named else self._number(floating, 0, make, key)

    def first_time(self, key: Hashable) -> bool:
        """Whether this is asked about ``key`` for the first time."""
        if key in self._named:
            return False
        self._named[key] = ""
        return True

    def state(self) -> str:
        """A place in the state, kept between calls of the kernel."""
        self.states += 1
        return f"st[{self.states - 1}]"

    def made(self, scan: Scan) -> Arguments:
        """All arrays, contiguous and of the types that the code expects, and all numbers."""
        arrays = {
            letter: [
                _NOTHING[letter] if make is None else np.ascontiguousarray(make(scan), _TABLES[letter][1])
                for make in found
            ]
            for letter, found in self.arrays.items()
        }
        return Arguments(
            arrays,
            self.float_constants.made(scan, np.float64),
            self.int_constants.made(scan, np.int64),
            np.zeros(self.states, np.int64),
        )

    def _number(self, floating: bool, value: float, make: Callable[[Scan], float] | None, key: Hashable) -> str:
        letter, table, found = ("c", "kf", self.float_constants) if floating else ("k", "ki", self.int_constants)
        found.known.append(value)
        if make is not None:
            found.later.append((len(found.known) - 1, make))
        return self._add(key, letter, table, len(found.known) - 1)

    def _add(self, key: Hashable, letter: str, table: str, number: int) -> str:
        # The name has an underscore, which no local of the code has, so the two can never be confused.
        name = f"{letter}_{number}"
        self.header.append(f"{name} = {table}[{number}]")
        self._named[key] = name
        return name
