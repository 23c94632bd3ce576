"""Puts dirt into landing files, in exactly known amounts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

#: A data line without its line end, and its time (microseconds since the epoch, UTC).
Line = tuple[bytes, int]

BAD_KINDS = ("number", "time", "columns", "key")


@dataclass(frozen=True)
class Columns:
    """Positions of the columns of a landing file with the time, the key, and a number that must parse."""

    time: int
    key: int
    number: int


@dataclass
class DayDirt:
    """The dirt of one file: which of the day's events, by number, get which kind of dirt.

    Args:
        count: number of rows of each kind.
        events: number of events of the day.
        kinds: the kinds to make: `duplicate`, `conflict`, `bad`, `late`.
    """

    count: int
    events: int
    kinds: tuple[str, ...]
    places: dict[str, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Rows of one kind are evenly spaced, and kinds are shifted by eighths of that space, so they never meet.
        for eighth, kind in ((1, "late"), (3, "duplicate"), (5, "conflict"), (7, "bad")):
            numbers = (8 * n + eighth for n in range(self.count)) if kind in self.kinds else ()
            self.places[kind] = {number * self.events // (8 * self.count) for number in numbers}

    def contested(self, lo: int, hi: int) -> list[int]:
        """The numbers of events in `[lo, hi)` that get a conflicting row, ascending."""
        return sorted(number for number in self.places["conflict"] if lo <= number < hi)


def bad_line(line: bytes, kind: str, columns: Columns) -> bytes:
    """A line that no reader can take for a row of the source."""
    cells = line.split(b",")
    if kind == "number":
        cells[columns.number] = b"12x"
    elif kind == "time":
        cells[columns.time] = b"31/31/31 99:99"
    elif kind == "columns":
        cells += [b"surplus", b"surplus"]
    else:
        cells[columns.key] = b""
    return b",".join(cells)


def with_dirt(
    lines: list[bytes], utc: np.ndarray, first: int, dirt: DayDirt, others: dict[int, bytes], columns: Columns
) -> Iterator[tuple[str, bytes, int]]:
    """The lines of a block, with dirt between them.

    Args:
        lines: the block's data lines.
        utc: their times, shape (N,).
        first: number of the first line among the day's events.
        dirt: which events get which dirt.
        others: conflicting content, by the number of the event that gets it.
        columns: the layout of the file.
    Yields:
        (kind, line, time): kind `event`, `contested` (an event with a conflict), `late` (an event for the next file),
        `duplicate`, `conflict`, or one of BAD_KINDS.
    """
    late, duplicate = dirt.places["late"], dirt.places["duplicate"]
    bad = {number: BAD_KINDS[n % len(BAD_KINDS)] for n, number in enumerate(sorted(dirt.places["bad"]))}
    for number, (line, moment) in enumerate(zip(lines, utc.tolist(), strict=True), first):
        yield "late" if number in late else "contested" if number in others else "event", line, moment
        if number in duplicate:
            yield "duplicate", line, moment
        if number in others:
            yield "conflict", others[number], moment
        if number in bad:
            yield bad[number], bad_line(line, bad[number], columns), moment
