"""Whether tables are as we left them, judged by the names in their logs and the last entries, without reading a row.

This says only that someone should look; ``chainlake check`` reads the tables to find what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow.compute as pc

from chainlake.lake.delta.log import TableLog
from chainlake.lake.records import ops
from chainlake.lake.records.intervals import Intervals
from chainlake.lake.records.staleness import Judged
from chainlake.paths import Home
from chainlake.schemas.models import METRICS, STATE
from chainlake.words import counted

_LOOK = "run 'chainlake check'"
_REPAIR_IT = "run 'chainlake check --repair'"


def mark_suspects(home: Home, judged: Sequence[Judged], intervals: Intervals) -> list[str]:
    """Show days as suspect if others have changed their table since it was last published to.

    Args:
        home: the installation.
        judged: the definitions that can be computed.
        intervals: the current rows by which they were judged.

    Returns:
        one line for each table of sources and models, apart from those of results, that others have changed or that is
        gone.
    """
    latest: dict[str, tuple[int, int]] = {}
    for one in judged:
        table, found = one.definition.table_name, _last_published(intervals, one)
        if found is not None:
            latest[table] = max(found, latest.get(table, found))
    why: dict[str, str | None] = {}
    for table, (_, version) in latest.items():
        schema, _, name = table.partition(".")
        why[table] = moved(home, schema, name, version)
    for one in judged:
        found_why = why.get(one.definition.table_name)
        if found_why is not None:
            one.suspect(found_why)
    others = [("events", s) for s in {one.definition.source for one in judged}]
    others += [(schema, source) for _, source in list(others) for schema in ("raw", "quarantine")]
    if any(one.definition.is_model for one in judged):
        others += [(METRICS.schema, METRICS.name), (STATE.schema, STATE.name)]
    lines = [(f"{schema}.{name}", moved(home, schema, name)) for schema, name in sorted(others)]
    lines += [line for source in sorted({one.definition.source for one in judged}) for line in _gone(home, source)]
    return [f"{table}: {line}" for table, line in lines if line is not None]


def _gone(home: Home, source: str) -> Iterator[tuple[str, str]]:
    """Tables of a source that are gone although rows of its days and files are recorded, each with what to do."""
    days = ops.current_table(home, "event_days", columns=["rows"], filters=[("source", "=", source)])
    files = ops.current_table(home, "files", columns=["rows_raw"], filters=[("source", "=", source)])
    held = {"events": pc.sum(days["rows"]).as_py(), "raw": pc.sum(files["rows_raw"]).as_py()}
    for schema, rows in held.items():
        if rows and not TableLog(home, schema, source).exists:
            yield (
                f"{schema}.{source}",
                f"the table is gone, but {counted(rows, 'row')} were written to it; {_REPAIR_IT}",
            )
    if held["events"] and not len(files):
        yield "ops.files", f"no file of source {source} is recorded, though its events are; {_REPAIR_IT}"


def _last_published(intervals: Intervals, one: Judged) -> tuple[int, int] | None:
    """When (µs) a day of a definition was last published to its table, and the version that this made or found."""
    part = intervals.of(one.name)
    columns = intervals.columns
    mine = (columns["status"][part] == "done") & (columns["table_name"][part] == one.definition.table_name)
    positions = np.flatnonzero(mine & np.array([v is not None for v in columns["published_version"][part]], dtype=bool))
    if not len(positions):
        return None
    written = intervals.written_us[part][positions]
    at = positions[int(np.argmax(written))]
    return int(written.max()), int(columns["published_version"][part][at])


def moved(home: Home, schema: str, name: str, known: int | None = None) -> str | None:
    """What others did to a table since we last wrote to it, in one line; ``None`` if nothing that changes rows.

    Args:
        home: the installation.
        schema: schema of the table.
        name: its name under the schema; a table that is gone does not count as changed.
        known: the version that was last published; if not given, only the last commit is looked at.
    """
    log = TableLog(home, schema, name)
    last = log.last
    if log.absent:
        return f"entry {log.absent[0]} of its log is missing; {_REPAIR_IT}"
    if last is None or last == known:
        return None
    if known is not None and last < known:
        return f"its table is at version {last}, though version {known} was published; {_LOOK}"
    later = log.foreign(last - 1 if known is None else known)
    if later.unreadable:
        version, why = next(iter(later.unreadable.items()))
        which = "the last entry" if version == last else f"entry {version}"
        return f"{which} of its log cannot be read ({why}); {_REPAIR_IT}"
    changes = [commit for commit in later.commits if commit.changes_rows]
    return f"{changes[-1]} of its table was made by somebody else; {_LOOK}" if changes else None
