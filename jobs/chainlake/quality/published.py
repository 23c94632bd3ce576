"""Runs the same suites on what is already published, to see whether it still holds (``chainlake validate``)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import Days, day_of_us
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.chain import EMPTY
from chainlake.lake.sql.duck import connected
from chainlake.lake.sql.matches import consumed_select
from chainlake.lake.sql.scan import scan
from chainlake.model_change.days.definitions import result_table
from chainlake.model_change.days.runs import start
from chainlake.paths import Home
from chainlake.quality.audit import Audit
from chainlake.quality.gates.accounting import audit_accounting
from chainlake.quality.gates.companions import GATES
from chainlake.quality.gates.models import Gated, audit_models
from chainlake.quality.matches.files import Matches
from chainlake.quality.matches.gate import judge
from chainlake.quality.matches.rules import rules_of
from chainlake.schemas.models import METRICS
from chainlake.schemas.ops_rows import FileRow
from chainlake.schemas.table import Table

if TYPE_CHECKING:
    import duckdb

    from chainlake.catalog.models import LoadedModel
    from chainlake.catalog.patterns import CompiledPattern


@dataclass(frozen=True)
class Outcome:
    """What was looked at, its days, and for each broken day one line that says what is wrong."""

    what: str
    days: tuple[date, ...]
    broken: dict[date, str]


def published_days(home: Home, definition: str, days: Days) -> list[date]:
    """The days that are done for the definition, by the current rows of ``ops.intervals``, sorted."""
    rows = ops.current(home, "intervals", definition=definition)
    return sorted(row["day"] for row in rows if row["status"] == "done" and row["day"] in days)


def accounting(audit: Audit, source: str, days: Days) -> Outcome:
    """The outcome for files and days of a source: every delivered row is an event, or counted as something else."""
    home = audit.home
    files = ops.current(home, "files", source=source)
    listed = [row for row in ops.current(home, "event_days", source=source) if row["day"] in days]
    raw = _raw_rows(home, source, files, days)
    counted = [{**row, "rows_raw": raw.get(row["day"], 0)} for row in listed]
    reason = audit_accounting(audit, files, counted)
    found = tuple(sorted(row["day"] for row in listed))
    return Outcome(f"accounting of source {source}", found, {} if reason is None else {days.start: reason})


def _raw_rows(home: Home, source: str, files: Sequence[FileRow], days: Days) -> dict[date, int]:
    """The number of raw rows of effective files on each day; for each file_id one load counts, whatever its paths.

    If a content was read under one name and not under another, the load with rows counts.
    """
    if not files or not tables.exists(home, "raw", source):
        return {}
    loads = sorted({row["file_id"]: row["load_id"] for row in files if row["rows_raw"]}.values())
    rows = tables.arrow(
        home,
        "raw",
        source,
        columns=["event_date"],
        filters=[("event_date", ">=", days.start), ("event_date", "<", days.end), ("load_id", "in", loads)],
    )
    counts = rows.group_by("event_date").aggregate([([], "count_all")])
    return dict(zip(counts["event_date"].to_pylist(), counts["count_all"].to_pylist(), strict=True))


def matches(audit: Audit, patterns: Sequence[CompiledPattern], days: Days) -> Iterator[Outcome]:
    """The outcomes for the match tables of patterns, one by one; no JVM."""
    for compiled in patterns:
        own = published_days(audit.home, compiled.definition.name, days)
        if compiled.definition.chained:
            own = _linked(audit.home, compiled.definition.name, own)
        if not own or not tables.exists(audit.home, "matches", compiled.table.name):
            continue
        with connected(audit.home, len(os.sched_getaffinity(0))) as con:
            found = judge(audit, rules_of(compiled.pattern), _published(con, audit.home, compiled, own), own)
        yield Outcome(compiled.definition.name, tuple(own), found.broken)


def _linked(home: Home, definition: str, days: Sequence[date]) -> list[date]:
    """The days that continue from what the day before has left; the others have to be computed again."""
    left = {row["day"]: row for row in ops.current(home, "intervals", definition=definition)}
    found = []
    for day in days:
        before = left.get(day - timedelta(days=1))
        state = left[day]["state_in"]
        if state == EMPTY or (before is not None and before["state_out"] == state):
            found.append(day)
    return found


def _published(con: duckdb.DuckDBPyConnection, home: Home, compiled: CompiledPattern, days: Sequence[date]) -> Matches:
    """The published matches of some days, and the events that they may bind, read from the lake."""

    def read(schema: str, name: str) -> str:
        found = scan(con, home, schema, name)
        if found.dataset is not None:
            con.register(found.handle, found.dataset)
        return found.sql

    spans = [compiled.definition.read_range(day) for day in days]
    first, last = day_of_us(min(lo for lo, _ in spans)), day_of_us(max(hi for _, hi in spans) - 1)
    bounds = f"decision_ts >= '{days[0]} 00:00Z' AND decision_ts < '{Days.one(days[-1]).end} 00:00Z'"
    listed = ", ".join(f"DATE '{day}'" for day in days)
    rows = f"{read('matches', compiled.table.name)} WHERE {bounds} AND cast(decision_ts AS DATE) IN ({listed})"
    events = f"SELECT event_id FROM ({read('events', compiled.definition.source)})"
    events = f"{events} WHERE event_date BETWEEN DATE '{first}' AND DATE '{last}'"
    rules, before = rules_of(compiled.pattern), None
    if compiled.definition.chained:
        # Events used up by earlier days; the days themselves are looked at together.
        since = max(first, compiled.definition.start or first)
        earlier = f"decision_ts >= '{since} 00:00Z' AND decision_ts < '{days[0]} 00:00Z'"
        table = f"(SELECT * FROM ({read('matches', compiled.table.name)}) WHERE {earlier})"
        before = f"SELECT event_id FROM ({consumed_select(table, rules.names, rules.consume)})"
    return Matches(con, rules, rows, events, before)


def models(audit: Audit, loaded: Sequence[LoadedModel], days: Days) -> Iterator[Outcome]:
    """The outcomes for the findings and metrics of models, one by one; no JVM."""
    for model in loaded:
        own = published_days(audit.home, model.definition.name, days)
        if not own:
            continue
        name, table = model.config.name, result_table(model.config)
        metrics = _rows_of(audit.home, METRICS, [("model", "=", name), ("day", "in", own)])
        found = _rows_of(audit.home, table, [(table.key[0], "=", name)])
        found = found.filter(pc.is_in(pc.cast(found[table.day_column], pa.date32(), safe=False), pa.array(own)))
        staged = Gated(name, found, metrics, _bound(audit.home, model))
        verdict = audit_models(audit, GATES[table.path_name], staged, own)
        yield Outcome(model.definition.name, tuple(own), verdict.broken)


def _rows_of(home: Home, table: Table, filters: list[tuple[str, str, Any]]) -> pa.Table:
    """Published rows of a table; none if there is no table, since a model can be done without a row."""
    if not tables.exists(home, table.schema, table.name):
        return table.arrow().empty_table()
    return tables.arrow(home, table.schema, table.name, filters=filters)


def _bound(home: Home, model: LoadedModel) -> float | dict[str, float]:
    """The bound that findings are compared with, by group; if it is a share of the first model, the state has it."""
    config = model.config
    if config.bound is not None:
        return config.bound
    if not tables.exists(home, "models", "state"):
        return {}
    rows = tables.arrow(home, "models", "state", filters=[("model", "=", model.config.name)]).to_pylist()
    newest = {row["group_id"]: row["state"] for row in sorted(rows, key=lambda row: row["day"])}
    known = {group: start(config, group, state).eps for group, state in newest.items()}
    return {group: eps for group, eps in known.items() if eps is not None}
