"""The servers of an object store that a proof can run on, by name."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from tests.proof import moto, s3proxy

#: Each runs for a block, in a folder of its own under the first path; its program is kept under the second.
SERVERS: dict[str, Callable[[Path, Path], AbstractContextManager[s3proxy.Store]]] = {
    "s3proxy": s3proxy.serving,
    "moto": moto.serving,
}


def add_server(parser: argparse.ArgumentParser) -> None:
    """The option that chooses one.

    Args:
        parser: of the proof.
    """
    first = next(iter(SERVERS))
    parser.add_argument("--server", choices=tuple(SERVERS), default=first, help=f"the store (default {first})")
