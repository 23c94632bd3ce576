"""``chainlake ingest``: from landing files to events."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta

from chainlake.cli.errors import EndsInFuture
from chainlake.cli.step import add_step_arguments, call_step
from chainlake.days import Days
from chainlake.paths import Home

HELP = "Read the landed files of a source into raw, events and quarantine, and bring its days up to date."
EXAMPLE = "  chainlake ingest stock 2013-10-07 2013-10-08"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add SOURCE FROM TO."""
    add_step_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the ingest step.

    Raises:
        UsageError: the interval ends after today; an ingest would take future days for complete.
    """
    from chainlake.definitions.source import asked_source
    from chainlake.ingest.landing.outcomes import nothing_landed
    from chainlake.ingest.step import ingest

    today = datetime.now(UTC).date()
    if Days.parse(args.start, args.end).end > today + timedelta(days=1):
        raise EndsInFuture.of(args.end, today)

    code = call_step(args, "ingest", ingest)
    home = Home.from_env()
    if (said := nothing_landed(home, asked_source(home, args.source))) is not None:
        print(said)
    return code
