"""What a backfill would do, as a value: its applications, and what will not be computed and why; in words, as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from chainlake.definitions.errors import SourceBroken
from chainlake.lake.records.runs import error_line
from chainlake.operations.backfills.applications import Application
from chainlake.words import counted


@dataclass(frozen=True)
class RangePlan:
    """What would be done.

    Args:
        applications: in the order in which they run.
        left: (definition, why) → number of days that will not be computed, such as those that wait for an ingest.
        failures: definitions that cannot be computed, each with its error.
        idle: why there is no day at all, a sentence for each source that is concerned, such as one of which nothing is
            ingested.
        only_stale: days that were never computed are left alone.
    """

    applications: list[Application] = field(default_factory=list)
    left: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[tuple[str, BaseException]] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    only_stale: bool = False

    def notes(self) -> list[str]:
        """A line for everything that will not be computed, with the reason: files that are wrong, and what waits for
        their sources; days that are left out; sources without a day; and whether all else is done."""
        own, waiting = SourceBroken.apart(self.failures)
        lines = [
            *(f"cannot be computed: {name}: {error_line(error)}" for name, error in own),
            *SourceBroken.waiting_lines(waiting),
            *(f"left out: {name}, {counted(days, 'day')}: {why}" for (name, why), days in sorted(self.left.items())),
            *self.idle,
        ]
        if not self.applications and not lines:
            every = "no day that was computed is stale or failed"
            lines.append(f"nothing to do: {every if self.only_stale else 'every day that has events is up to date'}")
        return lines


def as_json(plan: RangePlan) -> dict[str, Any]:
    """The plan as plain values; days as YYYY-MM-DD."""
    return {
        "applications": [
            {
                "step": app.step,
                "source": app.source,
                "from": str(app.days.start),
                "to": str(app.days.end),
                "definitions": [
                    {
                        "definition": part.definition,
                        "table": part.table,
                        "days": [str(day) for day in part.days],
                        "following": [str(day) for day in part.following],
                        "states": part.states,
                        "reads_from": str(part.reads.start),
                        "reads_to": str(part.reads.end),
                        "rows_read": part.rows_read,
                        "rows_there": part.rows_there,
                    }
                    for part in app.parts
                ],
            }
            for app in plan.applications
        ],
        "left": [{"definition": name, "why": why, "days": n} for (name, why), n in sorted(plan.left.items())],
        "failures": [{"definition": name, "error": str(error)} for name, error in plan.failures],
        "idle": plan.idle,
    }
