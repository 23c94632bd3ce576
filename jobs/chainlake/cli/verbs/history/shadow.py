"""``chainlake shadow``: shows what an edit of a pattern or a model would do to its rows, before it goes live."""

from __future__ import annotations

import argparse
import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainlake.cli.errors import NoFile
from chainlake.cli.tables import print_table
from chainlake.days import Days
from chainlake.paths import Home
from chainlake.words import counted

if TYPE_CHECKING:
    from chainlake.operations.shadow.compare import Compared

HELP = (
    "Compute the pattern or model in FILE on the events of some days, in a separate lake beside the real one. Show "
    "which rows of the published table it would keep, add, withdraw or change. The installation does not change. "
    "The file's name is the definition's name: copy a live definition, edit the copy, try it, and move it to its "
    "place. Exits with 1 if there is a difference."
)
EXAMPLE = (
    "  cp dags/config/patterns/shakeout.sase /tmp/ && edit /tmp/shakeout.sase\n"
    "  chainlake shadow /tmp/shakeout.sase 2013-10-07 2013-10-10"
)
#: How many rows of each kind are shown.
SHOWN = 5
#: Columns by which a person recognises a row, where a table has them.
_TELLING = (
    *("match_id", "decision_ts", "start_ts", "end_ts", "group_id", "day", "ts", "kind", "machine", "learner"),
    *("key", "matches", "severity", "scope_kind", "scope_start", "per", "rank", "score"),
)
#: Fields of a bound event that say nothing to a person.
_UNTELLING = ("event_id", "type")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file, the days, and the number of rows to show."""
    parser.add_argument("file", metavar="FILE", type=Path, help="the edited definition: NAME.sase or NAME.yaml")
    parser.add_argument("start", metavar="FROM", help="first day, YYYY-MM-DD (UTC)")
    parser.add_argument("end", metavar="TO", help="day after the last, YYYY-MM-DD (UTC)")
    parser.add_argument(
        "--samples", type=int, default=SHOWN, metavar="N", help=f"rows to show of each kind, default {SHOWN}"
    )


def run(args: argparse.Namespace) -> int:
    """Print what would happen to the rows."""
    from chainlake.lake.records.runs import new_run_id
    from chainlake.operations.shadow.run import try_edit

    if not args.file.is_file():
        raise NoFile.of(args.file)
    days = Days.parse(args.start, args.end)
    say = functools.partial(print, flush=True)
    tried = try_edit(Home.from_env(), args.file, days, run_id=new_run_id("shadow"), say=say)
    print(f"\n{tried.definition}: {counted(len(tried.compared), 'published day')} compared")
    if tried.unpublished:
        more = counted(len(tried.unpublished), "day")
        print(f"{more} computed that are not published yet, from {tried.unpublished[0]} on; these are not compared")
    header = ("table", "kept", "added", "withdrawn", "changed")
    print_table(
        header,
        iter([(t.table, t.kept, *map(len, (t.added, t.withdrawn, t.changed))) for t in tried.tables]),
        sys.stdout,
    )
    for table in tried.tables:
        _print_samples(table, args.samples)
    return int(any(t.added or t.withdrawn or t.changed for t in tried.tables))


def _print_samples(table: Compared, most: int) -> None:
    if table.columns:
        print(f"\n{table.table}: only one of the two has the columns {', '.join(table.columns)}")
    for what, rows in (("added", table.added), ("withdrawn", table.withdrawn)):
        if rows and most > 0:
            print(f"\n{table.table}: {what}, {min(most, len(rows))} of {len(rows)}")
            shown = [_telling(row) for row in rows[:most]]
            # A match of one branch of a pattern lacks the events of the others.
            columns = list(dict.fromkeys(name for row in shown for name in row))
            print_table(columns, iter([[row.get(name) for name in columns] for row in shown]), sys.stdout)
    if table.changed and most > 0:
        print(f"\n{table.table}: changed, {min(most, len(table.changed))} of {len(table.changed)}")
        cells = [
            (was[_key(was)], name, was[name], would[name])
            for was, would in table.changed[:most]
            for name in _differ(was, would)
        ]
        print_table(("row", "column", "is", "would be"), iter(cells), sys.stdout)


def _telling(row: dict[str, Any]) -> dict[str, Any]:
    """What a person recognises a row by, with the attributes of bound events as columns of their own."""
    shown: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            shown |= {f"{name}.{field}": one for field, one in value.items() if field not in _UNTELLING}
        elif name in _TELLING:
            shown[name] = value
    return shown


def _key(row: dict[str, Any]) -> str:
    return next(iter(row))


def _differ(was: dict[str, Any], would: dict[str, Any]) -> list[str]:
    return [name for name in was if name in would and was[name] != would[name]]
