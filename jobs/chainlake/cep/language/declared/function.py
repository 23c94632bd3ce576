"""Functions that are called with columns of pairs, built in or declared in a front matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

#: Microseconds that one pair takes, by the words of ``cost``.
COSTS = {"cheap": 1.0, "heavy": 1000.0}
#: Seconds that a batch may take, unless the declaration says otherwise.
LONGEST = 60.0
#: How many arguments a function takes at most.
MOST_VALUES = 20


@dataclass(frozen=True)
class Place:
    """Where a function is declared, as errors show it.

    Args:
        pattern: the pattern's name.
        file: its file, or None.
        line, column: of the declaration; None for a built-in function.
        excerpt: the line.
    """

    pattern: str = "pattern"
    file: str | None = None
    line: int | None = None
    column: int | None = None
    excerpt: str | None = None


@dataclass(frozen=True)
class Declared:
    """An entry of ``functions`` in a front matter.

    Args:
        name: as conditions call it.
        call: ``MODULE:FUNCTION``.
        us: microseconds that it takes for one pair.
        symmetric: whether swapping the two halves of its arguments never changes its result.
        result: ``number`` or ``bool``.
        longest: seconds that a batch of pairs may take.
        vectorised: whether it takes columns; if not, it takes the values of one pair.
        at: line and column of the entry.
    """

    name: str
    call: str
    us: float = COSTS["heavy"]
    symmetric: bool = False
    result: str = "number"
    longest: float = LONGEST
    vectorised: bool = True
    at: tuple[int, int] = (1, 1)

    @property
    def module(self) -> str:
        """The module's name."""
        return self.call.partition(":")[0].rpartition(".")[2]

    @property
    def function(self) -> str:
        """The function's name in its module."""
        return self.call.partition(":")[2]


@dataclass(frozen=True)
class Code:
    """The code of a declared function, which the caller who compiles a pattern provides: the engine imports nothing.

    Args:
        call: takes NumPy arrays of one length and returns one, or takes single values if it is declared so; other
            processes receive it pickled.
        digest: changes whenever the code does.
        takes: how many arguments it takes, at least and at most.
    """

    call: Callable[..., Any]
    digest: str = ""
    takes: tuple[int, int] = (1, MOST_VALUES)


@dataclass(frozen=True)
class Heavy:
    """A function that the search calls with many pairs at a time, each pair once, after all cheaper conditions hold.

    Args:
        name: as conditions call it.
        code: its code; None if the pattern was compiled without it.
        us: microseconds that it takes for one pair.
        symmetric: as in ``Declared``.
        result: ``number`` or ``bool``.
        longest: seconds that a batch of pairs may take.
        place: where it is declared.
        vectorised: as in ``Declared``.
        total: whether it must give a value for every pair; if not, NaN is a missing value.
    """

    name: str
    code: Code | None = field(repr=False)
    us: float
    symmetric: bool = False
    result: str = "number"
    longest: float = LONGEST
    place: Place = Place()
    vectorised: bool = True
    total: bool = True
