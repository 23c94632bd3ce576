"""``python -m jobs ingest``: landing files to events."""

from __future__ import annotations

import argparse

from jobs.cli.step import add_step_arguments, run_step

HELP = "Take what has landed for a source into raw, events and quarantine, and bring its days up to date."
EXAMPLE = "  python -m jobs ingest stock 2013-10-07 2013-10-08"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """SOURCE FROM TO."""
    add_step_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the ingest step."""
    from jobs.steps.ingest import ingest

    return run_step(args, "ingest", ingest)
