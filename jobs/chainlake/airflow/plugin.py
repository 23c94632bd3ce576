"""The plugin that Airflow loads in each of its processes: each run has a day and is named after it.

Airflow finds it by the entry point of the installed package; a custom schedule has to be registered there.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from airflow.plugins_manager import AirflowPlugin
from airflow.timetables.base import DataInterval, Timetable
from airflow.timetables.interval import CronDataIntervalTimetable
from airflow.utils.types import DagRunType

from chainlake.errors import UsageError


class NoSuchDay(UsageError, ValueError):
    """A manual run has no day, or one that is not over; Airflow shows the text of a ``ValueError`` in its form."""

    @classmethod
    def not_over(cls, day: date, today: date) -> NoSuchDay:
        """The logical date is in a day that is not over; both days in UTC."""
        what = f"the logical date lies in {day}, a UTC day that is not over"
        hint = (
            f"The logical date chooses the day to compute: give one that is over, such as {today - timedelta(days=1)}. "
            "'airflow dags trigger' hands on the time of the call, whatever --logical-date says: use "
            "'airflow backfill create' or the form of Airflow's page."
        )
        return cls(what, hint=hint)

    @classmethod
    def no_date(cls) -> NoSuchDay:
        """There is no logical date."""
        hint = "Give a date and time within the UTC day to compute."
        return cls("a run by hand needs a logical date, which chooses its day", hint=hint)


class DailyTimetable(CronDataIntervalTimetable):
    """One run per UTC day, named by that day: ``scheduled__2025-10-01`` computes 2025-10-01.

    Airflow's own schedules name a run by the time from which it may run, which is a day later; and they give a run by
    hand the day before its logical date, so that it would take the place of the next day's run.
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

    def infer_manual_data_interval(self, *, run_after: Any) -> DataInterval:
        """The UTC day that holds the logical date of a manual run.

        Args:
            run_after: the logical date, under the name that Airflow gives it; from Airflow's command line and from
                tasks that trigger a run, the present moment.

        Raises:
            NoSuchDay: that day is not over, so its events cannot be complete.
        """
        # The form sends a date with the offset of the browser's zone.
        start = self._align_to_prev(run_after.in_timezone("UTC"))
        end = self._get_next(start)
        now = datetime.now(UTC)
        if end > now:
            raise NoSuchDay.not_over(start.date(), now.date())
        return DataInterval(start=start, end=end)

    def generate_run_id(
        self, *, run_type: DagRunType, run_after: Any, data_interval: DataInterval | None, **extra: Any
    ) -> str:
        """The id from the kind of the run and its day; a manual run adds its time, since a day can have several.

        Raises:
            NoSuchDay: a manual run has no logical date.
        """
        if data_interval is None:
            if run_type == DagRunType.MANUAL:
                raise NoSuchDay.no_date()
            return super().generate_run_id(run_type=run_type, run_after=run_after, data_interval=None, **extra)
        day = data_interval.start.date().isoformat()
        if run_type == DagRunType.MANUAL:
            return run_type.generate_run_id(suffix=f"{day}__{run_after.isoformat()}")
        return run_type.generate_run_id(suffix=day)


class ChainlakePlugin(AirflowPlugin):
    """Registers our schedule."""

    name = "chainlake"
    timetables = [DailyTimetable]
