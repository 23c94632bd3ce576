"""The ports of a step, chosen once when the step begins."""

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
        tasks: what computes.
        lake: what reads and changes data tables.
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
    """The lake through the back end that ``CHAINLAKE_ENGINE`` asks for: ``files``, ``spark`` or ``auto``.

    Args:
        home: the installation.
        tasks: Spark tasks, whose session the Spark back end uses; it is made only when it is needed.

    Raises:
        UsageError: as for :func:`open_ports`.
    """
    check_engine(home)
    return SparkLake(home, lambda: tasks.session) if engine_of() == "spark" else FilesLake(home)
