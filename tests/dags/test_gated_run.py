"""The daily chain as Airflow runs it, task by task in this process, on real Spark with a handful of events."""

from __future__ import annotations

import gzip
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chainlake.airflow import tasks
from chainlake.days import Days
from chainlake.lake.records import ops
from chainlake.paths import PROJECT, Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = date(2013, 10, 7)
#: A fall of one per cent and its recovery on higher volume; then a fall that stays.
BARS = """ticker,ts,open,high,low,close,volume
AIG,2013-10-07 10:00:00,50.00,50.00,49.40,49.50,100
AIG,2013-10-07 10:03:00,49.60,50.20,49.60,50.10,200
IBM,2013-10-07 10:00:00,180.0,180.0,178.0,178.0,100
IBM,2013-10-07 10:03:00,178.0,179.0,178.0,179.0,200
"""


@pytest.fixture
def small_home(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home with one source, one pattern and one landed file."""
    config = home.root / "config"
    for folder, name in (("sources", "stock.yaml"), ("patterns", "shakeout.sase")):
        (config / folder).mkdir(parents=True)
        shutil.copy(PROJECT / "dags" / "config" / folder / name, config / folder / name)
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(config))
    home.landing("stock").mkdir(parents=True)
    with gzip.open(home.landing("stock") / "us_equity_minute_trade_20131007.csv.gz", "wt") as file:
        file.write(BARS)
    return Home.from_env()


@pytest.fixture
def steps_that_ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Steps run in this process, on its Spark session; the list fills with those that ran."""
    from chainlake.detect.step import detect
    from chainlake.ingest.step import ingest

    ran: list[str] = []

    def run_step(verb: str, source: str, days: Days, *, run_id: str, **rest: Any) -> dict[str, Any]:
        ran.append(f"{verb} {days.start}")
        return {"ingest": ingest, "detect": detect}[verb](Home.from_env(), source, days, run_id=run_id)

    monkeypatch.setattr(tasks, "run_step", run_step)
    return ran


def run_day(dags: dict[str, Any], dag_id: str, day: date) -> str:
    """Run the DAG for ``day``, as by hand with a logical date within it. Returns the run's state."""
    return str(dags[dag_id].test(logical_date=datetime(day.year, day.month, day.day, 14, tzinfo=UTC)).state)


def test_a_day_through_ingest_and_detect(
    spark: SparkSession, airflow_database: Path, small_home: Home, steps_that_ran: list[str]
) -> None:
    from airflow.dag_processing.dagbag import DagBag

    dags = dict(DagBag(PROJECT / "dags").dags)
    assert run_day(dags, "ingest_stock", DAY) == "success"
    assert [row["rows"] for row in ops.current(small_home, "event_days", source="stock", day=DAY)] == [4]
    assert run_day(dags, "detect_stock", DAY) == "success"
    (done,) = ops.current(small_home, "intervals", definition="pattern/shakeout", day=DAY)
    assert (done["status"], done["rows"]) == ("done", 1)
    assert steps_that_ran == ["ingest 2013-10-07", "detect 2013-10-07"]

    # The day before the first event: ingest has passed it, so the gate opens and no bundle is run.
    assert run_day(dags, "detect_stock", DAY - timedelta(days=1)) == "success"
    assert steps_that_ran[2:] == []
