"""``python -m jobs sql``: query the published tables, without a JVM."""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TextIO

from chainlake.errors import UsageError
from chainlake.lake.sql.query import Lake
from chainlake.lake.sql.safe import MEMORY, SECONDS, confine, confined, run_confined
from chainlake.operations.status import status_table
from chainlake.paths import Home
from chainlake.terminal import for_programs, json_visible, one_line

HELP = (
    "Run one SQL statement (DuckDB's dialect) on the published tables. Schemas: raw, events, quarantine, matches, "
    "models, ops. matches.<pattern> is the pattern's current table, matches.all the matches of all patterns, "
    "ops.current_<table> the current rows of an operations table, ops.status what 'status' shows, and "
    "matches.<pattern>_origin each match with the definition that its day came from. All times are UTC. Without a "
    "statement, the tables are listed. A statement has all your rights: it can read any file that you can read "
    "(read_csv, FROM 'file') and write files (COPY … TO). What others may have written goes through --safe: tables of "
    f"the lake and nothing else, no files, no settings, {MEMORY} of memory, {SECONDS:.0f} seconds."
)
EXAMPLE = (
    '  python -m jobs sql "SELECT pattern, count(*) FROM matches.all GROUP BY pattern"\n'
    '  python -m jobs sql --format csv "SELECT a.ts, b.ts FROM matches.NAME LIMIT 10"\n'
    '  python -m jobs sql "DESCRIBE matches.NAME"'
)

#: Rows that are looked at for the column widths of a table.
_SAMPLE = 1_000
_BLOCK = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The statement and the output format."""
    parser.add_argument("statement", nargs="?", metavar="SQL", help="one statement; none lists the tables")
    parser.add_argument(
        "--safe", action="store_true", help="read the lake's tables and nothing else, in bounded time and memory"
    )
    parser.add_argument("--format", choices=("table", "csv", "json"), default="table", help="default: table")


def run(args: argparse.Namespace) -> int:
    """Print the rows of the statement."""
    if args.statement is not None and not args.statement.strip():
        raise UsageError("the statement is empty", hint="Leave it out to list the tables.")
    if args.safe and not confined():
        statement = [] if args.statement is None else ["--", args.statement]
        return run_confined(["sql", "--safe", "--format", args.format, *statement])
    home = Home.from_env()
    lake = Lake(home, {("ops", "status"): lambda: status_table(home)}, safe=args.safe)
    if args.safe:
        confine()
    rows: Iterator[Sequence[Any]]
    if args.statement is None:
        columns, rows = ["table"], iter([(name,) for name in lake.tables()])
    else:
        found = lake.query(args.statement)
        columns, rows = [column[0] for column in found.description or ()], _blocks(lake, found, args.statement)
    {"table": print_table, "csv": print_csv, "json": print_json}[args.format](columns, rows, sys.stdout)
    return 0


def _blocks(lake: Lake, found: Any, sql: str) -> Iterator[Sequence[Any]]:
    import duckdb

    try:
        while block := found.fetchmany(_BLOCK):
            yield from block
    except duckdb.Error as error:
        raise lake.explained(error, sql) from None


def plain(value: Any) -> Any:
    """A value as JSON knows it; times in UTC with a Z, without trailing zeros."""
    if isinstance(value, datetime):
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        text = moment.isoformat(timespec="microseconds" if moment.microsecond else "seconds")
        return text + "Z" if value.tzinfo else text
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (date, Decimal)):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cell(value: Any, missing: str) -> str:
    """A value as text: arrays, structs and maps as JSON."""
    simple = plain(value)
    if simple is None:
        return missing
    return json.dumps(simple, ensure_ascii=False) if isinstance(simple, (dict, list)) else str(simple)


def print_table(columns: Sequence[str], rows: Iterator[Sequence[Any]], out: TextIO) -> None:
    """Aligned columns, then the number of rows; widths come from the first rows, so any result streams."""
    columns = [one_line(name) for name in columns]
    sample = [[_shown(value) for value in row] for _, row in zip(range(_SAMPLE), rows, strict=False)]
    widths = [max(map(len, texts)) for texts in zip(columns, *sample, strict=True)]

    def line(texts: Sequence[str]) -> str:
        return "  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True)).rstrip() + "\n"

    out.write(line(columns) + line(["-" * width for width in widths]))
    out.writelines(line(texts) for texts in sample)
    count = len(sample)
    for row in rows:
        out.write(line([_shown(value) for value in row]))
        count += 1
    out.write(f"({count} row{'' if count == 1 else 's'})\n")


def _shown(value: Any) -> str:
    """A cell that neither begins a line of its own nor does anything to a terminal."""
    return one_line(cell(value, "NULL"))


class _Lines:
    """Takes rows that end in CR LF and ends them in LF: told that rows end in LF, csv leaves a CR in a cell bare."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, row: str) -> None:
        """One row."""
        self._out.write(row.removesuffix("\r\n") + "\n")


def print_csv(columns: Sequence[str], rows: Iterator[Sequence[Any]], out: TextIO) -> None:
    """A header and one line per row; null is an empty field. Exact, except where it is printed to a terminal."""
    writer = csv.writer(_Lines(for_programs(out)))
    writer.writerow(columns)
    writer.writerows([cell(value, "") for value in row] for row in rows)


def print_json(columns: Sequence[str], rows: Iterator[Sequence[Any]], out: TextIO) -> None:
    """One array of objects, a row per line."""
    out.write("[")
    for number, row in enumerate(rows):
        item = {name: _finite(plain(value)) for name, value in zip(columns, row, strict=True)}
        out.write(("," if number else "") + "\n" + json_visible(json.dumps(item, ensure_ascii=False)))
    out.write("\n]\n")
