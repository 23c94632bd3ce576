"""One pattern and the days to compute, and what came of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from chainlake.catalog.patterns import CompiledPattern
from chainlake.days import Days, day_of_us
from chainlake.lake.commits.publish import Published

STEP = "detect"


@dataclass(frozen=True)
class Work:
    """One pattern and the days to compute, each with the fingerprint of its input."""

    compiled: CompiledPattern
    fingerprints: dict[date, str]

    @property
    def days(self) -> Days:
        """From the first day to the last."""
        return Days(min(self.fingerprints), Days.one(max(self.fingerprints)).end)

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


def span_of(work: Sequence[Work]) -> Days:
    """The days from the first to the last that is read."""
    reads = [item.read_days for item in work]
    return Days(min(r.start for r in reads), max(r.end for r in reads))


@dataclass(frozen=True)
class DetectResult:
    """What came of a step.

    Args:
        patterns: how many came to their end.
        published: what was published, of each pattern once or more.
        failed: definition and error.
    """

    patterns: int = 0
    published: tuple[Published, ...] = ()
    failed: tuple[tuple[str, BaseException], ...] = ()

    def __add__(self, other: DetectResult) -> DetectResult:
        return DetectResult(
            self.patterns + other.patterns, self.published + other.published, self.failed + other.failed
        )

    @property
    def counts(self) -> dict[str, int]:
        """``patterns``, ``days`` published, and rows ``added``, ``changed`` and ``withdrawn``."""
        rows = {name: sum(getattr(one, name) for one in self.published) for name in ("added", "changed", "withdrawn")}
        return {"patterns": self.patterns, "days": sum(len(one.days_done) for one in self.published), **rows}
