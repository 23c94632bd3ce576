"""``python -m jobs changes``: what was added, withdrawn and changed in a table since a version or a time."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from chainlake.cli.tables import FORMATS
from chainlake.lake.commits.changes import changes, parse_since
from chainlake.paths import Home

HELP = (
    "Print the changes of a table: each added, withdrawn and changed row, oldest first, a changed one with its new "
    "values. Rows that a recomputation found again are not changes. No JVM. The last line on stderr says which version "
    "to ask from next time."
)
EXAMPLE = (
    "  python -m jobs changes matches.NAME --since 12\n"
    "  python -m jobs changes matches.NAME --since 2025-10-02T06:00:00Z --format json"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TABLE, --since and the output format."""
    parser.add_argument("table", metavar="TABLE", help="schema.name, such as matches.NAME or models.changes")
    parser.add_argument(
        "--since",
        required=True,
        metavar="VERSION|TIME",
        help="a version of the table, whose own changes are not shown again, or a time (ISO, UTC by default)",
    )
    parser.add_argument("--format", choices=tuple(FORMATS), default="table", help="default: table")


def run(args: argparse.Namespace) -> int:
    """Print the changes."""
    feed = changes(Home.from_env(), args.table, parse_since(args.since))
    names = feed.rows.column_names
    FORMATS[args.format](names, _rows(feed.rows), sys.stdout)
    print(f"{args.table} is at version {feed.version}", file=sys.stderr)
    return 0


def _rows(table: Any) -> Iterator[Sequence[Any]]:
    for batch in table.to_batches():
        for row in batch.to_pylist():
            yield list(row.values())
