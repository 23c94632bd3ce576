"""Differences: insert, update, delete; nothing makes no version; late commits are refused."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from chainlake.errors import AuditFailed, InfrastructureError
from chainlake.lake.commits.difference import Applied, _append, apply_difference, difference, difference_arrow
from chainlake.lake.delta import tables
from chainlake.lake.spark.types import spark_schema
from chainlake.paths import Home
from tests.lake.things import DAY_US, THINGS, thing, things

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPARE = ["price", "a", "b"]
BEFORE = [thing("a"), thing("b", 1), thing("c", 2, None), thing("n", 3, float("nan"))]
AFTER = [thing("a"), thing("b", 1, 2.5), thing("d", 123_456), thing("n", 3, float("nan"))]


def _put(spark: SparkSession, home: Home, rows: list[dict[str, Any]], by: str = "arrow", **options: Any) -> Applied:
    """Make the table equal to ``rows``."""
    tables.ensure_table(home, THINGS)
    base = tables.version(home, "matches", "things")
    assert base is not None
    diff: Any
    if by == "arrow":
        diff = difference_arrow(tables.arrow(home, "matches", "things"), things(rows), ["id"], COMPARE)
    else:
        wanted = spark.createDataFrame(things(rows), spark_schema(THINGS.arrow()))
        diff = difference(tables.read(spark, home, "matches", "things", base), wanted, ["id"], COMPARE)
    bounds = ("ts", DAY_US, DAY_US + 1_000_000)
    return apply_difference(spark, home, THINGS, diff, purpose="test", base_version=base, bounds=bounds, **options)


def _rows(home: Home) -> list[dict[str, Any]]:
    return tables.arrow(home, "matches", "things").sort_by("id").to_pylist()


def _feed(spark: SparkSession, home: Home, version: int) -> list[tuple[str, str]]:
    changes = spark.read.format("delta").option("readChangeFeed", "true")
    frame = changes.option("startingVersion", version).option("endingVersion", version)
    rows = frame.load(home.table("matches", "things")).select("id", "_change_type").collect()
    return sorted((row.id, row._change_type) for row in rows)


@pytest.mark.parametrize("by", ["arrow", "spark"])
def test_the_table_becomes_what_is_wanted_and_the_feed_shows_just_the_difference(
    spark: SparkSession, home: Home, by: str
) -> None:
    assert _put(spark, home, BEFORE, by) == Applied(4, 0, 0, 1)
    assert _put(spark, home, BEFORE, by) == Applied(0, 0, 0, None)
    assert tables.version(home, "matches", "things") == 1
    assert _put(spark, home, AFTER, by) == Applied(1, 1, 1, 2)
    assert str(_rows(home)) == str(things(AFTER).sort_by("id").to_pylist())
    assert _feed(spark, home, 2) == [
        ("b", "update_postimage"),
        ("b", "update_preimage"),
        ("c", "delete"),
        ("d", "insert"),
    ]


def test_force_commits_an_empty_difference(spark: SparkSession, home: Home) -> None:
    _put(spark, home, BEFORE)
    assert _put(spark, home, BEFORE, force=True) == Applied(0, 0, 0, 2)


def test_rows_outside_the_bounds_are_an_error_and_not_ignored(spark: SparkSession, home: Home) -> None:
    for by in ("arrow", "spark"):
        with pytest.raises(ValueError, match="lie outside"):
            _put(spark, home, [thing("late", 5_000_000)], by)


def test_a_difference_taken_from_an_older_version_is_refused(spark: SparkSession, home: Home) -> None:
    _put(spark, home, BEFORE)
    diff = difference_arrow(things([]), things([thing("x")]), ["id"], COMPARE)
    with pytest.raises(InfrastructureError, match="another writer"):
        apply_difference(spark, home, THINGS, diff, purpose="test", base_version=0)


def test_the_late_commit_of_a_dead_attempt_does_not_land(spark: SparkSession, home: Home) -> None:
    """The dead attempt took its difference at version 0; its JVM gets to commit after the retry has finished."""
    _put(spark, home, BEFORE)
    late = spark.createDataFrame(things([thing("z")]), spark_schema(THINGS.arrow()))
    _append(THINGS, home.table("matches", "things"), late, 1, "test", 1, "late")
    assert tables.version(home, "matches", "things") == 1
    assert "z" not in [row["id"] for row in _rows(home)]


def test_a_skipped_commit_is_noticed(spark: SparkSession, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    _put(spark, home, BEFORE)
    from chainlake.lake.commits import difference as module

    append = module._append
    monkeypatch.setattr(module, "SMALL_APPEND", -1)  # through Spark, as a large append goes
    monkeypatch.setattr(module, "_append", lambda *a: append(*a[:5], 1, a[6]))  # a turn that is past: Delta skips
    with pytest.raises(InfrastructureError, match="another writer"):
        _put(spark, home, [*BEFORE, thing("y")])
    assert "y" not in [row["id"] for row in _rows(home)]


def test_a_broken_rule_is_named_with_its_row(spark: SparkSession, home: Home) -> None:
    with pytest.raises(AuditFailed, match=r"matches.things: CHECK constraint price_positive .* - price : -1.0"):
        _put(spark, home, [thing("a", price=-1.0)])
    assert _rows(home) == []


def test_arrow_difference_sees_nested_values_and_their_order() -> None:
    old = {"id": "a", "ts": datetime.datetime(2025, 10, 1, tzinfo=datetime.UTC), "price": None}
    one = {**old, "a": {"event_id": "e", "n": None}, "b": [{"event_id": "p"}, {"event_id": "q"}]}
    two = {**one, "b": [{"event_id": "q"}, {"event_id": "p"}]}
    assert difference_arrow(things([one]), things([one]), ["id"], COMPARE).num_rows == 0
    assert difference_arrow(things([one]), things([two]), ["id"], COMPARE)["_op"].to_pylist() == ["U"]
    assert difference_arrow(things([one]), things([{**one, "a": None}]), ["id"], COMPARE)["_op"].to_pylist() == ["U"]
    assert isinstance(difference_arrow(things([]), things([]), ["id"], COMPARE), pa.Table)
