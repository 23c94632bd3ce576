"""The arrays and numbers of one kernel. The code names them by number, so equal plans have equal code."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

#: Places in the state that a kernel and its caller share; the places of the levels follow.
STATUS, FOUND, EVALUATIONS, EVALUATIONS_NEG, EVALUATIONS_PRE, TESTS, TOO_MANY, FIRST_FREE = range(8)
#: What a kernel returns.
DONE, FULL, LIMIT = range(3)


#: What gives an array.
Make = Callable[[], np.ndarray]


class Slots:
    """Arrays of float64 (``F``), int64 (``I``), bool (``B``), int32 (``J``), and constants (``kf``, ``ki``).

    Every method that adds one returns its name in the code. Equal keys get the same slot. Arrays are made when the
    kernel is run, so that its code costs nothing to have.
    """

    def __init__(self) -> None:
        self.floats: list[Make] = []
        self.ints: list[Make] = []
        self.bools: list[Make] = []
        self.shorts: list[Make] = []
        self.float_constants: list[float] = []
        self.int_constants: list[int] = []
        self.states = FIRST_FREE
        self.header: list[str] = []
        self._named: dict[Hashable, str] = {}
        self.nan = self.number(float("nan"), "nan")

    def array(self, values: np.ndarray, key: Hashable) -> str:
        """An array; its type decides where it goes."""
        kind = {"f": "f", "b": "b"}.get(values.dtype.kind, "j" if values.dtype == np.int32 else "i")
        return self.later(kind, lambda: values, key)

    def later(self, kind: str, make: Make, key: Hashable) -> str:
        """An array of ``kind`` (f, i, b or j) that ``make`` gives when the kernel is run."""
        if key in self._named:
            return self._named[key]
        table, found = {
            "f": ("F", self.floats), "i": ("I", self.ints), "b": ("B", self.bools), "j": ("J", self.shorts),
        }[kind]  # fmt: skip
        return self._add(key, kind, table, found, make)

    def number(self, value: float | int, key: Hashable) -> str:
        """A constant: float or int (bool counts as int), whatever its value."""
        if key in self._named:
            return self._named[key]
        if isinstance(value, float):
            return self._add(key, "c", "kf", self.float_constants, value)
        return self._add(key, "k", "ki", self.int_constants, int(value))

    def first_time(self, key: Hashable) -> bool:
        """Whether this is asked for the first time."""
        if key in self._named:
            return False
        self._named[key] = ""
        return True

    def state(self) -> str:
        """A place in the state, kept between calls of the kernel."""
        self.states += 1
        return f"st[{self.states - 1}]"

    def made(self) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
        """All arrays, contiguous and of the types that the code expects."""
        return (
            [np.ascontiguousarray(make(), np.float64) for make in self.floats],
            [np.ascontiguousarray(make(), np.int64) for make in self.ints],
            [np.ascontiguousarray(make(), np.bool_) for make in self.bools],
            [np.ascontiguousarray(make(), np.int32) for make in self.shorts],
        )

    def _add(self, key: Hashable, letter: str, table: str, found: list, value: object) -> str:
        # With an underscore, which no local of the code has: the two can never be confused.
        name = f"{letter}_{len(found)}"
        self.header.append(f"{name} = {table}[{len(found)}]")
        found.append(value)
        self._named[key] = name
        return name


def place(name: str) -> int:
    """The number of an array or constant among its kind."""
    return int(name.partition("_")[2])
