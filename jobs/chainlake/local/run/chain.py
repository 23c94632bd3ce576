"""Takes the shipped days through the DAGs: land, ingest, then detect and monitor, each as a backfill run of its day.

The scheduler runs everything; this module only decides what may start. A source's days are ingested in order. The
detect and monitor runs of a day start when its ingest has succeeded, alongside the ingest of the next day and alongside
other sources. Until the first detection has ended, only first days are ingested and detected, so that there are matches
to show early.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from chainlake.airflow.names import monitored_sources
from chainlake.local.api import Api, ApiError, day_of_run
from chainlake.local.run.shipped import ShippedDay, land
from chainlake.paths import Home

OPEN_STATES = ("queued", "running")


@dataclass
class DagRun:
    """The run of one DAG for one day; ``state`` is None until the run exists."""

    dag_id: str
    source: str
    day: date
    state: str | None = None
    run_id: str = ""
    asked: bool = False
    seconds: float = 0.0
    skipped: str = ""
    reported: bool = False

    @property
    def ended(self) -> bool:
        """Whether the run has ended or was skipped."""
        return bool(self.skipped) or (self.asked and self.state in ("success", "failed"))

    @property
    def ok(self) -> bool:
        """Whether the run succeeded."""
        return self.ended and self.state == "success"


@dataclass
class Line:
    """The runs of one DAG, oldest day first; a DAG can have only one backfill at a time."""

    runs: list[DagRun]

    @property
    def current(self) -> DagRun | None:
        """The run in progress, or else the next one."""
        return next((run for run in self.runs if not run.ended), None)


@dataclass
class Chain:
    """The work of one ``make run``.

    Args:
        home: the installation.
        api: Airflow.
        close_backfills: marks finished backfills as complete; see ``airflow_tables.complete_finished_backfills``.
        plan: the days of each source.
    """

    home: Home
    api: Api
    close_backfills: Callable[[], None]
    plan: dict[str, list[ShippedDay]]
    lines: dict[str, Line] = field(default_factory=dict)
    landed: int = 0

    def __post_init__(self) -> None:
        monitored = monitored_sources(self.home)
        for source, days in self.plan.items():
            for step in ("ingest", "detect", "monitor"):
                if step != "monitor" or source in monitored:
                    dag_id = f"{step}_{source}"
                    self.lines[dag_id] = Line([DagRun(dag_id, source, shipped.day) for shipped in days])
        # What an earlier make run finished is not repeated, except for the last day: that run takes up files and
        # definitions that have changed since, and repairs a week back.
        known = self._states()
        for line in self.lines.values():
            for run in line.runs[:-1]:
                found = known.get((run.dag_id, run.day))
                if found is not None and found["state"] == "success":
                    run.asked, run.state, run.run_id, run.reported = True, "success", str(found["dag_run_id"]), True

    @property
    def runs(self) -> list[DagRun]:
        """All runs, by source, day and step."""
        found = [run for line in self.lines.values() for run in line.runs]
        return sorted(found, key=lambda run: (run.source, run.day, "idm".index(run.dag_id[0])))

    @property
    def ended(self) -> bool:
        """Whether every run has ended."""
        return all(run.ended for run in self.runs)

    def step(self) -> None:
        """Look at all runs once, and start those that may start."""
        self._observe()
        for source, days in self.plan.items():
            self._advance(source, {shipped.day: shipped for shipped in days})

    @property
    def news(self) -> list[DagRun]:
        """Runs that have ended and are not ``reported`` yet."""
        return [run for run in self.runs if run.ended and not run.reported]

    def _states(self) -> dict[tuple[str, date], dict[str, Any]]:
        runs = self.api.runs(self.lines)
        return {(str(run["dag_id"]), day): run for run in runs if (day := day_of_run(run)) is not None}

    def _observe(self) -> None:
        if not any(run.asked and not run.ended for run in self.runs):
            return
        known = self._states()
        for run in self.runs:
            found = known.get((run.dag_id, run.day))
            if run.asked and not run.ended and found is not None:
                run.state, run.run_id = str(found["state"]), str(found["dag_run_id"])
                run.seconds = float(found.get("duration") or 0.0)

    def _advance(self, source: str, shipped: dict[date, ShippedDay]) -> None:
        ingest = self.lines[f"ingest_{source}"]
        run = ingest.current
        if run is not None and not run.asked and (run is ingest.runs[0] or self._detected):
            before = [earlier for earlier in ingest.runs if earlier.day < run.day and not earlier.ok]
            if before:
                run.skipped = f"the ingest of {before[0].day} did not succeed"
            else:
                self.landed += land(self.home, source, shipped[run.day])
                self._ask(run)
        state = {run.day: run for run in ingest.runs}
        for step in ("detect", "monitor"):
            line = self.lines.get(f"{step}_{source}")
            run = line.current if line is not None else None
            if run is not None and not run.asked and state[run.day].ended:
                if state[run.day].ok:
                    if step == "detect" or self._detected:
                        self._ask(run)
                else:
                    run.skipped = f"the ingest of {run.day} did not succeed"

    @property
    def _detected(self) -> bool:
        """Whether a detection has ended, of whatever source; what is not needed for the first matches waits for it."""
        return any(run.ended for run in self.runs if run.dag_id.startswith("detect_"))

    def _ask(self, run: DagRun) -> None:
        """Create the run of a day, unless one from an earlier ``make run`` is still in progress; that one will do."""
        found = self._states().get((run.dag_id, run.day))
        if found is None or found["state"] not in OPEN_STATES:
            self.close_backfills()
            try:
                self.api.backfill(run.dag_id, run.day)
            except ApiError as error:
                if error.status != 409:
                    raise
                # The DAG's backfill from an earlier make run still has runs to do: ask again at the next step.
                return
        run.asked, run.state = True, None
