"""Functions of times: local clocks at the change of summer time, times that no calendar has, plain numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa

from chainlake.cep.library import match


def test_the_clock_at_the_change_of_summer_time() -> None:
    """Every quarter of an hour around both changes, and a zone whose offset is no whole hour."""
    for zone in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"):
        for day in (
            datetime(2025, 3, 29, tzinfo=UTC),
            datetime(2025, 10, 25, tzinfo=UTC),
            datetime(1890, 1, 1, tzinfo=UTC),
        ):
            ts = [day + timedelta(minutes=15 * i) for i in range(300)]
            rows = [{"id": str(i), "type": "A", "ts": at} for i, at in enumerate(ts)]
            text = (
                f"PATTERN A a WITHIN 1 s MEASURES Hour(a.ts, '{zone}') AS h, Minute(a.ts, '{zone}') AS m, "
                f"Weekday(a.ts, '{zone}') AS w, Date(a.ts, '{zone}') AS d"
            )
            found = {m["a"]: (m["h"], m["m"], m["w"], m["d"]) for m in match(text, rows)}
            for i, at in enumerate(ts):
                there = at.astimezone(ZoneInfo(zone))
                assert found[str(i)] == (there.hour, there.minute, there.isoweekday(), there.date().isoformat())


def test_times_that_no_calendar_has_are_null() -> None:
    far = pa.array([2**62 - 1, -(2**61), 0], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    ts = pa.array([0, 1, 2], pa.timestamp("us", tz="UTC"))
    table = pa.table({"event_id": ["a", "b", "c"], "type": ["A"] * 3, "ts": ts, "at": far})
    text = "PATTERN A a WHERE Date(a.at, 'Asia/Tokyo') IS NULL AND Hour(a.at, 'UTC') IS NULL WITHIN 1 s"
    assert [m["a"] for m in match(text, table)] == ["a", "b"]


def test_differences_of_plain_numbers_are_seconds() -> None:
    rows = [{"id": i, "type": "AB"[i], "ts": 7 * i} for i in range(2)]
    assert list(match("PATTERN SEQ(A a, B b) WHERE SECONDS(b.ts - a.ts) = 7 WITHIN 9", rows)) == [{"a": 0, "b": 1}]
