"""Which back end changes the tables of a lake: its own files, or Spark (docs/architecture.md)."""

from __future__ import annotations

import os

from chainlake.errors import UsageError
from chainlake.paths import Home

#: The environment variable that asks for one.
VARIABLE = "CHAINLAKE_ENGINE"
_ENGINES = ("auto", "files", "spark")


def asked_engine() -> str:
    """What the environment asks for: ``auto``, ``files`` or ``spark``."""
    return os.environ.get(VARIABLE) or "auto"


def engine_of(home: Home) -> str:
    """``files`` or ``spark``: as asked, and for ``auto`` by its files if this process reaches them."""
    return "spark" if asked_engine() == "spark" or "://" in home.lake else "files"


def check_engine(home: Home) -> None:
    """See to it that the engine asked for can work with this lake.

    Raises:
        UsageError: it is none, or cannot.
    """
    asked = asked_engine()
    if asked not in _ENGINES:
        raise UsageError(f"{VARIABLE} is '{asked}'", hint=f"It can be {', '.join(_ENGINES)}.")
    if asked == "files" and engine_of(home) != "files":
        raise UsageError(
            f"{VARIABLE} is 'files', and the lake {home.lake} is in an object store, which this process does not read",
            hint=f"Unset {VARIABLE}, or set it to spark.",
        )
