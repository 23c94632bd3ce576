"""Whether the tables of a source hold what ``ops`` says about its files and days: events, raw, quarantine and rates.

Events have a checksum per day. Raw rows have none, but every event names the file and line that it was taken from, so a
raw row that became an event is compared with it; other raw rows, and those of quarantine, are only counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import Days
from chainlake.definitions.source import Source
from chainlake.ingest.checksum import EMPTY_CHECKSUM, checksum
from chainlake.ingest.events.hashes import event_hashes
from chainlake.ingest.landing.plan import is_current
from chainlake.lake.delta.sums.row_hashes import row_hashes
from chainlake.lake.delta.where import delta_literal
from chainlake.lake.records import ops
from chainlake.lake.upkeep.check_table import Inspected
from chainlake.lake.upkeep.findings import EventDay, Finding, Fix, LandedFile, SurplusRows, UnrecordedFiles, WholeTable
from chainlake.paths import Home
from chainlake.schemas.events import events_table
from chainlake.schemas.ops_rows import EventDayRow, FileRow
from chainlake.words import counted

#: Columns of events that raw rows do not have.
_OWN = ("event_id", "seq", "ingested_at")
#: Where a row stands. An event that a replaced file had, too, keeps its place in the old one.
_PLACE = ("file_id", "line")
_NO_HASHES = np.empty(0, np.uint64)


@dataclass
class SourceTables:
    """The tables of a source that were inspected."""

    events: Inspected
    raw: Inspected
    quarantine: Inspected


@dataclass
class _Check:
    """The check of one source."""

    name: str
    source: Source | None
    tables: SourceTables
    within: Days | None
    files: list[FileRow]
    days: dict[date, EventDayRow]
    rates: dict[date, dict[tuple[str, str], tuple[int, Any, Any]]]
    findings: list[Finding] = field(default_factory=list)
    #: Number of raw rows by load; complete only if all days were inspected.
    loads: Counter[str] = field(default_factory=Counter)
    distrusted: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, table: Inspected | str, what: str, *fixes: Fix, damage: bool = True) -> None:
        name = table if isinstance(table, str) else table.path_name
        self.findings.append(Finding(name, what, damage, tuple(fixes)))


def check_source(
    home: Home, name: str, source: Source | None, tables: SourceTables, within: Days | None
) -> list[Finding]:
    """Compare a source's tables with what ``ops`` says about them; under the source's lock if they may be written to.

    Args:
        home: the installation.
        name: name of the source.
        source: its definition; ``None`` if it cannot be read.
        tables: its tables.
        within: only these days; then the raw and quarantine rows of files are not counted.
    """
    check = _Check(
        name=name,
        source=source,
        tables=tables,
        within=within,
        files=ops.current(home, "files", source=name),
        days={row["day"]: row for row in ops.current(home, "event_days", source=name)},
        rates=_rates(home, name),
    )
    days = [day for day, row in check.days.items() if row["rows"]]
    if days and not check.files:
        what = f"no file of source {name} is recorded, but {counted(len(days), 'day')} with events were ingested"
        check.add("ops.files", what, UnrecordedFiles(name))
    _check_days(check)
    if within is None:
        _check_loads(check)
        _check_quarantine(check)
    return check.findings


def _rates(home: Home, name: str) -> dict[date, dict[tuple[str, str], tuple[int, Any, Any]]]:
    rows = ops.current_table(home, "rates", filters=[("source", "=", name)])
    found: dict[date, dict[tuple[str, str], tuple[int, Any, Any]]] = defaultdict(dict)
    for row in rows.to_pylist():
        if row["events"]:
            found[row["day"]][row["type"], row["key"]] = (row["events"], row["first_ts"], row["last_ts"])
    return found


def _check_days(check: _Check) -> None:
    """Check events and rates day by day, and the raw rows that events were taken from."""
    events, raw = check.tables.events, check.tables.raw
    if events.contents is None and not events.findings:
        lost = [day for day, row in check.days.items() if row["rows"]]
        if lost:
            what = f"the table is gone, but {counted(len(lost), 'day')} with events were ingested, from {min(lost)}"
            # Days without events are included, because the table version that they name is gone, too.
            check.add(events, what, *(EventDay(check.name, day) for day in sorted(check.days)))
    listed = {day for inspected in (events, raw) if inspected.contents for day in _days(inspected)}
    if events.contents is not None:
        listed |= set(check.days)
    whole = _hashable(check)
    if events.contents is not None and not whole and _is_current(check):
        check.add(events, "its columns are not those of its definition", WholeTable(events.schema, events.name))
    elif events.contents is not None and not whole:
        why = "its definition cannot be read, or was edited and not ingested since"
        check.add(events, f"{why}: the events were only counted", damage=False)
    for day in sorted(listed):
        if check.within is None or day in check.within:
            links = _check_events(check, day, whole)
            _check_raw(check, day, links)


def _days(inspected: Inspected) -> set[date]:
    assert inspected.contents is not None
    return {part.partition for part in inspected.contents.parts}


def _hashable(check: _Check) -> bool:
    """Whether the definition has the columns that the stored events were hashed with."""
    contents = check.tables.events.contents
    if check.source is None or contents is None or not _is_current(check):
        return False
    return set(events_table(check.source).column_names) == set(contents.schema.names)


def _is_current(check: _Check) -> bool:
    """Whether all files were read under today's definition."""
    source = check.source
    return source is not None and bool(check.files) and all(is_current(source, row) for row in check.files)


@dataclass
class _Links:
    """The events of a day, to be found among its raw rows.

    Args:
        hashes: of events of recorded files, with their places in these.
        files: the file of each of them.
        moved: hashes, without a place, of events of files that were replaced since.
    """

    hashes: np.ndarray
    files: pa.ChunkedArray
    moved: np.ndarray


def _check_events(check: _Check, day: date, whole: bool) -> _Links | None:
    """Compare a day's events; if they are right, return what their raw rows are found by."""
    contents = check.tables.events.contents
    if contents is None:
        return None
    row, fix = check.days.get(day), EventDay(check.name, day)
    if row is not None and row["status"] == "changing":
        return None
    rows, first, second = 0, 0, 0
    links: list[np.ndarray] = [_NO_HASHES]
    moved: list[np.ndarray] = [_NO_HASHES]
    files: list[pa.Array] = []
    recorded = pa.array({row["file_id"] for row in check.files}, pa.string())
    rates: dict[tuple[str, str], tuple[int, Any, Any]] = {}
    key = _key(check)
    before = len(contents.bad)
    astray = 0
    for batch in contents.batches(lambda part: part.partition == day):
        rows += len(batch)
        astray += pc.sum(pc.not_equal(batch.column("ts").cast(pa.date32(), safe=False), day)).as_py() or 0
        table = pa.Table.from_batches([batch])
        if whole:
            assert check.source is not None
            h1, h2 = event_hashes(events_table(check.source), table)
            first ^= int(np.bitwise_xor.reduce(h1)) if len(h1) else 0
            second ^= int(np.bitwise_xor.reduce(h2)) if len(h2) else 0
        if key is not None:
            _add_rates(rates, table, key)
        placed = pc.is_in(table["file_id"], value_set=recorded)
        here = table.filter(placed)
        links.append(row_hashes(here, _OWN))
        files += here["file_id"].chunks
        if len(here) < len(table):
            moved.append(row_hashes(table.filter(pc.invert(placed)), (*_OWN, *_PLACE)))
    if len(contents.bad) > before:
        return None
    if astray:
        # Their own days may hold them, too; what to compare them with is found by their time.
        of_others = SurplusRows("events", check.name, f"event_date = '{day}' AND CAST(ts AS DATE) <> '{day}'")
        check.add(check.tables.events, f"{day}: {counted(astray, 'event')} of other days", fix, of_others)
        return None
    if row is None:
        if rows:
            check.add(check.tables.events, f"{day}: {counted(rows, 'event')} on a day that was never ingested", fix)
        return None
    expected = int(row["rows"] or 0)
    if rows != expected:
        what = f"{day}: {counted(expected, 'event')} ingested, {rows} in the table"
        check.add(check.tables.events, what, fix, *_repeated(check, day))
        return None
    found = checksum(rows, first, second) if rows else EMPTY_CHECKSUM
    if whole and found != row["checksum"]:
        what = f"{day}: {counted(rows, 'event')}, as ingested, but with other values"
        check.add(check.tables.events, what, fix, *_repeated(check, day))
        return None
    if key is not None and rates != check.rates.get(day, {}):
        check.add(
            "ops.rates", f"{check.name} {day}: the numbers of events per type and key are not those of the table", fix
        )
    return _Links(np.concatenate(links), pa.chunked_array(files, pa.string()), np.concatenate(moved))


def _repeated(check: _Check, day: date) -> list[Fix]:
    """The removal of the day's events if their ids repeat, since a difference by id would leave all of them."""
    contents = check.tables.events.contents
    assert contents is not None
    seen = [batch.column("event_id") for batch in contents.batches(lambda part: part.partition == day, ["event_id"])]
    ids = pa.chunked_array(seen, pa.string())
    if len(pc.unique(ids)) == len(ids):
        return []
    return [SurplusRows("events", check.name, f"event_date = '{day}'")]


def _key(check: _Check) -> str | None:
    """The key column of the events; ``None`` if no definition says which it is."""
    contents = check.tables.events.contents
    if check.source is None or contents is None or check.source.key not in contents.schema.names:
        return None
    return check.source.key


def _add_rates(rates: dict[tuple[str, str], tuple[int, Any, Any]], table: pa.Table, key: str) -> None:
    found = table.group_by(["type", key]).aggregate([("ts", "count"), ("ts", "min"), ("ts", "max")])
    for kind, name, count, low, high in zip(
        *(found[column].to_pylist() for column in ("type", key, "ts_count", "ts_min", "ts_max")), strict=True
    ):
        before = rates.get((kind, name))
        if before is not None:
            count, low, high = count + before[0], min(low, before[1]), max(high, before[2])
        rates[kind, name] = (count, low, high)


def _check_raw(check: _Check, day: date, links: _Links | None) -> None:
    """Count a day's raw rows by load, and check that each event is among them."""
    contents = check.tables.raw.contents
    if contents is None:
        return
    named = pa.array(sorted({row["load_id"] for row in check.files}), pa.string())
    foreign = {path for commit in check.tables.raw.strangers for path in commit.files}
    hashes: list[np.ndarray] = [_NO_HASHES]
    anywhere: list[np.ndarray] = [_NO_HASHES]
    before = len(contents.bad)
    for batch in contents.batches(lambda part: part.partition == day):
        for load, count in zip(*_counts(batch.column("load_id")), strict=True):
            check.loads[load] += count
        if links is not None:
            table = pa.Table.from_batches([batch])
            table = table.filter(pc.is_in(table["load_id"], value_set=named))
            hashes.append(row_hashes(table, ("load_id", "entry")))
            if len(links.moved):
                anywhere.append(row_hashes(table, ("load_id", "entry", *_PLACE)))
    if foreign:
        for batch in contents.batches(lambda part: part.partition == day and part.path in foreign, ["load_id"]):
            check.distrusted["raw"] |= set(_counts(batch.column("load_id"))[0])
    # If no file is recorded, there is a finding already, and no raw row counts.
    if links is None or len(contents.bad) > before or not check.files:
        return
    absent = ~np.isin(links.hashes, np.concatenate(hashes))
    lost = int(np.count_nonzero(~np.isin(links.moved, np.concatenate(anywhere))))
    if not absent.any() and not lost:
        return
    ids = set(pc.unique(links.files.filter(pa.array(absent))).to_pylist())
    # Which file has an event of a replaced one now is not known, so all that may have it are read again.
    paths = [row["path"] for row in check.files if row["file_id"] in ids or (lost and _reaches(row, day))]
    what = f"{day}: {counted(int(absent.sum()) + lost, 'row')} that became events are missing or have other values"
    check.add(check.tables.raw, what, *(LandedFile(check.name, path) for path in sorted(paths)))


def _reaches(row: FileRow, day: date) -> bool:
    """Whether the day is among those from a file's first row to its last."""
    first, last = row["first_ts"], row["last_ts"]
    return first is not None and last is not None and first.date() <= day <= last.date()


def _counts(column: pa.Array) -> tuple[list[str], list[int]]:
    found = pc.value_counts(column)
    return found.field("values").to_pylist(), found.field("counts").to_pylist()


def _check_loads(check: _Check) -> None:
    """Check the number of raw rows of each recorded file, and find files whose rows others have written."""
    raw = check.tables.raw
    if raw.contents is None and raw.findings:
        return
    by_load: dict[str, list[FileRow]] = defaultdict(list)
    for row in check.files:
        by_load[row["load_id"]].append(row)
    gone = raw.contents is None
    for load, rows in sorted(by_load.items(), key=lambda pair: str(pair[1][0]["path"])):
        expected, there = int(rows[0]["rows_raw"] or 0), check.loads[load]
        fixes = [LandedFile(check.name, row["path"]) for row in rows]
        if expected != there:
            what = f"{rows[0]['path']}: {counted(expected, 'row')} ingested, {there} in the table"
            check.add(raw, f"{what}; the table is gone" if gone else what, *fixes)
        elif load in check.distrusted["raw"]:
            check.add(raw, f"{rows[0]['path']}: its rows are in a file that somebody else has written", *fixes)


def _check_quarantine(check: _Check) -> None:
    """Check the quarantined rows of each file and the conflicts of each day."""
    inspected = check.tables.quarantine
    if inspected.contents is None and inspected.findings:
        return
    parsed: Counter[str] = Counter()
    conflicts: Counter[date] = Counter()
    foreign = {path for commit in inspected.strangers for path in commit.files}
    seen: set[tuple[Any, ...]] = set()
    repeated: set[Any] = set()
    if inspected.contents is not None:
        columns = ["file_id", "line", "entry", "stage", "event_date"]
        # All columns are read, so that every part of a file is verified.
        for batch in inspected.contents.batches():
            for row in batch.select(columns).to_pylist():
                key = tuple(row[name] for name in columns[:4])
                if row["stage"] == "resolve":
                    conflicts[row["event_date"]] += 1
                    repeated |= {row["event_date"]} if key in seen else set()
                else:
                    parsed[row["file_id"]] += bool(row["line"])
                    repeated |= {row["file_id"]} if key in seen else set()
                seen.add(key)
        for batch in inspected.contents.batches(lambda part: part.path in foreign, ["file_id"]):
            check.distrusted["quarantine"] |= set(batch.column("file_id").to_pylist())
    by_content: dict[str, list[FileRow]] = defaultdict(list)
    for row in check.files:
        by_content[row["file_id"]].append(row)
    for content, rows in sorted(by_content.items(), key=lambda pair: str(pair[1][0]["path"])):
        expected, there = int(rows[0]["rows_quarantined"] or 0), parsed[content]
        fixes: list[Fix] = [LandedFile(check.name, row["path"]) for row in rows]
        if content in repeated:
            fixes.append(
                SurplusRows("quarantine", check.name, f"file_id = {delta_literal(content)} AND stage = 'parse'")
            )
        if expected != there:
            what = f"{rows[0]['path']}: {counted(expected, 'row')} set aside when it was read, {there} in the table"
            check.add(inspected, what, *fixes)
        elif content in check.distrusted["quarantine"]:
            check.add(inspected, f"{rows[0]['path']}: its rows are in a file that somebody else has written", *fixes)
    for day in sorted(check.days.keys() | conflicts.keys()):
        row = check.days.get(day)
        expected = 0 if row is None else row["conflicts"] or 0
        if (row is None or row["status"] != "changing") and expected != conflicts[day]:
            what = f"{day}: {counted(expected, 'conflict')} found when it was resolved, {conflicts[day]} in the table"
            surplus = SurplusRows("quarantine", check.name, f"event_date = '{day}' AND stage = 'resolve'")
            check.add(inspected, what, EventDay(check.name, day), *([surplus] if day in repeated else []))
