"""The detect step on real Spark and Delta: exact sets, isolation of failures, and nothing done twice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import jobs.steps.detect_run as detect_run
from jobs.days import Days
from jobs.errors import AuditFailed, DefinitionError, LimitExceeded, UsageError
from jobs.lake import ops, tables
from jobs.paths import Home
from jobs.steps.detect import detect
from tests.shipped.brute_force import PATTERNS, decision_day
from tests.shipped.shipped_data import by_key, shipped
from tests.steps.conftest import DAY

Add = Callable[[str, str], Path]

PAIR = """---
source: stock
{more}---
PATTERN SEQ(Bar a, Bar b)
WHERE a.ticker = IBM AND b.ticker = IBM AND a.close > a.open AND b.close > a.close
WITHIN {window}
"""


def pair(window: str = "2 min", more: str = "") -> str:
    """A small pattern text."""
    return PAIR.format(window=window, more=more)


def rows(home: Home, pattern: str) -> list[dict[str, Any]]:
    """Published matches."""
    return tables.arrow(home, "matches", pattern).to_pylist()


def statuses(home: Home, pattern: str) -> dict[date, str]:
    """Current status per day."""
    return {row["day"]: row["status"] for row in ops.current(home, "intervals", definition=f"pattern/{pattern}")}


@pytest.mark.parametrize("name", ["shakeout", "three_pushes", "fall_not_recovered"])
def test_published_matches_are_those_of_plain_loops(stock_home: Home, add_pattern: Add, name: str) -> None:
    add_pattern(name, name)
    result = detect(stock_home, "stock", DAY, run_id="r1")
    loops = PATTERNS[name][1](by_key(shipped("stock"), "stock"))
    wanted = {
        frozenset((n, e["ticker"], e["ts"]) for n, e in match.items())
        for match in loops
        if decision_day(match) == "2013-10-07"
    }
    names = [field.name for field in tables.arrow(stock_home, "matches", name).schema][4:]
    micros = {row["match_id"]: row for row in rows(stock_home, name)}
    found = {
        frozenset((n, row[n]["ticker"], int(row[n]["ts"].timestamp() * 1_000_000)) for n in names)
        for row in micros.values()
    }
    assert found == wanted and len(wanted) == result["added"] > 0


def test_a_second_run_finds_nothing_to_do_and_starts_no_session(
    stock_home: Home, add_pattern: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_pattern("pair", pair())
    assert detect(stock_home, "stock", DAY, run_id="r1")["days"] == 1
    before = tables.version(stock_home, "matches", "pair")

    def no_session(*_: object, **__: object) -> None:
        raise AssertionError("a run with nothing to do started Spark")

    monkeypatch.setattr(detect_run, "spark_session", no_session)
    assert detect(stock_home, "stock", DAY, run_id="r2")["days"] == 0
    assert tables.version(stock_home, "matches", "pair") == before
    assert [r["status"] for r in ops.current(stock_home, "runs", source="stock") if r["run_id"] == "r2"] == ["nothing"]


def test_an_edited_window_publishes_only_the_difference(stock_home: Home, add_pattern: Add) -> None:
    add_pattern("pair", pair("2 min"))
    detect(stock_home, "stock", DAY, run_id="r1")
    narrow = {row["match_id"] for row in rows(stock_home, "pair")}
    add_pattern("pair", pair("3 min"))
    result = detect(stock_home, "stock", DAY, run_id="r2")
    wide = {row["match_id"] for row in rows(stock_home, "pair")}
    assert narrow < wide
    assert (result["added"], result["withdrawn"], result["changed"]) == (len(wide - narrow), 0, 0)


def test_a_new_output_column_opens_a_new_table_version(stock_home: Home, add_pattern: Add) -> None:
    add_pattern("pair", pair())
    detect(stock_home, "stock", DAY, run_id="r1")
    add_pattern("pair", pair(more="output: [volume]\n"))
    detect(stock_home, "stock", DAY, run_id="r2")
    assert len(rows(stock_home, "pair/v2")) == len(rows(stock_home, "pair")) > 0
    assert "volume" in rows(stock_home, "pair/v2")[0]["a"] and "volume" not in rows(stock_home, "pair")[0]["a"]


def test_a_broken_pattern_is_named_with_its_place_and_the_others_publish(
    stock_home: Home, add_pattern: Add
) -> None:
    add_pattern("pair", pair())
    broken = add_pattern("broken", pair().replace("a.close > a.open", "a.klose > a.open"))
    with pytest.raises(DefinitionError) as raised:
        detect(stock_home, "stock", DAY, run_id="r1")
    assert (raised.value.file, raised.value.line) == (str(broken), 5)
    assert "close" in str(raised.value)
    assert statuses(stock_home, "pair") == {date(2013, 10, 7): "done"}
    assert not tables.exists(stock_home, "matches", "broken")


def test_a_limit_fails_its_pattern_loudly_and_no_other(stock_home: Home, add_pattern: Add) -> None:
    add_pattern("pair", pair())
    add_pattern("greedy", pair("1 h", "limits: {matches_per_day: 10}\n"))
    with pytest.raises(LimitExceeded, match="10"):
        detect(stock_home, "stock", DAY, run_id="r1")
    assert statuses(stock_home, "greedy") == {date(2013, 10, 7): "failed"}
    assert not tables.exists(stock_home, "matches", "greedy")
    assert statuses(stock_home, "pair") == {date(2013, 10, 7): "done"}


def test_a_failed_audit_publishes_nothing_and_is_shown(
    stock_home: Home, add_pattern: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_pattern("pair", pair())
    honest = detect_run.audit_matches

    def planted(audit: Any, pattern: Any, staged: Any, days: Any, events: Any) -> dict[date, str | None]:
        from pyspark.sql import functions as F

        late = staged.withColumn("end_ts", F.expr("end_ts + INTERVAL 1 HOUR"))
        return honest(audit, pattern, late, days, events)

    monkeypatch.setattr(detect_run, "audit_matches", planted)
    with pytest.raises(AuditFailed, match="2013-10-07"):
        detect(stock_home, "stock", DAY, run_id="r1")
    assert statuses(stock_home, "pair") == {date(2013, 10, 7): "audit_failed"}
    assert not tables.exists(stock_home, "matches", "pair") or not rows(stock_home, "pair")


def test_the_order_comes_from_measured_rates_and_the_front_matter_wins(stock_home: Home, add_pattern: Add) -> None:
    text = pair().replace("a.ticker = IBM", "a.ticker = SPY")
    add_pattern("pair", text)
    add_pattern("declared", text.replace("---\nPATTERN", "rates: {a: 1, b: 2}\n---\nPATTERN", 1))
    detect(stock_home, "stock", DAY, run_id="r1")
    plans = {row["definition"]: row for row in ops.current(stock_home, "plans")}
    measured, declared = plans["pattern/pair"], plans["pattern/declared"]
    # SPY has 828 bars that day, IBM 453, so the rarer b is bound first unless the file says otherwise.
    assert (measured["how"], measured["join_order"]) == ("measured", ["b a"])
    assert (declared["how"], declared["join_order"]) == ("declared", ["a b"])
    assert measured["matches"] == declared["matches"] == len(rows(stock_home, "pair"))
    assert '"ingested": {"a": 828.0, "b": 453.0}' in measured["stated"]


def test_an_unknown_source_or_pattern_is_a_usage_error(stock_home: Home, add_pattern: Add) -> None:
    add_pattern("pair", pair())
    with pytest.raises(UsageError, match="no source 'stocks'"):
        detect(stock_home, "stocks", DAY, run_id="r1")
    with pytest.raises(UsageError, match="no pattern nil"):
        detect(stock_home, "stock", DAY, run_id="r1", patterns=["nil"])


def test_days_before_the_first_event_that_are_asked_for_are_waiting_not_done(
    stock_home: Home, add_pattern: Add
) -> None:
    add_pattern("pair", pair())
    result = detect(stock_home, "stock", Days.parse("2013-09-01", "2013-09-02"), run_id="r1")
    assert result["days"] == 0 and statuses(stock_home, "pair") == {}
