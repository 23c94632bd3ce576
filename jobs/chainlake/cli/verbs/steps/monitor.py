"""``chainlake monitor``: from events to model changes."""

from __future__ import annotations

import argparse

from chainlake.cli.named import name_of
from chainlake.cli.ranges import add_repair_arguments
from chainlake.cli.step import add_step_arguments, call_step
from chainlake.run.common import REPAIR_HORIZON

HELP = "Run all models of a source up to a day, audit their changes and metrics and publish the differences."
EXAMPLE = (
    "  chainlake monitor traffic 2025-10-01 2025-10-04\n"
    "  chainlake monitor traffic 2025-10-03 2025-10-04 --model i5n_speed_profile"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add SOURCE FROM TO and the models."""
    add_step_arguments(parser)
    parser.add_argument(
        "--model", action="append", metavar="NAME", type=name_of("model"), help="only this model; may be repeated"
    )
    add_repair_arguments(parser, REPAIR_HORIZON)


def run(args: argparse.Namespace) -> int:
    """Run the monitor step."""
    from chainlake.monitoring.step import monitor

    return call_step(
        args, "monitor", monitor, models=args.model, repair_horizon=args.repair_horizon, only_stale=args.only_stale,
    )  # fmt: skip
