"""Fixtures for all tests: a home of one's own, and one Spark session for the whole run."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from functools import cache
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from chainlake.env.threads import one_thread_each
from chainlake.paths import Home

# As in every process of ours, and before anything imports NumPy.
one_thread_each()

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# The same random inputs in every run, so that a red run is about the change and not about the dice; others are drawn
# by ``make fuzz``, ``make simulate`` and ``--hypothesis-profile random``.
# No test is red because the machine is busy: what has to be fast says so itself.
settings.register_profile("random", derandomize=False, deadline=None)
settings.register_profile("suite", derandomize=True, database=None, deadline=None)
settings.load_profile("suite")


def pytest_configure() -> None:
    """Small sessions: tests run beside each other on small machines."""
    os.environ.setdefault("SPARK_MASTER", "local[2]")
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "1g")
    os.environ.setdefault("CHAINLAKE_SHUFFLE_PARTITIONS", "2")


#: How a file with tests on Spark says so.
_ON_SPARK = re.compile(r"mark\.(on_)?spark\b|\bspark: SparkSession")
#: Folders with a lake, pages or a database that is made once per process and takes seconds.
_WHOLE_FOLDERS = ("check", "dags", "report")
#: About how many seconds a test of a mark takes.
_SECONDS = {"spark": 6.0, "airflow": 5.0, "slow": 1.0}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Name the costs: ``spark`` for whatever starts a JVM, ``airflow`` for what needs Airflow's database or a DAG.

    What ``make spark-proof`` or ``make kill-proof`` alone runs is left out. The files that take longest come first:
    whoever runs out of work then waits for a short one. A process takes whole files; all that have a test on Spark, so
    that a session is started, and Java's code compiled, once; and the folders whose fixtures are made once per process.
    """
    tests: dict[Path, list[float]] = {}
    met: Counter[str] = Counter()
    for item in items:
        if (few := item.get_closest_marker("few")) is not None:
            test = item.nodeid.partition("[")[0]
            met[test] += 1
            if met[test] > few.args[0]:
                item.add_marker("slow")
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if "dags" in item.path.parts:
            item.add_marker("airflow")
    if left := [item for item in items if _is_for_the_proof(item)]:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not _is_for_the_proof(item)]
    for item in items:
        seconds = max((taken for mark, taken in _SECONDS.items() if item.get_closest_marker(mark)), default=0.1)
        tests.setdefault(item.path, []).append(seconds)
    # A single test on Spark may take minutes, so its file comes before any of those without.
    cost = {path: (max(seconds), sum(seconds)) for path, seconds in tests.items()}
    items.sort(key=lambda item: cost[item.path], reverse=True)
    for path in {item.path for item in items if item.get_closest_marker("spark") is not None}:
        assert _group(path) == "spark", f"{path} has a test on Spark: let its text say so, as {_ON_SPARK.pattern}"


@cache
def _group(path: Path) -> str:
    """What of the suite one process takes, of which a test file is a part; the process that says so imports no test."""
    if _ON_SPARK.search(path.read_text()):
        return "spark"
    return path.parent.name if path.parent.name in _WHOLE_FOLDERS else str(path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Processes take the groups of files, in the order of the collection."""
    from xdist.scheduler import LoadFileScheduling

    class ByGroup(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _group(config.rootpath / nodeid.partition("::")[0])

    return ByGroup(config, log) if config.getvalue("dist") == "loadfile" else None


def _is_for_the_proof(item: pytest.Item) -> bool:
    """Whether the test is for a proof alone: for ``make kill-proof`` that are marked so; and for ``make spark-proof``
    of those that are marked ``on_spark`` and done by Spark all that the mark does not name."""
    if item.get_closest_marker("kill_proof") is not None:
        return not os.environ.get("CHAINLAKE_ALL_KILLS")
    chosen = item.get_closest_marker("on_spark")
    if chosen is None or os.environ.get("CHAINLAKE_ALL_SPARK") or item.get_closest_marker("spark") is None:
        return False
    return item.name.partition("[")[2].removesuffix("]") not in chosen.args


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What thousands of tests are made of stays to the end: the garbage collector need not walk it again and again."""
    gc.freeze()


#: Whether the test that is run now has the mark ``spark``, its fixtures of any scope included.
_may_start_a_jvm = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture of the test is made."""
    item.config.stash[_may_start_a_jvm] = item.get_closest_marker("spark") is not None


@pytest.fixture(autouse=True, scope="session")
def no_jvm_without_the_mark(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test without the mark ``spark`` starts a JVM, nor does a fixture that is made for one."""
    import pyspark.java_gateway

    launch = pyspark.java_gateway.launch_gateway

    def guarded(*given: object, **named: object) -> object:
        assert request.config.stash[_may_start_a_jvm], "this test starts a JVM: give it the mark 'spark'"
        return launch(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyspark.java_gateway, "launch_gateway", guarded)
        patch.setattr("pyspark.core.context.launch_gateway", guarded)
        yield


@pytest.fixture(autouse=True, scope="session")
def verbs_end_with_codes_that_they_declare() -> Iterator[None]:
    """Whatever a test has a verb do, its exit code is one that its help and docs/semantics.md name."""
    from chainlake.cli import main
    from chainlake.cli.exits import OF_VERB

    run = main._run

    def checked(argv: list[str] | None) -> int:
        code = run(argv)
        own = OF_VERB.get(argv[0]) if argv else None
        assert own is None or code in {0, 2, 5, 130, *own}, (
            f"{argv} ended with {code}, which cli/exits.py does not name"
        )
        return code

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(main, "_run", checked)
        yield


@pytest.fixture(autouse=True)
def steps_compute_here(request: pytest.FixtureRequest) -> Iterator[None]:
    """Steps that are given no ports compute in this process, except in tests with the mark ``spark``."""
    if request.node.get_closest_marker("spark") is not None:
        yield
        return
    from chainlake.run import ports
    from chainlake.run.tasks import LocalTasks

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ports, "SparkTasks", lambda home, app, long_running: LocalTasks())
        yield


@pytest.fixture(autouse=True)
def sigterm_stays_deadly() -> Iterator[None]:
    """Airflow's task runner leaves a handler of SIGTERM behind where a DAG runs in this process, and pytest deaf."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(autouse=True)
def no_handler_stays() -> Iterator[None]:
    """Whoever has lines of the log printed takes its handler away again: the next test's output is its own."""
    yield
    kept = {name: logger.handlers for name in ("chainlake", "chainlake.steps") if (logger := getLogger(name)).handlers}
    for name, handlers in kept.items():
        for handler in list(handlers):
            getLogger(name).removeHandler(handler)
    assert not kept, f"handlers stay: {kept}"


@pytest.fixture
def pages() -> None:
    """Asks for Data Docs and the report, which are made nowhere else: for a run of a step they take about a second."""


@pytest.fixture(autouse=True)
def pages_only_where_asked_for(request: pytest.FixtureRequest) -> Iterator[None]:
    """Steps audit what they publish in every test, and make pages of it where a test uses ``pages``."""
    if "pages" in request.fixturenames:
        yield
        return
    from chainlake.quality.audit import Audit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Audit, "build_docs", lambda audit: audit.home.docs / "index.html")
        patch.setattr("chainlake.report.make.after_step", lambda home, seconds: None)
        yield


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """An empty ``CHAINLAKE_HOME``; its path holds a space, as a user's may."""
    root = tmp_path / "chain lake"
    root.mkdir()
    monkeypatch.setenv("CHAINLAKE_HOME", str(root))
    for name in ("CHAINLAKE_LAKE", "CHAINLAKE_LANDING", "CHAINLAKE_CONFIG", "CHAINLAKE_FAULT"):
        monkeypatch.delenv(name, raising=False)
    return Home.from_env()


@pytest.fixture(params=["here", pytest.param("spark", marks=pytest.mark.spark)])
def tasks(request: pytest.FixtureRequest) -> None:
    """Steps compute in this process, and once more by Spark; the mark ``on_spark`` says whether in every run."""
    if request.param == "spark":
        request.getfixturevalue("spark")


@pytest.fixture(params=["plain", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """The session where Spark reads the tables too, and once without."""
    return request.getfixturevalue("spark") if request.param == "spark" else None


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The shared session; its own files lie in a folder with a space in its name."""
    from chainlake.lake.spark.session import spark_session, stop_session

    root = tmp_path_factory.mktemp("spark home")
    base = Home.from_env()
    session = spark_session(Home(root=root, lake=str(root / "lake"), config=base.config, cache=base.cache), "tests")
    # Delta's VACUUM lists files with so many tasks, 10,000 of them by default: two minutes of CPU for an empty table.
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
    yield session
    stop_session()
