"""Locks without a shared disk: leases in the store, here a folder that is treated as one."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from chainlake.env.variables import WrongVariable
from chainlake.errors import InfrastructureError
from chainlake.lake import locks
from chainlake.lake.errors import LockBusy, LockLost
from chainlake.lake.leases import conditional, machine
from chainlake.lake.leases.lease import VARIABLE, StoreLock, Watch
from chainlake.lake.locks import file_lock, held, holder, require_locks
from chainlake.paths import Home
from chainlake.storage.errors import StoreFailed
from chainlake.storage.resolve import storage_of
from tests.lake.late import BEFORE, BETWEEN, late_commit, rows


@pytest.fixture
def remote(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(conditional, "_kept_to", {f"file://{home.root}/store"})
    return replace(home, lake=f"file://{home.root}/store")


def elsewhere(home: Home, purpose: str) -> StoreLock:
    """A lock as a process of another machine sees it."""
    return StoreLock(Watch(home, purpose), purpose)


def test_who_holds_a_lease_keeps_all_others_out(remote: Home) -> None:
    with file_lock(remote, "table-matches.p/v2"):
        assert held(remote, "table-matches.p/v2")
        assert not elsewhere(remote, "table-matches.p/v2").take()
        assert "process" in elsewhere(remote, "table-matches.p/v2").holder()
        with file_lock(remote, "ops"), pytest.raises(LockBusy, match="another part of this process"):
            with file_lock(remote, "ops", wait_s=0.0):
                pass
    assert not held(remote, "table-matches.p/v2")
    with file_lock(remote, "table-matches.p/v2"):
        require_locks()


def test_a_lock_that_is_never_free_is_given_up_with_its_holder(remote: Home) -> None:
    other = elsewhere(remote, "source-a")
    assert other.take()
    with (
        pytest.raises(
            LockBusy, match=r"^the events of a cannot be .* in use by process \d+ on \S+, since [-\d]+ [:\d]+ UTC\n"
        ),
        file_lock(remote, "source-a", wait_s=0.1),
    ):
        pass
    other.close()
    with file_lock(remote, "source-a", wait_s=5.0):
        pass


def test_only_the_newest_generation_is_kept(remote: Home) -> None:
    for _ in range(4):
        with file_lock(remote, "ops"):
            pass
    folder = f"{remote.lake}/{conditional.FOLDER}/ops"
    assert [file.path for file in storage_of(folder).files(folder)] == ["4.free", f"4/{conditional.ENTRY}"]


def test_a_holder_without_signs_of_life_is_replaced_and_its_commits_are_refused(
    remote: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "0.6")
    with file_lock(remote, "ops"):
        (kept,) = locks._kept.values()
        assert isinstance(kept, StoreLock) and kept._lease is not None
        # As a process that is stopped: it shows no sign of life, and does not know.
        kept._lease._ended.set()
        kept._lease._thread.join()
        other = elsewhere(remote, "ops")
        begun = time.monotonic()
        while not other.take():
            time.sleep(0.05)
        assert time.monotonic() - begun > 0.5
        with pytest.raises(LockLost, match="lock on the tables of ops was lost.*nothing was committed"):
            require_locks()
    other.require()
    assert not elsewhere(remote, "ops").take()
    other.close()


@pytest.mark.slow
@pytest.mark.parametrize(("where", "ended"), [(BEFORE, "LockLost"), (BETWEEN, "Overtaken")])
def test_a_late_commit_of_a_holder_that_was_stopped_is_refused(
    where: str, ended: str, remote: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "1.5")
    assert late_commit(remote, where, lambda pid: None) == ended
    assert rows(remote) == ["newer"]


@pytest.mark.slow
def test_a_holder_that_works_for_long_stays_the_holder(remote: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1.0")
    other = elsewhere(remote, "ops")
    with file_lock(remote, "ops"):
        for _ in range(16):
            assert not other.take()
            time.sleep(0.1)
        require_locks()


def test_who_cannot_reach_the_store_for_too_long_has_lost_its_lock(
    remote: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "0.4")
    lock = elsewhere(remote, "ops")
    assert lock.take()

    def away(self: object, path: str, data: bytes) -> None:
        raise StoreFailed.away(path)

    monkeypatch.setattr(type(storage_of(remote.lake)), "write", away)
    time.sleep(0.5)
    with pytest.raises(LockLost):
        lock.require()
    lock.close()


def test_a_number_that_comes_back_is_never_held(remote: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look of one process and its write others take the lock twice and remove what it has seen."""
    slow = elsewhere(remote, "ops")
    first = elsewhere(remote, "ops")
    assert first.take()
    first.close()
    make = conditional.make

    def after_others(path: str, what: dict[str, object]) -> bool | None:
        monkeypatch.setattr(conditional, "make", make)
        second, third = elsewhere(remote, "ops"), elsewhere(remote, "ops")
        assert second.take()
        second.close()
        assert third.take()
        return make(path, what)

    monkeypatch.setattr(conditional, "make", after_others)
    assert not slow.take()
    folder = f"{remote.lake}/{conditional.FOLDER}/ops"
    assert [file.path for file in storage_of(folder).files(folder)] == [f"3/{conditional.ENTRY}"]


_HOLD = """
import sys, time
from dataclasses import replace
from chainlake.lake.locks import file_lock
from chainlake.paths import Home
with file_lock(replace(Home.from_env(), lake=sys.argv[1]), "ops"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_a_killed_holder_of_this_machine_is_replaced_at_once(remote: Home) -> None:
    process = subprocess.Popen([sys.executable, "-c", _HOLD, remote.lake], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    assert held(remote, "ops") and f"process {process.pid} on " in holder(remote, "ops")
    process.kill()
    process.wait()
    begun = time.monotonic()
    with file_lock(remote, "ops", wait_s=20.0):
        assert time.monotonic() - begun < 15.0


def test_a_number_that_another_process_has_now_is_a_dead_holder() -> None:
    mine = machine.own_holder("ops")
    assert not machine.is_dead(mine)
    assert machine.is_dead({**mine, "started": "1"})
    assert machine.is_dead({**mine, "pid": 2**22 + 1})
    # What runs on another machine, or sees other processes, cannot be told from here.
    assert not machine.is_dead({**mine, "pid": 2**22 + 1, "machine": "another"})
    assert not machine.is_dead(None)


def test_a_store_that_lets_a_second_writer_overwrite_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = replace(home, lake=f"file://{home.root}/careless")
    monkeypatch.setattr(conditional, "make", lambda path, what: True)
    with pytest.raises(StoreFailed, match=r"If-None-Match.*nothing was written"), file_lock(remote, "ops"):
        pass


def test_a_store_that_refuses_the_second_writer_is_asked_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = replace(home, lake=f"file://{home.root}/careful")
    conditional.require_conditional_writes(remote)
    folder = f"{remote.lake}/{conditional.FOLDER}"
    assert storage_of(folder).files(folder) == []
    monkeypatch.setattr(conditional, "make", None)
    conditional.require_conditional_writes(remote)


def test_locks_that_are_none_are_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINLAKE_LOCKS", "mysql://root:secret@host/db")
    with pytest.raises(WrongVariable, match="cannot begin with 'mysql'") as raised, file_lock(home, "ops"):
        pass
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("part", ["S3CR/ET@h", "S3CR%ET@h", "S3@CRET@h", "S3CRET@h:1a", "S3@CR/ET@h"])
def test_a_password_that_was_not_written_as_a_url_wants_it_is_not_shown(
    part: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINLAKE_LOCKS", f"postgresql://me:{part}/db")
    with pytest.raises(InfrastructureError, match="is not the URL of a database") as caught, file_lock(home, "ops"):
        pass
    assert not any(piece in str(caught.value) for piece in ("S3", "CR", "ET"))


def test_a_lake_on_a_disk_has_its_locks_there(home: Home) -> None:
    with file_lock(home, "ops"):
        assert (home.locks / "ops.lock").is_file() and not locks._kept
    assert not Path(home.lake).exists()
