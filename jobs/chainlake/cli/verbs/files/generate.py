"""``chainlake generate``: landing files of any size with planted patterns and model changes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chainlake.cli.errors import BadTarget, NotGenerated, OptionsClash
from chainlake.days import parse_day
from chainlake.paths import PACKAGE
from chainlake.words import counted

#: The source file that reads what ``--ticks`` writes.
TICKS = PACKAGE / "generate" / "ticks.yaml"

HELP = (
    "Write landing files for one of the shipped sources: seeded, in the format of the shipped files, one file per "
    "local day. The files contain planted matches of the shipped patterns and planted changes of a regression "
    "relation; the truth file says where. A planted event can be part of further matches. Elsewhere the data "
    "contain no match of a shipped pattern."
)
EXAMPLE = """  chainlake generate stock --from 2024-03-04 --days 5 --events-per-day 1000000 --seed 7 \\
      --out .chainlake/landing/stock --truth truth.json
  chainlake generate stock --ticks --from 2024-03-04 --out .chainlake/landing/tick \\
      --write-source dags/config/sources/tick.yaml"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument("source", choices=["stock", "traffic", "sensor"], help="source whose files to write")
    parser.add_argument("--from", dest="start", required=True, metavar="DATE", help="first local day, YYYY-MM-DD")
    parser.add_argument("--days", type=int, default=1, metavar="N", help="number of days (default 1)")
    parser.add_argument(
        "--events-per-day",
        type=int,
        metavar="M",
        help="events per 24-hour day (default: stock 3840, traffic 4320, sensor 14400); more events give more keys",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="the same seed gives the same bytes (default 0)"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the files")
    parser.add_argument("--truth", type=Path, metavar="FILE", help="write the truth as JSON")
    parser.add_argument(
        "--patterns", type=int, default=1, metavar="P", help="matches planted per shipped pattern and day (default 1)"
    )
    parser.add_argument(
        "--changes", type=int, default=1, metavar="C", help="changes of the planted relation per day (default 1)"
    )
    parser.add_argument(
        "--dirt",
        type=int,
        default=0,
        metavar="R",
        help="rows of each kind of dirt per day: duplicate, conflicting, bad, late, and repeated in the next file",
    )
    parser.add_argument(
        "--ticks",
        action="store_true",
        help="stock only: trades instead of minute bars, nothing planted; see --write-source",
    )
    parser.add_argument(
        "--write-source",
        type=Path,
        metavar="FILE",
        help="with --ticks: also write the source file that reads the trades (equal rows are different events); as "
        "dags/config/sources/NAME.yaml it makes them the source NAME, whose files land in landing/NAME",
    )
    parser.add_argument(
        "--compress", action="store_true", help="compress the files; their bytes then depend on the version of zlib"
    )


def run(args: argparse.Namespace) -> int:
    """Generate, print a summary, write the truth."""
    # NumPy and pyarrow take a moment to load, and `--help` must not wait for them.
    from chainlake.generate import Recipe, generate

    _check_places(args)
    try:
        truth = generate(
            args.source,
            parse_day(args.start),
            args.days,
            args.out,
            Recipe(
                events_per_day=args.events_per_day,
                seed=args.seed,
                patterns=args.patterns,
                changes=args.changes,
                dirt=args.dirt,
                ticks=args.ticks,
                compress=args.compress,
            ),
        )
        if args.write_source is not None:
            args.write_source.write_bytes(TICKS.read_bytes())
        if args.truth is not None:
            args.truth.parent.mkdir(parents=True, exist_ok=True)
            args.truth.write_text(json.dumps(truth, indent=1) + "\n")
    except OSError as error:
        raise NotGenerated.of(error.filename or args.out, error) from error
    _print_summary(args.out, truth)
    return 0


def _print_summary(out: Path, truth: Mapping[str, Any]) -> None:
    totals = truth["totals"]
    print(
        ", ".join(
            (
                counted(len(truth["files"]), "file"),
                counted(totals["rows"], "row"),
                f"{counted(totals['events'], 'event')} of {counted(truth['keys'], 'key')} in {out}",
            )
        )
    )
    for pattern, matches in truth["patterns"].items():
        print(f"  {pattern}: {len(matches)} planted")
    if truth["changes"]:
        changes = counted(len(truth["changes"]), "change")
        print(f"  {changes} of the relation, the first at {truth['changes'][0]['time']}")


def _check_places(args: argparse.Namespace) -> None:
    """Refuse places that cannot be written to, before anything is written.

    Raises:
        UsageError: a name is empty or of the wrong kind, or another source file is already there.
    """
    if not args.out.name or args.out.exists() and not args.out.is_dir():
        raise BadTarget.no_folder("--out", args.out)
    if args.truth is not None and (not args.truth.name or args.truth.is_dir()):
        raise BadTarget.no_file("--truth", args.truth)
    if args.write_source is None:
        return
    if not args.ticks:
        raise OptionsClash.source_file_without_ticks()
    if args.write_source.suffix != ".yaml" or not args.write_source.parent.is_dir():
        raise BadTarget.no_source_file("--write-source", args.write_source)
    if args.write_source.exists() and args.write_source.read_bytes() != TICKS.read_bytes():
        raise BadTarget.taken("--write-source", args.write_source)
