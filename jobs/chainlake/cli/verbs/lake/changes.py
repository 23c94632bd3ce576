"""``python -m jobs changes``: what was added, withdrawn and changed in a table since a version or a commit."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from chainlake.cli.tables import FORMATS
from chainlake.lake.commits.changes import changes, parse_moment
from chainlake.paths import Home

HELP = (
    "Print the changes of a table: each added, withdrawn and changed row, oldest first, a changed one with its new "
    "values. Rows that a recomputation found again are not changes. What counts is when a row was published, whatever "
    "the times of its events are. No JVM. The last line on stderr says which version to ask from next time."
)
EXAMPLE = (
    "  python -m jobs changes matches.NAME --since-version 12\n"
    "  python -m jobs changes matches.NAME --since-commit 2025-10-02T06:00:00Z --format json"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TABLE, where to begin and the output format."""
    parser.add_argument("table", metavar="TABLE", help="schema.name, such as matches.NAME or models.changes")
    since = parser.add_mutually_exclusive_group(required=True)
    since.add_argument(
        "--since-version", type=int, metavar="N", help="a version of the table, whose own changes are not shown again"
    )
    since.add_argument(
        "--since-commit",
        metavar="TIME",
        help="what was published after this moment (ISO, UTC by default); no time of an event",
    )
    parser.add_argument("--format", choices=tuple(FORMATS), default="table", help="default: table")


def run(args: argparse.Namespace) -> int:
    """Print the changes."""
    since = args.since_version if args.since_commit is None else parse_moment(args.since_commit)
    feed = changes(Home.from_env(), args.table, since)
    names = feed.rows.column_names
    FORMATS[args.format](names, _rows(feed.rows), sys.stdout)
    print(f"{args.table} is at version {feed.version}", file=sys.stderr)
    return 0


def _rows(table: Any) -> Iterator[Sequence[Any]]:
    for batch in table.to_batches():
        for row in batch.to_pylist():
            yield list(row.values())
