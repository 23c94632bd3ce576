"""How a run's work is divided among tasks: by time, and also by key if a window holds more events than a task may.
Slices own matches by decision time and read only their read range, so their number and bounds never affect the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np

from chainlake.cep.pattern import Pattern
from chainlake.days import US_PER_DAY, Days, day_start_us
from chainlake.detect.division.curve import Curve, sum_of
from chainlake.detect.feed import KeyShare
from chainlake.lake.store.event_files import EventFiles

#: The least number of time ranges if the work is worth dividing. Then two tasks that run at a time end at about the
#: same time, and none has many events of one key, even if these are close together and windows reach into other ranges.
PIECES = 12
#: Up to this much work, in evaluations, is not worth cutting: a second or two, the time to start another task or two.
NOT_CUT = 20_000_000.0
#: The most events of a range if there are many, since this bounds what a lost task repeats and its file of matches.
RANGE_ROWS = 2_000_000
#: The cost of reading an event that is then not wanted, in the evaluations of ``chainlake.detect.division.curve``.
PER_READ = 20.0
#: The most events in windows that a task may hold at a time, about 300 MB.
MOST_ROWS = 3_000_000


@dataclass(frozen=True)
class Slice:
    """A range of decision times, and the time range of the events needed for it; both half-open, in ticks."""

    own: tuple[int, int]
    read: tuple[int, int]


@dataclass(frozen=True)
class Share:
    """What one task does.

    Args:
        slices: number of a pattern → its slices in one time range.
        keys: the share of keys for these patterns, all of which have a partition key; all keys if None.
    """

    slices: Mapping[int, tuple[Slice, ...]]
    keys: KeyShare | None = None


@dataclass(frozen=True, eq=False)
class Wanted:
    """A pattern whose work is to be cut.

    Args:
        pattern: the pattern.
        days: the days wanted.
        curve: where its work is.
    """

    pattern: Pattern
    days: Sequence[date]
    curve: Curve = field(repr=False)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The decision times wanted."""
        return spans_of(self.days)

    def within(self, lo: int, hi: int) -> tuple[Slice, ...]:
        """The slices within a time range."""
        inside = ((max(lo, first), min(hi, end)) for first, end in self.spans)
        return tuple(slice_of(self.pattern, own) for own in inside if own[0] < own[1])


def slice_of(pattern: Pattern, own: tuple[int, int]) -> Slice:
    """The slice that owns some decision times."""
    return Slice(own, pattern.read_range(*own))


def spans_of(days: Iterable[date]) -> list[tuple[int, int]]:
    """The runs of consecutive days, as ranges in µs."""
    ordered = sorted(days)
    breaks = [i for i, day in enumerate(ordered) if i == 0 or (day - ordered[i - 1]).days > 1]
    parts = [ordered[i:j] for i, j in zip(breaks, [*breaks[1:], len(ordered)], strict=True)]
    return [Days(part[0], Days.one(part[-1]).end).micros() for part in parts]


def pieces_of(work: float, rows: int, parallelism: int) -> int:
    """Into how many time ranges a run is divided.

    Args:
        work: work of all patterns, in evaluations.
        rows: number of events that are read.
        parallelism: number of tasks that run at a time.
    """
    return 1 if work <= NOT_CUT else max(PIECES, 2 * parallelism, -(-rows // RANGE_ROWS))


def cut(files: EventFiles, wanted: Sequence[Wanted], pieces: int) -> list[Share]:
    """The shares of a run's tasks, which together own everything wanted.

    One scan of the events serves all patterns whose windows a task can hold together.

    Args:
        files: the events.
        wanted: the patterns; the shares refer to them by their positions here.
        pieces: number of ranges of a scan; fewer are made if windows are so long that tasks would mostly read.
    """
    shares = []
    for numbers, keys in _scans(files, wanted):
        mine = [wanted[number] for number in numbers]
        for part in _ranges(files, mine, pieces):
            slices = {number: own for number, own in zip(numbers, part, strict=True) if own}
            if slices:
                shares += [Share(slices, KeyShare(i, keys) if keys > 1 else None) for i in range(keys)]
    return shares


def _scans(files: EventFiles, wanted: Sequence[Wanted]) -> list[tuple[list[int], int]]:
    """The patterns of each scan, those that hold least first, and into how many shares of keys it is cut."""
    held = [held_rows(files, one) for one in wanted]
    scans: list[tuple[list[int], int]] = []
    free = 0.0
    for number in sorted(range(len(wanted)), key=lambda n: held[n]):
        if scans and held[number] <= free:
            scans[-1][0].append(number)
            free -= held[number]
        else:
            keyed = wanted[number].pattern.partition_key is not None
            scans.append(([number], max(1, int(-(-held[number] // MOST_ROWS))) if keyed else 1))
            free = MOST_ROWS - held[number]
    return scans


def held_rows(files: EventFiles, one: Wanted) -> float:
    """About how many events a pattern's fullest window holds, if the events of a day are spread evenly."""
    lo, hi = one.spans[0][0], one.spans[-1][1]
    reach = lo - one.pattern.read_range(lo, hi)[0]
    days = files.within(lo - reach, hi)
    if not days:
        return 0.0
    begins = np.array([day_start_us(day) for day in days], np.int64)
    edges = np.unique(np.concatenate([begins, begins + US_PER_DAY]))
    rows = np.array([files.rows[day] for day in days], np.float64)
    total = np.zeros(len(edges))
    total[np.searchsorted(edges, begins + US_PER_DAY)] = rows
    total = np.cumsum(total)
    ends = np.concatenate([edges, edges + reach])
    return float(np.max(np.interp(ends, edges, total) - np.interp(ends - reach, edges, total)))


def _ranges(files: EventFiles, wanted: Sequence[Wanted], pieces: int) -> list[tuple[tuple[Slice, ...], ...]]:
    """The slices of each pattern in ranges of about equal work, as many as keep repeated reading below the work."""
    spans = [span for one in wanted for span in one.spans]
    span = min(lo for lo, _ in spans), max(hi for _, hi in spans)
    curve = sum_of([one.curve for one in wanted])
    while True:
        bounds = curve.cut(span, pieces)
        parts = [tuple(one.within(lo, hi) for one in wanted) for lo, hi in bounds]
        days = [{day for own in part for one in own for day in files.within(*one.read)} for part in parts]
        rows = sum(files.rows[day] for day in set().union(*days))
        again = sum(files.rows[day] for part in days for day in part) - rows
        if pieces == 1 or again * PER_READ <= curve.total:
            return parts
        pieces //= 2
