"""``chainlake detect``: from events to match tables."""

from __future__ import annotations

import argparse

from chainlake.cli.named import name_of
from chainlake.cli.ranges import add_repair_arguments
from chainlake.cli.step import add_step_arguments, call_step
from chainlake.run.common import REPAIR_HORIZON

HELP = "Detect all patterns of a source on days, audit the matches and publish the differences."
EXAMPLE = (
    "  chainlake detect stock 2013-10-07 2013-10-08\n  chainlake detect traffic 2025-10-01 2025-10-04 --pattern NAME"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add SOURCE FROM TO and the patterns."""
    add_step_arguments(parser)
    parser.add_argument(
        "--pattern", action="append", metavar="NAME", type=name_of("pattern"), help="only this pattern; may be repeated"
    )
    add_repair_arguments(parser, REPAIR_HORIZON)


def run(args: argparse.Namespace) -> int:
    """Run the detect step."""
    from chainlake.detect.step import detect

    return call_step(
        args, "detect", detect, patterns=args.pattern, repair_horizon=args.repair_horizon, only_stale=args.only_stale,
    )  # fmt: skip
