"""Wall time to UTC, vectorised.

A time in a DST gap is shifted forward by the gap. A time in a double hour belongs to the first pass, unless the times
of its series in the file step back inside that hour: from there on they belong to the second. In a series that is
listed newest first it is the other way round: if its times step forward inside the double hour, the times before that
step belong to the second pass. Both cases are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import add
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from chainlake.days import instant, us_of

US = 1_000_000
_DAY_US = 86_400 * US
#: For how many years a zone's transitions are looked up at once.
_SPAN = 4


def _offset_us(zone: ZoneInfo, at_us: int) -> int:
    delta = instant(at_us).astimezone(zone).utcoffset()
    return (delta or timedelta()) // timedelta(microseconds=1)


@lru_cache(maxsize=256)
def _transitions(name: str, year: int) -> tuple[tuple[int, int, int], ...]:
    """``(instant, offset before, offset after)`` in microseconds for the ``_SPAN`` years from ``year``."""
    zone = ZoneInfo(name)
    # The calendar has the years 1 to 9999; beyond them, a zone's rules do not change.
    years = (datetime(min(max(at, 1), 9999), 1, 1, tzinfo=UTC) for at in (year, year + _SPAN))
    first, last = (us_of(at) for at in years)
    found = []
    before = _offset_us(zone, first)
    for day in range(first, last, _DAY_US):
        after = _offset_us(zone, day + _DAY_US)
        if after != before:
            low, high = day, day + _DAY_US
            while high - low > US:
                middle = (low + high) // 2 // US * US
                low, high = (middle, high) if _offset_us(zone, middle) == before else (low, middle)
            found.append((high, before, after))
            before = after
    return tuple(found)


class _Wall:
    """The wall clock of a zone: offsets, gaps and double hours.

    Args:
        zone: IANA name.
    """

    def __init__(self, zone: str) -> None:
        self.zone = zone

    def places(self, local_us: np.ndarray) -> _Places:
        """Where wall times (µs) lie among the zone's transitions; there must be at least one time."""
        table = self._table(int(local_us.min()), int(local_us.max()))
        instants, before, after = (np.array(part, dtype=np.int64) for part in zip(*table, strict=True))
        # The offset before a transition is valid until the later of the two wall times of that instant.
        borders = instants + np.maximum(before, after)
        at = np.searchsorted(borders, local_us, side="right")
        nearest = np.minimum(at, len(table) - 1)
        start = (instants + np.minimum(before, after))[nearest]
        inside = (at < len(table)) & (local_us >= start)
        folds = inside & (after < before)[nearest]
        return _Places(
            offsets=np.concatenate((before[:1], after))[at],
            gaps=inside & ~folds,
            folds=folds,
            instants=instants[nearest],
            second=after[nearest],
            lengths=np.abs(before - after)[nearest],
        )

    def _table(self, low: int, high: int) -> list[tuple[int, int, int]]:
        first = instant(low).year - 1
        last = instant(high).year + 1
        table: list[tuple[int, int, int]] = []
        for year in range(first // _SPAN * _SPAN, last + 1, _SPAN):
            table.extend(_transitions(self.zone, year))
        if not table:
            # In a zone without transitions, one that changes nothing keeps the arithmetic in ``places`` valid.
            offset = _offset_us(ZoneInfo(self.zone), low)
            table.append((low - _DAY_US, offset, offset))
        return table


class _Places(NamedTuple):
    """Per wall time: its offset (of the first pass), whether it is in a gap or a double hour, the transition's instant,
    the offset of the second pass, and the length of the gap or double hour; all times in µs."""

    offsets: np.ndarray
    gaps: np.ndarray
    folds: np.ndarray
    instants: np.ndarray
    second: np.ndarray
    lengths: np.ndarray


class _Steps(NamedTuple):
    """Counts of the steps between the times of a series, except those within one double hour.

    Args:
        direction: number of steps forward minus steps back.
        rows: number of rows outside double hours.
        repeats: how many of ``rows`` have the time of the row before.
        equal: number of steps as long as the double hour.
        smaller: number of shorter steps, except 0.
        moves: number of steps of any length except 0.
    """

    direction: int = 0
    rows: int = 0
    repeats: int = 0
    equal: int = 0
    smaller: int = 0
    moves: int = 0

    def plus(self, other: _Steps) -> _Steps:
        """The sum of both."""
        return _Steps(*map(add, self, other))


class _Visit(NamedTuple):
    """A series in a double hour: number of rows, least and largest wall time, whether a time stepped forward."""

    rows: int
    earliest: int
    latest: int
    forward: bool


class Listing:
    """The order in which a file lists the times of its series, from all its rows, whatever the blocks.

    A step between two times counts unless both are in one double hour, where the clock itself steps back. If a series
    has no such steps, or as many forward as back, the steps of the whole file decide, and then those in double hours.

    Args:
        zone: IANA name.
    """

    def __init__(self, zone: str) -> None:
        self._wall = _Wall(zone)
        self._last: dict[object, tuple[int, int]] = {}
        self._steps: dict[object, _Steps] = {}
        self._in_file = _Steps()
        self._in_double_hours = 0
        self._visits: dict[tuple[int, object], _Visit] = {}

    def add(self, local_us: np.ndarray, codes: np.ndarray, names: Sequence[object]) -> None:
        """Take the next rows of the file.

        Args:
            local_us: their wall times, µs, in file order.
            codes: for each row, the position of its series in ``names``.
            names: the series.
        """
        if not len(local_us):
            return
        places = self._wall.places(local_us)
        order = np.argsort(codes, kind="stable")
        codes, times = codes[order], local_us[order]
        hours = np.where(places.folds, places.instants, _NO_HOUR)[order]
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        before, hour_before = np.roll(times, 1), np.roll(hours, 1)
        new = np.zeros(len(times), bool)
        for at in first.tolist():
            name = names[codes[at]]
            new[at] = name not in self._last
            before[at], hour_before[at] = self._last.get(name, (int(times[at]), int(hours[at])))
        steps = times - before
        within = (hours == hour_before) & (hours != _NO_HOUR)
        self._in_double_hours += int(np.sign(steps)[within].sum())
        lengths = np.abs(np.where(within, 0, steps))
        outside, hour = hours == _NO_HOUR, places.lengths[order]
        facts = (
            np.where(within, 0, np.sign(steps)),
            outside,
            outside & (steps == 0) & ~new,
            (lengths == hour) & (lengths > 0),
            (lengths < hour) & (lengths > 0),
            lengths > 0,
        )
        sums = np.add.reduceat(np.stack(facts).astype(np.int64), first, axis=1).T
        last = np.append(first[1:], len(times)) - 1
        for at, end, counts in zip(first.tolist(), last.tolist(), sums.tolist(), strict=True):
            name, found = names[codes[at]], _Steps(*counts)
            self._in_file = self._in_file.plus(found)
            self._steps[name] = self._steps.get(name, _Steps()).plus(found)
            self._last[name] = (int(times[end]), int(hours[end]))
        for at in np.flatnonzero(~outside).tolist():
            key, time = (int(hours[at]), names[codes[at]]), int(times[at])
            rows, earliest, latest, forward = self._visits.get(key, _Visit(0, time, time, False))
            self._visits[key] = _Visit(rows + 1, min(earliest, time), max(latest, time), forward or time > earliest)

    def newest_first(self, series: object) -> bool:
        """Whether the times of a series descend in the file."""
        return (self._of(series).direction or self._in_file.direction or self._in_double_hours) < 0

    def steps_forward(self, instant: int, series: object) -> bool:
        """Whether the times of a series step forward anywhere in the double hour at ``instant``."""
        return self._visits.get((instant, series), _NO_VISIT).forward

    def turn(self, instant: int, series: object) -> int:
        """How many rows of the double hour at ``instant`` are listed before the other pass, if a single repeated time
        tells; 0 if not.

        A series that delivers its rows several times repeats every time, so there the time must occur twice as often as
        usual.
        """
        visit = self._visits.get((instant, series), _NO_VISIT)
        if visit.rows < 2 or visit.earliest != visit.latest:
            return 0
        own = self._of(series)
        of_steps = own if own.moves else self._in_file
        of_rows = own if own.rows else self._in_file
        distinct = of_rows.rows - of_rows.repeats
        usual = (2 * of_rows.rows + distinct) // (2 * distinct) if distinct else 1
        if visit.rows < 2 * usual or (of_steps.moves and of_steps.equal <= of_steps.smaller):
            return 0
        first_pass = visit.rows // 2
        return visit.rows - first_pass if self.newest_first(series) else first_pass

    def _of(self, series: object) -> _Steps:
        return self._steps.get(series, _NO_STEPS)


_NO_STEPS = _Steps()
_NO_VISIT = _Visit(0, 0, 0, False)
#: Stands for the double hour of a time that is in none.
_NO_HOUR = np.iinfo(np.int64).min


class LocalTimes:
    """Converts the wall times of one file, block by block, remembering which series have entered another pass.

    Args:
        zone: IANA name.
        listing: gives the order in which the file lists its times; called when the first double hour is met. Without
            it, times in double hours belong to the first pass.

    Attributes:
        gap: how many rows so far were in a DST gap.
        double: how many rows so far were in a double hour.
    """

    def __init__(self, zone: str, listing: Callable[[], Listing] | None = None) -> None:
        self.gap = 0
        self.double = 0
        self._wall = _Wall(zone)
        self._ask = listing
        self._listing: Listing | None = None
        #: (double hour, series) → (furthest wall time seen in it, whether the other pass has begun)
        self._passes: dict[tuple[int, object], tuple[int, bool]] = {}
        #: (double hour, series) → number of its rows seen so far, if a repeated time tells the passes apart
        self._seen: dict[tuple[int, object], int] = {}

    def copy(self) -> LocalTimes:
        """An independent copy that continues from here."""
        other = LocalTimes(self._wall.zone, self._ask)
        other.gap, other.double, other._listing = self.gap, self.double, self._listing
        other._passes, other._seen = dict(self._passes), dict(self._seen)
        return other

    def to_utc(self, local_us: np.ndarray, series: Callable[[int], object] | None = None) -> np.ndarray:
        """UTC microseconds of wall times given as microseconds since 1970-01-01T00:00 on the wall (int64).

        Args:
            local_us: wall times in file order.
            series: position of a row → the series to which it belongs (type and key); steps are looked for within a
                series.
        """
        if len(local_us) == 0:
            return local_us
        places = self._wall.places(local_us)
        result: np.ndarray = local_us - places.offsets
        self.gap += int(places.gaps.sum())
        self.double += int(places.folds.sum())
        if series is not None and self._ask is not None and places.folds.any():
            if self._listing is None:
                self._listing = self._ask()
            for row in np.flatnonzero(places.folds).tolist():
                if self._second_pass(self._listing, int(places.instants[row]), series(row), int(local_us[row])):
                    result[row] = local_us[row] - places.second[row]
        return result

    def _second_pass(self, listing: Listing, instant: int, series: object, local: int) -> bool:
        if turn := listing.turn(instant, series):
            seen = self._seen.get((instant, series), 0)
            self._seen[(instant, series)] = seen + 1
            return (seen >= turn) != listing.newest_first(series)
        furthest, other = self._passes.get((instant, series), (local, False))
        if listing.newest_first(series):
            other = other or local > furthest
            self._passes[(instant, series)] = (min(furthest, local), other)
            return listing.steps_forward(instant, series) and not other
        other = other or local < furthest
        self._passes[(instant, series)] = (max(furthest, local), other)
        return other
