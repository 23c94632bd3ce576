"""``chainlake sql``: queries the published tables, without a JVM."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from chainlake.cli.errors import NothingGiven
from chainlake.cli.tables import FORMATS, by_clock, flat
from chainlake.cli.zones import shown_zone
from chainlake.lake.sql.query import SCHEMAS, SqlConnection
from chainlake.lake.sql.safe import MEMORY, SECONDS, confine, confined, run_confined
from chainlake.operations.open_episodes import open_views
from chainlake.operations.ranked_scopes import scope_views
from chainlake.operations.status import status_table
from chainlake.paths import Home

HELP = (
    f"Run one SQL statement (DuckDB's dialect) on the published tables. Schemas: {', '.join(SCHEMAS)}. "
    "matches.<pattern> is the pattern's current table, matches.all the matches of all patterns, "
    "ops.current_<table> the current rows of an operations table, ops.status what 'status' shows. "
    "matches.<pattern>_origin is each match with the definition that its day came from, matches.<pattern>_flat the "
    "same matches without structs and arrays. A pattern that uses events up also has matches.<pattern>_ordered and "
    "matches.<pattern>_consumed. Times are UTC without --zone. Without a statement, the tables are listed. A statement "
    "runs with all your rights: it can read any file that you can read (read_csv, FROM 'file') and write files (COPY … "
    "TO). Use --safe for statements that others may have written: it allows tables of the lake and nothing else, no "
    f"files, no settings, {MEMORY} of memory, {SECONDS:.0f} seconds."
)
EXAMPLE = (
    '  chainlake sql "SELECT pattern, count(*) FROM matches.all GROUP BY pattern"\n'
    '  chainlake sql --format csv "SELECT a.ts, b.ts FROM matches.NAME LIMIT 10"\n'
    '  chainlake sql "DESCRIBE matches.NAME"'
)

#: How many rows are fetched at a time.
_BLOCK = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the statement and the output format."""
    parser.add_argument("statement", nargs="?", metavar="SQL", help="one statement; without it, the tables are listed")
    parser.add_argument(
        "--safe", action="store_true", help="read the lake's tables and nothing else, in bounded time and memory"
    )
    parser.add_argument(
        "--format", choices=tuple(FORMATS), default="table", help="default: table; vertical prints one line per value"
    )
    parser.add_argument("--flat", action="store_true", help="structs as columns of their own, such as down.ts")
    parser.add_argument("--zone", metavar="ZONE", help="print times by the clock of this zone, without T and Z")


def run(args: argparse.Namespace) -> int:
    """Print the rows that the statement gives."""
    if args.statement is not None and not args.statement.strip():
        raise NothingGiven.statement()
    if args.safe and not confined():
        statement = [] if args.statement is None else ["--", args.statement]
        options = [*["--flat"] * args.flat, *([] if args.zone is None else ["--zone", args.zone])]
        return run_confined(["sql", "--safe", "--format", args.format, *options, *statement])
    home = Home.from_env()
    zone = None if args.zone is None else shown_zone(home, args.zone, None) or ZoneInfo("UTC")
    views = {("ops", "status"): lambda: status_table(home), **open_views(home), **scope_views(home)}
    lake = SqlConnection(home, views, safe=args.safe)
    if args.safe:
        confine()
    columns: Sequence[str]
    rows: Iterator[Sequence[Any]]
    if args.statement is None:
        columns, rows = ["table"], iter([(name,) for name in lake.tables()])
    else:
        found = lake.query(args.statement)
        columns, rows = [column[0] for column in found.description or ()], _blocks(lake, found, args.statement)
        if args.flat:
            columns, rows = flat(columns, _fields(found.description), rows)
    if zone is not None:
        rows = ([by_clock(value, zone) for value in row] for row in rows)
    FORMATS[args.format](columns, rows, sys.stdout)
    return 0


def _fields(description: Any) -> list[list[str] | None]:
    """For each column the fields of its struct, or None."""
    kinds = [column[1] for column in description or ()]
    return [[name for name, _ in kind.children] if kind.id == "struct" else None for kind in kinds]


def _blocks(lake: SqlConnection, found: Any, sql: str) -> Iterator[Sequence[Any]]:
    import duckdb

    try:
        while block := found.fetchmany(_BLOCK):
            yield from block
    except duckdb.Error as error:
        raise lake.explained(error, sql) from error
