"""``python -m jobs match``: find a pattern in plain files; no Spark, no lake."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from chainlake.cli.event_files import add_column_arguments, compiled, pattern_text, read, with_type
from chainlake.terminal import json_visible

HELP = (
    "Find a pattern in files of events and print each match as one JSON line (name: event id, or a list of ids for a "
    "repeated name). PATTERN is a file or the query itself; its front matter may be left out. FILEs are JSON lines, "
    "CSV or Parquet, plain or gzipped; with --source NAME they are files as they land for that source, and its rules "
    "for bad rows, duplicates, conflicts and revisions are applied. Events without an id get the id FILE:ROW; with "
    "--source every event gets the id FILE:LINE of the row that it comes from. A CSV column holds numbers if every "
    "cell that is not blank is one, else texts; where that decides a condition of the pattern, a note on stderr names "
    "the cell. --type-of overrides this. With --episodes it prints those of a pattern that says EPISODES, one per "
    "line: key, start, end, when it is decided, the number of matches, and the first and the top one of them."
)
EXAMPLE = (
    "  python -m jobs match dags/config/patterns/NAME.sase readings.csv --id reading --ts time\n"
    "  python -m jobs match dags/config/patterns/NAME.sase daily.csv --type-of ts=date:%Y%m%d --missing NA\n"
    '  python -m jobs match "PATTERN SEQ(Login a, Alarm b) WHERE a.user = b.user WITHIN 5 min" events.jsonl'
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The pattern, the files and how their columns are called."""
    parser.add_argument(
        "pattern", metavar="PATTERN", help="a pattern: its name, its file, or a query that begins with PATTERN"
    )
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="files of events")
    parser.add_argument("--episodes", action="store_true", help="print the episodes instead of the matches")
    add_column_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the matches."""
    from chainlake.cep.episodes.found import check_episodes, merged_matches
    from chainlake.cep.library import as_dicts, from_table
    from chainlake.cep.search.find import find

    text = pattern_text(args.pattern)
    events = read(args, args.files, text[0])
    pattern = compiled(*text, events)
    if args.episodes:
        check_episodes(pattern)
    if not len(events.table):
        return 0
    table, ids = from_table(with_type(events.table, pattern))
    batches = find(pattern, table)
    if args.episodes:
        _print(merged_matches(pattern, table, ids, list(batches)))
    else:
        for batch in batches:
            _print(as_dicts(pattern, batch, ids))
    sys.stdout.flush()
    return 0


def _print(found: Iterable[dict[str, Any]]) -> None:
    lines = (json.dumps(one, default=str) + "\n" for one in found)
    sys.stdout.writelines(map(json_visible, lines))
