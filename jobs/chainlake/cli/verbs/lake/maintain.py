"""``chainlake maintain``: compacts tables and removes what is past its retention."""

from __future__ import annotations

import argparse
import json
from datetime import timedelta
from pathlib import Path

from chainlake.cli.errors import BadOption
from chainlake.lake.upkeep.maintain import DATA_KEPT, OPS_KEPT
from chainlake.operations.sweep import CACHE_KEPT_DAYS, LOGS_KEPT_DAYS
from chainlake.paths import Home

HELP = (
    "Merge small files, remove raw loads that no landed file needs any more, and delete files that only versions "
    f"past the retention need: {DATA_KEPT.days} days for data, {OPS_KEPT.days} for ops tables. The change feed is "
    "kept as long. Running jobs and readers are not disturbed: a table is locked while it is maintained, so its "
    f"writers wait a few seconds. Without --table, logs older than {LOGS_KEPT_DAYS} days are removed too, and cache "
    f"entries that were unused for {CACHE_KEPT_DAYS} days. No JVM."
)
EXAMPLE = "  chainlake maintain\n  chainlake maintain --table matches.NAME --keep-days 7"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add tables and retention."""
    parser.add_argument("--table", action="append", metavar="SCHEMA.NAME", help="only this table; may be repeated")
    parser.add_argument(
        "--keep-days",
        type=float,
        default=None,
        metavar="N",
        help="days to keep replaced files, in all tables; a job that runs longer than that would fail",
    )
    parser.add_argument("--run-id", default=None, help="run id recorded in ops.runs; generated if omitted")
    parser.add_argument(
        "--result", type=Path, default=None, metavar="FILE", help="file to write the result to, as JSON"
    )


def run(args: argparse.Namespace) -> int:
    """Maintain the tables."""
    from chainlake.lake.records.runs import new_run_id
    from chainlake.operations.maintain import maintain

    if args.keep_days is not None and args.keep_days * 24 < 1:
        raise BadOption.too_short("--keep-days")
    keep = None if args.keep_days is None else timedelta(days=args.keep_days)
    result = maintain(Home.from_env(), run_id=args.run_id or new_run_id("maintain"), only=args.table, keep=keep)
    if args.result is not None:
        args.result.write_text(json.dumps(result))
    print("maintain: " + ", ".join(f"{name} {value}" for name, value in result.items()))
    return 0
