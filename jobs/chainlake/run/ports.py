"""The ports of a step, chosen once at its door."""

from __future__ import annotations

import os
from dataclasses import dataclass

from chainlake.errors import UsageError
from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.port import Lake
from chainlake.lake.store.spark import SparkLake
from chainlake.paths import Home
from chainlake.run.tasks import SparkTasks, Tasks

_ENGINE = "CHAINLAKE_ENGINE"
_ENGINES = ("auto", "files", "spark")


@dataclass(frozen=True)
class Ports:
    """What a step works with.

    Args:
        tasks: who computes.
        lake: who reads and changes data tables.
    """

    tasks: Tasks
    lake: Lake


def open_ports(home: Home, app: str, *, long_running: bool = False) -> Ports:
    """The ports of this installation.

    Args:
        home: the installation.
        app: name shown in Spark's logs.
        long_running: whether the step takes so long that Java's optimising compiler pays off.

    Raises:
        UsageError: ``CHAINLAKE_ENGINE`` names no engine, or one that cannot work with this lake.
    """
    tasks = SparkTasks(home, app, long_running)
    return Ports(tasks, open_lake(home, tasks))


def open_lake(home: Home, tasks: SparkTasks) -> Lake:
    """The lake as ``CHAINLAKE_ENGINE`` says: by its ``files``, by ``spark``, or ``auto``, by its files if it can be.

    Args:
        home: the installation.
        tasks: whose session Spark's back end uses; made only when it is needed.

    Raises:
        UsageError: as for :func:`open_ports`.
    """
    asked = os.environ.get(_ENGINE) or "auto"
    if asked not in _ENGINES:
        raise UsageError(f"{_ENGINE} is '{asked}'", hint=f"It can be {', '.join(_ENGINES)}.")
    in_files = "://" not in home.lake
    if asked == "files" and not in_files:
        raise UsageError(
            f"{_ENGINE} is 'files', and the lake {home.lake} is in an object store, which this process does not read",
            hint=f"Unset {_ENGINE}, or set it to spark.",
        )
    if asked == "spark" or not in_files:
        return SparkLake(home, lambda: tasks.session)
    return FilesLake(home)
