"""Which back end changes the tables of a lake: *files* or Spark (docs/architecture.md)."""

from __future__ import annotations

from chainlake.env.variables import value_of
from chainlake.errors import UsageError
from chainlake.paths import Home
from chainlake.schemas.ops_rows import Engine
from chainlake.storage.resolve import storage_of

#: The environment variable that chooses the engine.
VARIABLE = "CHAINLAKE_ENGINE"


class WrongEngine(UsageError):
    """The engine that the environment asks for cannot work here."""

    @classmethod
    def no_commits(cls, lake: str) -> WrongEngine:
        """Spark's commits to a store can overwrite those of others."""
        return cls(
            f"{VARIABLE} is 'spark', but the lake {lake} is in an object store, to which Spark commits without regard "
            "to other writers",
            hint=f"Unset {VARIABLE}: tasks still run on Spark, and their files are committed by delta-rs.",
        )


def asked_engine() -> str:
    """What the environment asks for: ``auto``, ``files`` or ``spark``.

    Raises:
        WrongVariable: it asks for something else.
    """
    return value_of(VARIABLE) or "auto"


def engine_of() -> Engine:
    """The engine that works, ``files`` or ``spark``; ``auto`` takes ``files``."""
    return "spark" if asked_engine() == "spark" else "files"


def check_engine(home: Home) -> None:
    """Make sure that the engine asked for can work with this lake.

    Raises:
        WrongVariable: there is no such engine.
        WrongEngine: it cannot work with this lake.
        InfrastructureError: the store that holds the lake cannot be used.
    """
    asked = asked_engine()
    files = storage_of(home.lake)
    if asked == "spark" and not files.on_disk:
        raise WrongEngine.no_commits(home.lake)
    files.reach(home.lake)
