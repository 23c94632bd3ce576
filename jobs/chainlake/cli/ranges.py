"""What the verbs for long ranges of days share: choosing definitions, the size of a chunk, a process per chunk.

Each application is a separate process: its memory is freed when it ends, and if it dies, the others do not.
"""

from __future__ import annotations

import argparse
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from chainlake.cli.named import name_of
from chainlake.operations.backfills.applications import CHUNK

_CHUNK = re.compile(r"(\d+)d?")


def add_range_arguments(parser: argparse.ArgumentParser) -> None:
    """Add FROM TO, the definitions, the chunk and --only-stale."""
    parser.add_argument("start", metavar="FROM", help="first day, YYYY-MM-DD (UTC)")
    parser.add_argument("end", metavar="TO", help="day after the last, YYYY-MM-DD (UTC)")
    parser.add_argument(
        "--patterns",
        nargs="+",
        metavar="NAME",
        type=name_of("pattern"),
        help="only these patterns (and the models in --models)",
    )
    parser.add_argument(
        "--models",
        nargs="+",
        metavar="NAME",
        type=name_of("model"),
        help="only these models (and the patterns in --patterns)",
    )
    add_chunk_argument(parser)
    parser.add_argument(
        "--only-stale", action="store_true", help="only days that were computed before and are no longer up to date"
    )


def add_chunk_argument(parser: argparse.ArgumentParser) -> None:
    """Add --chunk."""
    parser.add_argument(
        "--chunk",
        type=days_of_chunk,
        default=CHUNK,
        metavar="DAYS",
        help=f"days per Spark application; default: {CHUNK}d",
    )


def days_of_chunk(text: str) -> int:
    """The number 30 from ``30d`` or ``30``.

    Raises:
        argparse.ArgumentTypeError: for anything else.
    """
    found = _CHUNK.fullmatch(text)
    if found is None or int(found[1]) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of days, such as 30d")
    return int(found[1])


def add_repair_arguments(parser: argparse.ArgumentParser, horizon: int) -> None:
    """Add what a backfill sets for ``detect`` and ``monitor``: how far to look back, and what to leave out."""
    parser.add_argument(
        "--repair-horizon", type=days_of_horizon, default=horizon, metavar="DAYS",
        help=f"also repair this many days before FROM; default: {horizon}",
    )  # fmt: skip
    parser.add_argument("--only-stale", action="store_true", help="leave out days that were never computed")


def days_of_horizon(text: str) -> int:
    """A number of days, 0 or more.

    Raises:
        argparse.ArgumentTypeError: for anything else.
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of days")
    return int(text)


@contextmanager
def stoppable(say: Callable[[str], None]) -> Iterator[None]:
    """Let SIGTERM end the block and its children as Ctrl-C does, and say how to continue."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        say("What is published stays; the same command continues where this one stopped.")
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
