"""Publishing: the only place that writes matches and model results (design §4 "Publish").

Under the table's lock: leave out what moved or failed its audit; take the difference; note ``publishing``; commit the
difference; note ``done``. Killed anywhere, the next attempt does it again and ends with the same table; a commit of
the dead attempt that lands late is refused by Delta, because every attempt that finds a ``publishing`` row of another
one commits, even if nothing differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobs.lake import ops
from jobs.lake.definitions import Definition
from jobs.lake.faults import around
from jobs.lake.locks import jvm_lock
from jobs.lake.rows import Change, staged_change
from jobs.paths import Home
from schemas.models import CHANGES, METRICS, STATE
from schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Published:
    """What was published.

    Args:
        days_done: days that are done now.
        left_out: day → why it was not published.
        added: rows added.
        changed: rows changed.
        withdrawn: rows withdrawn.
        version: version of the table that holds the days; ``None`` if no day was published.
    """

    days_done: list[date]
    left_out: dict[date, str]
    added: int = 0
    changed: int = 0
    withdrawn: int = 0
    version: int | None = None


def publish_matches(
    spark: SparkSession,
    home: Home,
    definition: Definition,
    table: Table,
    staged: DataFrame | pa.Table,
    fingerprints: Mapping[date, str],
    audits: Mapping[date, str | None],
    run_id: str,
    recheck: Callable[[], Mapping[date, str]],
) -> Published:
    """Publish the staged matches of some days, in one commit.

    Args:
        spark: the session.
        home: the installation.
        definition: the pattern.
        table: its match table; made if it does not exist.
        staged: all matches that decide on the days.
        fingerprints: day → fingerprint that the computation started from; these are the days.
        audits: day → ``None`` if its audit passed, else the reason in one line.
        run_id: id of the run in ``ops``.
        recheck: the fingerprints now; a day whose fingerprint is another one, or that is absent because the
            definition changed, is left to do.

    Raises:
        AuditFailed: a row breaks a constraint of the table.
        InfrastructureError: the lock was not to be had, or another writer came in between.
    """
    with jvm_lock(spark, home, f"table-{table.path_name}"):
        days, left_out = _publishable(fingerprints, audits, recheck(), chained=False)
        _note_failed_audits(home, definition, fingerprints, audits, left_out, run_id)
        if not days:
            return Published([], left_out)
        change = staged_change(spark, home, table, staged, days, day_column="decision_ts")
        force = _interrupted(home, definition, days)
        with around("publish.publishing"):
            _note(home, definition, days, fingerprints, "publishing", run_id)
        with around("publish.commit"):
            applied = change.commit(spark, home, purpose=f"table-{table.path_name}", force=force)
        version = change.base_version if applied.version is None else applied.version
        with around("publish.done"):
            _note(home, definition, days, fingerprints, "done", run_id, change, version)
    return Published(days, left_out, applied.added, applied.changed, applied.withdrawn, version)


def publish_models(
    spark: SparkSession,
    home: Home,
    definition: Definition,
    found: DataFrame | pa.Table,
    metrics: DataFrame | pa.Table,
    state: DataFrame | pa.Table,
    fingerprints: Mapping[date, str],
    audits: Mapping[date, str | None],
    run_id: str,
    recheck: Callable[[], Mapping[date, str]],
    table: Table = CHANGES,
) -> Published:
    """Publish what a model or monitor found on some days and its metrics, then its state, which is a cache.

    Arguments as for :func:`publish_matches`; the three outputs are rows of ``table`` (``models.changes``, or
    ``alerts.threshold``), ``models.metrics`` and ``models.state`` of this model. State is carried from day to day, so
    nothing from the first day that is left out is published. The counts returned and noted are those of ``table``.
    """
    model = definition.name.partition("/")[2]
    day_column = "event_date" if table is CHANGES else "ts"
    parts = ((table, found, day_column), (METRICS, metrics, "day"), (STATE, state, "day"))
    with ExitStack() as locks:
        for part, _, _ in parts:
            # Always in this order, or two models could wait for each other.
            locks.enter_context(jvm_lock(spark, home, f"table-{part.path_name}"))
        days, left_out = _publishable(fingerprints, audits, recheck(), chained=True)
        _note_failed_audits(home, definition, fingerprints, audits, left_out, run_id)
        if not days:
            return Published([], left_out)
        taken = [
            staged_change(spark, home, part, staged, days, day_column=column, only=(part.key[0], model))
            for part, staged, column in parts
        ]
        force = _interrupted(home, definition, days)
        with around("publish.publishing"):
            _note(home, definition, days, fingerprints, "publishing", run_id)
        with around("publish.commit"):
            applied, _ = (
                change.commit(spark, home, purpose=f"table-{change.table.path_name}", force=force)
                for change in taken[:2]
            )
        version = taken[0].base_version if applied.version is None else applied.version
        with around("publish.done"):
            _note(home, definition, days, fingerprints, "done", run_id, taken[0], version)
        with around("monitor.state"):
            taken[2].commit(spark, home, purpose=f"table-{STATE.path_name}", force=force)
    return Published(days, left_out, applied.added, applied.changed, applied.withdrawn, version)


def _publishable(
    fingerprints: Mapping[date, str], audits: Mapping[date, str | None], now: Mapping[date, str], *, chained: bool
) -> tuple[list[date], dict[date, str]]:
    """The days to publish, and the others with the reason."""
    days: list[date] = []
    left_out: dict[date, str] = {}
    for day in sorted(fingerprints):
        if now.get(day) != fingerprints[day]:
            left_out[day] = "its input or definition changed while it was computed"
        elif audits.get(day) is not None:
            left_out[day] = f"its audit failed: {audits[day]}"
        elif chained and left_out:
            left_out[day] = f"{min(left_out)}, on which it depends, was left out"
        else:
            days.append(day)
    return days, left_out


def _note_failed_audits(
    home: Home,
    definition: Definition,
    fingerprints: Mapping[date, str],
    audits: Mapping[date, str | None],
    left_out: Mapping[date, str],
    run_id: str,
) -> None:
    failed = [day for day, why in left_out.items() if why.startswith("its audit failed")]
    rows = [
        {**_row(definition, day, fingerprints), "status": "audit_failed", "reason": audits[day]} for day in failed
    ]
    ops.append(home, "intervals", rows, run_id)


def _interrupted(home: Home, definition: Definition, days: Iterable[date]) -> bool:
    """Whether an attempt noted ``publishing`` for one of the days and this table, and none has come to its end since.

    The current row does not tell: an attempt that failed later has put ``failed`` over it, and the definition may have
    moved to another table and back, while the commit of the first one is still on its way.
    """
    wanted = set(days)
    log = ops.current_table(
        home,
        "intervals",
        columns=["day", "table_name", "status", "seq"],
        filters=[("definition", "=", definition.name)],
        as_log=True,
    )
    begun: dict[tuple[str, date], int] = {}
    for row in log.to_pylist():
        if row["table_name"] == definition.table_name and row["status"] in ("publishing", "done"):
            key = (row["status"], row["day"])
            begun[key] = max(row["seq"], begun.get(key, 0))
    return any(begun.get(("publishing", day), 0) > begun.get(("done", day), 0) for day in wanted)


def _note(
    home: Home,
    definition: Definition,
    days: Iterable[date],
    fingerprints: Mapping[date, str],
    status: str,
    run_id: str,
    change: Change | None = None,
    version: int | None = None,
) -> None:
    rows: list[dict[str, Any]] = []
    for day in days:
        row = {**_row(definition, day, fingerprints), "status": status}
        if change is not None:
            counts: Counter[tuple[date, str]] = change.ops
            row |= {
                "rows": change.rows[day],
                "added": counts[day, "I"],
                "changed": counts[day, "U"],
                "withdrawn": counts[day, "D"],
                "published_version": version,
            }
        rows.append(row)
    ops.append(home, "intervals", rows, run_id)


def _row(definition: Definition, day: date, fingerprints: Mapping[date, str]) -> dict[str, Any]:
    return {
        "definition": definition.name,
        "day": day,
        "table_name": definition.table_name,
        "definition_hash": definition.definition_hash,
        "engine_version": definition.engine_version,
        "input_fingerprint": fingerprints[day],
    }
