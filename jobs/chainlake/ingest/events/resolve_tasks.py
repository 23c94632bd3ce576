"""Events of many rows, resolved, compared and written by tasks that read the files themselves (design §3).

The rows are what ``chainlake.ingest.events.resolve`` gives, and so are counts, checksums and rates; but Spark only
starts the tasks. New events end up in data files. Back through Spark come conflicting rows, for the quarantine, and
events that are there already and have to be changed or withdrawn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.definitions.source import Source
from chainlake.errors import AuditFailed
from chainlake.ingest.checksum import checksum
from chainlake.ingest.events.hashes import content_hashes, event_ids, row_hashes
from chainlake.ingest.events.resolve import CONFLICT, COUNTED, EVENT, SUPERSEDED, beaten_loads, decided, file_order
from chainlake.ingest.events.stretches import Stretch
from chainlake.ingest.landing.effective import Effective
from chainlake.lake.commits.difference import difference_arrow
from chainlake.lake.delta.data_files import DataFile, DataFiles
from chainlake.lake.spark.types import spark_schema
from chainlake.paths import Home
from chainlake.schemas.events import events_table
from chainlake.schemas.raw import raw_table
from chainlake.schemas.table import TIMESTAMP, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Column of the rows that tell what a task did, as JSON.
_REPORT = "_report"
_OP = "_op"


@dataclass(frozen=True)
class Written:
    """What tasks made of some days.

    Args:
        conflicts: the conflicting rows, with the columns that ``chainlake.ingest.events.write.conflict_rows`` needs.
        moved: the events to change and to withdraw, in the columns of the events table and ``_op``, ``U`` or ``D``.
        n_moved: how many they are.
        days, rates: as ``chainlake.ingest.events.resolve.summary`` gives them.
        files: data files of the events to add, not yet committed.
    """

    conflicts: DataFrame
    moved: DataFrame
    n_moved: int
    days: list[dict[str, Any]]
    rates: list[dict[str, Any]]
    files: list[DataFile]


def write_events(
    spark: SparkSession, home: Home, source: Source, parts: list[Stretch], files: Sequence[Effective], stack: ExitStack
) -> Written:
    """Resolve ``parts`` and write their new events as data files that are not committed.

    Args:
        spark: the session.
        home: the installation; its lake is on a file system that all tasks see.
        source: the source; its files do not replace each other per key.
        parts: from ``chainlake.ingest.events.stretches``.
        files: the effective files.
        stack: lets go of what Spark keeps.

    Raises:
        AuditFailed: an event breaks a rule of the events table.
    """
    from pyspark import StorageLevel
    from pyspark.sql import functions as F

    order = file_order(files)
    beaten = beaten_loads(source, order)
    # Tasks may run in another folder.
    folder = os.path.abspath(home.table("events", source.name))
    now = datetime.now(UTC)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from resolve_part(source, parts[number], [f.load_id for f in order], beaten, folder, now)

    numbers = spark.range(0, len(parts), 1, numPartitions=len(parts))
    told = numbers.mapInArrow(work, spark_schema(told_schema(source))).persist(StorageLevel.MEMORY_AND_DISK)
    stack.callback(told.unpersist)
    reports = [json.loads(row[0]) for row in told.where(F.col(_REPORT).isNotNull()).select(_REPORT).collect()]
    for report in reports:
        if report["broken"]:
            raise AuditFailed(report["broken"])
    days, rates = _together(reports)
    written = [DataFile.of(text) for report in reports for text in report["files"]]
    rows = told.where(F.col(_REPORT).isNull())
    return Written(
        conflicts=rows.where(F.col(_OP).isNull()),
        moved=rows.where(F.col(_OP).isNotNull()).select(*events_table(source).column_names, _OP),
        n_moved=sum(report["moved"] for report in reports),
        days=days,
        rates=rates,
        files=written,
    )


def told_schema(source: Source) -> pa.Schema:
    """Columns of what a task gives: those of raw rows and events, ``_fate``, ``_op`` and the report."""
    raw = {f.name: f.type for f in raw_table(source).arrow() if f.name != "load_id"}
    columns = raw | {f.name: f.type for f in events_table(source).arrow()}
    return pa.schema([*columns.items(), ("_fate", pa.string()), (_OP, pa.string()), (_REPORT, pa.string())])


def resolve_part(
    source: Source, part: Stretch, loads: list[str], beaten: set[str], folder: str, now: datetime
) -> Iterator[pa.RecordBatch]:
    """One task: the fates of the rows of ``part``, their events in data files, the rest as rows.

    Args:
        source: the source.
        part: which rows.
        loads: loads of the effective files, in their order.
        beaten: those of them that a higher revision has replaced.
        folder: of the events table.
        now: when the events are written.

    Yields:
        Batches of ``told_schema``; one row at the end is the report.
    """
    schema, table = told_schema(source), events_table(source)
    rows = part.read(source, loads)
    fates = _fates(source, rows, loads, beaten)
    is_event = pc.equal(fates["_fate"], EVENT)
    events = fates.filter(is_event).sort_by([("ts", "ascending")])
    events = events.append_column("event_id", event_ids(source, events))
    events = events.append_column("ingested_at", pa.array([now] * len(events), TIMESTAMP))
    new, moved = _compared(table, part.held(source) if part.events else None, events)
    broken, files = "", []
    try:
        with DataFiles(folder, table) as out:
            out.write(new)
            files = [file.text() for file in out.close()]
    except AuditFailed as error:
        broken = error.what
    conflicts = fates.filter(pc.equal(fates["_fate"], CONFLICT))
    for rows in (conflicts, moved):
        if len(rows):
            yield from _filled(rows, schema).to_batches()
    report = {
        "broken": broken,
        "files": files,
        "moved": len(moved),
        "days": _days(table, fates, events),
        "rates": _rates(source, events),
    }
    yield from _filled(pa.table({_REPORT: [json.dumps(report)]}), schema).to_batches()


def _compared(table: Table, held: pa.Table | None, events: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The events to add, and those to change or withdraw with ``_op``."""
    plain = pa.schema([pa.field(f.name, f.type) for f in table.arrow()])
    events = events.select(plain.names).cast(plain)
    if held is None or not len(held):
        return events, plain.empty_table()
    diff = difference_arrow(held.cast(plain), events, list(table.key), table.non_volatile)
    new = pc.equal(diff["_op"], "I")
    return diff.filter(new).drop_columns([_OP]), diff.filter(pc.invert(new))


def _filled(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """``rows`` in the columns of ``schema``, null where they have none."""
    there = set(rows.column_names)
    columns = [rows[f.name].cast(f.type) if f.name in there else pa.nulls(len(rows), f.type) for f in schema]
    return pa.table(columns, schema=schema)


def _fates(source: Source, rows: pa.Table, loads: list[str], beaten: set[str]) -> pa.Table:
    order = pc.index_in(rows["load_id"], value_set=pa.array(loads, pa.string())).cast(pa.int64())
    lost = pc.is_in(rows["load_id"], value_set=pa.array(sorted(beaten), pa.string()))
    first, second = content_hashes(source, rows)
    columns = {
        "_order": order,
        "_fate": pc.if_else(lost, pa.scalar(SUPERSEDED), pa.scalar(None, pa.string())),
        "_c1": pa.array(first),
        "_c2": pa.array(second),
    }
    rows = rows.drop_columns(["load_id"])
    for name, values in columns.items():
        rows = rows.append_column(name, values)
    return decided(source, rows)


def _days(table: Table, fates: pa.Table, events: pa.Table) -> dict[str, dict[str, int]]:
    """Per day rows of each fate, and the xor of the events' hashes."""
    found: dict[str, dict[str, int]] = {}

    def of(day: date) -> dict[str, int]:
        names = [name for name, _ in COUNTED]
        return found.setdefault(day.isoformat(), {"h1": 0, "h2": 0, **dict.fromkeys(names, 0)})

    named = {fate: name for name, fate in COUNTED}
    for row in fates.group_by(["event_date", "_fate"]).aggregate([([], "count_all")]).to_pylist():
        of(row["event_date"])[named[row["_fate"]]] = row["count_all"]
    first, second = row_hashes(table, events)
    # Rows are in the order of time, so each day is one piece of them.
    days, starts = np.unique(events["event_date"].cast(pa.int32()).to_numpy(), return_index=True)
    if len(days):
        pairs = (np.bitwise_xor.reduceat(hashes, starts).tolist() for hashes in (first, second))
        for day, h1, h2 in zip(days.tolist(), *pairs, strict=True):
            of(_EPOCH.date() + timedelta(days=day)).update(h1=h1, h2=h2)
    return found


def _rates(source: Source, events: pa.Table) -> list[list[Any]]:
    """Day, type, key, events, first and last ts (µs) of each."""
    keys = ["event_date", "type", source.key]
    at = events.select(keys).append_column("ts", events["ts"].cast(pa.int64()))
    found = at.group_by(keys).aggregate([([], "count_all"), ("ts", "min"), ("ts", "max")])
    days = [day.isoformat() for day in found["event_date"].to_pylist()]
    rest = (found[name].to_pylist() for name in ("type", source.key, "count_all", "ts_min", "ts_max"))
    return [list(row) for row in zip(days, *rest, strict=True)]


def _together(reports: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The reports of all tasks as one: a day, and a key's day, may be of several."""
    days: dict[str, dict[str, int]] = {}
    rates: dict[tuple[str, str, str], list[int]] = {}
    for report in reports:
        for day, counts in report["days"].items():
            sums = days.setdefault(day, dict.fromkeys(counts, 0))
            for name, value in counts.items():
                sums[name] = sums[name] ^ value if name in ("h1", "h2") else sums[name] + value
        for day, kind, key, events, first, last in report["rates"]:
            known = rates.setdefault((day, kind, key), [0, first, last])
            known[:] = [known[0] + events, min(known[1], first), max(known[2], last)]
    listed: list[dict[str, Any]] = []
    for day, sums in sorted(days.items()):
        code = checksum(sums["rows"], sums.pop("h1"), sums.pop("h2"))
        listed.append({"day": date.fromisoformat(day), **sums, "checksum": code})
    times = [
        {
            "events": events,
            "day": date.fromisoformat(day),
            "type": kind,
            "key": key,
            "first_ts": _EPOCH + timedelta(microseconds=first),
            "last_ts": _EPOCH + timedelta(microseconds=last),
        }
        for (day, kind, key), (events, first, last) in rates.items()
    ]
    return listed, times


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
