"""The plugin that Airflow loads in each of its processes: runs are named by the day that they compute.

Airflow finds it by the entry point of the installed package; a custom schedule has to be registered there.
"""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin
from airflow.timetables.base import DataInterval, Timetable
from airflow.timetables.interval import CronDataIntervalTimetable
from airflow.utils.types import DagRunType


class DailyTimetable(CronDataIntervalTimetable):
    """One run per UTC day, named by that day: ``scheduled__2025-10-01`` computes 2025-10-01.

    Airflow's own schedules name a run by the time from which it may run, which is a day later.
    """

    def __init__(self) -> None:
        super().__init__("0 0 * * *", timezone="UTC")

    @property
    def summary(self) -> str:
        """What Airflow's page says about the schedule."""
        return "one run per UTC day"

    def serialize(self) -> dict[str, Any]:
        """The settings, of which there are none."""
        return {}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        """The same schedule again."""
        return cls()

    def generate_run_id(
        self, *, run_type: DagRunType, run_after: Any, data_interval: DataInterval | None, **extra: Any
    ) -> str:
        """The id from the kind of the run and its day; from its time if the run has no day."""
        if data_interval is None:
            return super().generate_run_id(run_type=run_type, run_after=run_after, data_interval=None, **extra)
        return run_type.generate_run_id(suffix=data_interval.start.date().isoformat())


class ChainlakePlugin(AirflowPlugin):
    """Registers our schedule."""

    name = "chainlake"
    timetables = [DailyTimetable]
