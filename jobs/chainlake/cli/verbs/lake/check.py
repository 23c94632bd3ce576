"""``chainlake check``: whether every table holds what was written to it; ``--repair`` marks what does not."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chainlake.cli.errors import OptionsClash
from chainlake.days import Days
from chainlake.paths import Home
from chainlake.words import counted

if TYPE_CHECKING:
    from chainlake.lake.upkeep.findings import Finding

HELP = (
    "Read every table and compare it with what was recorded when it was written: events, matches, alerts and model "
    "rows by a checksum per day, raw rows with the events made from them, quarantine by count; every file by its "
    "size and the checksums of its pages; the logs of all tables for damage and for commits of others. Exits with 1 "
    "if rows are wrong or cannot be read. --repair moves damaged files away, marks exactly the days and files that "
    "are wrong, and prints the commands that make them again. Tables are read without a lock. No JVM."
)
EXAMPLE = "  chainlake check\n  chainlake check --repair\n  chainlake check 2025-10-01 2025-10-08 --table matches.NAME"
#: How many findings of a table are printed; the rest are only counted.
_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add days and tables to check, --quick and --repair."""
    parser.add_argument("start", nargs="?", metavar="FROM", help="first day, YYYY-MM-DD (UTC); default: all days")
    parser.add_argument("end", nargs="?", metavar="TO", help="day after the last")
    parser.add_argument("--table", action="append", metavar="SCHEMA.NAME", help="only this table; may be repeated")
    parser.add_argument("--quick", action="store_true", help="check only logs, files and their sizes; read no rows")
    parser.add_argument(
        "--repair", action="store_true", help="move damaged files away and mark what has to be made again"
    )
    parser.add_argument("--run-id", default=None, help="run id recorded in ops.runs; generated if omitted")
    parser.add_argument(
        "--result", type=Path, default=None, metavar="FILE", help="file to write the result to, as JSON"
    )


def run(args: argparse.Namespace) -> int:
    """Print a line per finding and a summary; the exit code is 1 if there is damage."""
    from chainlake.lake.records.runs import new_run_id
    from chainlake.operations.check import Scope, check
    from chainlake.operations.repair import Repaired, repair

    if (args.start is None) != (args.end is None):
        raise OptionsClash.one_day_only()
    if args.repair and args.quick:
        raise OptionsClash.quick_repair()
    days = Days.parse(args.start, args.end) if args.start else None
    scope = Scope(within=days, tables=tuple(args.table) if args.table else None, quick=args.quick)
    home, run_id, begun = Home.from_env(), args.run_id or new_run_id("check"), time.monotonic()
    mended = Repaired()
    if args.repair:
        checked, mended = repair(home, run_id=run_id, scope=scope)
        findings = mended.found
    else:
        checked = check(home, run_id=run_id, scope=scope)
        findings = checked.findings
    _print(findings)
    damage = sum(one.damage for one in findings)
    for line in mended.left:
        print(f"cannot be repaired: {line}")
    notes = len(findings) - damage
    result: dict[str, int | str] = {"tables": checked.tables, "damaged": damage, "notes": notes}
    result["marked"] = len(mended.done)
    if damage:
        first = next(one for one in findings if one.damage)
        result["error"] = f"{damage} damaged, such as {first}"
    if args.result is not None:
        args.result.write_text(json.dumps(result))
    if mended.commands:
        print("now run:\n" + "\n".join(f"  {command}" for command in dict.fromkeys(mended.commands)))
    elif damage and not args.repair:
        print("'chainlake check --repair' marks what is damaged, so that the ordinary steps compute it again")
    print(
        f"check: {counted(checked.tables, 'table')} in {time.monotonic() - begun:.0f} s, "
        + (f"{damage} damaged" if damage else "no damage")
        + (f", {counted(notes, 'note')}" if notes else "")
    )
    return 1 if damage else 0


def _print(findings: Sequence[Finding]) -> None:
    shown: Counter[str] = Counter()
    for one in sorted(findings, key=lambda one: (one.table, not one.damage)):
        shown[one.table] += 1
        if shown[one.table] <= _SHOWN:
            print(f"{'damaged' if one.damage else 'note'}: {one}")
    for table, count in shown.items():
        if count > _SHOWN:
            print(f"{table}: {count - _SHOWN} more")
