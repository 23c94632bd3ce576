"""What ``make run`` shows of its first matches while the rest is at work."""

from __future__ import annotations

import re
import shutil
from datetime import date
from pathlib import Path

import pytest

from chainlake.lake.records import ops
from chainlake.local.run.chain import DagRun
from chainlake.local.run.first import First, first_matches
from chainlake.paths import Home
from chainlake.report.make import make_report

pytestmark = pytest.mark.slow


def ended(day: date, dag_id: str = "", state: str = "success") -> DagRun:
    """A run of a day that has ended."""
    return DagRun(dag_id or "detect_road", "road", day, state, asked=True)


def waited(first: First) -> str:
    """What is said in the end."""
    assert first._thread is not None
    first._thread.join(60)
    assert not first._thread.is_alive()
    return "\n".join(first.said())


def day_with_matches(home: Home) -> date:
    """A day on which a pattern has matches."""
    rows = [row for row in ops.current(home, "intervals") if row["definition"].startswith("pattern/") and row["rows"]]
    return min(row["day"] for row in rows)


def test_first_matches_are_rows_of_the_table_with_the_page_that_draws_them(own: Home) -> None:
    day = day_with_matches(own)
    rows, drawn = first_matches(own, ended(day))
    count, pattern = re.search(r"^first matches, (\d+) of (\w+) on ", rows).groups()
    current = ops.current(own, "intervals", definition=f"pattern/{pattern}")
    assert [row["rows"] for row in current if row["day"] == day] == [int(count)]
    # A speed of 60 is said with the digits that it has, not with those of its type.
    assert re.search(r" \d\d\n| \d\d ", rows) and not re.search(r"\d\.0\b", rows)
    page = Path(drawn.rpartition("drawn on ")[2])
    assert page.is_file() and page.stem == pattern
    assert list(first_matches(own, ended(date(1999, 1, 1)))) == []


def test_rows_are_said_before_any_page_is_made_and_then_only_theirs_is(own: Home) -> None:
    report = own.root / "report"
    shutil.rmtree(report)
    telling = first_matches(own, ended(day_with_matches(own)))
    pattern = re.search(r" of (\w+) on ", next(telling)).group(1)
    assert not report.exists()
    next(telling)
    assert [path.stem for path in [*report.glob("patterns/*.html"), *report.glob("models/*.html")]] == [pattern]
    # The first page says which pages are still to come, and the next report makes them.
    assert "the page of model/mean is older than its days" in (report / "index.html").read_text()
    assert len(make_report(own).made) == 2


def test_they_are_said_once_and_of_a_day_that_has_some(own: Home) -> None:
    day, first = day_with_matches(own), First(own)
    first.look(ended(day, "ingest_road"))
    first.look(ended(day, state="failed"))
    first.look(ended(date(1999, 1, 1)))
    assert waited(first) == ""
    first.look(ended(day))
    assert f"on {day}:" in waited(first)
    first.look(ended(day))
    assert first.said() == []


def test_a_lake_that_cannot_be_read_is_one_line(own: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    log = next(path for path in own.root.rglob("_delta_log/*.json") if "intervals" in str(path))
    log.write_text("{")
    first = First(own)
    first.look(ended(day=date(2025, 1, 1)))
    said = waited(first)
    assert said.startswith("the first matches cannot be shown: ") and "\n" not in said and "intervals" in said
