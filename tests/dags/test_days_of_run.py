"""How a data interval is turned into days."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from chainlake.airflow.tasks import days_of_run
from chainlake.days import Days
from chainlake.errors import UsageError

MIDNIGHT = datetime(2025, 10, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def test_one_whole_utc_day() -> None:
    assert days_of_run(MIDNIGHT, MIDNIGHT + DAY) == Days.one(date(2025, 10, 1))


def test_the_same_instants_in_another_zone() -> None:
    zone = timezone(timedelta(hours=-7))
    assert days_of_run(MIDNIGHT.astimezone(zone), (MIDNIGHT + DAY).astimezone(zone)) == Days.one(date(2025, 10, 1))


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (MIDNIGHT, MIDNIGHT),  # "@daily" as a bare string
        (MIDNIGHT, MIDNIGHT + 2 * DAY),
        (MIDNIGHT, MIDNIGHT + DAY / 2),
        (MIDNIGHT + timedelta(hours=7), MIDNIGHT + DAY + timedelta(hours=7)),  # a local day
        (MIDNIGHT + timedelta(microseconds=1), MIDNIGHT + DAY + timedelta(microseconds=1)),
        (MIDNIGHT + DAY, MIDNIGHT),
        (datetime(2025, 10, 1), datetime(2025, 10, 2)),
        (None, None),
        (MIDNIGHT, None),
    ],
)
def test_anything_else_is_refused(start: datetime | None, end: datetime | None) -> None:
    with pytest.raises(UsageError):
        days_of_run(start, end)
