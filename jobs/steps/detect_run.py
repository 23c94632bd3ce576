"""The Spark part of the detect step: one scan of the events, then each pattern by itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.cep.detect import detect_matches, slices, split_report
from jobs.days import Days
from jobs.errors import AuditFailed, ChainlakeError, DefinitionError
from jobs.lake import ops, tables
from jobs.lake.event_days import EventDays, Pinned
from jobs.lake.publish import publish_matches
from jobs.lake.runs import phase
from jobs.lake.session import spark_session
from jobs.lake.staleness import fingerprint
from jobs.paths import Home
from jobs.quality import Audit, audit_matches, warm_up
from jobs.steps.common import discard, one_line, staging_folder
from jobs.steps.detect import STEP, Work, record_failure


def run_work(
    home: Home,
    source_name: str,
    days: Days,
    pinned: Pinned,
    work: Sequence[Work],
    run_id: str,
    result: dict[str, Any],
    failures: list[tuple[str, BaseException]],
) -> None:
    """Run each pattern's days; add to ``result`` and ``failures``."""
    warm_up()
    spark = spark_session(home, f"detect {source_name} {days}")
    audit = Audit(home)
    events = _scan(spark, home, source_name, pinned, work)
    for item in work:
        name = item.compiled.definition.name
        try:
            _run_pattern(spark, home, source_name, events, pinned, item, audit, run_id, result)
            result["patterns"] += 1
        except Exception as error:
            # Whatever stops one pattern must not stop the others; the step raises it once they have published.
            failures.append((name, error))
            if not isinstance(error, AuditFailed):
                record_failure(home, item, error, run_id)
            print(f"{name} failed: {one_line(error)}", flush=True)
    events.unpersist()
    if any(isinstance(error, AuditFailed) for _, error in failures):
        print(f"Data Docs: {audit.build_docs()}", flush=True)


def _scan(spark: SparkSession, home: Home, source_name: str, pinned: Pinned, work: Sequence[Work]) -> DataFrame:
    """The columns and days that the patterns need, read once at the pinned version."""
    reads = [item.read_days for item in work]
    lo, hi = min(r.start for r in reads), max(r.end for r in reads)
    columns = sorted({"event_id", "type", "ts"}.union(*(item.compiled.pattern.columns_needed for item in work)))
    events = tables.read(spark, home, "events", source_name, version=pinned.version)
    scanned = events.where((F.col("event_date") >= F.lit(lo)) & (F.col("event_date") < F.lit(hi))).select(*columns)
    return scanned.persist()


def _run_pattern(
    spark: SparkSession,
    home: Home,
    source_name: str,
    events: DataFrame,
    pinned: Pinned,
    item: Work,
    audit: Audit,
    run_id: str,
    result: dict[str, Any],
) -> None:
    pattern, table, definition = item.compiled.pattern, item.compiled.table, item.compiled.definition
    days = sorted(item.fingerprints)
    span = Days(days[0], Days.one(days[-1]).end)
    log = {"source": source_name, "step": STEP, "definition": definition.name, "days": span}
    path = staging_folder(home, run_id, pattern.name)

    with phase(home, run_id, phase="detect", **log) as row:
        rows = {day: int(found["rows"] or 0) for day, found in pinned.event_days.rows.items()}
        order = pattern.declared_order()
        detect_matches(events, pattern, table, slices(pattern, days, rows), order).write.parquet(path)
        staged, counts = split_report(spark.read.parquet(path))
        per_day = _per_day(staged)
        row.rows_out = sum(per_day.values())
        _check_limit(item, per_day)
        _record_plan(home, item, per_day, counts, order, run_id)

    with phase(home, run_id, phase="audit", **log) as row:
        row.rows_in = sum(per_day.values())
        outcome = audit_matches(audit, pattern, staged, days, events)
        broken = {day: reason for day, reason in outcome.items() if reason is not None}
        if broken:
            row.reason = "; ".join(f"{day}: {reason}" for day, reason in sorted(broken.items()))[:1000]

    with phase(home, run_id, phase="publish", **log) as row:
        published = publish_matches(
            spark,
            home,
            definition,
            table,
            staged,
            item.fingerprints,
            outcome,
            run_id,
            recheck=lambda: _fingerprints_now(home, source_name, item),
        )
        row.rows_out = published.added + published.changed + published.withdrawn
    result["days"] += len(published.days_done)
    for name in ("added", "changed", "withdrawn"):
        result[name] += getattr(published, name)
    if broken:
        day, reason = min(broken.items())
        raise AuditFailed(
            f"the audit of {definition.name} failed on {len(broken)} of {len(days)} days, first {day}: {reason}",
            hint=f"Nothing of these days was published; the staged rows are kept in {path}.",
        )
    discard(path)


def _per_day(staged: DataFrame) -> dict[date, int]:
    counted = staged.groupBy(F.to_date("decision_ts").alias("day")).count().collect()
    return {row["day"]: int(row["count"]) for row in counted}


def _check_limit(item: Work, per_day: dict[date, int]) -> None:
    """The limit holds for a pattern and day, a fact that slicing does not change."""
    limit = item.compiled.pattern.limits.matches_per_day
    for day, count in sorted(per_day.items()):
        if count > limit:
            raise DefinitionError(
                f"{item.compiled.definition.name} has {count} matches on {day}, above its limit of {limit}",
                file=item.compiled.pattern.file,
                key="limits.matches_per_day",
                hint="Narrow WHERE or WITHIN, or raise the limit in the pattern's front matter.",
            )


def _fingerprints_now(home: Home, source_name: str, item: Work) -> dict[date, str]:
    """What the fingerprints are now: a day whose input or definition moved meanwhile is left to the next run."""
    try:
        now = EventDays.load(home, source_name)
        return {day: fingerprint(item.compiled.definition, day, now) for day in item.fingerprints}
    except ChainlakeError as error:
        print(f"fingerprints cannot be checked now: {error.summary}", flush=True)
        return {}


def _record_plan(
    home: Home,
    item: Work,
    per_day: dict[date, int],
    counts: dict[str, int],
    order: Sequence[str] | None,
    run_id: str,
) -> None:
    """Evaluations are counted per run; a run of several days notes them at its last day."""
    last = max(item.fingerprints)
    ops.append(
        home,
        "plans",
        [
            {
                "definition": item.compiled.definition.name,
                "day": day,
                "join_order": list(order) if order else None,
                "how": "declared" if order else "measured",
                "evaluations": counts["evaluations"] if day == last else None,
                "evaluations_neg": counts["evaluations_neg"] if day == last else None,
                "matches": per_day.get(day, 0),
            }
            for day in item.fingerprints
        ],
        run_id,
    )
