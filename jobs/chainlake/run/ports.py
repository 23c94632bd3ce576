"""The ports of a step, chosen once at its door."""

from __future__ import annotations

from dataclasses import dataclass

from chainlake.lake.engine import check_engine, engine_of
from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.port import Lake
from chainlake.lake.store.spark import SparkLake
from chainlake.paths import Home
from chainlake.run.tasks import SparkTasks, Tasks


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
    check_engine(home)
    return SparkLake(home, lambda: tasks.session) if engine_of() == "spark" else FilesLake(home)
