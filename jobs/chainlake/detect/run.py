"""The Spark part of the detect step: one scan of the events, then each pattern in its turn."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import date
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from chainlake.catalog.patterns import load_patterns
from chainlake.cep.matches.day_limit import check_day
from chainlake.cep.pattern import Pattern
from chainlake.days import Days
from chainlake.definitions.source import Source, Sources
from chainlake.detect.counts.spark_counts import SampleCounts, SparkCounts
from chainlake.detect.cut import InFiles, in_files, span_of
from chainlake.detect.order import choose_plan, record_plan
from chainlake.detect.staged import Staged, read_staged, write_reports, write_staged
from chainlake.detect.tasks.by_files import stage_matches
from chainlake.detect.tasks.by_shuffle import candidates, detect_matches
from chainlake.detect.tasks.histories import with_histories
from chainlake.detect.tasks.slices import Slice, lay_out, runs
from chainlake.detect.together import Prepared, match_together
from chainlake.detect.work import STEP, Work
from chainlake.errors import AuditFailed, LimitExceeded
from chainlake.lake.commits.publish import Run, publish_matches
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.event_days import EventDays, Pinned
from chainlake.lake.records.runs import Phase, one_line, phase
from chainlake.lake.records.staleness import fingerprint
from chainlake.lake.spark.session import expect_rows, spark_session
from chainlake.lake.spark.types import spark_schema
from chainlake.lake.store.port import Lake
from chainlake.paths import Home
from chainlake.quality import Audit, DaysBroken, MatchFiles, audit_matches, warm_up
from chainlake.run.common import REPAIR_HORIZON, discard, record_failure, staging_folder
from chainlake.run.ports import open_ports
from chainlake.schemas.events import events_table

#: Events up to which the scan is kept by Spark, in memory where they fit.
KEPT_ROWS = 1_000_000


def run_work(
    home: Home,
    source: Source,
    days: Days,
    pinned: Pinned,
    work: Sequence[Work],
    run_id: str,
    result: dict[str, Any],
    failures: list[tuple[str, BaseException]],
) -> None:
    """Run each pattern's days; add to ``result`` and ``failures``."""
    warm_up()
    long_running = max(len(item.fingerprints) for item in work) > REPAIR_HORIZON
    spark = spark_session(home, f"detect {source.name} {days}", long_running=long_running)
    audit = Audit(home)
    expect_rows(spark, pinned.event_days.events({day for item in work for day in item.read_days}))
    events = _scan(spark, home, source, pinned, work)
    files = None if _kept(pinned, work) else in_files(spark, home, source, pinned, work)
    derived = _derived(source, events, work)
    ready: dict[str, Prepared] = {}
    if files is not None:
        prepare = partial(_prepared, home, source, events, files, pinned)
        ready = match_together(home, source.name, files, work, prepare, run_id)
    for item in work:
        name = item.compiled.definition.name
        found = events if derived is None or not item.compiled.pattern.histories else derived
        first: BaseException | None = None
        waiting = [item]
        while waiting:
            part = waiting.pop()
            prepared = ready.pop(item.compiled.pattern.name, None)
            try:
                _run_pattern(spark, home, source, found, files, pinned, part, prepared, audit, run_id, result)
            except Exception as error:
                if isinstance(error, LimitExceeded) and len(part.fingerprints) > 1:
                    # A limit is a fact of a day: the other days must come out as if they had been run by themselves.
                    waiting += part.halves()[::-1]
                    continue
                # Whatever stops one pattern must not stop the others; the step raises it once they have published.
                first = first or error
                if not isinstance(error, AuditFailed):
                    record_failure(home, item.compiled.definition, part.fingerprints, error, run_id)
                print(f"{name} failed: {one_line(error)}", flush=True)
        if first is None:
            result["patterns"] += 1
        else:
            failures.append((name, first))
    if derived is not None:
        derived.unpersist()
    events.unpersist()
    print(f"Data Docs: {audit.build_docs()}", flush=True)


def _scan(spark: SparkSession, home: Home, source: Source, pinned: Pinned, work: Sequence[Work]) -> DataFrame:
    """The columns and days that the patterns need, at the pinned version.

    Few are read once and kept. To write many to Spark's cache takes longer than to read the columns that a query needs
    from their files again.
    """
    needed = {"event_id", "type", "ts", source.key}
    for item in work:
        histories = item.compiled.pattern.histories
        needed |= item.compiled.pattern.columns_needed - {one.name for one in histories}
        needed |= {one.of for one in histories} | ({"seq"} if histories else set())
    columns = sorted(needed)
    if pinned.version is None:
        # Days can be complete before the first event ever came; they are published empty.
        events = spark.createDataFrame([], spark_schema(events_table(source).arrow()))
    else:
        events = tables.read_days(spark, home, "events", source.name, list(span_of(work)), pinned.version)
    events = events.select(*columns)
    return events.persist() if _kept(pinned, work) else events


def _kept(pinned: Pinned, work: Sequence[Work]) -> bool:
    """Whether the events are so few that Spark keeps them."""
    return pinned.event_days.events(span_of(work)) <= KEPT_ROWS


def _derived(source: Source, events: DataFrame, work: Sequence[Work]) -> DataFrame | None:
    """The events with all histories that patterns ask for, computed once; None if there are none.

    A frame of its own, so that what goes wrong with it stops no pattern without histories.
    """
    histories = {one.name: one for item in work for one in item.compiled.pattern.histories}
    return with_histories(events, source.key, list(histories.values())).persist() if histories else None


def _run_pattern(
    spark: SparkSession,
    home: Home,
    source: Source,
    events: DataFrame,
    files: InFiles | None,
    pinned: Pinned,
    item: Work,
    prepared: Prepared | None,
    audit: Audit,
    run_id: str,
    result: dict[str, Any],
) -> None:
    pattern, table, definition = item.compiled.pattern, item.compiled.table, item.compiled.definition
    days = sorted(item.fingerprints)
    span = Days(days[0], Days.one(days[-1]).end)

    def logged(name: str) -> AbstractContextManager[Phase]:
        return phase(home, run_id, source=source.name, step=STEP, phase=name, definition=definition.name, days=span)

    with logged("detect") as row:
        own_files = files if files is not None and not pattern.histories else None
        if prepared is None:
            prepared = _prepared(home, source, events, own_files, pinned, item)
        path = prepared.path
        if path is None:
            path = staging_folder(home, run_id, pattern.name)
            _stage(spark, events, own_files, item, prepared, path)
        staged = read_staged(spark, path, table)
        per_day = staged.per_day
        row.rows_out = sum(per_day.values())
        for day, count in sorted(per_day.items()):
            # Workers stop at the limit, each of what it finds; the limit holds for what they find together.
            check_day(pattern, day, count)
        record_plan(home, item, per_day, staged.counts, prepared.plan, run_id)

    lake = open_ports(home, "detect").lake
    with logged("audit") as row:
        row.rows_in = sum(per_day.values())
        verdict = audit_matches(audit, pattern, _match_files(lake, source, pinned, item, staged), days)
        row.reason = verdict.summary

    with logged("publish") as row:
        published = publish_matches(
            Run(home, lake, run_id),
            definition,
            table,
            staged.to_publish,
            item.fingerprints,
            verdict.reasons,
            recheck=lambda: _fingerprints_now(home, source, item),
        )
        row.rows_out = published.added + published.changed + published.withdrawn
    for day, reason in sorted(published.left_out.items()):
        print(f"{definition.name} {day} not published: {reason}", flush=True)
    result["days"] += len(published.days_done)
    for name in ("added", "changed", "withdrawn"):
        result[name] += getattr(published, name)
    if verdict.broken:
        raise DaysBroken.of(
            definition.name, verdict, f"Nothing of these days was published; the staged rows are kept in {path}."
        )
    discard(path)


def _prepared(
    home: Home, source: Source, events: DataFrame, files: InFiles | None, pinned: Pinned, item: Work
) -> Prepared:
    pattern = item.compiled.pattern
    base = runs(pattern, item.fingerprints)
    look = _spark_counts(events, pattern, base) if files is None else files.look(pattern, base)
    read = pinned.event_days.events(item.read_days)
    plan = choose_plan(look, pattern, source.key, base, read, _rates(home, source, item.read_days))
    return Prepared(plan, None if files is None else files.cut(pattern, item.fingerprints, plan))


def _stage(
    spark: SparkSession, events: DataFrame, files: InFiles | None, item: Work, prepared: Prepared, path: str
) -> None:
    """Find the matches of one pattern and write them to the folder ``path``."""
    pattern, table, plan = item.compiled.pattern, item.compiled.table, prepared.plan
    if files is not None and prepared.cut is not None:
        (outcome,) = stage_matches(spark, files.files, [prepared.cut.search(table, path)])
        write_reports(outcome.reports, path, table)
        return
    base, counts = runs(pattern, item.fingerprints), plan.counts
    if not isinstance(counts, SparkCounts | SampleCounts):
        # Counted in the files, but left to Spark's reader: Spark counts the keys, too, which can be many.
        counts = _spark_counts(events, pattern, base)
    layout = lay_out(base, plan.work, counts, spark.sparkContext.defaultParallelism)
    write_staged(detect_matches(events, pattern, table, layout, plan.orders), path)


def _match_files(lake: Lake, source: Source, pinned: Pinned, item: Work, staged: Staged) -> MatchFiles:
    """The staged matches and the events that they may bind, as files."""
    matches = tuple(staged.paths or ())
    if pinned.version is None:
        return MatchFiles(matches, ())
    return MatchFiles(matches, lake.day_files("events", source.name, item.read_days, pinned.version).paths)


def _spark_counts(events: DataFrame, pattern: Pattern, base: Sequence[Slice]) -> SparkCounts:
    span = min(s.read[0] for s in base), max(s.read[1] for s in base)
    return SparkCounts(candidates(events, pattern, span), pattern)


def _rates(home: Home, source: Source, days: Days) -> list[dict[str, Any]]:
    """Events per type, key and day; of these days only, since years of all keys are millions of rows."""
    mine = [("source", "=", source.name), ("day", ">=", days.start), ("day", "<", days.end)]
    return ops.current_table(home, "rates", columns=["type", "key", "events"], filters=mine).to_pylist()


def _fingerprints_now(home: Home, source: Source, item: Work) -> dict[date, str]:
    """What the fingerprints are now: a day whose input or definition moved meanwhile is left to the next run."""
    compiled, _ = load_patterns(home, Sources(source), only=item.compiled.pattern.name)
    was = item.compiled.definition
    if [(c.definition.definition_hash, c.definition.table_name) for c in compiled] != [
        (was.definition_hash, was.table_name)
    ]:
        return {}
    now = EventDays.load(home, source.name)
    return {day: fingerprint(item.compiled.definition, day, now) for day in item.fingerprints}
