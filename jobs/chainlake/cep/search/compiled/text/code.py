"""Values in the code of a kernel, and its lines."""

from __future__ import annotations

from dataclasses import dataclass

from chainlake.cep.search.compiled.text.facts import ANY_SIZE, Size


@dataclass(frozen=True)
class Code:
    """A value in the code.

    Args:
        text: an expression without side effects.
        dtype: ``f`` float64 (NaN is null), ``i`` int64, ``b`` bool, ``0`` null.
        kind: kind of the value (chainlake.cep.values.values).
        valid: an expression that is true where the value is not null; None if it never is (except NaN in floats).
        size: for an int64, the parts whose sum its absolute value cannot exceed.
    """

    text: str
    dtype: str
    kind: str
    valid: str | None = None
    size: tuple[Size, ...] = (ANY_SIZE,)


NULL = Code("0", "0", "null")


class Writer:
    """Writes lines of code with indentation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1

    def put(self, *lines: str) -> None:
        """Add lines at the current depth."""
        self.lines += ["    " * self.depth + line for line in lines]

    def open(self, line: str) -> None:
        """Add a line and indent those after it."""
        self.put(line)
        self.depth += 1

    def close(self, levels: int = 1) -> None:
        """Undo some levels of indentation."""
        self.depth -= levels
