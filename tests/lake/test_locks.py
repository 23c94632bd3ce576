"""Locks exclude each other: JVM against Python process, thread against thread."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chainlake.cli.main import main
from chainlake.env.processes.work import work, working_on
from chainlake.errors import InfrastructureError
from chainlake.lake.errors import NoLock
from chainlake.lake.leases.machine import guarded
from chainlake.lake.locks import file_lock, held, holder, jvm_lock, unusable
from chainlake.paths import PROJECT, Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHILD = """
import sys
from chainlake.lake.locks import file_lock
from chainlake.paths import Home
with file_lock(Home.from_env(), "source-s", wait_s=0.2):
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def _child() -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )  # fmt: skip
    with child:
        yield child


def test_a_jvm_and_a_process_exclude_each_other(spark: SparkSession, home: Home) -> None:
    with jvm_lock(spark, home, "source-s"), _child() as child:
        out, err = child.communicate()
        assert out == "" and "the events of s cannot be changed now" in err and f"process {os.getpid()} " in err
    with _child() as child:
        assert child.stdout is not None and child.stdout.readline() == "held\n"
        with pytest.raises(InfrastructureError, match=f"in use by process {child.pid} "):
            with jvm_lock(spark, home, "source-s", wait_s=0.2):
                raise AssertionError("two holders")
        child.communicate("\n")
    with jvm_lock(spark, home, "source-s", wait_s=0.2):
        assert f"process {os.getpid()} " in holder(home, "source-s")


def _link_to_nothing(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere" / "at-all")


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, _link_to_nothing])
def test_what_is_no_file_in_a_locks_place_is_named(home: Home, make: Callable[[Path], None]) -> None:
    home.locks.mkdir(parents=True, exist_ok=True)
    make(home.locks / "source-s.lock")
    with pytest.raises(NoLock, match=r"source-s\.lock cannot be used as a lock: it is "):
        file_lock(home, "source-s", wait_s=0.2).__enter__()
    assert [error.hint for error in unusable(home)] == ["Move it away, and run this again."]


@pytest.mark.parametrize("text", ["", "half", "[]", "null", '"x"', "{}", "\udcff"])
def test_a_file_that_does_not_name_its_holder_stops_nobody(home: Home, text: str) -> None:
    with file_lock(home, "source-s", wait_s=0.2):
        (home.locks / "source-s.lock").write_text(text, errors="surrogateescape")
        assert holder(home, "source-s") == "an unknown process"


def test_a_killed_holder_frees_the_lock(spark: SparkSession, home: Home) -> None:
    with _child() as child:
        assert child.stdout is not None and child.stdout.readline() == "held\n"
        child.kill()
        with jvm_lock(spark, home, "source-s", wait_s=10):
            assert home.locks.joinpath("source-s.lock").exists()


def test_threads_of_one_process_take_turns(spark: SparkSession, home: Home) -> None:
    inside: list[int] = []
    seen: list[int] = []

    def work(kind: int) -> None:
        for _ in range(5):
            with jvm_lock(spark, home, "table-matches.p") if kind else file_lock(home, "table-matches.p"):
                inside.append(1)
                seen.append(len(inside))
                time.sleep(0.01)
                inside.pop()

    threads = [threading.Thread(target=work, args=(n % 2,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 20


def test_the_ops_lock_is_taken_inside_a_table_lock_and_says_who_holds_it(spark: SparkSession, home: Home) -> None:
    with jvm_lock(spark, home, "table-matches.p/v2"), file_lock(home, "ops"):
        signed = json.loads(home.locks.joinpath("ops.lock").read_bytes())
        assert signed["purpose"] == "ops" and signed["pid"] == os.getpid()
        assert "table-matches.p.v2.lock" in [path.name for path in home.locks.iterdir()]


def test_a_second_holder_in_the_same_process_is_told_so(home: Home) -> None:
    with file_lock(home, "ops"), pytest.raises(InfrastructureError, match="another part of this process"):
        with file_lock(home, "ops", wait_s=0.05):
            raise AssertionError("two holders")


@pytest.mark.slow
def test_a_wait_says_for_whom(home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    with _child() as child:
        assert child.stdout is not None and child.stdout.readline() == "held\n"
        with pytest.raises(InfrastructureError):
            with file_lock(home, "source-s", wait_s=1.5):
                raise AssertionError("two holders")
        child.communicate("\n")
    (line,) = capfd.readouterr().err.splitlines()
    since = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    who = f"process {child.pid} on {re.escape(os.uname().nodename)}, since {since}"
    assert re.fullmatch(rf"waiting for the events of s, in use by {who} \(1 s so far\)", line)


@pytest.mark.slow
def test_a_wait_for_a_thread_says_so_too(home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    with file_lock(home, "ops"), pytest.raises(InfrastructureError, match="another part of this process"):
        with file_lock(home, "ops", wait_s=1.8):
            raise AssertionError("two holders")
    assert f"waiting for the tables of ops, in use by process {os.getpid()} " in capfd.readouterr().err


@pytest.mark.parametrize(
    ("purpose", "words"),
    [
        ("source-stock", "the events of stock"),
        ("table-matches.p/v2", "table matches.p/v2"),
        ("ops", "the tables of ops"),
        ("report", "the report"),
        ("docs", "Data Docs"),
        ("alerts-matches.shakeout", "the alerts of matches.shakeout"),
        ("proof-1", "the lock 'proof-1'"),
    ],
)
def test_what_a_lock_protects_is_said_in_words(purpose: str, words: str) -> None:
    assert guarded(purpose) == words


def test_who_waits_is_told_what_the_holder_does(home: Home) -> None:
    command = ["chainlake", "detect", "stock", "2013-10-07", "2013-10-08", "--result", "/tmp/secret"]
    with working_on(command), file_lock(home, "source-s"):
        said = holder(home, "source-s")
    since = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    host = re.escape(os.uname().nodename)
    assert re.fullmatch(
        rf"chainlake detect stock 2013-10-07 2013-10-08, process {os.getpid()} on {host}, since {since}", said
    )
    with file_lock(home, "source-s"):
        assert holder(home, "source-s").startswith(f"process {os.getpid()} ")


def test_a_verb_says_of_itself_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr("chainlake.cli.verbs.lake.status.run", lambda args: seen.append(work()) or 0)
    assert main(["status", "--json"]) == 0
    assert (seen, work()) == (["chainlake status"], "")


def test_a_short_wait_says_nothing(home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    with file_lock(home, "ops"), pytest.raises(InfrastructureError):
        with file_lock(home, "ops", wait_s=0.2):
            raise AssertionError("two holders")
    assert capfd.readouterr().err == ""


def test_whether_a_lock_is_held(home: Home) -> None:
    assert not held(home, "source-s")
    with _child() as child:
        assert child.stdout is not None and child.stdout.readline() == "held\n"
        assert held(home, "source-s") and not held(home, "source-t")
        child.communicate("\n")
    assert not held(home, "source-s")
    with file_lock(home, "source-s"):
        assert held(home, "source-s")
        # To look has not freed it.
        with _child() as child:
            assert "cannot be changed now" in child.communicate()[1]


def test_the_lock_is_a_lock_for_anybody(home: Home) -> None:
    with file_lock(home, "ops"):
        code = (
            "import fcntl,sys\nf=open(sys.argv[1],'r+')\n"
            "try:\n    fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept BlockingIOError:\n    sys.exit(7)"
        )
        done = subprocess.run([sys.executable, "-c", code, str(home.locks / "ops.lock")])
        assert done.returncode == 7
