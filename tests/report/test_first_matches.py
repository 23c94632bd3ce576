"""What ``make run`` shows of its first matches while the rest is at work."""

from __future__ import annotations

import re
import time
from datetime import date
from pathlib import Path

import pytest

from chainlake.lake.records import ops
from chainlake.local.run.chain import DagRun
from chainlake.local.run.first import First, first_matches
from chainlake.paths import Home

pytestmark = pytest.mark.slow


def ended(day: date, dag_id: str = "", state: str = "success") -> DagRun:
    """A run of a day that has ended."""
    return DagRun(dag_id or "detect_road", "road", day, state, asked=True)


def waited(first: First) -> str:
    """What is said in the end."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if said := first.said():
            return said
        time.sleep(0.05)
    raise AssertionError("nothing was said")


def day_with_matches(home: Home) -> date:
    """A day on which a pattern has matches."""
    rows = [row for row in ops.current(home, "intervals") if row["definition"].startswith("pattern/") and row["rows"]]
    return min(row["day"] for row in rows)


def test_first_matches_are_rows_of_the_table_with_the_page_that_draws_them(own: Home) -> None:
    day = day_with_matches(own)
    said = "\n".join(first_matches(own, ended(day)))
    count, pattern = re.search(r"^first matches, (\d+) of (\w+) on ", said).groups()
    current = ops.current(own, "intervals", definition=f"pattern/{pattern}")
    assert [row["rows"] for row in current if row["day"] == day] == [int(count)]
    page = Path(said.rpartition("drawn on ")[2])
    assert page.is_file() and page.stem == pattern
    assert first_matches(own, ended(date(1999, 1, 1))) == []


def test_they_are_said_once_and_of_a_day_that_has_some(own: Home) -> None:
    day, first = day_with_matches(own), First(own)
    first.look(ended(day, "ingest_road"))
    first.look(ended(day, state="failed"))
    first.look(ended(date(1999, 1, 1)))
    assert first._thread is not None
    first._thread.join(60)
    assert first.said() == ""
    first.look(ended(day))
    assert f"on {day}:" in waited(first)
    first.look(ended(day))
    assert first.said() == ""


def test_a_lake_that_cannot_be_read_is_one_line(own: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    log = next(path for path in own.root.rglob("_delta_log/*.json") if "intervals" in str(path))
    log.write_text("{")
    first = First(own)
    first.look(ended(day=date(2025, 1, 1)))
    said = waited(first)
    assert said.startswith("the first matches cannot be shown: ") and "\n" not in said and "intervals" in said
