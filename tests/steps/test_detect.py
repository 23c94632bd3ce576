"""The detect step on real Spark and Delta: exact sets, isolation of failures, and nothing done twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import chainlake.detect.division.counts as counts
import chainlake.detect.division.cut as cut
import chainlake.detect.order as order_choice
import chainlake.detect.run as detect_run
import chainlake.detect.step as detect_step
import chainlake.lake.delta.data_files as data_files
from chainlake.cep.events.history import add_histories
from chainlake.cep.library import as_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.days import Days
from chainlake.definitions.source import find_source
from chainlake.detect.division.counts import Counting
from chainlake.detect.division.cut import slice_of
from chainlake.detect.step import detect
from chainlake.errors import AuditFailed, DefinitionError, LimitExceeded, UsageError
from chainlake.lake import faults
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.sql.scan import list_tables
from chainlake.lake.store.event_files import EventFiles
from chainlake.lake.store.files import FilesLake
from chainlake.paths import PROJECT, Home
from chainlake.quality import MatchFiles, Verdict
from chainlake.run.tasks import LocalTasks
from tests.shipped.brute_force import PATTERNS, decision_day
from tests.shipped.shipped_data import by_key, shipped
from tests.steps.conftest import DAY

pytestmark = pytest.mark.slow

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


@pytest.mark.on_spark()
@pytest.mark.parametrize(
    ("name", "large"),
    [
        ("shakeout", False),
        ("three_pushes", False),
        ("fall_not_recovered", False),
        ("three_pushes", True),
        pytest.param("three_pushes", True, marks=pytest.mark.spark, id="three_pushes-by_spark"),
    ],
)
def test_published_matches_are_those_of_plain_loops(
    stock_home: Home, add_pattern: Add, monkeypatch: pytest.MonkeyPatch, name: str, large: bool
) -> None:
    """Of small inputs and outputs, and as if they were large: counted and found by many tasks, and not in memory."""
    add_pattern(name, name)
    if large:
        for module, limit in [
            (counts, "HERE_ROWS"), (cut, "NOT_CUT"), (order_choice, "WHOLE"), (data_files, "_ROWS_OF_A_FILE"),
        ]:  # fmt: skip
            monkeypatch.setattr(module, limit, 0)
    result = detect(stock_home, "stock", DAY, run_id="r1")
    loops = PATTERNS[name][1](by_key(shipped("stock"), "stock"))
    wanted = {
        frozenset((n, e["ticker"], e["ts"]) for n, e in match.items())
        for match in loops
        if decision_day(match) == "2013-10-07"
    }
    columns = tables.arrow(stock_home, "matches", name).schema
    names = [field.name for field in columns if pa.types.is_struct(field.type)]
    micros = {row["match_id"]: row for row in rows(stock_home, name)}
    found = {
        frozenset((n, row[n]["ticker"], int(row[n]["ts"].timestamp() * 1_000_000)) for n in names)
        for row in micros.values()
    }
    # Episodes are added beside the matches.
    merged = len(tables.arrow(stock_home, "episodes", name)) if tables.exists(stock_home, "episodes", name) else 0
    assert found == wanted and len(wanted) + merged == result["added"] > 0
    assert (merged > 0) is (name == "fall_not_recovered")


def test_measures_are_columns_of_the_published_table_and_an_edit_recomputes_them(
    stock_home: Home, add_pattern: Add
) -> None:
    add_pattern("pair", pair() + "MEASURES b.close - a.close AS rise, b.ts - a.ts AS took, b.ticker AS who\n")
    first = detect(stock_home, "stock", DAY, run_id="r1")
    found = rows(stock_home, "pair")
    assert first["added"] == len(found) > 0 and set(statuses(stock_home, "pair").values()) == {"done"}
    for row in found:
        assert row["rise"] == row["b"]["close"] - row["a"]["close"] > 0 and row["who"] == row["b"]["ticker"]
        assert row["took"] == (row["b"]["ts"] - row["a"]["ts"]) / timedelta(seconds=1)
    add_pattern("pair", pair() + "MEASURES a.close - b.close AS rise, b.ts - a.ts AS took, b.ticker AS who\n")
    detect(stock_home, "stock", DAY, run_id="r2")
    again = {row["match_id"]: row["rise"] for row in rows(stock_home, "pair")}
    assert again == {row["match_id"]: -row["rise"] for row in found}


def test_histories_reach_patterns_and_no_others(stock_home: Home, add_pattern: Add) -> None:
    shipped_text = (PROJECT / "dags" / "config" / "patterns" / "echo.sase").read_text()
    text = shipped_text.replace("alike: 0.95", "alike: 0.8")
    assert text != shipped_text
    (stock_home.config / "patterns" / "echo.sase").write_text(text)
    add_pattern("pair", pair())
    detect(stock_home, "stock", DAY, run_id="r1")
    source = find_source(stock_home, "stock")
    events = add_histories(tables.arrow(stock_home, "events", "stock"), [source.key], source.derived)
    pattern = compile_pattern(text, columns=source.pattern_columns(), series=source.series)
    ids = events["event_id"].to_pylist()
    wanted = [m for b in find(pattern, events, own=DAY.micros()) for m in as_dicts(pattern, b, ids)]
    found = [{"market": r["market"]["event_id"], "share": r["share"]["event_id"]} for r in rows(stock_home, "echo")]
    assert sorted(map(str, found)) == sorted(map(str, wanted)) != []
    assert set(rows(stock_home, "echo")[0]["share"]) == {"event_id", "ts", "type", "ticker", "close", "open"}
    assert statuses(stock_home, "pair") == {date(2013, 10, 7): "done"}


def test_a_second_run_finds_nothing_to_do_and_starts_no_session(
    stock_home: Home, add_pattern: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_pattern("pair", pair())
    assert detect(stock_home, "stock", DAY, run_id="r1")["days"] == 1
    before = tables.version(stock_home, "matches", "pair")

    def no_session(*_: object, **__: object) -> None:
        raise AssertionError("a run with nothing to do opened its ports")

    monkeypatch.setattr(detect_step, "open_ports", no_session)
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


def test_a_new_output_column_takes_the_place_of_the_old_table(stock_home: Home, add_pattern: Add) -> None:
    add_pattern("pair", pair())
    detect(stock_home, "stock", DAY, run_id="r1")
    before = {row["match_id"] for row in rows(stock_home, "pair")}
    assert before
    add_pattern("pair", pair(more="output: [volume]\n"))
    detect(stock_home, "stock", DAY, run_id="r2")
    version = tables.version(stock_home, "matches", "pair")
    assert list_tables(stock_home, "matches") == ["pair"] and "volume" in rows(stock_home, "pair")[0]["a"]
    assert {row["match_id"] for row in rows(stock_home, "pair")} == before
    assert {row["table_name"] for row in ops.current(stock_home, "intervals")} == {"matches.pair"}
    # Nothing is to do: the days are done in the table that they lie in.
    assert detect(stock_home, "stock", DAY, run_id="r3")["days"] == 0
    # Taken back, the edit gives the place its first columns again.
    add_pattern("pair", pair())
    detect(stock_home, "stock", DAY, run_id="r4")
    assert list_tables(stock_home, "matches") == ["pair"] and "volume" not in rows(stock_home, "pair")[0]["a"]
    assert tables.version(stock_home, "matches", "pair") == (version or 0) + 1
    assert {row["match_id"] for row in rows(stock_home, "pair")} == before


def test_a_step_ends_what_a_killed_one_began(
    stock_home: Home, add_pattern: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The columns are in the place already, and the days are still recorded under the other table."""
    add_pattern("pair", pair())
    detect(stock_home, "stock", DAY, run_id="r1")
    add_pattern("pair", pair(more="output: [volume]\n"))

    class Killed(BaseException):
        pass

    def end(status: int) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(faults.os, "_exit", end)
        patch.setenv("CHAINLAKE_FAULT", "place.commit.after")
        detect(stock_home, "stock", DAY, run_id="r2")
    recorded = {row["table_name"] for row in ops.current(stock_home, "intervals")}
    assert recorded == {"matches.pair/v2"} and "volume" in rows(stock_home, "pair")[0]["a"]
    assert detect(stock_home, "stock", DAY, run_id="r3")["days"] == 0
    assert list_tables(stock_home, "matches") == ["pair"]
    assert {row["table_name"] for row in ops.current(stock_home, "intervals")} == {"matches.pair"}


def test_a_broken_pattern_is_named_with_its_place_and_the_others_publish(stock_home: Home, add_pattern: Add) -> None:
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

    def planted(audit: Any, pattern: Any, files: MatchFiles, days: Any) -> Verdict:
        late = []
        for path in files.matches:
            found = pq.read_table(path)
            ends = pc.add(found["end_ts"], pa.scalar(timedelta(hours=1), pa.duration("us")))
            late.append(f"{path}.late")
            pq.write_table(found.set_column(found.column_names.index("end_ts"), "end_ts", ends), late[-1])
        return honest(audit, pattern, MatchFiles(late, files.events), days)

    monkeypatch.setattr(detect_run, "audit_matches", planted)
    with pytest.raises(AuditFailed, match="2013-10-07"):
        detect(stock_home, "stock", DAY, run_id="r1")
    assert statuses(stock_home, "pair") == {date(2013, 10, 7): "audit_failed"}
    assert not tables.exists(stock_home, "matches", "pair") or not rows(stock_home, "pair")


def test_the_order_comes_from_estimated_cost_and_the_front_matter_wins(stock_home: Home, add_pattern: Add) -> None:
    text = pair().replace("a.ticker = IBM", "a.ticker = SPY")
    add_pattern("pair", text)
    add_pattern("declared", text.replace("---\nPATTERN", "rates: {a: 2, b: 1}\n---\nPATTERN", 1))
    detect(stock_home, "stock", DAY, run_id="r1")
    plans = {row["definition"]: row for row in ops.current(stock_home, "plans")}
    estimated, declared = plans["pattern/pair"], plans["pattern/declared"]
    # SPY has 828 bars that day, IBM 453, but fewer of SPY's rise: a is bound first unless the file says otherwise.
    assert (estimated["how"], estimated["join_order"]) == ("estimated", ["a b"])
    assert (declared["how"], declared["join_order"]) == ("declared", ["b a"])
    assert estimated["matches"] == declared["matches"] == len(rows(stock_home, "pair"))
    stated = json.loads(estimated["stated"])
    assert stated["ingested"] == {"a": 828.0, "b": 453.0}
    assert stated["counted"]["a"] < stated["counted"]["b"] == 453 and list(stated["passing"][0]) == ["a b"]
    (costs,) = json.loads(estimated["estimated"])
    assert list(costs) == ["a b", "b a"]
    assert costs["a b"] == pytest.approx(estimated["evaluations"], rel=0.3)
    assert costs["b a"] == pytest.approx(declared["evaluations"], rel=0.3)
    assert estimated["regret"] == 0.0
    assert declared["regret"] == pytest.approx(declared["evaluations"] / estimated["evaluations"] - 1)


@pytest.mark.parametrize(("sample", "whole"), [(1_000, True), (5, False)])
def test_a_large_input_is_sampled_in_whole_buckets(
    stock_home: Home, monkeypatch: pytest.MonkeyPatch, sample: int, whole: bool
) -> None:
    """The plan of all rows, of some buckets, and of thinned buckets; whoever counts them."""
    text = (PROJECT / "dags" / "config" / "patterns" / "three_pushes.sase").read_text()
    pattern = compile_pattern(text, columns=find_source(stock_home, "stock").event_columns())
    files = EventFiles.of(FilesLake(stock_home).day_files("events", "stock", list(DAY)))
    ask = order_choice.ask_of(pattern, [slice_of(pattern, DAY.micros()).read])

    def chosen(tasks: LocalTasks) -> order_choice.Plan:
        counting = Counting(tasks, files, "ticker")
        (survey,) = counting.surveys([ask])
        draw = order_choice.draw_of(ask, survey, "ticker", 2_309)
        (rows,) = counting.draw([draw])
        return order_choice.choose_plan(draw, survey, rows, "ticker", [])

    exact = chosen(LocalTasks())
    monkeypatch.setattr(order_choice, "WHOLE", 0)
    monkeypatch.setattr(order_choice, "SAMPLE", sample)
    plan = chosen(LocalTasks())
    monkeypatch.setattr(counts, "HERE_ROWS", 0)
    assert plan == chosen(LocalTasks(3))
    assert sorted(plan.orders[0]) == ["a", "b", "c"]
    assert exact.regret is not None and exact.regret < 0.2
    assert (plan.regret is not None) == whole
    assert plan.stated["counted"] == exact.stated["counted"]


def test_buckets_are_few_spread_and_hold_every_name() -> None:
    counts = np.zeros((3, 1_000))
    counts[0] = 40
    counts[1] = 50
    counts[2, [7, 900]] = 1
    chosen, thinning = order_choice.draw_buckets(np.arange(counts.shape[1]), counts)
    assert {7, 900} <= set(chosen) and len(chosen) <= order_choice.SAMPLED_BUCKETS and thinning == [1, 1, 1]
    assert min(chosen) < 300 and max(chosen) > 700
    counts[:2] *= 1_000
    chosen, thinning = order_choice.draw_buckets(np.arange(counts.shape[1]), counts)
    assert chosen == [900] and thinning == [20, 25, 1]
    assert order_choice.draw_buckets(np.zeros(0, int), np.zeros((2, 0))) == ([], [1, 1])


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
