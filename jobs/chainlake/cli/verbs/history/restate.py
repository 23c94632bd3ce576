"""``chainlake restate``: repairs stale days, however old."""

from __future__ import annotations

import argparse
import functools

from chainlake.cli.named import name_of
from chainlake.cli.ranges import add_chunk_argument, stoppable
from chainlake.lake.records.runs import new_run_id
from chainlake.operations.backfills.backfill import run_plan
from chainlake.operations.backfills.launch import in_a_process
from chainlake.operations.backfills.plan import plan_range
from chainlake.paths import Home
from chainlake.run.results import counts_line

HELP = (
    "Compute again every day that is stale (late or corrected files, an edited definition, a new engine) or failed, "
    "however old. Scheduled runs look back only a week. A day keeps its rows until its new ones are committed. "
    "'status --state stale' lists the days. Days that were never computed are left to 'backfill'."
)
EXAMPLE = "  chainlake restate\n  chainlake restate --source stock --chunk 60d"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add sources and chunk."""
    parser.add_argument(
        "--source", action="append", metavar="NAME", type=name_of("source"), help="only this source; may be repeated"
    )
    add_chunk_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run the repair."""
    say = functools.partial(print, flush=True)
    home = Home.from_env()
    with stoppable(say):
        plan = plan_range(home, None, sources=args.source, chunk=args.chunk, only_stale=True)
        result = run_plan(home, plan, run_id=new_run_id("restate"), launch=in_a_process(say), say=say)
    print(f"restate: {counts_line(result)}")
    return 0
