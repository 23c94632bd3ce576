"""The files that made a day stale, by name."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from chainlake.days import Days
from chainlake.lake.records import ops
from chainlake.lake.records.late_files import REDEFINED, UNKNOWN
from chainlake.lake.records.staleness import status_rows
from chainlake.paths import Home
from tests.lake.test_staleness import D0, day, done, event_day, pattern

pytestmark = pytest.mark.slow


def landed(home: Home, *names: str, first: int, last: int | None = None, **more: Any) -> None:
    """Files of source s with rows from noon of the first day to noon of the last are ingested."""
    noon = datetime(D0.year, D0.month, D0.day, 12, tzinfo=UTC)
    row = {
        "source": "s", "load_id": "l", "definition_hash": "d1", "parser_version": 1,
        "first_ts": noon + timedelta(days=first), "last_ts": noon + timedelta(days=first if last is None else last),
    }  # fmt: skip
    ops.append(home, "files", [{**row, "path": name, "file_id": f"of {name}", **more} for name in names], "ingest")


def change(home: Home, *numbers: int, to: str = "other") -> None:
    ops.append(home, "event_days", [event_day(n, f"{to}{n}") for n in numbers], "ingest")


def whys(home: Home, definition: Any) -> dict[int, str]:
    rows = status_rows(home, [definition], Days(day(0), day(5)))
    return {(row.day - D0).days: row.why for row in rows if row.state == "stale"}


@pytest.fixture
def computed(home: Home) -> Home:
    """Five days, each of a file of its own, all computed."""
    for n in range(5):
        landed(home, f"d{n}.csv", first=n, file_date=day(n))
    change(home, *range(5), to="c")
    for n in range(5):
        done(home, pattern(), n)
    return home


def test_a_late_file_is_named_on_the_days_that_read_it(computed: Home) -> None:
    landed(computed, "late.csv", first=1)
    change(computed, 1)
    assert whys(computed, pattern()) == dict.fromkeys((1, 2), "late or corrected file: late.csv")
    done(computed, pattern(), 1)
    assert whys(computed, pattern()) == {2: "late or corrected file: late.csv"}, "day 1 is computed from it"


def test_many_files_are_counted(computed: Home) -> None:
    landed(computed, "e.csv", "d.csv", "c.csv", "b.csv", "a.csv", first=3)
    change(computed, 3)
    assert whys(computed, pattern(window=1))[3] == "late or corrected files: a.csv, b.csv, c.csv and 2 more"


def test_a_file_that_was_overwritten_or_replaced_is_named_on_the_days_that_lost_rows(computed: Home) -> None:
    landed(computed, "d1.csv", first=4, file_id="new", file_date=day(1))
    landed(computed, "d2_r2.csv", first=4, file_date=day(2))
    change(computed, 1, 2, 4)
    found = whys(computed, pattern(window=1))
    assert found[1] == "late or corrected file: d1.csv"
    assert found[2] == "late or corrected files: d1.csv, d2_r2.csv", "what d1 moved lies on either side of day 2"
    assert found[4] == "late or corrected files: d1.csv, d2_r2.csv"


def test_the_same_content_under_another_name_is_not_named(computed: Home) -> None:
    landed(computed, "copy.csv", first=1, file_id="of d1.csv")
    change(computed, 1)
    assert whys(computed, pattern(window=1))[1] == UNKNOWN


def test_files_read_again_after_an_edit_of_the_source_are_not_listed(computed: Home) -> None:
    for n in range(5):
        landed(computed, f"d{n}.csv", first=n, file_date=day(n), definition_hash="d2")
    landed(computed, "late.csv", first=2)
    change(computed, *range(5))
    found = whys(computed, pattern(window=1))
    assert found[0] == REDEFINED
    assert found[2] == f"{REDEFINED}, late or corrected file: late.csv"


def test_a_file_without_rows_that_empties_a_day(computed: Home) -> None:
    nothing: dict[str, Any] = {"first_ts": None, "last_ts": None, "file_id": "empty", "file_date": date(2025, 10, 4)}
    landed(computed, "d3.csv", first=3, **nothing)
    change(computed, 3)
    assert whys(computed, pattern(window=1))[3] == "late or corrected file: d3.csv"
