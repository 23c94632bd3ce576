"""Publishing: the only place that writes matches and model results (design §4 "Publish").

Under the table's lock: leave out what moved or failed its audit; take the difference; note ``publishing``; commit the
difference; note ``done``. Killed anywhere, the next attempt does it again and ends with the same table; a commit of
the dead attempt that lands late is refused by Delta, because every attempt that finds a ``publishing`` row of another
one commits, even if nothing differs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from chainlake.lake.commits.places import table_lock, take_place
from chainlake.lake.commits.rows import Change, StagedFiles, staged_change
from chainlake.lake.faults import around
from chainlake.lake.locks import jvm_lock
from chainlake.lake.records import ops
from chainlake.lake.records.definitions import Definition
from chainlake.lake.records.lost import note_lost
from chainlake.paths import Home
from chainlake.schemas.models import CHANGES, METRICS, STATE
from chainlake.schemas.table import Table

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
    staged: DataFrame | pa.Table | StagedFiles,
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
            definition changed or its table is another one, is left to do.

    Raises:
        AuditFailed: a row breaks a constraint of the table.
        InfrastructureError: the lock was not to be had, or another writer came in between.
    """
    pattern = definition.name.partition("/")[2]
    with jvm_lock(spark, home, table_lock(table.name)):
        # First of all: what a killed attempt left half done decides which table the days belong to.
        take_place(home, pattern, run_id)
        days, left_out = _publishable(fingerprints, audits, recheck(), chained=False)
        _note_failed_audits(home, definition, fingerprints, audits, left_out, run_id)
        if not days:
            return Published([], left_out)
        note_lost(home, [table], run_id)
        change = staged_change(spark, home, table, staged, days, day_column="decision_ts")
        force = _interrupted(home, [definition], days)
        with around("publish.publishing"):
            ops.append(home, "intervals", _notes(definition, days, fingerprints, "publishing"), run_id)
        with around("publish.commit"):
            applied = change.commit(spark, home, purpose=f"table-{table.path_name}", force=force)
        version = change.base_version if applied.version is None else applied.version
        with around("publish.done"):
            done = _notes(definition, days, fingerprints, "done", [change], version)
            ops.append(home, "intervals", done, run_id)
        if "/" in table.name:
            take_place(home, pattern, run_id)
    return Published(days, left_out, applied.added, applied.changed, applied.withdrawn, version)


@dataclass(frozen=True)
class ModelOutput:
    """What a model or monitor gave on some days, to be published.

    Args:
        definition: the model.
        found: its rows of ``models.changes``, or of ``alerts.threshold``.
        metrics: its rows of ``models.metrics``.
        state: its rows of ``models.state``.
        fingerprints: day → fingerprint that the computation started from; these are the days.
        audits: day → ``None`` if its audit passed, else the reason in one line.
    """

    definition: Definition
    found: pa.Table
    metrics: pa.Table
    state: pa.Table
    fingerprints: Mapping[date, str]
    audits: Mapping[date, str | None]

    @property
    def owner(self) -> str:
        """The model's name in its tables."""
        return self.definition.name.partition("/")[2]


def publish_models(
    spark: SparkSession,
    home: Home,
    outputs: Sequence[ModelOutput],
    run_id: str,
    recheck: Callable[[], Mapping[str, Mapping[date, str]]],
    table: Table = CHANGES,
) -> dict[str, Published]:
    """Publish what models or monitors found on some days and their metrics, then their state, which is a cache.

    State is carried from day to day, so nothing of a model from its first day that is left out is published. Models
    that publish the same days share one commit per table, however many they are.

    Args:
        spark: the session.
        home: the installation.
        outputs: of different models that publish in ``table``.
        run_id: id of the run in ``ops``.
        recheck: the fingerprints now by definition, as for :func:`publish_matches`.
        table: ``models.changes``, or ``alerts.threshold``.

    Returns:
        by definition; counts are those of ``table``.

    Raises:
        AuditFailed: a row breaks a constraint of a table. InfrastructureError: as for :func:`publish_matches`.
    """
    with ExitStack() as locks:
        for part in (table, METRICS, STATE):
            # Always in this order, or two writers could wait for each other.
            locks.enter_context(jvm_lock(spark, home, f"table-{part.path_name}"))
        note_lost(home, [table, METRICS], run_id)
        published: dict[str, Published] = {}
        together: dict[tuple[date, ...], list[ModelOutput]] = defaultdict(list)
        now = recheck()
        for output in outputs:
            name = output.definition.name
            days, left_out = _publishable(output.fingerprints, output.audits, now.get(name, {}), chained=True)
            _note_failed_audits(home, output.definition, output.fingerprints, output.audits, left_out, run_id)
            published[name] = Published([], left_out)
            if days:
                together[tuple(days)].append(output)
        for same, mine in together.items():
            change, version = _commit_models(spark, home, mine, same, run_id, table)
            for output in mine:
                name = output.definition.name
                added, changed, gone = (sum(change.ops[output.owner, day, op] for day in same) for op in "IUD")
                published[name] = Published(list(same), published[name].left_out, added, changed, gone, version)
    return published


def _commit_models(
    spark: SparkSession, home: Home, outputs: Sequence[ModelOutput], days: Sequence[date], run_id: str, table: Table
) -> tuple[Change, int]:
    """Commit the same days of models; the difference of ``table``, and its version that holds the days."""
    owners = [output.owner for output in outputs]
    day_column = "event_date" if table is CHANGES else "ts"
    taken = [
        staged_change(
            spark,
            home,
            part,
            pa.concat_tables([getattr(output, name) for output in outputs]),
            days,
            day_column=column,
            only=(part.key[0], owners),
        )
        for part, name, column in ((table, "found", day_column), (METRICS, "metrics", "day"), (STATE, "state", "day"))
    ]
    force = _interrupted(home, [output.definition for output in outputs], days)

    def note(status: str, changes: Sequence[Change] = (), version: int | None = None) -> None:
        rows = [
            row
            for output in outputs
            for row in _notes(output.definition, days, output.fingerprints, status, changes, version, output.owner)
        ]
        ops.append(home, "intervals", rows, run_id)

    with around("publish.publishing"):
        note("publishing")
    with around("publish.commit"):
        applied, _ = (
            change.commit(spark, home, purpose=f"table-{change.table.path_name}", force=force) for change in taken[:2]
        )
    version = taken[0].base_version if applied.version is None else applied.version
    with around("publish.done"):
        note("done", taken, version)
    with around("monitor.state"):
        taken[2].commit(spark, home, purpose=f"table-{STATE.path_name}", force=force)
    return taken[0], version


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
    rows = [{**_row(definition, day, fingerprints), "status": "audit_failed", "reason": audits[day]} for day in failed]
    ops.append(home, "intervals", rows, run_id)


def _interrupted(home: Home, definitions: Sequence[Definition], days: Iterable[date]) -> bool:
    """Whether an attempt noted ``publishing`` for one of the days and tables, and none has come to its end since.

    The current row does not tell: an attempt that failed later has put ``failed`` over it, and the definition may have
    moved to another table and back, while the commit of the first one is still on its way.
    """
    wanted = set(days)
    tables = {definition.name: definition.table_name for definition in definitions}
    log = ops.current_table(
        home,
        "intervals",
        columns=["definition", "day", "table_name", "status", "seq"],
        filters=[("definition", "in", list(tables)), ("day", ">=", min(wanted)), ("day", "<=", max(wanted))],
        as_log=True,
    )
    begun: dict[tuple[str, str, date], int] = {}
    for row in log.to_pylist():
        if row["table_name"] == tables[row["definition"]] and row["status"] in ("publishing", "done"):
            key = (row["status"], row["definition"], row["day"])
            begun[key] = max(row["seq"], begun.get(key, 0))
    return any(
        seq > begun.get(("done", name, day), 0)
        for (status, name, day), seq in begun.items()
        if status == "publishing" and day in wanted
    )


def _notes(
    definition: Definition,
    days: Iterable[date],
    fingerprints: Mapping[date, str],
    status: str,
    changes: Sequence[Change] = (),
    version: int | None = None,
    owner: str = "",
) -> list[dict[str, Any]]:
    """Rows of ``ops.intervals``, with counts, checksums and version once they are known.

    The first of ``changes`` is the one that the counts are about; each has its part of the checksum.
    """
    rows: list[dict[str, Any]] = []
    for day in days:
        row = {**_row(definition, day, fingerprints), "status": status}
        if changes:
            change = changes[0]
            row |= {
                "rows": change.rows[owner, day],
                "added": change.ops[owner, day, "I"],
                "changed": change.ops[owner, day, "U"],
                "withdrawn": change.ops[owner, day, "D"],
                "published_version": version,
                "rows_checksum": " ".join(one.checksum(owner, day) for one in changes),
            }
        rows.append(row)
    return rows


def _row(definition: Definition, day: date, fingerprints: Mapping[date, str]) -> dict[str, Any]:
    return {
        "definition": definition.name,
        "day": day,
        "table_name": definition.table_name,
        "definition_hash": definition.definition_hash,
        "engine_version": definition.engine_version,
        "input_fingerprint": fingerprints[day],
    }
