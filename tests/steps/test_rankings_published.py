"""Published rankings: what is lost is found, views show them, audits judge them, and what no lake can rank."""

from __future__ import annotations

import random
import shutil
from datetime import date

import pytest

import chainlake as cl
from chainlake.catalog.patterns import load_patterns
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.detect.rankings import run as merging
from chainlake.detect.rankings.validated import validate_rankings
from chainlake.errors import AuditFailed
from chainlake.lake.delta import tables
from chainlake.lake.delta.reader import open_table
from chainlake.operations.check import Scope
from chainlake.operations.maintain import maintain
from chainlake.operations.repair import repair
from chainlake.operations.retire import retire
from chainlake.paths import Home
from chainlake.quality import Audit
from tests.steps.history import day, deliver
from tests.steps.in_process import backfill, run, states
from tests.steps.test_rankings import (
    ALL,
    PATTERNS,
    RISES,
    SPAN,
    events_of,
    expected,
    in_this_process,
    lived_in,
    made,
    published,
)

pytestmark = pytest.mark.slow

__all__ = ["in_this_process"]


def test_lost_rows_are_found_and_merged_again(home: Home) -> None:
    lived, contents = lived_in(home)
    whole = published(lived, "weeks")
    open_table(lived, "ranked", "weeks", to_write=True).delete("rank > 1")
    checked, repaired = repair(lived, run_id="c", scope=Scope(tables=("ranked.weeks",)), say=lambda line: None)
    assert any("published" in one.what for one in checked.damage)
    assert any(line.startswith("ranked/weeks: ") for line in repaired.done)
    version = tables.version(lived, "matches", "weeks")
    backfill(lived, None, only_stale=True)
    assert published(lived, "weeks") == whole == expected(PATTERNS["weeks"], contents)
    assert tables.version(lived, "matches", "weeks") == version
    shutil.rmtree(lived.table("ranked", "weeks"))
    backfill(lived, None, only_stale=True)
    assert published(lived, "weeks") == whole
    assert maintain(lived, run_id="m", only=["ranked.weeks"])["tables"] == 1
    (lived.config / "patterns" / "weeks.sase").unlink()
    assert retire(lived, "weeks", drop=True, run_id="y")["dropped"] == ["ranked.weeks", "matches.weeks"]


@pytest.mark.parametrize("in_this_process", [{"ops_in_memory": False}], indirect=True)
def test_views_show_the_bound_events_and_where_rows_came_from(home: Home) -> None:
    lived, _ = lived_in(home)
    lake = cl.Lake(lived)
    rows = lake.sql(
        "SELECT rank, score, rise, q.x - p.x AS again, p.event_id AS first FROM ranked.weeks_matches"
    ).to_pylist()
    assert len(rows) == len(published(lived, "weeks")) and all(
        row["score"] == row["rise"] == row["again"] for row in rows
    )
    (origin,) = lake.sql("SELECT DISTINCT day, published_by FROM ranked.weeks_origin WHERE rank = 2").to_pylist()[:1]
    assert origin["published_by"].startswith("b")
    assert lake.sql("SELECT count(*) AS n FROM matches.all").to_pylist()[0]["n"] > 0


@pytest.mark.parametrize("in_this_process", [{"audits": True}], indirect=True)
def test_a_ranking_that_the_matches_do_not_give_is_not_published(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(home, weeks=PATTERNS["weeks"])
    deliver(found, {number: events_of(random.Random(f"d{number}"), number) for number in range(SPAN)})
    whole = merging.ranked_rows
    monkeypatch.setattr(merging, "ranked_rows", lambda *given: whole(*given).slice(1))
    with pytest.raises(AuditFailed, match="the ranks of a list are 1, 2, 3 and so on"):
        backfill(found, ALL)
    assert ("ranked", "audit_failed") in states(found) and ("pattern", "done") in states(found)


@pytest.mark.parametrize("in_this_process", [{"audits": True}], indirect=True)
def test_published_rankings_are_validated_again(home: Home) -> None:
    lived = made(home, ever=PATTERNS["ever"])
    deliver(lived, {number: events_of(random.Random(f"d{number}"), number) for number in range(2)})
    run(lived, Days(day(0), day(2)), repair_horizon=0)
    patterns = load_patterns(lived, load_sources(lived))[0]

    def validated() -> dict[date, str]:
        # A period that began before the days is looked at, too.
        (outcome,) = validate_rankings(Audit(lived), patterns, Days.one(day(1)))
        assert outcome.what == "ranked/ever" and outcome.days == (date(1970, 1, 1),)
        return outcome.broken

    assert validated() == {}
    last = max(tables.arrow(lived, "ranked", "ever")["rank"].to_pylist())
    open_table(lived, "ranked", "ever", to_write=True).delete(f"rank = {last}")
    assert "every match that is left out is excluded by a kept one" in validated()[date(1970, 1, 1)]


@pytest.mark.parametrize(
    ("query", "what"),
    [
        (f"{RISES} RANK BY MAX(q.x) TOP 2 PER ALL NON OVERLAPPING", "keeps every ranked match of a period"),
        (f"{RISES} RANK BY MAX(q.x) TOP 2 PER BUCKET 40 d NON OVERLAPPING", "keeps every ranked match of a period"),
        (f"{RISES} MEASURES q.x AS score_1 RANK BY MAX(q.x) TOP 2 PER DAY", "score_1 is a column of the match table"),
    ],
)
def test_what_a_lake_cannot_rank_is_refused_by_name(home: Home, query: str, what: str) -> None:
    _, (bad,) = load_patterns(made(home, odd=query), load_sources(made(home, odd=query)))
    assert what in str(bad.error) and bad.error.line and bad.error.column and bad.error.hint
