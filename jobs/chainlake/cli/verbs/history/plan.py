"""``chainlake plan``: shows what a backfill would compute, read and change, and changes nothing; no JVM."""

from __future__ import annotations

import argparse
import json

from chainlake.cli.ranges import add_range_arguments
from chainlake.days import Days
from chainlake.operations.backfills.applications import Part
from chainlake.operations.backfills.plan import plan_range
from chainlake.operations.backfills.range_plan import RangePlan, as_json
from chainlake.paths import Home
from chainlake.terminal import json_visible, table_lines
from chainlake.words import counted

HELP = (
    "The dry run of 'backfill' with the same arguments. It prints one line per definition and Spark application: "
    "the days to compute and why, the days and events to read, and the published rows that could be changed or "
    "withdrawn. Some days of a model are computed only if a late file reaches that far; they are counted separately "
    "as an estimate. plan changes nothing and starts no JVM."
)
EXAMPLE = (
    "  chainlake plan 2013-10-07 2013-10-10\n"
    "  chainlake plan 2013-01-01 2014-01-01 --patterns shakeout three_pushes --chunk 60d --json"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a backfill, and the output format."""
    add_range_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object, with every day")


def run(args: argparse.Namespace) -> int:
    """Print the plan; the exit code is 0, or the largest one of definitions that cannot be computed."""
    plan = plan_range(
        Home.from_env(),
        Days.parse(args.start, args.end),
        patterns=args.patterns,
        models=args.models,
        chunk=args.chunk,
        only_stale=args.only_stale,
    )
    if args.json:
        print(json_visible(json.dumps(as_json(plan), indent=1)))
    else:
        _print(plan)
    return max((getattr(error, "exit_code", 5) for _, error in plan.failures), default=0)


def _estimated(part: Part) -> list[str]:
    return [f"at most {len(part.following)} following (estimate)"] if part.following else []


def _print(plan: RangePlan) -> None:
    header = ("application", "definition", "days", "why", "reads", "events", "published rows")
    lines = []
    for application in plan.applications:
        for part in application.parts:
            lines.append(
                (
                    application.name,
                    part.definition,
                    str(len(part.days)),
                    ", ".join([*(f"{n} {state}" for state, n in sorted(part.states.items())), *_estimated(part)]),
                    f"{part.reads.start} {part.reads.end}",
                    str(part.rows_read),
                    str(part.rows_there),
                )
            )
    if lines:
        print("\n".join(table_lines(header, lines)))
    for line in plan.notes():
        print(line)
    if not plan.applications:
        return
    parts = [part for application in plan.applications for part in application.parts]
    definitions, days = len({part.definition for part in parts}), sum(len(part.days) for part in parts)
    following = sum(len(part.following) for part in parts)
    more = f", and at most {following} more that follow (estimate)" if following else ""
    print(
        f"{counted(len(plan.applications), 'Spark application')} for {counted(definitions, 'definition')}, with "
        f"{counted(days, 'day')} to compute{more}"
    )
