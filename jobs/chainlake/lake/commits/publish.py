"""Publishing: the only place that writes matches and model results (docs/semantics.md).

Under the table's lock: leave out days whose input changed or whose audit failed; take the difference; record
``publishing``; commit the difference; record ``done``. If an attempt is killed anywhere, the next one does all of it
again and ends with the same table. Delta refuses a late commit of the dead attempt, because every attempt that finds
another's ``publishing`` row commits, even if nothing differs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import date

import pyarrow as pa

from chainlake.lake.commits.attempts import Attempts
from chainlake.lake.commits.places import table_lock, take_place
from chainlake.lake.commits.publishable import DaysNow, Publishable, chained, publishable, states_left
from chainlake.lake.delta import tables
from chainlake.lake.faults import around
from chainlake.lake.records import ops
from chainlake.lake.records.chain import Link
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.lost import note_lost
from chainlake.lake.store.parts import days_of
from chainlake.lake.store.port import Change, Lake, Staged, Turn
from chainlake.paths import Home
from chainlake.schemas.models import CHANGES, METRICS, SHARED, STATE
from chainlake.schemas.ops_rows import IntervalRow, IntervalStatus
from chainlake.schemas.table import Table


@dataclass(frozen=True)
class PublishingRun:
    """Who publishes, and with what.

    Args:
        home: the installation.
        lake: makes the commits.
        run_id: id of the run in ``ops``.
    """

    home: Home
    lake: Lake
    run_id: str


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


@dataclass(frozen=True)
class MatchOutput:
    """The matches of a pattern on some days, to be published.

    Args:
        definition: the pattern.
        table: its match table; made if it does not exist.
        staged: all matches whose decision time is on the days.
        fingerprints: day → fingerprint that the computation started from; its keys are the days.
        audits: day → ``None`` if its audit passed, else the reason in one line.
        links: if the days form a chain: day → the digests of the states at its ends; the days are then consecutive.
    """

    definition: Definition
    table: Table
    staged: Staged
    fingerprints: Mapping[date, str]
    audits: Mapping[date, str | None]
    links: Mapping[date, Link] | None = None


def publish_matches(run: PublishingRun, output: MatchOutput, recheck: Callable[[], DaysNow]) -> Published:
    """Publish the staged matches of some days, in one commit.

    If the days form a chain, nothing is published from the first left-out day on, nor anything that starts from a state
    other than the one the previous day left.

    Args:
        run: who publishes.
        output: the matches.
        recheck: what the days are computed from now; a day stays to do if its fingerprint changed, or if it is absent
            because the definition or its table changed.

    Raises:
        AuditFailed: a row breaks a constraint of the table.
        LockBusy: another process held the table's lock the whole time.
        Overtaken: another writer came in between.
    """
    definition, table, fingerprints = output.definition, output.table, output.fingerprints
    pattern = definition.name.partition("/")[2]
    matches = table.schema == "matches"
    with run.lake.lock(table_lock(table.name) if matches else f"table-{table.path_name}"):
        if matches:
            # This comes first: what a killed attempt left half done decides which table the days belong to.
            take_place(run.home, pattern, run.run_id)
        if output.links is None:
            days = publishable(fingerprints, output.audits, recheck().fingerprints)
        else:
            left = states_left(run.home, {definition: min(fingerprints)}).get(definition.name)
            days = chained(fingerprints, output.audits, output.links, recheck(), left)
        _note_failed_audits(run, definition, fingerprints, days, output.links)
        if not days.ready:
            return Published([], days.left_out)
        note_lost(run.home, [table], run.run_id)
        part = days_of(table, days.ready, table.day_column)
        with run.lake.change(table, replace(output.staged, within=part.where), part) as change:
            force = Attempts.of(run.home, [definition], days.ready).interrupted([definition], days.ready)
            with around("publish.publishing"):
                _append(run, _notes(definition, days.ready, fingerprints, "publishing", of=output))
            with around("publish.commit"):
                applied = run.lake.commit(change, Turn(f"table-{table.path_name}", force))
        version = change.base_version if applied.version is None else applied.version
        with around("publish.done"):
            outcome = _Outcome([change], version)
            _append(run, _notes(definition, days.ready, fingerprints, "done", outcome, output))
        if "/" in table.name:
            take_place(run.home, pattern, run.run_id)
    return Published(days.ready, days.left_out, applied.added, applied.changed, applied.withdrawn, version)


@dataclass(frozen=True)
class ModelOutput:
    """The results of a model or monitor on some days, to be published.

    Args:
        definition: the model.
        found: its rows for its kind's table, such as ``models.changes``.
        metrics: its rows for ``models.metrics``.
        state: its rows for ``models.state``.
        fingerprints: day → fingerprint that the computation started from; its keys are the days, without gaps.
        audits: day → ``None`` if its audit passed, else the reason in one line.
        links: day → the digests of the states at its ends.
    """

    definition: Definition
    found: pa.Table
    metrics: pa.Table
    state: pa.Table
    fingerprints: Mapping[date, str]
    audits: Mapping[date, str | None]
    links: Mapping[date, Link]

    @property
    def owner(self) -> str:
        """The model's name in its tables."""
        return self.definition.name.partition("/")[2]


def publish_models(
    run: PublishingRun,
    outputs: Sequence[ModelOutput],
    recheck: Callable[[], Mapping[str, DaysNow]],
    table: Table = CHANGES,
) -> dict[str, Published]:
    """Publish what models or monitors found on some days and their metrics, then their state, which is a cache.

    State is carried from day to day, so none of a model's rows are published from its first left-out day on, nor
    anything that starts from a state other than the one the previous day left. Models that publish the same days share
    one commit per table, however many there are.

    Args:
        run: who publishes.
        outputs: one per model; all publish to ``table``.
        recheck: what the models are computed from now, by definition name; one that is absent stays to do.
        table: the table of their kind, such as ``models.changes``.

    Returns:
        by definition name; the counts are those of ``table``.

    Raises:
        AuditFailed: a row breaks a constraint of a table.
        LockBusy: another process held a table's lock the whole time.
        Overtaken: another writer came in between.
    """
    with _locked(run, outputs, table) as attempts:
        note_lost(run.home, [table, METRICS], run.run_id)
        published: dict[str, Published] = {}
        together: dict[tuple[date, ...], list[ModelOutput]] = defaultdict(list)
        now, left = recheck(), states_left(run.home, {o.definition: min(o.fingerprints) for o in outputs})
        for output in outputs:
            name = output.definition.name
            days = chained(output.fingerprints, output.audits, output.links, now.get(name), left.get(name))
            _note_failed_audits(run, output.definition, output.fingerprints, days, output.links)
            published[name] = Published([], days.left_out)
            if days.ready:
                together[tuple(days.ready)].append(output)
        for same, mine in together.items():
            change, version = _commit_models(run, mine, same, table, attempts)
            for output in mine:
                name = output.definition.name
                added, changed, withdrawn = (
                    sum(change.ops.get((output.owner, day, op), 0) for day in same) for op in ("I", "U", "D")
                )
                left_out = published[name].left_out
                published[name] = Published(list(same), left_out, added, changed, withdrawn, version)
    return published


@contextmanager
def _locked(run: PublishingRun, outputs: Sequence[ModelOutput], table: Table) -> Iterator[Attempts]:
    """Hold the locks of all tables that publishing some models may write; gives what earlier attempts recorded."""
    definitions, days = [output.definition for output in outputs], {day for one in outputs for day in one.fingerprints}
    wanted = {table.path_name, METRICS.path_name, STATE.path_name}
    while True:
        with ExitStack() as locks:
            for part in SHARED:
                # Always in this order; otherwise two writers could wait for each other.
                if part.path_name in wanted:
                    locks.enter_context(run.lake.lock(f"table-{part.path_name}"))
            attempts = Attempts.of(run.home, definitions, days)
            more = attempts.elsewhere(definitions).keys() - wanted
            if not more:
                yield attempts
                return
        wanted |= more


def _commit_models(
    run: PublishingRun, outputs: Sequence[ModelOutput], days: Sequence[date], table: Table, attempts: Attempts
) -> tuple[Change, int]:
    """Commit what some models found on the same days; return the change of ``table``, and the version with the days."""
    owners = [output.owner for output in outputs]

    def note(status: IntervalStatus, outcome: _Outcome | None = None) -> None:
        _append(
            run,
            [
                row
                for output in outputs
                for row in _notes(output.definition, days, output.fingerprints, status, outcome, output)
            ],
        )

    with ExitStack() as changes:
        taken = []
        for part, name in ((table, "found"), (METRICS, "metrics"), (STATE, "state")):
            rows = pa.concat_tables([getattr(output, name).cast(part.arrow()) for output in outputs])
            mine = days_of(part, days, part.day_column, part.key[0], owners)
            change = run.lake.change(part, Staged(rows=rows, within=mine.where), mine)
            taken.append(changes.enter_context(change))
        definitions = [output.definition for output in outputs]
        force = attempts.interrupted(definitions, days)
        with around("publish.publishing"):
            note("publishing")
        with around("publish.commit"):
            for former, names in attempts.elsewhere(definitions).items():
                _withdraw(run, former, [o.owner for o in outputs if o.definition.name in names], days, force)
            turns = [Turn(f"table-{change.table.path_name}", force) for change in taken]
            applied, _ = (run.lake.commit(change, turn) for change, turn in zip(taken[:2], turns[:2], strict=True))
        version = taken[0].base_version if applied.version is None else applied.version
        with around("publish.done"):
            note("done", _Outcome(taken, version))
        with around("monitor.state"):
            run.lake.commit(taken[2], turns[2])
    return taken[0], version


def _withdraw(run: PublishingRun, former: str, owners: Sequence[str], days: Sequence[date], force: bool) -> None:
    """Take back what models published as another kind; days that were done as this one have nothing there."""
    (table,) = [one for one in SHARED if one.path_name == former]
    if not tables.exists(run.home, table.schema, table.name):
        return
    part = days_of(table, days, table.day_column, table.key[0], owners)
    nothing = Staged(rows=table.arrow().empty_table(), within=part.where)
    with run.lake.change(table, nothing, part) as change:
        run.lake.commit(change, Turn(f"table-{former}", force))


def _note_failed_audits(
    run: PublishingRun,
    definition: Definition,
    fingerprints: Mapping[date, str],
    days: Publishable,
    links: Mapping[date, Link] | None = None,
) -> None:
    _append(
        run,
        [
            {**_row(definition, day, fingerprints, links, "audit_failed"), "reason": why}
            for day, why in days.broken.items()
        ],
    )


def _append(run: PublishingRun, rows: list[IntervalRow]) -> None:
    ops.append(run.home, "intervals", rows, run.run_id)


@dataclass(frozen=True)
class _Outcome:
    """What was committed for some days.

    Args:
        changes: each has its part of the days' checksums; the counts are those of the first.
        version: of the first one's table, which holds the days.
    """

    changes: Sequence[Change]
    version: int


def _notes(
    definition: Definition,
    days: Iterable[date],
    fingerprints: Mapping[date, str],
    status: IntervalStatus,
    outcome: _Outcome | None = None,
    of: ModelOutput | MatchOutput | None = None,
) -> list[IntervalRow]:
    """Rows of ``ops.intervals``, with counts, checksums and version once they are known."""
    rows: list[IntervalRow] = []
    owner = of.owner if isinstance(of, ModelOutput) else ""
    for day in days:
        row = _row(definition, day, fingerprints, None if of is None else of.links, status)
        if outcome is not None:
            change = outcome.changes[0]
            row["rows"] = change.rows.get((owner, day), 0)
            row["added"] = change.ops.get((owner, day, "I"), 0)
            row["changed"] = change.ops.get((owner, day, "U"), 0)
            row["withdrawn"] = change.ops.get((owner, day, "D"), 0)
            row["published_version"] = outcome.version
            row["rows_checksum"] = " ".join(one.checksum(owner, day) for one in outcome.changes)
        rows.append(row)
    return rows


def _row(
    definition: Definition,
    day: date,
    fingerprints: Mapping[date, str],
    links: Mapping[date, Link] | None,
    status: IntervalStatus,
) -> IntervalRow:
    row: IntervalRow = {
        "definition": definition.name,
        "day": day,
        "table_name": definition.table_name,
        "definition_hash": definition.definition_hash,
        "engine_version": definition.engine_version,
        "input_fingerprint": fingerprints[day],
        "status": status,
    }
    if links is not None:
        row["state_in"], row["state_out"] = links[day].state_in, links[day].state_out
    return row
