"""``chainlake changes``: prints what was added, withdrawn and changed in a table since a version or a commit."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from chainlake.cli.tables import FORMATS, flat, local_text
from chainlake.cli.zones import add_zone_argument, shown_zone, source_of_table
from chainlake.lake.commits.changes import changes, parse_moment
from chainlake.paths import Home

HELP = (
    "Print the changes of a table: each added, withdrawn and changed row, oldest first; a changed row with its new "
    "values. A row that a recomputation found again is not a change. The order is by when a row was published, not "
    "by the times of its events. Local times of a model's tables need --zone, since they have several sources. "
    "No JVM. The last line on stderr names the version to start from next time."
)
EXAMPLE = (
    "  chainlake changes matches.NAME --since-version 12\n"
    "  chainlake changes matches.NAME --since-commit 2025-10-02T06:00:00Z --format json"
)
#: Times that are also shown by the clock of a zone: of an event, and of a match or an episode as a whole.
_LOCAL = {"ts": "local", "start_ts": "start_local"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add TABLE, where to begin, and the output format."""
    parser.add_argument("table", metavar="TABLE", help="schema.name, such as matches.NAME or models.changes")
    since = parser.add_mutually_exclusive_group(required=True)
    since.add_argument("--since-version", type=int, metavar="N", help="show what came after this version of the table")
    since.add_argument(
        "--since-commit",
        metavar="TIME",
        help="show what was published after this time (ISO, UTC by default); not an event time",
    )
    parser.add_argument("--format", choices=tuple(FORMATS), default="table", help="default: table")
    parser.add_argument("--flat", action="store_true", help="structs as columns of their own, such as down.ts")
    add_zone_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print the changes."""
    since = args.since_version if args.since_commit is None else parse_moment(args.since_commit)
    home = Home.from_env()
    zone = shown_zone(home, args.zone, source_of_table(home, args.table))
    feed = changes(home, args.table, since)
    columns, fields = _named(feed.rows.column_names, zone), []
    for field in feed.rows.schema:
        fields += [_fields(field.type, zone), *[None] * _followed(field.name, feed.rows.column_names, zone)]
    rows = _rows(feed.rows, zone)
    if args.flat:
        columns, rows = flat(columns, fields, rows)
    FORMATS[args.format](columns, rows, sys.stdout)
    print(f"{args.table} is at version {feed.version}", file=sys.stderr)
    return 0


def _fields(kind: pa.DataType, zone: ZoneInfo | None) -> list[str] | None:
    """The fields of an event as it is shown; ``None`` if the type is not a struct."""
    if not pa.types.is_struct(kind):
        return None
    return _named([kind.field(at).name for at in range(kind.num_fields)], zone)


def _named(names: Sequence[str], zone: ZoneInfo | None) -> list[str]:
    """The names, with one for the local time after ``ts``, or after the start of a match."""
    return [part for name in names for part in ((name, _LOCAL[name]) if _followed(name, names, zone) else (name,))]


def _followed(name: str, names: Collection[str], zone: ZoneInfo | None) -> bool:
    """Whether the local time stands after this one of the names."""
    return zone is not None and name in _LOCAL and _LOCAL[name] not in names


def _rows(table: pa.Table, zone: ZoneInfo | None) -> Iterator[Sequence[Any]]:
    for batch in table.to_batches():
        for row in batch.to_pylist():
            yield list(_with_local({name: _with_local(value, zone) for name, value in row.items()}, zone).values())


def _with_local(value: Any, zone: ZoneInfo | None) -> Any:
    """A row, an event, or a list of events, with local times beside those of ``_LOCAL``."""
    if zone is None:
        return value
    if isinstance(value, list):
        return [_with_local(item, zone) for item in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for name, item in value.items():
        found[name] = item
        if _followed(name, value, zone):
            found[_LOCAL[name]] = local_text(item, zone)
    return found
