"""The monitor step: which days it replays (no JVM), and that any history of runs ends in the tables of one pass."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from jobs.days import Days
from jobs.errors import AuditFailed, DefinitionError, InputError, UsageError
from jobs.lake import ops, tables
from jobs.lake.event_days import EventDays
from jobs.lake.staleness import StatusRow, fingerprint, status_rows
from jobs.model_catalog import load_models
from jobs.sources import load_sources
from jobs.steps.monitor import monitor, plan_model
from schemas.events import events_table

SOURCE = """\
key: sensor
type: Reading
zone: UTC
attributes:
  x: {type: double}
  y: {type: double}
identity: unique
on_conflict: first
formats:
  - {name: csv, glob: '*.csv', header: [ts, sensor, x, y], time: {column: ts, format: '%Y-%m-%dT%H:%M:%S'},
     map: {sensor: sensor, x: x, y: y}}
"""
MODEL = """\
source: lab
start: 2025-03-02
nodes: [a, b]
response: y
features: [x]
round: {length: 1 h}
window: {sliding: 8}
eps: 0.3
max_replay: 5
"""
FIRST = date(2025, 3, 1)


def day(i: int) -> date:
    return FIRST + timedelta(days=i)


@pytest.fixture
def lab(home, monkeypatch):
    """A home whose configuration is one source and one model."""
    config = home.root / "config"
    for name, text in (("sources/lab.yaml", SOURCE), ("models/slope.yaml", MODEL)):
        (config / name).parent.mkdir(parents=True, exist_ok=True)
        (config / name).write_text(text)
    return dataclasses.replace(home, config=config)


def the_model(lab):
    (model,), broken = load_models(lab, load_sources(lab))
    assert not broken
    return model


def event_days(statuses: str, version: int = 0) -> EventDays:
    """One letter per day from FIRST: c complete, e complete without events, o open, - no row."""
    names = {"c": "complete", "e": "complete", "o": "open"}
    rows = [
        {
            "day": day(i),
            "status": names[s],
            "rows": 0 if s == "e" else 9,
            "checksum": f"{i}{s}",
            "events_version": version,
        }
        for i, s in enumerate(statuses)
        if s != "-"
    ]
    return EventDays.of("lab", rows)


def status(letters: str) -> list[StatusRow]:
    """One letter per day from FIRST: d done, s stale, m missing, f audit failed, - no row."""
    names = {"d": "done", "s": "stale", "m": "missing", "f": "audit_failed"}
    return [
        StatusRow("model/slope", day(i), names[s], "", False, True, None, 1 if s in "dsf" else None)
        for i, s in enumerate(letters)
        if s != "-"
    ]


def plan(lab, asked: tuple[int, int], events: str, letters: str):
    return plan_model(lab, the_model(lab), Days(day(asked[0]), day(asked[1])), event_days(events), status(letters))


@pytest.mark.parametrize(
    ("asked", "events", "letters", "wanted"),
    [
        ((1, 2), "-c", "-m", (1, 2)),
        ((3, 4), "-ccc", "-mmm", (1, 4)),  # missing days before are made up for
        ((2, 3), "-cccc", "-dsdd", (1, 5)),  # to the last day ever published, and from the start: there is no state
        ((2, 3), "-cccc", "-dsds", (1, 5)),
        ((3, 4), "-ccc", "-dfm", (1, 4)),  # a day whose audit failed holds up the ones after it
        ((1, 4), "-cco", "-mmm", (1, 3)),  # a day that is not finished ends the chain
        ((0, 2), "ec", "mm", (0, 2)),  # days before the start are published empty
        ((4, 5), "----c", "----m", (4, 5)),  # no state exists before the first event
    ],
)
def test_replayed_days(lab, asked, events, letters, wanted):
    item = plan(lab, asked, events, letters)
    assert item.days == Days(day(wanted[0]), day(wanted[1])) and item.snapshots == {}
    assert sorted(item.fingerprints) == list(item.days)


def test_a_long_replay_names_the_stretch_to_ask_for(lab):
    with pytest.raises(InputError, match="must be replayed from 2025-03-02, 6 days") as caught:
        plan(lab, (7, 8), "-ccccccc", "-sddddds")
    assert caught.value.key == "max_replay" and "jobs backfill 2025-03-02" in caught.value.hint


def test_a_chain_that_cannot_go_on_names_the_ingest(lab):
    with pytest.raises(InputError, match="cannot go on from 2025-03-03: the events of that day are open") as caught:
        plan(lab, (3, 4), "-coc", "-dmm")
    assert "jobs ingest lab 2025-03-03 2025-03-04" in caught.value.hint


def test_models_are_checked_against_their_source(lab):
    path = lab.config / "models" / "slope.yaml"
    for old, new, key, text in (
        ("response: y", "response: z", "response", "no numeric column 'z'"),
        ("[x]", "[sensor]", "features", "no numeric column 'sensor'"),
        ("lab", "labs", "source", "no source 'labs'"),
    ):
        path.write_text(MODEL.replace(old, new, 1))
        loaded, (broken,) = load_models(lab, load_sources(lab))
        assert not loaded and text in broken.error.what
        assert (broken.error.file, broken.error.key) == (str(path), key) and broken.error.line
    path.write_text(MODEL.replace("eps: 0.3", "eps: none"))
    with pytest.raises(DefinitionError, match=r"slope\.yaml:8"):
        monitor(lab, "lab", Days.one(day(1)), run_id="r")
    with pytest.raises(UsageError, match="no model other"):
        monitor(lab, "lab", Days.one(day(1)), run_id="r", models=["other"])


def readings(i: int, seed: int = 0) -> list[dict]:
    """Hourly readings of a day; the slope of the model doubles on day 4."""
    rng = np.random.default_rng([seed, i])
    rows = []
    for hour in range(24):
        for key in ("a", "b"):
            x = float(rng.normal())
            ts = datetime.combine(day(i), datetime.min.time(), UTC) + timedelta(hours=hour, minutes=3)
            event_id = hashlib.md5(f"{key}{ts}".encode()).hexdigest()
            y = (1.0 if i < 4 else 2.0) * x + 0.05 * float(rng.normal())
            rows.append({"event_id": event_id, "type": "Reading", "sensor": key, "ts": ts, "seq": 0, "x": x, "y": y,
                         "event_date": day(i)})  # fmt: skip
    return rows


def deliver(spark, lab, contents: dict[int, list[dict]]) -> None:
    """What an ingest leaves: the events of whole days, replaced, and their checksums."""
    table = events_table(load_sources(lab)["lab"])
    tables.ensure_table(lab, table)
    from jobs.lake.types import spark_schema

    arrow = pa.Table.from_pylist([row for rows in contents.values() for row in rows], schema=table.arrow())
    frame = spark.createDataFrame(arrow, spark_schema(table.arrow())).coalesce(1)
    days = ", ".join(f"'{day(i)}'" for i in contents)
    writer = frame.write.format("delta").mode("overwrite").option("replaceWhere", f"event_date IN ({days})")
    writer.save(lab.table("events", "lab"))
    version = tables.version(lab, "events", "lab")
    ops.append(lab, "event_days", [
        {"source": "lab", "day": day(i), "status": "complete", "rows": len(rows), "events_version": version,
         "checksum": hashlib.md5(repr(rows).encode()).hexdigest()}
        for i, rows in contents.items()
    ], "ingest")  # fmt: skip


def published(lab) -> dict[str, list[dict]]:
    found = {}
    for name in ("changes", "metrics", "state"):
        rows = tables.arrow(lab, "models", name).to_pylist()
        found[name] = sorted(rows, key=lambda row: [str(row.get(key)) for key in ("day", "ts", "kind")])
    return found


def states(lab) -> str:
    rows = status_rows(lab, [the_model(lab).definition])
    return "".join({"done": "d", "audit_failed": "f", "missing": "m", "stale": "s"}[row.state] for row in rows)


def test_any_history_ends_in_the_tables_of_one_pass(lab, spark, monkeypatch, tmp_path):
    from jobs.steps import monitor_run

    kept = {i: readings(i) for i in range(1, 7)}
    deliver(spark, lab, {1: readings(1, seed=9), 2: kept[2]})
    first = monitor(lab, "lab", Days(day(1), day(3)), run_id="r1")
    assert first["days"] == 2 and first["models"] == 1 and states(lab) == "dd"

    with monkeypatch.context() as patch:  # nothing to do: no session
        patch.setattr(monitor_run, "spark_session", lambda *a, **k: pytest.fail("a JVM was started"))
        assert monitor(lab, "lab", Days(day(1), day(3)), run_id="r2")["days"] == 0

    deliver(spark, lab, {1: kept[1], 3: kept[3]})  # day 1 is corrected, day 3 arrives
    assert states(lab) == "ssm"
    assert monitor(lab, "lab", Days(day(3), day(4)), run_id="r3")["days"] == 3 and states(lab) == "ddd"

    monkeypatch.setattr(monitor_run, "audit_models", lambda *a: {d: "broken" if d == day(5) else None for d in a[4]})
    deliver(spark, lab, {i: kept[i] for i in (4, 5, 6)})
    with pytest.raises(AuditFailed, match="first 2025-03-06: broken"):
        monitor(lab, "lab", Days(day(4), day(7)), run_id="r4")
    assert states(lab) == "ddddfm"
    assert {row["day"] for row in published(lab)["metrics"]} == {day(i) for i in range(1, 5)}
    monkeypatch.setattr(monitor_run, "audit_models", lambda *a: dict.fromkeys(a[4]))

    shutil.rmtree(Path(lab.table("models", "state")))  # the cache is lost: all is replayed, nothing else changes
    last = monitor(lab, "lab", Days(day(6), day(7)), run_id="r5")
    assert last["days"] == 6 and last["changed"] == last["withdrawn"] == 0 and states(lab) == "dddddd"

    other = dataclasses.replace(lab, root=tmp_path / "other", lake=str(tmp_path / "other" / "lake"))
    deliver(spark, other, kept)
    monitor(other, "lab", Days(day(1), day(7)), run_id="r6")
    assert published(lab) == published(other)
    assert any(row["kind"] == "change" and row["event_date"] >= day(4) for row in published(lab)["changes"])
    state = published(lab)["state"]
    assert len(state) == 6
    now = EventDays.load(lab, "lab")
    assert all(row["fingerprint"] == fingerprint(the_model(lab).definition, row["day"], now) for row in state)


@pytest.mark.parametrize("how", ["last", "first", "mean", "sum", "min", "max"])
def test_spark_reduces_as_the_library_does(lab, spark, how):
    from jobs.model_change.config import parse_model
    from jobs.model_change.reduce import reduce_rows
    from jobs.model_change.reduce_spark import reduce_events

    config = parse_model(MODEL.replace("length: 1 h", f"length: 6 h, aggregate: {how}"))
    rows = readings(1) + readings(2) + [{**readings(2)[5], "event_id": "0" * 32, "x": None}]
    table = pa.Table.from_pylist(rows)
    frame = spark.createDataFrame(table.to_pandas()).repartition(4)
    found = reduce_events(frame, config, "sensor").sort_by([("key", "ascending"), ("round_us", "ascending")])
    assert found.equals(reduce_rows(config, table, "sensor"))
