"""``chainlake report``: builds static pages of the lake; without a JVM."""

from __future__ import annotations

import argparse
import webbrowser

from chainlake.errors import InfrastructureError
from chainlake.paths import Home
from chainlake.words import counted

HELP = (
    "Build pages that show the lake: every definition and day, each pattern with its best or latest matches drawn, "
    "each model with its changes. They need no server and no Internet: open index.html. Steps keep them up to date "
    "as they publish; this verb immediately builds whatever has changed since, and prints the address of the first "
    "page."
)
EXAMPLE = "  chainlake report\n  chainlake report --all --open"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what is built, and whether a browser shows it."""
    parser.add_argument("--all", action="store_true", help="build all pages again, including those that are up to date")
    parser.add_argument("--open", action="store_true", help="open the first page in the browser of this machine")


def run(args: argparse.Namespace) -> int:
    """Make the report; the exit code is 5 if some pages cannot be made."""
    from chainlake.report.make import make_report

    outcome = make_report(Home.from_env(), everything=args.all)
    if outcome.made or outcome.failed:
        failed = f", {len(outcome.failed)} failed" if outcome.failed else ""
        print(f"pages of {counted(len(outcome.made), 'definition')} made{failed}: {outcome.index}")
    else:
        print(f"all pages are current: {outcome.index}")
    if args.open:
        webbrowser.open(outcome.index.as_uri())
    return InfrastructureError.exit_code if outcome.failed else 0
