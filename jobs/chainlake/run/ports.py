"""The ports of a step, chosen once at its door."""

from __future__ import annotations

from dataclasses import dataclass

from chainlake.paths import Home
from chainlake.run.tasks import SparkTasks, Tasks


@dataclass(frozen=True)
class Ports:
    """What a step works with.

    Args:
        tasks: who computes.
    """

    tasks: Tasks


def open_ports(home: Home, app: str, *, long_running: bool = False) -> Ports:
    """The ports of this installation.

    Args:
        home: the installation.
        app: name shown in Spark's logs.
        long_running: whether the step takes so long that Java's optimising compiler pays off.
    """
    return Ports(SparkTasks(home, app, long_running))
