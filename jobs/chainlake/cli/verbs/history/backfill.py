"""``chainlake backfill``: computes long history with one Spark application per chunk of days."""

from __future__ import annotations

import argparse
import functools

from chainlake.cli.ranges import add_range_arguments, stoppable
from chainlake.days import Days
from chainlake.lake.records.runs import new_run_id
from chainlake.operations.backfills.backfill import run_plan
from chainlake.operations.backfills.launch import in_a_process
from chainlake.operations.backfills.plan import plan_range
from chainlake.paths import Home
from chainlake.run.results import counts_line

HELP = (
    "Compute and publish every day in FROM TO that is missing, stale or failed, in Spark applications that publish "
    "many days each. 'plan' with the same arguments shows these days beforehand. You can stop it at any time "
    "(Ctrl-C, SIGTERM); the next call continues where it stopped. Failures are listed at the end; everything else "
    "is published."
)
EXAMPLE = (
    "  chainlake backfill 2013-10-07 2013-10-10\n"
    "  chainlake backfill 2013-01-01 2014-01-01 --patterns shakeout three_pushes --chunk 60d"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add FROM TO, definitions, chunk, --only-stale."""
    add_range_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the backfill."""
    say = functools.partial(print, flush=True)
    home, days = Home.from_env(), Days.parse(args.start, args.end)
    with stoppable(say):
        plan = plan_range(
            home, days, patterns=args.patterns, models=args.models, chunk=args.chunk, only_stale=args.only_stale
        )
        result = run_plan(home, plan, run_id=new_run_id("backfill"), launch=in_a_process(say), say=say)
    print(f"backfill: {counts_line(result)}")
    return 0
