"""Handed pattern cases through files and tasks: cut into stretches and shares of keys, each task reading for itself."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from chainlake.cep.pattern_shape import match_shape
from chainlake.days import US_PER_DAY, day_of_us, day_start_us
from chainlake.detect.division.cut import Share, slice_of
from chainlake.detect.feed import KeyShare, between, by_time
from chainlake.detect.stage import Found, Search, stage
from chainlake.lake.store.event_files import EventFiles
from chainlake.run.tasks import LocalTasks, Tasks
from chainlake.schemas.matches import matches_table
from chainlake.schemas.table import TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from chainlake.cep.pattern import Pattern
    from chainlake.schemas.table import Table


#: The key column of a case that has none: a source always has one, and all of its events are of one key.
STREAM = "stream"


def task_matches(pattern: Pattern, events: list[dict[str, Any]], tasks: Tasks, key: str) -> list[str]:
    """What the tasks of a run find, as sorted texts.

    Args:
        pattern: compiled with ``strict_units=False`` and the key.
        events: of the case.
        tasks: who does the work.
        key: the column that says which events are of one series; ``STREAM`` if the case has none.
    """
    from chainlake.cep.library import from_dicts

    table, ids = from_dicts(events)
    if not len(table):
        return []
    if key == STREAM:
        table = table.append_column(STREAM, pa.array(["all"] * len(table)))
    given = dict(zip(table["event_id"].to_pylist(), ids, strict=True))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = written(table, folder)
        rows = staged(pattern, files, folder, _thirds(pattern, table), tasks, key).to_pylist()
    matches = [_named(pattern, row, given) for row in rows]
    return sorted(json.dumps(match, sort_keys=True) for match in matches)


def written(table: pa.Table, folder: Path) -> EventFiles:
    """Events, whose times are ticks or timestamps, as a file per day."""
    at = table.column_names.index("ts")
    table = by_time(table.set_column(at, "ts", table["ts"].cast(pa.int64()).cast(TIMESTAMP)))
    ts = table["ts"].cast(pa.int64()).to_pylist()
    paths, rows = {}, {}
    for day in sorted({day_of_us(tick) for tick in ts}):
        start = day_start_us(day)
        mine = between(table, start, start + US_PER_DAY)
        paths[day], rows[day] = (str(folder / f"{day}.parquet"),), len(mine)
        pq.write_table(mine, paths[day][0])
    return EventFiles(table.schema, paths, rows)


def staged(
    pattern: Pattern, files: EventFiles, folder: Path, shares: list[Share], tasks: Tasks | None = None, key: str = ""
) -> pa.Table:
    """The rows of the match table that the shares' tasks write."""
    table = matches_table(match_shape(pattern, types={f.name: f.type for f in files.schema}))
    (found,) = stage(tasks or LocalTasks(), files, key, [Search(pattern, table, None, str(folder / "out"))], shares)
    assert isinstance(found, Found)
    if found.failure is not None:
        raise found.failure
    return rows_of(found.paths, table)


def rows_of(paths: Iterable[str], table: Table) -> pa.Table:
    """Staged rows, in memory."""
    schema = pa.schema([pa.field(f.name, f.type) for f in table.arrow()])
    return pa.concat_tables([schema.empty_table(), *(pq.read_table(path, schema=schema) for path in paths)])


def _thirds(pattern: Pattern, table: pa.Table) -> list[Share]:
    """Three stretches, each of a keyed pattern in two shares of its keys."""
    ts = table["ts"].to_pylist()
    lo, hi = min(ts), max(ts) + pattern.decided_us + 1
    bounds = [lo, lo + (hi - lo) // 3, lo + (hi - lo) * 2 // 3, hi]
    keys = [None] if pattern.partition_key is None else [KeyShare(0, 2), KeyShare(1, 2)]
    owned = [(a, b) for a, b in zip(bounds, bounds[1:], strict=False) if a < b]
    return [Share({0: (slice_of(pattern, own),)}, share) for own in owned for share in keys]


def _named(pattern: Pattern, row: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in pattern.names:
        value = row[name.name]
        if value is not None:
            found[name.name] = [given[e["event_id"]] for e in value] if name.kleene else given[value["event_id"]]
    return found
