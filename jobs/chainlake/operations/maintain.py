"""The maintain step: every table compacted and cleaned, one after the other; no JVM."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Literal

from chainlake.errors import InfrastructureError
from chainlake.lake.commits.places import take_places, with_later_versions
from chainlake.lake.delta import tables
from chainlake.lake.errors import UnknownTable
from chainlake.lake.records.runs import error_line, phase
from chainlake.lake.sql.scan import list_tables
from chainlake.lake.upkeep.maintain import Maintained, maintain_table
from chainlake.operations.sweep import Swept, sweep
from chainlake.paths import Home
from chainlake.run.common import raise_together, sweep_leftovers
from chainlake.run.results import MaintainedTables

log = logging.getLogger(__name__)

STEP: Literal["maintain"] = "maintain"
#: How many seconds to wait for a process that writes to a table.
_WAIT_S = 600.0
SCHEMAS = ("raw", "events", "quarantine", "matches", "episodes", "ranked", "models", "alerts", "ops")


def maintain(
    home: Home, *, run_id: str, only: Sequence[str] | None = None, keep: timedelta | None = None
) -> MaintainedTables:
    """Maintain all tables, or some.

    Args:
        home: the installation.
        run_id: id under which the run is logged.
        only: ``schema.name`` of the tables; all if not given.
        keep: how long replaced data are kept; ``chainlake.lake.upkeep.maintain`` has the default.

    Returns:
        what was done; logs and cache are swept with all tables alone.

    Raises:
        UsageError: a table does not exist.
        InfrastructureError: a table was in use all the time; raised after all others were maintained.
    """
    done: list[Maintained] = []
    failures: list[tuple[str, BaseException]] = []
    with phase(home, run_id, source="", step=STEP, phase=STEP) as report:
        taken, stuck = take_places(home, with_later_versions(home), run_id, wait_s=_WAIT_S)
        for pattern in taken:
            log.info(f"matches.{pattern}: its new version has taken its place, or was moved beside it")
        failures += [(f"matches.{pattern}", error) for pattern, error in stuck.items()]
        names = [_known(home, name) for name in only] if only is not None else list(all_tables(home))
        for schema, name in names:
            try:
                found = maintain_table(home, schema, name, keep=keep)
            except InfrastructureError as error:
                failures.append((f"{schema}.{name}", error))
                log.info(f"{schema}.{name} not maintained: {error_line(error)}")
                continue
            if found is None:
                log.info(f"{schema}.{name} was dropped in the meantime")
                continue
            done.append(found)
            log.info(
                f"{found.table}: {found.compacted} files merged, {found.loads} old loads, {found.removed} files "
                f"deleted, {found.files} left"
            )
        report.rows_in, report.rows_out = len(names), len(done)
        sweep_leftovers(home)
        swept = sweep(home) if only is None else Swept()
        for folder in home.unused:
            log.info(f"{folder} is not used any more; remove it if nothing in it is yours")
        raise_together(failures, f"{len(done)} tables maintained")
    for folder in swept.foreign:
        log.info(f"the logs in {folder} are not removed: the folder was there before Chainlake used it")
    return {
        "tables": len(done),
        "compacted": sum(one.compacted for one in done),
        "loads": sum(one.loads for one in done),
        "removed": sum(one.removed for one in done),
        "files": sum(one.files for one in done),
        "logs": swept.logs,
        "cached": swept.cached,
    }


def all_tables(home: Home) -> Iterator[tuple[str, str]]:
    """``(schema, name)`` of every table of a lake."""
    for schema in SCHEMAS:
        for name in sorted(list_tables(home, schema)):
            yield schema, name


def _known(home: Home, name: str) -> tuple[str, str]:
    schema, _, table = name.partition(".")
    if schema not in SCHEMAS or not table or not tables.exists(home, schema, table):
        raise UnknownTable.of([name], [f"{schema}.{one}" for schema, one in all_tables(home)])
    return schema, table
