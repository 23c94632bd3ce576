"""Parts of ``make store-proof``: processes that contend for a lake in a store, and what comes too late."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from chainlake.days import Days
from chainlake.lake.leases import conditional, lease
from chainlake.lake.locks import VARIABLE, file_lock, holder
from chainlake.lake.records import ops
from chainlake.lake.store.files import FilesLake
from chainlake.local.postgres import connection
from chainlake.local.run.shipped import land, shipped_days
from chainlake.paths import Home
from chainlake.storage.resolve import storage_of
from tests.lake.late import BEFORE, BETWEEN, PURPOSE, late_commit, publish, rows
from tests.proof import database
from tests.proof.between import Held, between
from tests.proof.history import SOURCE, compared, edit, environment, installation
from tests.proof.processes import run, running
from tests.proof.s3proxy import BUCKET
from tests.proof.store_child import APPENDS, can_be_elsewhere, child

_RACERS = 3
#: A lease that runs out on a holder that nobody can see, how many of its seconds a waiting process must have seen, and
#: one that never runs out here.
_SHORT_S, _LEAST_S, _LONG_S = 6, 3.0, 86_400
#: What it says when a store refuses a conditional write.
_REFUSED = 412


def _lake(store: Home, name: str) -> Home:
    """The same installation with a lake of its own in the store."""
    return replace(store, lake=f"s3://{BUCKET}/{name}")


def race(store: Home, machines: bool = False, more: Mapping[str, str] | None = None) -> Iterator[str]:
    """Processes append to one log, each row under the lock: no number twice, none missing.

    Args:
        store: the installation.
        machines: whether each process is as if on a machine of its own.
        more: of the environment of them all.
    """
    names = [f"machine-{number}" if machines else "" for number in range(_RACERS)]
    racers = [child(store, "append", str(number), machine=name, **(more or {})) for number, name in enumerate(names)]
    with ExitStack() as stack:
        for racer in racers:
            stack.enter_context(running(racer))
        for racer in racers:
            code, said = racer.finish()
            if code:
                yield f"a racer ended with {code}: {said[-500:]}"
    found = ops.current_table(store, "rates", columns=["run_id", "seq"], as_log=True).to_pylist()
    raced = sorted(row["seq"] for row in found if row["run_id"].startswith("race-"))
    if raced != list(range(1, _RACERS * APPENDS + 1)):
        yield f"{len(raced)} numbers of {_RACERS * APPENDS} rows: {raced}"


def killed_holder(store: Home) -> Iterator[str]:
    """A holder is killed: replaced at once, or after its time by who cannot see its process."""
    # With a lease of a day, who replaces it has seen that its process is gone, and has not waited for its time.
    for name, seconds, least in (("here", _LONG_S, 0.0), ("elsewhere", _SHORT_S, _LEAST_S)):
        yield from _replaced(store, name, least, {lease.VARIABLE: str(seconds)})


def _replaced(store: Home, name: str, least: float, more: Mapping[str, str]) -> Iterator[str]:
    with running(child(store, "hold", name, **more)) as first:
        first.until(lambda: "held\n" in first.said(), "the lock")
        first.stop(signal.SIGKILL)
    begun = time.monotonic()
    with running(child(store, "hold", f"{name}-after", **more)) as after:
        after.until(lambda: "held\n" in after.said(), "the lock of a killed holder")
        waited = time.monotonic() - begun
    print(f"  a killed holder, {name}: replaced after {waited:.1f} s, the start of a process included", flush=True)
    if waited < least:
        yield f"a killed holder {name}, whose process cannot be seen, was replaced after {waited:.1f} s"


def machines(store: Home) -> Iterator[str]:
    """Processes of machines that have names of their own and do not see each other's processes, on one lake."""
    if not can_be_elsewhere():
        print("  skipped: only root on Linux can give a process another machine's name and processes")
        return
    home = _lake(store, "machines")
    yield from race(home, machines=True)
    more = {lease.VARIABLE: str(_SHORT_S)}
    with (
        running(child(home, "hold", "far", machine="machine-1", **more)) as first,
        running(child(home, "hold", "far-after", machine="machine-2", **more)) as after,
    ):
        # Either may be the first.
        first.until(lambda: "held\n" in first.said() + after.said(), "the lock")
        first, after = (first, after) if "held\n" in first.said() else (after, first)
        time.sleep(3 * _SHORT_S)
        who = holder(home, "proof-far")
        if "held\n" in after.said() or not any(f" on machine-{number}, since" in who for number in (1, 2)):
            yield f"a holder that lives elsewhere was replaced, or has no name: {who}"
        first.stop(signal.SIGKILL)
        begun = time.monotonic()
        after.until(lambda: "held\n" in after.said(), "the lock of a killed holder")
        waited = time.monotonic() - begun
        # The first process of a PID namespace ignores SIGTERM.
        after.stop(signal.SIGKILL)
    print(f"  {who}: kept its lock for {3 * _SHORT_S} s; killed, and replaced after {waited:.1f} s", flush=True)
    if waited < _LEAST_S:
        yield f"a killed holder, whose process cannot be seen, was replaced after {waited:.1f} s"


def late(store: Home) -> Iterator[str]:
    """Commits that arrive when another one has the lock: of a process that died meanwhile, or was stopped."""
    home = _lake(store, "late")
    with file_lock(home, PURPOSE):
        publish(FilesLake(home), "first")
    held = Held(r"/matches/things/_delta_log/0*2\.json")
    with between(os.environ["CHAINLAKE_STORE_ENDPOINT"], held) as proxy:
        with running(child(home, "publish", "late", CHAINLAKE_STORE_ENDPOINT=proxy)) as dying:
            dying.until(held.underway.is_set, "its commit on its way")
            dying.stop(signal.SIGKILL)
        with file_lock(home, PURPOSE):
            publish(FilesLake(home), "newer")
        status = held.status()
    print(f"  the commit of a process that died on its way: {status}; published: {rows(home)}", flush=True)
    if status != _REFUSED or rows(home) != ["newer"]:
        yield f"a commit that arrived after its process had died and another was made: {status}, {rows(home)}"
    with patch.dict(os.environ, {lease.VARIABLE: str(_SHORT_S)}):
        yield from _refused(store, "stopped", lambda pid: None)


def _refused(store: Home, name: str, replaced: Callable[[int], None]) -> Iterator[str]:
    """What becomes of the late commits of a holder."""
    for where, wanted in ((BEFORE, "LockLost"), (BETWEEN, "Overtaken")):
        home = _lake(store, f"{name}-{where.partition(' ')[0]}")
        ended = late_commit(home, where, replaced)
        print(f"  a holder that is {name} {where}, and comes back: {ended}; published: {rows(home)}", flush=True)
        if ended != wanted or rows(home) != ["newer"]:
            yield f"a holder that is {name} {where}: {ended}, {rows(home)}"


def by_database(root: Path, store: Home) -> Iterator[str]:
    """The locks of a database for a lake in the store: a race, a killed holder, a holder without its connection."""
    tools = database.installed()
    if tools is None:
        print("  skipped: this machine has no PostgreSQL in /usr/lib/postgresql")
        return
    # The database's account passes through.
    root.chmod(0o755)
    with database.serving(root / "database", tools, "chainlake") as url:
        home, more = _lake(store, "by-database"), {VARIABLE: url, lease.VARIABLE: str(_LONG_S)}
        yield from race(home, more=more)
        for name in ("here", "elsewhere"):
            yield from _replaced(home, name, 0.0, more)
        folder = f"{home.lake}/{conditional.FOLDER}"
        if leases := [name for name in storage_of(folder).listed(folder)[0] if name != "probe"]:
            yield f"with locks of a database there are leases in the store: {leases}"

        def end_connections(pid: int) -> None:
            with connection(url) as opened, opened.cursor() as cursor:
                ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s"
                cursor.execute(ending, (f"chainlake {pid}@%",))

        with patch.dict(os.environ, more):
            yield from _refused(home, "disconnected", end_connections)


def drivers(root: Path, days: int) -> Iterator[str]:
    """Two drivers, as if on two machines, run the same steps on one lake at the same time: the tables of a disk."""
    alone = installation(root / "drivers-alone", None)
    lake = f"s3://{BUCKET}/drivers/lake"
    two = [
        replace(installation(root / f"driver-{number}", lake), landing_root=f"s3://{BUCKET}/drivers/landing")
        for number in (1, 2)
    ]
    shipped = shipped_days(alone)[SOURCE][:days]
    for day in shipped:
        land(alone, SOURCE, day)
        land(two[0], SOURCE, day)
    span = (SOURCE, f"{shipped[0].day}", f"{Days.one(shipped[-1].day).end}")
    for step, window in (("ingest", ""), ("detect", ""), ("detect", "35 min")):
        for home in (alone, *two) if window else ():
            edit(home, window)
        yield from _raced(two, (step, *span))
        with running(child(alone, step, *span)) as one:
            code, said = one.finish()
        if code:
            yield f"{step} on the disk ended with {code}: {said[-800:]}"
    yield from compared(alone, two[0])
    code, said = run([sys.executable, "-m", "chainlake", "check"], root / "check.log", environment(two[0], {}))
    if code:
        yield f"check ended with {code}: {said[-800:]}"


def _raced(homes: Sequence[Home], words: Sequence[str]) -> Iterator[str]:
    """A step by several drivers at a time; who came second may have to run it again."""
    names = [f"machine-{number}" if can_be_elsewhere() else "" for number in range(len(homes))]
    racers = [child(home, *words, machine=name) for home, name in zip(homes, names, strict=True)]
    with ExitStack() as stack:
        for racer in racers:
            stack.enter_context(running(racer))
        ended = [racer.finish() for racer in racers]
    told = ", ".join(f"{code}{' after a wait' if 'waiting for' in said else ''}" for code, said in ended)
    print(f"  {words[0]} by {len(homes)} drivers ended with {told}", flush=True)
    for racer, (code, said) in zip(racers, ended, strict=True):
        if code not in (0, 5) or "Traceback" in said:
            yield f"{words[0]} of a driver ended with {code}: {said[-800:]}"
        elif code:
            with running(racer):
                code, said = racer.finish()
            if code:
                yield f"{words[0]} of a driver, run again, ended with {code}: {said[-800:]}"
