"""The gate of match tables: good rows pass, and every expectation goes red on a row planted against it.

Spark measures the rows; what the suite says of measured rows is tried on pandas frames, and once on both.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import chainlake.quality.matches.gate as matches_gate
from chainlake.paths import Home
from chainlake.quality import Audit, AuditResult, MatchRules, audit_matches
from chainlake.quality.matches.extremes import extremes_of, tell_all
from chainlake.quality.matches.gate import judge, suite_params
from chainlake.quality.matches.measures import measured_rows, measures, small_measures
from chainlake.quality.templates import template_path
from chainlake.schemas.matches import MatchName, MatchShape, matches_table
from chainlake.schemas.table import TIMESTAMP

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

DAYS = [date(2013, 10, 7), date(2013, 10, 8)]
T0 = datetime(2013, 10, 7, 13, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FIELDS = (("event_id", pa.string()), ("ts", TIMESTAMP), ("type", pa.string()), ("ticker", pa.string()))
NAMES = (MatchName("a", False, FIELDS), MatchName("b", True, FIELDS), MatchName("c", False, FIELDS))
TABLE = matches_table(MatchShape("p", 1, "stock", NAMES))
AB, ABC = frozenset({"a", "b"}), frozenset({"a", "b", "c"})
#: OR(SEQ(A a, B+ b), SEQ(A a, B+ b, C c)) within ten minutes.
RULES = MatchRules(
    "p", 600_000_000, False, {"a": False, "b": True, "c": False},
    ((AB, frozenset({("a", "b")})), (ABC, frozenset({("a", "b"), ("b", "c"), ("a", "c")}))),
)  # fmt: skip


def event(number: int, minute: int, day: int = 0) -> dict[str, Any]:
    return {"event_id": f"e{number}", "ts": T0 + day * timedelta(days=1) + minute * MINUTE, "type": "B", "ticker": "X"}


def match(number: int, day: int = 0) -> dict[str, Any]:
    """a at 0, b at 1 and 2, c at 3 minutes: events 10·number and the following."""
    events = [event(10 * number + i, i, day) for i in range(4)]
    return {
        "match_id": f"{number:032x}",
        "decision_ts": events[3]["ts"],
        "start_ts": events[0]["ts"],
        "end_ts": events[3]["ts"],
        "a": events[0],
        "b": events[1:3],
        "c": events[3],
    }


GOOD = [match(1), match(2), match(3, day=1)]


def frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    from chainlake.lake.spark.types import spark_schema

    schema = pa.schema([pa.field(f.name, f.type) for f in TABLE.arrow()])
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema), spark_schema(schema)).coalesce(1)


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    root = tmp_path_factory.mktemp("quality")
    return Audit(Home(root=root, lake=str(root / "lake"), config=root, cache=root))


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(f"e{n}",) for n in range(100)], "event_id string").persist()


@pytest.fixture(scope="module")
def good(spark: SparkSession, events: DataFrame) -> pd.DataFrame:
    """The good rows, measured."""
    measured = small_measures(RULES, frame(spark, GOOD), events, 10)
    assert measured is not None
    return measured


@pytest.fixture(scope="module")
def broken(spark: SparkSession, events: DataFrame) -> pd.DataFrame:
    """All planted rows and good ones, measured."""
    measured = small_measures(RULES, frame(spark, [*planted(), *GOOD[1:]]), events, 100)
    assert measured is not None
    return measured


def test_good_rows_pass(audit: Audit, spark: SparkSession, events: DataFrame) -> None:
    two_names = {**match(4), "c": None, "end_ts": T0 + 2 * MINUTE, "decision_ts": T0 + 2 * MINUTE}
    assert audit_matches(audit, RULES, frame(spark, [*GOOD, two_names]), DAYS, events) == dict.fromkeys(DAYS)


def test_no_rows_pass(audit: Audit, good: pd.DataFrame) -> None:
    assert judge(audit, RULES, good[:0], DAYS) == dict.fromkeys(DAYS)


def test_matches_that_wait_decide_at_the_end_of_the_window(
    audit: Audit, spark: SparkSession, events: DataFrame, good: pd.DataFrame
) -> None:
    waiting = MatchRules("p", RULES.window_us, True, RULES.names, RULES.branches)
    late = [{**row, "decision_ts": row["start_ts"] + 10 * MINUTE} for row in GOOD]
    assert audit_matches(audit, waiting, frame(spark, late), DAYS, events) == dict.fromkeys(DAYS)
    early = judge(audit, waiting, good.assign(decision_off_us=-420_000_000), DAYS)
    assert "decision_ts is start_ts + W" in str(early)


def _later(row: dict[str, Any]) -> None:
    """c eleven minutes after a, all else in line with it."""
    row["c"]["ts"] = row["end_ts"] = row["decision_ts"] = T0 + 11 * MINUTE


def _swapped(row: dict[str, Any]) -> None:
    row["b"][1]["ts"], row["c"]["ts"] = row["c"]["ts"], row["b"][1]["ts"]


def _tie(row: dict[str, Any]) -> None:
    """Strictly before means that equal times are out of order."""
    row["b"][0]["ts"] = T0


#: What is broken in a row → (how, words of the expectation that must name it).
PLANTED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no match_id": (lambda r: r.update(match_id=None), "every match has an id"),
    "no decision_ts": (lambda r: r.update(decision_ts=None), "every match has a decision time"),
    "no start_ts": (lambda r: r.update(start_ts=None), "every match has a start"),
    "no end_ts": (lambda r: r.update(end_ts=None), "every match has an end"),
    "no event id": (lambda r: r["a"].update(event_id=None), "every bound event has an id"),
    "no event id in an array": (lambda r: r["b"][0].update(event_id=None), "every bound event has an id"),
    "same key twice": (lambda r: r.update(match_id=f"{2:032x}"), "(match_id, decision_ts) is unique"),
    "too long": (_later, "the match fits into the window"),
    "wrong start": (lambda r: r.update(start_ts=T0 + MINUTE), "start_ts is the time of the earliest"),
    "wrong end": (lambda r: r.update(end_ts=T0 + 4 * MINUTE, decision_ts=T0 + 4 * MINUTE), "end_ts is the time of"),
    "wrong decision": (lambda r: r.update(decision_ts=T0 + 5 * MINUTE), "decision_ts is end_ts"),
    "a name missing": (lambda r: r.update(b=None), "exactly the names of one branch"),
    "an empty array": (lambda r: r.update(b=[]), "exactly the names of one branch"),
    "out of order": (_swapped, "keep the order of the pattern"),
    "a tie": (_tie, "keep the order of the pattern"),
    "an event twice": (lambda r: r["b"][1].update(event_id="e10"), "no event is bound twice"),
    "an unknown event": (lambda r: r["c"].update(event_id="e999"), "every bound event exists"),
}


def planted() -> list[dict[str, Any]]:
    """One broken match per case, all on the first day; number 10 + position, unless the case takes its id away."""
    rows = []
    for number, (breaking, _) in enumerate(PLANTED.values(), 10):
        row = deepcopy(match(1))
        row["match_id"] = f"{number:032x}"
        breaking(row)
        rows.append(row)
    return rows


def test_each_broken_row_is_found_by_its_expectation(
    audit: Audit, broken: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All planted rows at once; every expectation must show the rows that were planted against it."""
    results: list[AuditResult] = []
    plain = Audit.run
    monkeypatch.setattr(Audit, "run", lambda *args, **kwargs: results.append(plain(*args, **kwargs)) or results[-1])
    outcome = judge(audit, RULES, broken, DAYS[:1])
    assert "every match has an id" in str(outcome[DAYS[0]]) and "\n" not in str(outcome[DAYS[0]])
    found = {failure.message: failure for failure in results[0].failures}
    for row, (case, (_, words)) in zip(planted(), PLANTED.items(), strict=True):
        failure = next((f for message, f in found.items() if words in message), None)
        assert failure is not None, case
        assert row["match_id"] in [example["match_id"] for example in failure.examples], (case, str(failure))
    said = {words for _, words in PLANTED.values()} | {"a day that this run owns"}
    assert {message for message in found if not any(words in message for words in said)} == set()


def test_rows_are_measured_alike_however_many_there_are(
    audit: Audit, spark: SparkSession, events: DataFrame, broken: pd.DataFrame
) -> None:
    """The way for large outputs gives the same measures, and the suite on Spark finds the same broken."""
    few = broken.astype(object).where(broken.notna(), None)
    with measures(RULES, frame(spark, [*planted(), *GOOD[1:]]), events) as measured:
        many = [row.asDict() for row in measured.collect()]
        params = suite_params(RULES, DAYS[:1])
        outcomes = [audit.run("matches", rows, params, "both", details=False) for rows in (measured, broken)]

    def sorted_rows(rows: list[dict[str, Any]]) -> list[str]:
        return sorted(str(sorted((name, str(value)) for name, value in row.items())) for row in rows)

    assert sorted_rows(many) == sorted_rows(few.to_dict("records"))
    assert outcomes[0] == outcomes[1] and len(outcomes[0].failures) > 10


def test_large_outputs_have_the_same_outcome(audit: Audit, spark: SparkSession, events: DataFrame) -> None:
    bad = {**match(1), "c": {**match(1)["c"], "event_id": "e999"}}
    staged = frame(spark, [bad, *GOOD[1:]]).persist()
    few, many = (audit_matches(audit, RULES, staged, DAYS, events, small=limit) for limit in (3, 2))
    assert few == many
    assert many[DAYS[1]] is None and "unknown_event=e999" in str(many[DAYS[0]])


def test_extremes_break_what_the_rows_break(audit: Audit, spark: SparkSession, broken: pd.DataFrame) -> None:
    """All but what is known before they are taken: a match that is there twice, an event that nobody knows."""
    measured = measured_rows(RULES, frame(spark, [*planted(), *GOOD[1:]])).selectExpr("*", "'e999' AS unknown_event")
    params = suite_params(RULES, DAYS[:1])
    frames = (extremes_of(measured), broken)
    seen, all_rows = (audit.run("matches", rows, params, "x", details=False) for rows in frames)
    assert [f.message for f in seen.failures] == [f.message for f in all_rows.failures]
    assert len(seen.failures) > 10


def test_good_rows_of_a_large_output_are_not_looked_at_one_by_one(
    audit: Audit, spark: SparkSession, events: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = frame(spark, GOOD).persist()
    plain = matches_gate.measures
    monkeypatch.setattr(matches_gate, "measures", lambda *_: pytest.fail("all rows were measured"))
    assert audit_matches(audit, RULES, staged, DAYS, events, small=0) == dict.fromkeys(DAYS)
    asked: list[int] = []
    monkeypatch.setattr(matches_gate, "measures", lambda *args: asked.append(1) or plain(*args))  # type: ignore[func-returns-value]
    outcome = audit_matches(audit, RULES, staged, DAYS[:1], events, small=0)
    assert asked == [1] and "a day that this run owns" in str(outcome)


def test_a_suite_with_other_expectations_sees_all_rows() -> None:
    suite = {"expectations": json.loads(template_path("matches").read_text())["expectations"]}
    assert tell_all(suite)
    for kind in ("expect_column_values_to_be_unique", "expect_column_values_to_be_in_set"):
        more = {"type": kind, "kwargs": {"column": "copies"}}
        assert not tell_all({"expectations": [*suite["expectations"], more]})


@pytest.mark.parametrize("small", [10, 0])
def test_names_may_be_those_of_measures(audit: Audit, spark: SparkSession, events: DataFrame, small: int) -> None:
    names = {"a": "copies", "b": "event_ids", "c": "unknown_event"}
    renamed = frame(spark, GOOD).withColumnsRenamed(names)
    branches = tuple(
        (frozenset(names[n] for n in bound), frozenset((names[x], names[y]) for x, y in order))
        for bound, order in RULES.branches
    )
    rules = replace(RULES, names={names[n]: kleene for n, kleene in RULES.names.items()}, branches=branches)
    assert audit_matches(audit, rules, renamed, DAYS, events, small=small) == dict.fromkeys(DAYS)
    twice = audit_matches(audit, rules, renamed.union(renamed), DAYS, events, small=small)
    assert all("is unique" in str(reason) for reason in twice.values())


def test_small_outputs_cost_three_spark_jobs(audit: Audit, spark: SparkSession, events: DataFrame) -> None:
    staged = frame(spark, GOOD).repartition(2).persist()
    staged.count(), events.count()
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.nextJobId()
    audit_matches(audit, RULES, staged, DAYS, events)
    assert scheduler.nextJobId() - before <= 3


def test_a_bad_day_alone_is_held_back(audit: Audit, good: pd.DataFrame) -> None:
    bad = good["match_id"] == f"{1:032x}"
    outcome = judge(audit, RULES, good.assign(unknown_event=[("e999" if row else None) for row in bad]), DAYS)
    assert outcome[DAYS[1]] is None
    reason = outcome[DAYS[0]] or ""
    assert "every bound event exists" in reason and "broken by 1 row" in reason
    assert f"match_id={1:032x}" in reason and "unknown_event=e999" in reason and "2013-10-07" in reason


def test_a_match_of_a_foreign_day_fails_every_day(audit: Audit, good: pd.DataFrame) -> None:
    foreign = good.assign(decision_day=[*good["decision_day"][:2], "2013-10-09"])
    outcome = judge(audit, RULES, foreign, DAYS)
    assert all("a day that this run owns" in (reason or "") for reason in outcome.values())


def test_a_missing_or_extra_column_fails_every_day(
    audit: Audit, spark: SparkSession, events: DataFrame, good: pd.DataFrame
) -> None:
    missing = audit_matches(audit, RULES, frame(spark, GOOD[:1]).drop("c"), DAYS, events)
    extra = judge(audit, RULES, good.assign(extra=1), DAYS)
    for outcome, words in ((missing, "missing=c"), (extra, "extra")):
        assert all("the columns are those of" in (reason or "") for reason in outcome.values())
        assert words in str(outcome)


def test_every_expectation_of_the_template_is_broken_here() -> None:
    said = [words for _, words in PLANTED.values()] + ["the columns are those of", "a day that this run owns"]
    for expectation in json.loads(template_path("matches").read_text())["expectations"]:
        described = expectation["description"].replace("$decision", "end_ts")
        assert any(words in described for words in said), described
