"""The simulator's light mode: plain Python where the steps call Spark, so that a seed takes seconds.

What protects the tables, that is plans, days, fingerprints, publishing, locks and the data tables' Delta logs, is the
product's own; so are the parser, the matching kernel and the model monitor. Only what Spark computes is done by plain
loops here, and what Spark commits is committed by delta-rs under Spark's rule: a turn that is past is skipped silently.
``ops`` is in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import chainlake.lake.spark.session
from chainlake.definitions.source import Source
from chainlake.detect import run as detect_run
from chainlake.ingest import step as ingest_step
from chainlake.ingest.events import resolve
from chainlake.ingest.events.hashes import row_hashes
from chainlake.ingest.events.resolve import CONFLICT, DUPLICATE, EVENT, SUPERSEDED
from chainlake.ingest.rows import parse_tasks as parsing
from chainlake.ingest.rows.parse import BAD, COUNTS, ROW, Counts, parse_file, parsed_schema
from chainlake.lake.commits import difference, publish
from chainlake.lake.delta import tables
from chainlake.lake.delta.data_files import DataFile
from chainlake.lake.locks import file_lock
from chainlake.lake.records import ops
from chainlake.monitor import run as monitor_run
from chainlake.quality import Verdict
from chainlake.quality import audit as audits
from chainlake.schemas.events import events_table
from chainlake.schemas.quarantine import quarantine_table
from chainlake.schemas.raw import raw_table
from tests.replay.memory import MemoryOps


class Rows:
    """Rows with as much of a DataFrame's face as the steps need."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def select(self, *columns: str) -> Rows:
        """Some columns."""
        return Rows(self.table.select(list(columns)))

    def unionByName(self, other: Rows) -> Rows:  # noqa: N802
        """Both, one after the other."""
        return Rows(pa.concat_tables([self.table, other.table.select(self.table.column_names)]))

    def toArrow(self) -> pa.Table:  # noqa: N802
        """As Arrow."""
        return self.table

    def persist(self, *_: Any) -> Rows:
        """Nothing to keep."""
        return self

    def unpersist(self) -> None:
        """Nothing was kept."""


@contextlib.contextmanager
def light(*, ops_in_memory: bool = True) -> Iterator[None]:
    """Put the plain loops in Spark's place; files land and steps run as ever.

    Args:
        ops_in_memory: ``ops`` is no table either.
    """
    from pyspark.sql import functions

    session, spared = MagicMock(), MagicMock()
    session.sparkContext.defaultParallelism = 1
    quiet = {"spark_session": lambda *a, **k: session, "warm_up": lambda: None}
    lock = {"jvm_lock": lambda spark, home, purpose, **k: file_lock(home, purpose, **k)}
    memory = MemoryOps()
    logs: list[tuple[Any, dict[str, Any]]] = [
        (ops, {"append": memory.append, "current_table": memory.current_table}),
        (tables, {"arrow": memory.arrow, "exists": memory.exists}),
    ]
    places: list[tuple[Any, dict[str, Any]]] = [
        *(logs if ops_in_memory else ()),
        (chainlake.lake.spark.session, {"spark_session": quiet["spark_session"]}),
        (audits, {"warm_up": quiet["warm_up"]}),
        (functions, {"col": lambda *_: spared}),
        (tables, {"read": _read, "read_days": _read_days}),
        (parsing, {
            "parse_all": _parse_all, "reports_of": _reports_of, "raw_rows": _raw_rows,
            "quarantined_rows": _quarantined_rows,
        }),
        (resolve, {
            "raw_days": _raw_days, "resolve": _resolve, "summary": _summary, "raw_counts": _raw_counts,
            "events_of": _events_of,
        }),
        (ingest_step, {**lock, "_audit": None, "conflict_rows": _conflict_rows}),
        (publish, lock),
        (difference, {"_materialise": _materialise, "_append": _append, "_merge": _merge}),
        (detect_run, {"audit_matches": lambda a, p, f, days: Verdict.passed(days)}),
        (monitor_run, {
            **quiet, "audit_models": lambda *a: dict.fromkeys(a[4]),
        }),
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        for module, changes in places:
            for name, value in changes.items():
                if name == "_audit":
                    stack.enter_context(patch.object(module._Attempt, name, lambda self, files, days: None))
                else:
                    stack.enter_context(patch.object(module, name, value))
        yield


def _read(spark: Any, home: Any, schema: str, name: str, version: int | None = None) -> Rows:
    return Rows(tables.arrow(home, schema, name, version=version))


def _read_days(spark: Any, home: Any, schema: str, name: str, days: Any, **options: Any) -> Rows:
    rows = tables.arrow(home, schema, name, version=options.get("version"))
    return Rows(rows.filter(pc.is_in(rows["event_date"], value_set=pa.array(list(days), pa.date32()))))


# Ingest


def _parse_all(spark: Any, source: Source, tasks: list[Any], folder: str | None) -> Rows:
    batches = [batch for task in tasks for batch in parse_file(source, task)]
    return Rows(pa.Table.from_batches(batches, schema=parsed_schema(source)))


def _of_kind(parsed: Rows, kind: int) -> pa.Table:
    return parsed.table.filter(pc.equal(parsed.table["_kind"], kind))


def _reports_of(parsed: Rows) -> tuple[dict[str, Counts], list[DataFile]]:
    found = [Counts(**json.loads(text)) for text in _of_kind(parsed, COUNTS)["_raw"].to_pylist()]
    return {counts.load_id: counts for counts in found}, []


def _raw_rows(source: Source, parsed: Rows) -> Rows:
    return Rows(_of_kind(parsed, ROW).select(raw_table(source).column_names))


def _quarantined_rows(source: Source, parsed: Rows) -> Rows:
    rows = [
        {**row, **{name: row[f"_{name}"] for name in ("reason", "field", "value", "raw")}, "stage": "parse"}
        for row in _of_kind(parsed, BAD).to_pylist()
    ]
    return _quarantine(source, rows)


def _conflict_rows(source: Source, resolved: Rows) -> Rows:
    rows = []
    for row in resolved.table.to_pylist():
        if row["_fate"] == CONFLICT:
            text = json.dumps([row[name] for name in ("type", source.key, "x", "y")])
            rows.append({**row, "stage": "resolve", "reason": "conflict", "raw": text})
    return _quarantine(source, rows)


def _quarantine(source: Source, rows: list[dict[str, Any]]) -> Rows:
    stamp = datetime.now(UTC)
    return Rows(
        pa.Table.from_pylist([{**row, "written_at": stamp} for row in rows], schema=quarantine_table(source).arrow())
    )


def _raw_days(raw: Rows, loads: Iterable[str]) -> set[date]:
    wanted = set(loads)
    return {row["event_date"] for row in raw.table.to_pylist() if row["load_id"] in wanted}


def _resolve(spark: Any, source: Source, raw: Any, delivered: Rows, files: Sequence[Any]) -> Rows:
    """Design §3, "Identity of events", "Conflicts" and "Corrections", event by event."""
    order = sorted(files, key=lambda f: (f.file_date or date.min, f.revision, f.name))
    rank = {file.load_id: number for number, file in enumerate(order)}
    best: dict[date, int] = {}
    for file in order:
        best[file.file_date] = max(file.revision, best.get(file.file_date, 0))
    beaten = {f.load_id for f in order if source.replaces and f.revision < best[f.file_date]}
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    done: list[dict[str, Any]] = []
    for row in delivered.table.to_pylist():
        if row["load_id"] not in rank:
            continue
        row |= {"_order": rank[row["load_id"]], "event_id": None, "seq": None, "_fate": SUPERSEDED}
        if row["load_id"] in beaten:
            done.append(row)
        else:
            groups[row["type"], row[source.key], row["ts"]].append(row)
    settle = _multiset if source.identity == "multiset" else _unique
    for place, rows in groups.items():
        rows.sort(key=lambda r: (r["_order"], r["line"], r["entry"]))
        settle(source, place, rows)
        done += rows
    extra = [("_order", pa.int64()), ("_fate", pa.string()), ("event_id", pa.string()), ("seq", pa.int64())]
    schema = pa.schema([*raw_table(source).arrow(), *(pa.field(*pair) for pair in extra)])
    return Rows(pa.Table.from_pylist(done, schema=schema))


def _content(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["x"], row["y"]


def _id(*parts: Any) -> str:
    return hashlib.md5(repr(parts).encode()).hexdigest()


def _unique(source: Source, place: tuple[Any, ...], rows: list[dict[str, Any]]) -> None:
    won = _content(rows[-1] if source.on_conflict == "latest" else rows[0])
    nobody = source.on_conflict == "quarantine_all" and len({_content(row) for row in rows}) > 1
    first = True
    for row in rows:
        if nobody or _content(row) != won:
            row["_fate"] = CONFLICT
        elif first:
            row |= {"_fate": EVENT, "event_id": _id(*place), "seq": 0}
            first = False
        else:
            row["_fate"] = DUPLICATE


def _multiset(source: Source, place: tuple[Any, ...], rows: list[dict[str, Any]]) -> None:
    copies: Counter[tuple[Any, ...]] = Counter()
    seen: set[tuple[Any, ...]] = set()
    seq = 0
    for row in rows:
        row["_fate"] = DUPLICATE
        copy = (_content(row), copies[_content(row), row["_order"]])
        copies[_content(row), row["_order"]] += 1
        if copy not in seen:
            seen.add(copy)
            row |= {"_fate": EVENT, "event_id": _id(*place, *copy), "seq": seq}
            seq += 1


def _summary(source: Source, resolved: Rows) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    days: dict[date, dict[str, Any]] = {}
    rates: dict[tuple[date, str, str], list[datetime]] = defaultdict(list)
    names = {EVENT: "rows", DUPLICATE: "duplicates", CONFLICT: "conflicts", SUPERSEDED: "superseded"}
    for row in resolved.table.to_pylist():
        day = row["event_date"]
        counts = days.setdefault(day, {"day": day, **dict.fromkeys(names.values(), 0)})
        counts[names[row["_fate"]]] += 1
        if row["_fate"] == EVENT:
            rates[day, row["type"], row[source.key]].append(row["ts"])
    events = _events_of(source, resolved).table
    hashes = row_hashes(events_table(source), events)
    for day, counts in days.items():
        mine = pc.equal(events["event_date"], pa.scalar(day, pa.date32())).to_numpy()
        first, second = (int(np.bitwise_xor.reduce(part[mine])) if mine.any() else 0 for part in hashes)
        counts["checksum"] = resolve.checksum(counts["rows"], first, second)
    found = [
        {"day": day, "type": kind, "key": key, "events": len(ts), "first_ts": min(ts), "last_ts": max(ts)}
        for (day, kind, key), ts in rates.items()
    ]
    return list(days.values()), found


def _raw_counts(delivered: Rows, files: Sequence[Any]) -> dict[date, int]:
    loads = {file.load_id for file in files}
    return Counter(row["event_date"] for row in delivered.table.to_pylist() if row["load_id"] in loads)


def _events_of(source: Source, resolved: Rows) -> Rows:
    stamp = datetime.now(UTC)
    rows = [{**row, "ingested_at": stamp} for row in resolved.table.to_pylist() if row["_fate"] == EVENT]
    return Rows(pa.Table.from_pylist(rows, schema=events_table(source).arrow()))


# What Spark commits


def _bounded(value: Any) -> Any:
    """A value as the bounds of a MERGE have it."""
    return round(value.timestamp() * 1_000_000) if isinstance(value, datetime) else value


def _materialise(spark: Any, table: Any, diff: pa.Table, bounds: Any, kept: bool) -> tuple[Rows, Counter[str], bool]:
    difference._check_arrow_bounds(table, diff, bounds)
    return Rows(diff), Counter(diff["_op"].to_pylist()), False


def _append(table: Any, path: str, frame: Rows, rows: int, app: str, turn: int, mark: str) -> None:
    _commit(table, path, frame, None, app, turn, mark)


def _merge(spark: Any, table: Any, path: str, frame: Rows, bounds: Any, app: str, turn: int, mark: str) -> None:
    _commit(table, path, frame, bounds, app, turn, mark)


def _commit(table: Any, path: str, frame: Rows, bounds: Any, app: str, turn: int, mark: str) -> None:
    """A ``MERGE``: by key, update and delete what is there within the bounds, insert what is not."""
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

    delta = DeltaTable(path)
    past = delta.transaction_version(app)
    if past is not None and past >= turn:
        return
    names, schema = list(table.key), table.arrow()
    moved = {tuple(row[name] for name in names): row for row in frame.table.to_pylist()}
    held: list[dict[str, Any]] = []
    found: set[tuple[Any, ...]] = set()
    for row in delta.to_pyarrow_table().to_pylist():
        key = tuple(row[name] for name in names)
        change = moved.get(key) if bounds is None or bounds[1] <= _bounded(row[bounds[0]]) < bounds[2] else None
        if change is None or change["_op"] == "I":
            held.append(row)
        elif change["_op"] == "U":
            held.append(change)
        found |= {key} if change is not None else set()
    held += [row for key, row in moved.items() if row["_op"] == "I" and key not in found]
    write_deltalake(
        delta,
        pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in held], schema=schema),
        mode="overwrite",
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": mark}, app_transactions=[Transaction(app, turn)]
        ),
    )
