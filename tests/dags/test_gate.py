"""The gate: when detection and monitoring may start, and when there will never be anything to do."""

from __future__ import annotations

import os
from datetime import date
from typing import Any

import pytest

from chainlake.airflow.tasks import bundles, gate
from chainlake.days import Days
from chainlake.lake.locks import file_lock
from chainlake.lake.records import ops
from chainlake.paths import Home

D1, D2, D3 = date(2025, 10, 1), date(2025, 10, 2), date(2025, 10, 3)


def event_day(home: Home, day: date, status: str, rows: int = 5) -> None:
    row: dict[str, Any] = {"source": "road", "day": day, "status": status, "rows": rows, "checksum": "x"}
    ops.append(home, "event_days", [row], "test")


def ingested(home: Home, days: Days, status: str = "ok") -> None:
    row = {"source": "road", "step": "ingest", "phase": "ingest", "definition": "", "status": status}
    ops.append(home, "runs", [{**row, "day_from": days.start, "day_to": days.end}], f"run-{days.start}-{status}")


def look(step: str, day: date) -> list[dict[str, Any]] | None:
    return gate(step, "road", Days.one(day))


def test_shut_while_nothing_was_ingested(home: Home) -> None:
    assert look("detect", D1) is None


@pytest.mark.parametrize("status", ["complete", "provisional"])
def test_open_for_a_day_that_can_be_computed(home: Home, status: str) -> None:
    event_day(home, D1, status)
    assert look("detect", D1) == bundles("road")


@pytest.mark.parametrize("status", ["changing", "open"])
def test_shut_for_a_day_that_is_not_final(home: Home, status: str) -> None:
    event_day(home, D1, "complete")
    event_day(home, D2, status)
    assert look("detect", D2) is None
    assert look("detect", D3) is None


def test_the_log_says_what_is_waited_for(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    assert look("detect", D1) is None
    assert "waiting for an ingest of road that covers days after 2025-10-01" in caplog.text
    event_day(home, D1, "complete")
    event_day(home, D2, "changing")
    assert look("detect", D2) is None
    assert "its ingest failed or was killed" in caplog.text
    assert "repeat it: 'chainlake ingest road 2025-10-02 2025-10-03'" in caplog.text
    with file_lock(home, "source-road"):
        assert look("detect", D2) is None
    assert f"it is being changed by process {os.getpid()}" in caplog.text
    assert look("detect", D3) is None
    assert "waiting for 2025-10-03 of road: not ingested yet" in caplog.text


def test_nothing_to_do_where_the_source_has_no_events(home: Home) -> None:
    ingested(home, Days(D2, D3), "nothing")
    assert look("detect", D2) == []
    assert look("detect", D3) is None, "no ingest has passed that day"


def test_nothing_to_do_before_the_first_event(home: Home) -> None:
    event_day(home, D3, "complete")
    assert look("detect", D1) is None, "a late file may still bring it"
    ingested(home, Days(D1, D2))
    assert look("detect", D1) == []


def test_a_failed_ingest_opens_nothing(home: Home) -> None:
    ingested(home, Days(D1, D2), "failed")
    assert look("detect", D1) is None


def test_a_monitor_waits_for_every_day_from_its_start(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    config = home.root / "config"
    (config / "models").mkdir(parents=True)
    (config / "models" / "m.yaml").write_text("source: road\nstart: 2025-10-02\n")
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(config))
    event_day(home, D1, "open")
    event_day(home, D3, "complete")
    assert look("monitor", D3) is None
    event_day(home, D2, "provisional")
    assert look("monitor", D3) == bundles("road")
    assert look("monitor", D1) is None, "its own day is not final"
