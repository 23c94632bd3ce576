"""Histories that never meet, searched as one: each gets its own time range, so far from the next that no
window holds events of two.

A search costs a few milliseconds whatever it finds, so with thousands of partition keys of a few events each, separate
searches would cost little else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chainlake.cep.errors import UnfitOption

#: All ticks, moved ones too, must be closer to 0 than this, or the sum of one and a window (at most 2^61) and the
#: difference of two might not fit in 64 bits.
MOST_TICKS = 1 << 62


@dataclass(frozen=True)
class Clock:
    """Times as they are searched: ``ts - base + part * period``.

    Args:
        base: the earliest time, in ticks.
        period: ticks from the beginning of one part's range to that of the next; longer than the times and a window.
    """

    base: int
    period: int

    @classmethod
    def of_parts(cls, ts: np.ndarray, parts: np.ndarray, window: int) -> Clock:
        """The clock of events whose parts never meet.

        Args:
            ts: times of the events, in ticks.
            parts: the part of each event.
            window: in ticks.

        Raises:
            UsageError: there are too many parts for their span of time.
        """
        clock = cls.over(int(ts.min()), int(ts.max()), window)
        if int(parts.max()) >= clock.most_parts:
            raise UnfitOption.too_many_parts(int(parts.max()) + 1)
        return clock

    @classmethod
    def over(cls, first: int, last: int, window: int) -> Clock:
        """The clock for times from ``first`` to ``last``, in ticks; a huge window counts as their distance."""
        reach = window if window < MOST_TICKS >> 1 else last - first
        return cls(first, last - first + reach + 1)

    @property
    def most_parts(self) -> int:
        """How many parts there can be; 0 if the times of not even one fit."""
        return MOST_TICKS // self.period

    def moved(self, ts: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """The times under which events of the given parts (numbered from 0) are searched."""
        # In a type of few bits, such as that of dictionary codes, the product would overflow.
        moved: np.ndarray = parts.astype(np.int64, copy=False) * self.period
        moved += ts - self.base
        return moved

    def real(self, moved: np.ndarray) -> np.ndarray:
        """The events' own times, for times as they are searched or at most a window after one of these."""
        return self.base + moved % self.period


@dataclass(frozen=True)
class Ties(Clock):
    """Times as they are searched where events of equal time follow one another: ``ts * period + place``.

    Args:
        base: 0.
        period: more than the largest place.
    """

    @classmethod
    def of(cls, places: np.ndarray) -> Ties:
        """The clock of events with these places among those of equal time."""
        return cls(0, int(places.max(initial=0)) + 1)

    def moved(self, ts: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """The times under which events with the given places are searched."""
        moved: np.ndarray = ts * self.period + parts
        return moved

    def real(self, moved: np.ndarray) -> np.ndarray:
        """The events' own times, for times as they are searched."""
        return moved // self.period

    def window(self, window: int) -> int:
        """The shortest window of searched times that holds all events within ``window``; it may hold others too."""
        return window * self.period + self.period - 1
