"""A task that turns raw rows into events: it reads data files and writes what differs from the existing events.

New events go to data files that are not committed yet; events to change or withdraw, and conflicting rows for the
quarantine, go to staged files. Only counts and paths come back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import day_of
from chainlake.definitions.source import Source
from chainlake.ingest.checksum import checksum
from chainlake.ingest.events.corrections import Superseded
from chainlake.ingest.events.fates import Fate, chosen, sorted_by, with_fates
from chainlake.ingest.events.hashes import event_hashes, event_ids
from chainlake.ingest.events.slices import RawSlice
from chainlake.ingest.rows.lines import KEPT
from chainlake.ingest.staged import StagedFile, staged
from chainlake.lake.delta.data_files import DataFile, DataFiles
from chainlake.lake.store.difference import difference_arrow
from chainlake.schemas.events import events_table
from chainlake.schemas.quarantine import quarantine_table
from chainlake.schemas.table import TIMESTAMP

#: Column of a difference: I, U or D.
OP = "_op"
#: How many conflicting rows are turned into Python values at a time.
_CONFLICTS = 10_000


@dataclass(frozen=True)
class DayCounts:
    """What became of the raw rows of a day: how many had each fate, and the xor of the events' hashes."""

    rows: int = 0
    duplicates: int = 0
    conflicts: int = 0
    superseded: int = 0
    first_hash: int = 0
    second_hash: int = 0

    def plus(self, other: DayCounts) -> DayCounts:
        """The sum of both; several tasks may have parts of a day."""
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)[:4]}
        first, second = self.first_hash ^ other.first_hash, self.second_hash ^ other.second_hash
        return DayCounts(**sums, first_hash=first, second_hash=second)

    @property
    def checksum(self) -> str:
        """The checksum of the day's events."""
        return checksum(self.rows, self.first_hash, self.second_hash)


#: The number of events of a type and a key on a day, with their first and last time.
RATES = pa.schema(
    [
        ("day", pa.date32()),
        ("type", pa.string()),
        ("key", pa.string()),
        ("events", pa.int64()),
        ("first_ts", TIMESTAMP),
        ("last_ts", TIMESTAMP),
    ]
)


@dataclass(frozen=True)
class PartReport:
    """The result of a slice.

    Args:
        days: counts of each day with rows.
        rates: rates of the events, in the columns of ``RATES``.
        files: data files of the events to add, not committed yet.
        moved: Parquet files of the events to change and to withdraw, in the columns of the events table and ``OP``.
        n_moved: how many events these are.
        conflicts: Parquet files of the conflicting rows, in the columns of the quarantine except the volatile ones.
    """

    days: dict[date, DayCounts]
    rates: pa.Table
    files: tuple[DataFile, ...] = ()
    moved: tuple[str, ...] = ()
    n_moved: int = 0
    conflicts: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResolveWork:
    """What is the same for all slices of a run.

    Args:
        source: the source.
        loads: loads of the effective files, in the files' order.
        superseded: what corrections have replaced.
        events: folder of the events table.
        staging: existing folder for staged files.
        now: when the events are written.
    """

    source: Source
    loads: tuple[str, ...]
    superseded: Superseded
    events: str
    staging: str
    now: datetime

    def __call__(self, part: RawSlice) -> PartReport:
        """Resolve the rows of ``part``.

        Raises:
            AuditFailed: an event breaks a rule of the events table.
        """
        source, table = self.source, events_table(self.source)
        rows = part.read(source, self.loads)
        order = pc.index_in(rows["load_id"], value_set=pa.array(self.loads, pa.string()))
        superseded = self.superseded.among(source, rows)
        rows = with_fates(source, rows.drop_columns(["load_id"]), order.cast(pa.int64()).to_numpy(), superseded)
        events = sorted_by(chosen(rows, rows["_fate"].to_numpy() == Fate.EVENT), ("ts",))
        events = events.append_column("event_id", event_ids(source, events))
        events = events.append_column("ingested_at", pa.repeat(pa.scalar(self.now, TIMESTAMP), len(events)))
        new, moved = _compared(source, part, events)
        with DataFiles(self.events, table) as out:
            out.write(new)
            files = tuple(out.close())
        return PartReport(
            days=_days(source, rows, events),
            rates=_rates(source, events),
            files=files,
            moved=staged(self.staging, "moved", moved),
            n_moved=len(moved),
            conflicts=_conflicts(source, rows.filter(pc.equal(rows["_fate"], Fate.CONFLICT)), self.staging),
        )


def _compared(source: Source, part: RawSlice, events: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The events to add, and those to change or withdraw, with ``OP``."""
    table = events_table(source)
    plain = pa.schema([pa.field(f.name, f.type) for f in table.arrow()])
    events = events.select(plain.names).cast(plain)
    held = part.held(source)
    if not len(held):
        return events, plain.append(pa.field(OP, pa.string())).empty_table()
    diff = difference_arrow(held.cast(plain), events, list(table.key), table.non_volatile)
    new = pc.equal(diff[OP], "I")
    return diff.filter(new).drop_columns([OP]), diff.filter(pc.invert(new))


def _days(source: Source, rows: pa.Table, events: pa.Table) -> dict[date, DayCounts]:
    found: dict[date, DayCounts] = {}
    days, place = np.unique(rows["event_date"].cast(pa.int32()).to_numpy(), return_inverse=True)
    several = np.bincount(place * len(Fate) + rows["_fate"].to_numpy(), minlength=len(days) * len(Fate))
    for day, counts in zip(days.tolist(), several.reshape(-1, len(Fate)).tolist(), strict=True):
        found[day_of(day)] = DayCounts(*counts)
    # Events are in order of time, so each day is one slice of them.
    days, starts = np.unique(events["event_date"].cast(pa.int32()).to_numpy(), return_index=True)
    if len(days):
        hashes = (np.bitwise_xor.reduceat(one, starts).tolist() for one in event_hashes(events_table(source), events))
        for day, first, second in zip(days.tolist(), *hashes, strict=True):
            at = day_of(day)
            found[at] = found[at].plus(DayCounts(first_hash=first, second_hash=second))
    return found


def _rates(source: Source, events: pa.Table) -> pa.Table:
    at = events.select(["event_date", "type", source.key, "ts"]).rename_columns(["day", "type", "key", "ts"])
    found = at.group_by(["day", "type", "key"]).aggregate([([], "count_all"), ("ts", "min"), ("ts", "max")])
    columns = ("day", "type", "key", "count_all", "ts_min", "ts_max")
    return found.select(columns).rename_columns(RATES.names).cast(RATES)


def rates_of(reports: list[PartReport]) -> pa.Table:
    """The rates of all tasks as one table; several tasks may have parts of a key's day."""
    every = pa.concat_tables([RATES.empty_table(), *(report.rates for report in reports)])
    sums = [("events", "sum"), ("first_ts", "min"), ("last_ts", "max")]
    found = every.group_by(["day", "type", "key"]).aggregate(sums)
    columns = ("day", "type", "key", "events_sum", "first_ts_min", "last_ts_max")
    return found.select(columns).rename_columns(RATES.names).cast(RATES)


def _conflicts(source: Source, rows: pa.Table, staging: str) -> tuple[str, ...]:
    """Write quarantine rows for the rows that lost against another row of the same event."""
    schema = pa.schema([pa.field(c.name, c.type) for c in quarantine_table(source).columns if not c.volatile])
    known = {"stage": "resolve", "reason": "conflict", "field": None, "value": None}
    with StagedFile(staging, "conflicts", schema) as file:
        for batch in rows.to_batches(max_chunksize=_CONFLICTS):
            part = pa.Table.from_batches([batch])
            columns = {name: pa.array([value] * len(part), pa.string()) for name, value in known.items()}
            columns["raw"] = pa.array(_texts(source, part), pa.string())
            there = {name: part[name] for name in ("file_id", "line", "entry", "event_date")}
            file.write(pa.table({**there, **columns}))
        return file.close()


def _texts(source: Source, rows: pa.Table) -> Iterator[str]:
    """Rows as JSON, truncated: raw does not keep the delivered text, and what was read from it says as much."""
    names = ["type", source.key, "ts", *(attribute.name for attribute in source.attributes)]
    for row in rows.select(names).to_pylist():
        yield json.dumps(row, default=_time, ensure_ascii=False, separators=(",", ":"))[:KEPT]


def _time(value: Any) -> str:
    assert isinstance(value, datetime)
    text = value.astimezone(UTC).replace(tzinfo=None)
    return text.isoformat(timespec="microseconds" if text.microsecond % 1000 else "milliseconds") + "Z"
