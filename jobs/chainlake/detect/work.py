"""What a run of the step shares, a pattern with the days to compute, and the result of a step."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property

from chainlake.catalog.patterns import CompiledPattern
from chainlake.days import Days, day_of_us
from chainlake.definitions.source import Source
from chainlake.lake.commits.publish import Published
from chainlake.lake.records.event_days import Pinned
from chainlake.lake.records.runs import Phase, phase
from chainlake.lake.store.event_files import EventFiles
from chainlake.paths import Home
from chainlake.quality import Audit
from chainlake.run.ports import Ports
from chainlake.run.results import Detected
from chainlake.schemas.events import events_table
from chainlake.schemas.ops_rows import ComputingStep, PhaseName
from chainlake.words import listed

STEP: ComputingStep = "detect"
_NAMED = 5


@dataclass(frozen=True)
class DetectRun:
    """What everything in a run of the step shares.

    Args:
        home: the installation.
        source: the source.
        run_id: id of the run in ``ops``.
        ports: the ports to use.
        audit: the application's audit.
    """

    home: Home
    source: Source
    run_id: str
    ports: Ports
    audit: Audit = field(repr=False)

    def phase(self, name: PhaseName, days: Days, definition: str = "") -> AbstractContextManager[Phase]:
        """A phase of the step for ``ops.runs``: of one definition, or of all, on ``days``."""
        return phase(
            self.home, self.run_id, source=self.source.name, step=STEP, phase=name, definition=definition, days=days
        )


@dataclass(frozen=True)
class SearchRun(DetectRun):
    """What the searches of a run share in addition.

    Args:
        pinned: the version of the events, and their days.
        span: the days from the first to the last whose events are read.
    """

    pinned: Pinned
    span: Days

    @cached_property
    def files(self) -> EventFiles:
        """The files of the events of ``span``."""
        if self.pinned.version is None:
            # Days can be complete before any event has ever come; they are published empty.
            return EventFiles(events_table(self.source).arrow(), {}, {})
        days = list(self.span)
        return EventFiles.of(self.ports.lake.day_files("events", self.source.name, days, self.pinned.version))


@dataclass(frozen=True)
class Work:
    """One pattern and the days to compute, each with the fingerprint of its input."""

    compiled: CompiledPattern
    fingerprints: dict[date, str]

    @property
    def name(self) -> str:
        """``pattern/NAME``."""
        return self.compiled.definition.name

    @property
    def days(self) -> Days:
        """All days from the first to the last."""
        return Days(min(self.fingerprints), Days.one(max(self.fingerprints)).end)

    @property
    def read_days(self) -> Days:
        """The whole days that cover every read range."""
        spans = [self.compiled.definition.read_range(day) for day in self.fingerprints]
        last = day_of_us(max(hi for _, hi in spans) - 1)
        return Days(day_of_us(min(lo for lo, _ in spans)), last + timedelta(days=1))

    def halves(self) -> list[Work]:
        """The earlier and the later half of its days."""
        days = sorted(self.fingerprints)
        cut = len(days) // 2
        return [Work(self.compiled, {day: self.fingerprints[day] for day in part}) for part in (days[:cut], days[cut:])]


def span_of(work: Sequence[Work]) -> Days:
    """The days from the first to the last whose events are read."""
    reads = [item.read_days for item in work]
    return Days(min(r.start for r in reads), max(r.end for r in reads))


def named_together(work: Sequence[Work]) -> str:
    """The definitions of some work that is done together, for the log: the first few by name."""
    return listed([item.name for item in work], _NAMED)


@dataclass(frozen=True)
class DetectResult:
    """The result of a step.

    Args:
        patterns: how many patterns finished.
        published: what was published, for each pattern once or more.
        failed: pairs of definition and error.
    """

    patterns: int = 0
    published: tuple[Published, ...] = ()
    failed: tuple[tuple[str, BaseException], ...] = ()

    def __add__(self, other: DetectResult) -> DetectResult:
        return DetectResult(
            self.patterns + other.patterns, self.published + other.published, self.failed + other.failed
        )

    @property
    def counts(self) -> Detected:
        """The counts that the step's caller gets."""
        return {
            "patterns": self.patterns,
            "days": sum(len(one.days_done) for one in self.published),
            "added": sum(one.added for one in self.published),
            "changed": sum(one.changed for one in self.published),
            "withdrawn": sum(one.withdrawn for one in self.published),
        }
