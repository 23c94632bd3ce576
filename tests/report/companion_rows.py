"""Rows that models beside regression publish, as short as their pages allow."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from chainlake.lake.delta import tables
from chainlake.paths import Home
from chainlake.schemas.table import Table
from tests.lake.appending import append_arrow

NOON = datetime(2025, 10, 1, 12, tzinfo=UTC)
OCTOBER = [date(2025, 10, day) for day in (1, 2)]

Row = dict[str, Any]


def add(home: Home, table: Table, rows: list[Row]) -> None:
    """Publish rows of a model without groups."""
    tables.ensure_table(home, table)
    found = pa.Table.from_pylist([{"group_id": "", **row} for row in rows], schema=table.arrow())
    append_arrow(home, table, found, app="m", base_version=0, mark="m")


def zone_event(minute: int, kind: str, violators: list[str] | None) -> Row:
    """A round of the safe zones ``road_queue``, some minutes after noon."""
    ts = NOON + timedelta(minutes=minute)
    mean = None if kind == "balanced" else [{"feature": "speed", "value": 44.4444}]
    return {"model": "road_queue", "ts": ts, "kind": kind, "round": minute, "violators": violators,
            "facets": ["speed >= 45"], "mean": mean, "event_date": ts.date()}  # fmt: skip


def learner_day(on: date, learner: str, loss: float) -> Row:
    """A day of a learner of ``next_speed``, who alone loses 10 and at best 6."""
    ts = datetime(on.year, on.month, on.day, 12, tzinfo=UTC)
    return {"model": "next_speed", "ts": ts, "kind": "day", "learner": learner, "round": 1, "event_date": on,
            "loss": loss, "loss_alone": 10.0, "loss_static": 6.0, "errors": 1,
            "weights": [{"feature": "constant", "value": 0.5}]}  # fmt: skip


def fault_score(on: date, machine: str, p: float) -> Row:
    """A day of a machine of ``loop_lengths``."""
    return {"model": "loop_lengths", "day": on, "machine": machine, "rounds": 9, "v_norm": 0.5, "gamma": 0.1,
            "p": p, "flagged": p < 0.01, "top_counters": [{"feature": "length", "value": -0.8}]}  # fmt: skip
