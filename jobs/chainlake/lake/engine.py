"""Which back end changes the tables of a lake: its own files, or Spark (docs/architecture.md)."""

from __future__ import annotations

import os

from chainlake.errors import UsageError
from chainlake.paths import Home

#: The environment variable that asks for one.
VARIABLE = "CHAINLAKE_ENGINE"
_ENGINES = ("auto", "files", "spark")


class WrongEngine(UsageError):
    """The engine that the environment asks for cannot work here."""

    @classmethod
    def unknown(cls, asked: str) -> WrongEngine:
        """There is none of that name."""
        return cls(f"{VARIABLE} is '{asked}'", hint=f"It can be {', '.join(_ENGINES)}.")

    @classmethod
    def no_files(cls, lake: str) -> WrongEngine:
        """The files of the lake are out of its reach."""
        return cls(
            f"{VARIABLE} is 'files', and the lake {lake} is in an object store, which this process does not read",
            hint=f"Unset {VARIABLE}, or set it to spark.",
        )


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
        raise WrongEngine.unknown(asked)
    if asked == "files" and engine_of(home) != "files":
        raise WrongEngine.no_files(home.lake)
