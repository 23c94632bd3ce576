"""What Airflow loads of us in each of its processes: runs that are named by the day they compute.

Airflow finds it by the entry point of the installed package; a schedule of one's own has to be registered there.
"""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin
from airflow.timetables.base import DataInterval, Timetable
from airflow.timetables.interval import CronDataIntervalTimetable
from airflow.utils.types import DagRunType


class DailyTimetable(CronDataIntervalTimetable):
    """One run per UTC day, named by it: ``scheduled__2025-10-01`` computes 2025-10-01.

    Airflow's own schedules name a run by the moment from which on it may run, which is a day later.
    """

    def __init__(self) -> None:
        super().__init__("0 0 * * *", timezone="UTC")

    @property
    def summary(self) -> str:
        """What the page says of it."""
        return "one run per UTC day"

    def serialize(self) -> dict[str, Any]:
        """It has no settings."""
        return {}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        """The same one again."""
        return cls()

    def generate_run_id(
        self, *, run_type: DagRunType, run_after: Any, data_interval: DataInterval | None, **extra: Any
    ) -> str:
        """The kind of the run and its day; by the moment where a run has no day."""
        if data_interval is None:
            return super().generate_run_id(run_type=run_type, run_after=run_after, data_interval=None, **extra)
        return run_type.generate_run_id(suffix=data_interval.start.date().isoformat())


class ChainlakePlugin(AirflowPlugin):
    """Our schedule."""

    name = "chainlake"
    timetables = [DailyTimetable]
