"""Decades without an event between two of them: known to be empty, and not listed day by day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from chainlake.days import US_PER_DAY, Days
from chainlake.definitions.source import Source, load_source
from chainlake.ingest.landing.completeness import EMPTY, Arrived, day_rows
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.defined.wanted import wanted_days
from chainlake.lake.records.event_days import EventDays

EARLY, FIRST = date(1900, 1, 2), date(2024, 3, 1)
FULL = {**EMPTY, "rows": 5, "checksum": "5:ab"}
DAY = timedelta(days=1)


@pytest.fixture
def source() -> Source:
    return load_source(Path(__file__).parents[1] / "ingest" / "sources" / "bars.yaml")


def listed(source, days, passed, lacking=()):
    """The rows of ``ops.event_days`` after an ingest of events on some days."""
    touched = {day: FULL for day in days}
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return day_rows(source, {}, touched, Arrived(set(), {day: ["unread.csv"] for day in lacking}), passed, now, 1)


def definition(late_us=0):
    return Definition("pattern/p", "bars", "h", 1, "matches.p", late_us, lambda day: Days.one(day).micros())


def wanted(events, late_us=0):
    return [date(1970, 1, 1) + timedelta(days=int(n)) for n in wanted_days(definition(late_us), events, None)]


def test_one_early_row_lists_a_year_and_not_a_century(source):
    rows = listed(source, [EARLY, FIRST, FIRST + 3 * DAY], FIRST + 6 * DAY)
    assert len(rows) == 367 + 6
    events = EventDays.of("bars", rows)
    assert {events.status(day) for day in (EARLY + 400 * DAY, date(1970, 1, 1), FIRST - DAY, FIRST + DAY)} == {
        events.status(EARLY + DAY)
    }
    assert events.status(EARLY - DAY) is None and events.status(FIRST + 6 * DAY) is None
    assert wanted(events) == [EARLY + n * DAY for n in range(367)] + [FIRST + n * DAY for n in range(4)]
    assert events.checksum(date(1950, 1, 1)) == ""


def test_days_without_a_long_gap_are_listed_as_ever(source):
    rows = listed(source, [FIRST, FIRST + 367 * DAY], FIRST + 900 * DAY)
    assert [row["day"] for row in sorted(rows, key=lambda r: r["day"])] == [FIRST + n * DAY for n in range(900)]
    assert len(wanted(EventDays.of("bars", rows))) == 368


def test_an_event_within_the_gap_lists_its_year(source):
    before = listed(source, [EARLY, FIRST], FIRST + DAY)
    middle = date(1950, 5, 5)
    current = {row["day"]: row for row in before}
    now = datetime(2026, 1, 1, tzinfo=UTC)
    more = day_rows(source, current, {middle: FULL}, Arrived(set()), FIRST + DAY, now, 2)
    assert {row["day"] for row in more} == {middle + n * DAY for n in range(367)}
    assert len(wanted(EventDays.of("bars", [*before, *more]))) == 367 + 367 + 1


def test_a_stretch_that_ingest_has_not_passed_is_waited_for(source):
    # An event of a wrong year to come: the days until then are listed as ingest goes on.
    wrong, passed = date(2190, 1, 1), FIRST + 500 * DAY
    events = EventDays.of("bars", listed(source, [FIRST, wrong], passed))
    assert events.status(passed - DAY) is not None and events.status(passed) is None
    assert events.status(date(2100, 1, 1)) is None
    assert len(wanted(events)) == 500 + 1


def test_a_day_with_a_file_that_was_not_read_is_listed_wherever_it_lies(source):
    unread = date(1960, 6, 6)
    rows = listed(source, [EARLY, FIRST], FIRST + DAY, lacking=[unread])
    assert [row["status"] for row in rows if row["day"] == unread] == ["provisional"]


def test_what_is_decided_long_after_its_last_event_has_its_day(source):
    events = EventDays.of("bars", listed(source, [EARLY, FIRST], FIRST + DAY))
    late = wanted(events, 500 * US_PER_DAY)
    assert EARLY + 500 * DAY in late and EARLY + 900 * DAY not in late
    assert not events.listed(np.array([(date(1950, 1, 1) - date(1970, 1, 1)).days]), 0).any()
