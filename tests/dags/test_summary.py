"""The end of ``make run``: what it says about models and threshold monitors."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace

import pyarrow as pa
from deltalake import write_deltalake

from chainlake.lake.records import ops
from chainlake.local.run.elsewhere import options
from chainlake.local.run.summary import Timing, _print_changes, _print_timing
from chainlake.schemas.models import ALERTS, CHANGES, FAULT_SCORES

AT = datetime(2025, 10, 1, 23, 50, tzinfo=UTC)


def test_changes_and_alerts_are_counted_per_day_and_kind(home, capsys):
    _print_changes(home)
    said = capsys.readouterr().out
    assert "Model changes: none published" in said and "Threshold alerts: none published" in said
    change = {"model": "m", "group_id": "", "kind": "change", "round": 1, "event_date": date(2025, 10, 1)}
    alerts = [("below", 0), ("recovered", 5), ("below", 20)]
    for table, rows in (
        (CHANGES, [{**change, "ts": AT}, {**change, "ts": AT + timedelta(seconds=1)}]),
        (ALERTS, [{"monitor": "slow", "ts": AT + timedelta(minutes=m), "kind": kind, "mean": 1.0, "n_collected": 2}
                  for kind, m in alerts]),
        (FAULT_SCORES, [{"model": "f", "group_id": "", "day": date(2025, 10, 1), "machine": name, "rounds": 9, "p": 0.1,
                         "v_norm": 0.5, "gamma": 0.1, "flagged": name == "b"} for name in "abc"]),
    ):  # fmt: skip
        write_deltalake(home.table(table.schema, table.name), pa.Table.from_pylist(rows, schema=table.arrow()))
    _print_changes(home)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["m", "2025-10-01", "change", "2"] in lines
    assert ["f", "2025-10-01", "b", "1"] in lines and not any(line[:3] == ["f", "2025-10-01", "a"] for line in lines)
    for row in (("2025-10-01", "below"), ("2025-10-01", "recovered"), ("2025-10-02", "below")):
        assert ["slow", *row, "1"] in lines


def test_the_time_of_models_that_ran_together_counts_once(home, capsys):
    row = {"source": "s", "step": "monitor", "phase": "publish", "status": "ok", "spark_app_id": "a"}
    spans = [("model/a", 0, 4), ("model/b", 0, 4), ("model/c", 10, 11)]
    rows = [
        {**row, "definition": name, "started": AT + timedelta(seconds=lo), "ended": AT + timedelta(seconds=hi)}
        for name, lo, hi in spans
    ]
    ops.append(home, "runs", rows, "r1")
    _print_timing(home, SimpleNamespace(runs=[]), Timing(AT))
    assert ["monitor:", "publish", "2", "5.0"] in [line.split() for line in capsys.readouterr().out.splitlines()]


def test_an_airflow_that_runs_already_is_asked_where_it_says_that_its_page_is(monkeypatch):
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://localhost:18080")
    assert options().parse_args(["--passwords", "file"]).page == "http://localhost:18080"
    monkeypatch.delenv("AIRFLOW__API__BASE_URL")
    assert options().parse_args(["--passwords", "file"]).page == "http://localhost:8080"
