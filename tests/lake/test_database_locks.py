"""Locks in a database, for a lake on a disk that several machines share: whoever commits, and by which engine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chainlake.env.processes.work import working_on
from chainlake.lake.delta import tables
from chainlake.lake.errors import LockBusy, LockLost
from chainlake.lake.leases import machine
from chainlake.lake.locks import VARIABLE, file_lock, held, holder, jvm_lock, require_locks
from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.port import Lake, Part, Staged, Turn
from chainlake.lake.store.spark import SparkLake
from chainlake.local.postgres import Postgres, connection
from chainlake.paths import Home
from tests.lake.late import BEFORE, BETWEEN, PURPOSE, late_commit, publish, rows
from tests.lake.things import THINGS, thing, things

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    database = Postgres(tmp_path_factory.mktemp("locks") / "postgres")
    database.start(dict(os.environ))
    yield database
    database.stop()


@pytest.fixture
def shared(home: Home, database: Postgres, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home whose locks lie in the database."""
    monkeypatch.setenv(VARIABLE, database.url)
    return home


_OTHER = """
import sys
from chainlake.lake.locks import file_lock
from chainlake.paths import Home
with file_lock(Home.from_env(), sys.argv[1], wait_s=0.5):
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def another_machine(home: Home, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that takes the lock, with a home of its own; it has the lake and the database in common."""
    own = {"CHAINLAKE_HOME": str(tmp_path / "elsewhere"), "CHAINLAKE_LAKE": home.lake}
    process = subprocess.Popen(
        [sys.executable, "-c", _OTHER, PURPOSE], env=os.environ | own, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with process:
        try:
            yield process
        finally:
            process.kill()


def _lock(engine: str, request: pytest.FixtureRequest, home: Home, wait_s: float) -> AbstractContextManager[None]:
    if engine == "files":
        return file_lock(home, PURPOSE, wait_s=wait_s)
    return jvm_lock(request.getfixturevalue("spark"), home, PURPOSE, wait_s=wait_s)


ENGINES = pytest.mark.parametrize("engine", ["files", pytest.param("spark", marks=pytest.mark.spark)])


@ENGINES
def test_machines_with_homes_of_their_own_exclude_each_other(
    engine: str, request: pytest.FixtureRequest, shared: Home, tmp_path: Path
) -> None:
    with _lock(engine, request, shared, 5.0), another_machine(shared, tmp_path) as other:
        said, complaint = other.communicate()
        assert said == "" and f"in use by process {os.getpid()} " in complaint
    with another_machine(shared, tmp_path) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(LockBusy, match=f"in use by process {other.pid} "), _lock(engine, request, shared, 0.2):
            raise AssertionError("two holders")
        other.kill()
        # Its connection ends with it.
        with _lock(engine, request, shared, 20.0):
            require_locks()


def test_a_jvm_holds_the_file_of_its_machine_too(spark: SparkSession, shared: Home) -> None:
    """A commit of Spark can land after the process that asked for it, and with it its connection, has gone."""
    here = {name: value for name, value in os.environ.items() if name != VARIABLE}
    with jvm_lock(spark, shared, PURPOSE):
        command = [sys.executable, "-c", _OTHER, PURPOSE]
        done = subprocess.run(command, env=here, text=True, stdin=subprocess.DEVNULL, capture_output=True)
        assert f"in use by process {os.getpid()} " in done.stderr
    assert not held(shared, PURPOSE)


def _end_connections(database: Postgres, pid: int) -> None:
    with connection(database.url) as opened, opened.cursor() as cursor:
        ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s"
        cursor.execute(ending, (f"chainlake {pid}@%",))
        assert cursor.fetchall() == [(True,)]


@ENGINES
def test_who_lost_its_connection_commits_nothing(
    engine: str, request: pytest.FixtureRequest, shared: Home, database: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = request.getfixturevalue("spark") if engine == "spark" else None
    lake: Lake = FilesLake(shared) if session is None else SparkLake(shared, lambda: session)
    with lake.lock(PURPOSE, wait_s=5.0):
        publish(lake, "first")
        change = lake.change(THINGS, Staged(rows=things([thing("second")])), Part([[]]))
        # The last look at the files of a commit comes after the first at the locks.
        monkeypatch.setattr(
            f"chainlake.lake.store.{engine}.require_files", lambda *_: _end_connections(database, os.getpid())
        )
        with pytest.raises(LockLost, match=r"matches\.things was lost .*nothing was committed"):
            lake.commit(change, Turn(PURPOSE))
    assert rows(shared) == ["first"] and tables.version(shared, "matches", "things") == 1


@pytest.mark.parametrize(("where", "ended"), [(BEFORE, "LockLost"), (BETWEEN, "Overtaken")])
def test_a_late_commit_of_a_holder_without_connection_is_refused(
    where: str, ended: str, shared: Home, database: Postgres
) -> None:
    assert late_commit(shared, where, lambda pid: _end_connections(database, pid)) == ended
    assert rows(shared) == ["newer"]


def test_a_lock_names_its_holder_as_every_lock_does(shared: Home) -> None:
    command = ["chainlake", "detect", "100%", "it's \u00fc", "--result", "/tmp/secret"]
    who = rf"process {os.getpid()} on {re.escape(os.uname().nodename)}, since [-\d]+ \d\d:\d\d:\d\d UTC"
    with working_on(command), file_lock(shared, "source-a"):
        assert re.fullmatch(f"chainlake detect 100% it's \u00fc, {who}", holder(shared, "source-a"))
        require_locks()
        assert re.fullmatch(f"chainlake detect 100% it's \u00fc, {who}", holder(shared, "source-a"))
        assert held(shared, "source-a") and not held(shared, "source-b")
    assert holder(shared, "source-a") == machine.UNKNOWN and not held(shared, "source-a")


def test_a_holder_of_another_kind_is_none_that_is_known(shared: Home, database: Postgres) -> None:
    with file_lock(shared, "ops"), connection(database.url) as opened, opened.cursor() as cursor:
        cursor.execute("SELECT classid::bigint, objid::bigint FROM pg_locks WHERE locktype = 'advisory'")
        keys = [key - (1 << 32 if key >= 1 << 31 else 0) for key in cursor.fetchone()]
    with connection(database.url) as opened, opened.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s, %s)", keys)
        assert held(shared, "ops") and holder(shared, "ops") == machine.UNKNOWN
