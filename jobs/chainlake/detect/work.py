"""One pattern and the days to compute."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from chainlake.catalog.patterns import CompiledPattern
from chainlake.days import Days, day_of_us

STEP = "detect"


@dataclass(frozen=True)
class Work:
    """One pattern and the days to compute, each with the fingerprint of its input."""

    compiled: CompiledPattern
    fingerprints: dict[date, str]

    @property
    def read_days(self) -> Days:
        """The whole days that hold every read range."""
        spans = [self.compiled.definition.read_range(day) for day in self.fingerprints]
        last = day_of_us(max(hi for _, hi in spans) - 1)
        return Days(day_of_us(min(lo for lo, _ in spans)), last + timedelta(days=1))

    def halves(self) -> list[Work]:
        """The earlier and the later half of its days."""
        days = sorted(self.fingerprints)
        cut = len(days) // 2
        return [Work(self.compiled, {day: self.fingerprints[day] for day in part}) for part in (days[:cut], days[cut:])]
