"""``chainlake alerts``: reports to webhooks what was published and withdrawn."""

from __future__ import annotations

import argparse
import sys

from chainlake.cli.errors import BadOption
from chainlake.cli.named import name_of
from chainlake.errors import ChainlakeError
from chainlake.paths import Home
from chainlake.words import counted

HELP = (
    "Send the matches of patterns, and the changes of models, to the webhook that 'alerts' in their file names. The "
    "verb sends what was added, withdrawn or changed since the last call, one JSON object each, oldest first. Each "
    "message is sent at least once; when it is sent again, its id, also in the header Idempotency-Key, is the same. "
    "If a webhook fails, the verb retries with longer and longer pauses; after that, the next call starts with the "
    "same message. The first call for a definition sends nothing; it sends what is published from then on. No JVM."
)
EXAMPLE = "  chainlake alerts send\n  chainlake alerts send NAME --from-version 12"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to do, for which definitions, where to begin, and how often to try."""
    parser.add_argument("action", choices=("send",), help="send what has not been sent yet")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        type=name_of("pattern", "model"),
        help="a pattern or a model (model/NAME if both have that name); default: all",
    )
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument("--from-version", type=int, metavar="N", help="send what came after this version of the table")
    begin.add_argument(
        "--from-now", action="store_true", help="skip what was not sent; send only what is published from now on"
    )
    parser.add_argument("--tries", type=int, default=5, metavar="N", help="attempts per message; default: 5")


def run(args: argparse.Namespace) -> int:
    """Send messages, and say how many were sent."""
    from chainlake.operations.alerts.send import Sending, alerting, send
    from chainlake.operations.alerts.webhook import Trying

    if args.tries < 1:
        raise BadOption.too_few("--tries")
    home = Home.from_env()
    sending = Sending(Trying(tries=args.tries), args.from_version, args.from_now)
    failed: list[ChainlakeError] = []
    having = alerting(home, args.names)
    if not having:
        print("no pattern or model has alerts: docs/maintenance.md says how to write them")
    for item in having:
        try:
            sent = send(home, item, sending)
        except ChainlakeError as error:
            # A receiver that is down must not keep others from getting their messages.
            print(f"error: {error}", file=sys.stderr)
            failed.append(error)
            continue
        reached = "" if sent.version is None else f", table at version {sent.version}"
        print(f"{sent.name}: {counted(sent.sent, 'message')} sent{reached}{f'; {sent.why}' if sent.why else ''}")
    return max((error.exit_code for error in failed), default=0)
