"""Chained days and rankings by Spark's tasks and back end, with all audits: the same rows as one evaluation."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from chainlake.catalog.patterns import load_patterns
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.detect.rankings.validated import validate_rankings
from chainlake.detect.step import detect
from chainlake.lake.records import ops
from chainlake.paths import Home
from chainlake.quality import Audit
from chainlake.quality.published import matches
from tests.steps import test_rankings as rankings
from tests.steps.consuming import KINDS, events_of, published
from tests.steps.history import day, deliver
from tests.steps.test_chained_matches import made

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

SPAN = 4
ALL = Days(day(0), day(SPAN))


@pytest.mark.on_spark("chronicle-spark")
@pytest.mark.parametrize("engine", ["files", "spark"])
@pytest.mark.parametrize("names", [("chronicle",), ("chronicle", "cumulative", "continuous")], ids=["chronicle", "all"])
def test_chained_days_by_spark(
    spark: SparkSession, home: Home, monkeypatch: pytest.MonkeyPatch, engine: str, names: tuple[str, ...]
) -> None:
    monkeypatch.setenv("CHAINLAKE_ENGINE", engine)
    rng = random.Random(engine)
    for name in names:
        lake = made(home, name, KINDS[name].text())
    contents = {n: events_of(rng, n, 8) for n in range(SPAN)}
    deliver(lake, {n: contents[n] for n in range(3)})
    assert detect(lake, "lab", Days(day(0), day(3)), run_id="first")["days"] == 3 * len(names)
    contents[1] = events_of(rng, 1, 8)
    deliver(lake, {n: contents[n] for n in (1, 3)})
    detect(lake, "lab", ALL, run_id="second")
    events = [row for rows in contents.values() for row in rows]
    for name in names:
        assert published(lake, name, KINDS[name]) == KINDS[name].expected(events), name
    assert {row["status"] for row in ops.current(lake, "intervals")} == {"done"}
    patterns = load_patterns(lake, load_sources(lake))[0]
    assert [one.broken for one in matches(Audit(lake), patterns, ALL)] == [{}] * len(names)


@pytest.mark.on_spark()
def test_the_best_matches_by_spark(spark: SparkSession, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINLAKE_ENGINE", "spark")
    lake = rankings.made(home, weeks=rankings.PATTERNS["weeks"])
    contents = {n: rankings.events_of(random.Random(f"s{n}"), n) for n in range(3)}
    deliver(lake, contents)
    days = Days(day(0), day(3))
    assert detect(lake, "lab", days, run_id="first")["days"] >= 3
    wanted = rankings.expected(rankings.PATTERNS["weeks"], contents)
    assert wanted and rankings.published(lake, "weeks") == wanted
    strategies = {row["strategy"] for row in ops.current(lake, "plans") if row["strategy"]}
    assert strategies == {"C"}
    patterns = load_patterns(lake, load_sources(lake))[0]
    assert [one.broken for one in validate_rankings(Audit(lake), patterns, days)] == [{}]
