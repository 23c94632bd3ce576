"""The port of tasks: both of its back ends under the same tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JNetworkError

from chainlake.errors import InputError
from chainlake.lake.spark.lost import ProcessLost
from chainlake.paths import Home
from chainlake.run import tasks as running
from chainlake.run.tasks import LocalTasks, SparkTasks, Tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["process", pytest.param("spark", marks=pytest.mark.spark)])
def tasks(request: pytest.FixtureRequest, home: Home) -> Tasks:
    """A back end, Spark with the session of all tests."""
    if request.param == "process":
        return LocalTasks()
    request.getfixturevalue("spark")
    return SparkTasks(home, "tests")


def test_results_come_in_the_order_of_items(tasks: Tasks) -> None:
    assert tasks.map(lambda item: item * item, list(range(7))) == [0, 1, 4, 9, 16, 25, 36]


def test_no_items_give_no_results(tasks: Tasks) -> None:
    assert tasks.map(lambda item: item, []) == []


def test_results_are_any_values(tasks: Tasks, tmp_path: Path) -> None:
    def work(number: int) -> tuple[Path, dict[str, int] | None]:
        path = tmp_path / f"{number}.txt"
        path.write_text(str(number))
        return path, {"number": number} if number else None

    gave = tasks.map(work, [0, 1])
    assert [(path.read_text(), told) for path, told in gave] == [("0", None), ("1", {"number": 1})]


def test_the_first_failure_is_raised_after_all_items_were_worked_on(tasks: Tasks, tmp_path: Path) -> None:
    def work(number: int) -> int:
        (tmp_path / str(number)).touch()
        if number in (1, 2):
            raise InputError(f"item {number} is odd", file="a.csv", line=number, hint="Fix it.")
        return number

    with pytest.raises(InputError, match="item 1 is odd") as caught:
        tasks.map(work, [0, 1, 2, 3])
    assert (caught.value.file, caught.value.line, caught.value.hint) == ("a.csv", 1, "Fix it.")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["0", "1", "2", "3"]


def test_an_unforeseen_error_stops_the_step(tasks: Tasks) -> None:
    def work(number: int) -> int:
        return number // 0

    with pytest.raises(Exception, match="division"):
        tasks.map(work, [1])


def test_a_killed_worker_is_told_as_such(spark: SparkSession, home: Home) -> None:
    def work(number: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ProcessLost, match="a Python worker of Spark was killed"):
        SparkTasks(home, "tests").map(work, [1])
    assert SparkTasks(home, "tests").map(lambda item: item + 1, [1]) == [2]


@pytest.mark.parametrize(
    "error", [Py4JNetworkError("Answer from Java side is empty"), EOFError(), ConnectionRefusedError(111, "refused")]
)
def test_a_killed_jvm_is_told_as_such(monkeypatch: pytest.MonkeyPatch, home: Home, error: Exception) -> None:
    class Dead:
        sparkContext = SimpleNamespace(master="local[2]", applicationId="app-1")  # noqa: N815

        def range(self, *_: object, **__: object) -> None:
            raise error

    monkeypatch.setattr(running, "spark_session", lambda *_, **__: Dead())
    with pytest.raises(ProcessLost, match="Spark's JVM was killed"):
        SparkTasks(home, "tests").map(lambda item: item, [1])


def test_names_say_who_works(spark: SparkSession, home: Home) -> None:
    assert (LocalTasks().name, SparkTasks(home, "tests").name) == ("process", "spark")
    assert SparkTasks(home, "tests").parallelism == spark.sparkContext.defaultParallelism
