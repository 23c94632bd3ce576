"""``make store-proof``: the lake in an object store against the lake on a disk, by real servers, on loopback addresses.

S3Proxy, which keeps to conditional writes, is fetched once into the cache and checked; or ``CHAINLAKE_S3PROXY`` names
its JAR. The parts, in their order:

refusals     a wrong key, a missing bucket, a store that is down: one sentence and exit code 5
overwriting  a store that overwrites is refused
race         processes race for one lock and one log: no row is lost
killed       a holder of a lock is killed, on this machine and as if elsewhere
machines     processes with other machines' names, which do not see each other, race; one that is killed is replaced
late         a commit arrives after its process has died, or after its process was stopped, and another one was made
database     the locks of a PostgreSQL of the system: a race, a killed holder, a holder that lost its connection
drivers      two drivers run the same steps on one lake at the same time: the tables of one on a disk
tables       shipped days, a late file, an edited pattern, a pattern that uses events up and a model, with lake and
             landed files on a disk and in the store: all tables are the same
away         the store goes away in the middle of a step, until that has ended, and comes back
minute       the store goes away in the middle of a step for a minute
verbs        verbs say the same of both lakes
landing      landed files in a store that is away wait
replaced     a landed file that is replaced by one of its size within the second is read again
spark        a Spark of one's own reads tables and a flat view by the commands of docs/readers.md; it fetches its JARs

With ``--server moto``, the parts that need no outage, no key and no file on the server's disk run on Moto.
``machines`` needs root on Linux.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from chainlake.days import Days
from chainlake.definitions.source import find_source
from chainlake.env.ports import free_port
from chainlake.env.processes.ending import end
from chainlake.ingest.landing.discovery import discover
from chainlake.lake.delta import tables
from chainlake.lake.upkeep.same import published_tables
from chainlake.local.run.shipped import land, shipped_days
from chainlake.paths import Home
from chainlake.storage.resolve import storage_of
from tests.proof import moto, s3proxy
from tests.proof.between import Careless, between
from tests.proof.history import (
    PATTERN,
    SOURCE,
    compared,
    edit,
    environment,
    in_a_process,
    installation,
)
from tests.proof.parts import Part, add_only, run_parts
from tests.proof.processes import run, running
from tests.proof.s3proxy import BUCKET, Server
from tests.proof.servers import add_server
from tests.proof.small import in_folder
from tests.proof.spark_reader import spark_reads
from tests.proof.store_child import child
from tests.proof.store_locks import by_database, drivers, killed_holder, late, machines, race

#: To replace a file in the second in which it was written.
_ATTEMPTS = 50


def verb(home: Home, *words: str, **more: str) -> tuple[int, str]:
    """The exit code of a verb of the command line, and all that it said."""
    return run([sys.executable, "-m", "chainlake", *words], home.root / f"{words[0]}.log", environment(home, more))


def verbs(local: Home, store: Home, days: int) -> Iterator[str]:
    """Verbs that say the same of both lakes, and those that change one; a line for each that does not."""
    query = "select count(*) n, min(event_id) a, max(event_id) b from events.sensor"
    shipped = [day.day for day in shipped_days(store)[SOURCE][:days]]
    span = Days(shipped[0], Days.one(shipped[-1]).end)
    same = (
        ("sql", query),
        ("sql", "--safe", query),
        ("changes", "matches.gas_seen", "--since", "0"),
        ("status",),
        # It tells where landed files of the other sources are expected, which are places of one lake's own.
        ("plan", str(span.start), str(span.end), "--patterns", PATTERN, "gas_seen", "gas_stays", "deepest_drops"),
    )
    for words in same:
        told = [verb(home, *words) for home in (local, store)]
        if told[0] != told[1]:
            yield f"{words[0]} says {told[1]} of the store, and {told[0]} of the disk"
    for word, wanted in (("check", "no damage"), ("maintain", "tables ")):
        code, said = verb(store, word)
        if code or wanted not in said:
            yield f"{word} ended with {code}: {said[-500:]}"
    (store.config / "patterns" / f"{PATTERN}.sase").unlink()
    code, said = verb(store, "retire", PATTERN, "--drop")
    if code or ("matches", PATTERN) in published_tables(store):
        yield f"retire ended with {code}: {said[-500:]}"


def landing(root: Path, server: Server) -> Iterator[str]:
    """Landed files in a store that is away wait, and are not taken for removed ones; lake and store are not one."""
    home = replace(installation(root / "landing", None), landing_root=f"s3://{BUCKET}/landing-alone")
    shipped = shipped_days(home)[SOURCE][0]
    day = Days.one(shipped.day)
    words = ("ingest", SOURCE, f"{day.start}", f"{day.end}")
    land(home, SOURCE, shipped)
    counts: list[int] = []
    for there, wanted in ((True, 0), (False, 5), (True, 0)):
        if not there:
            server.stop()
        with running(child(home, *words)) as step:
            code, said = step.finish()
        if not there:
            server.start()
            print(
                f"  landed files in a store that is away: exit code {code}: {said.strip().splitlines()[-2:]}",
                flush=True,
            )
        if code != wanted:
            yield f"ingest ended with {code}, not with {wanted}: {said[-800:]}"
        counts.append(tables.arrow(home, "events", SOURCE, columns=["event_id"]).num_rows)
    if not counts[0] or len(set(counts)) > 1:
        yield f"events before, while the store is away, and after: {counts}"


def replaced(root: Path) -> Iterator[str]:
    """Two states of a landed file that its place, its size and its time do not tell apart."""
    home = replace(installation(root / "replaced", None), landing_root=f"s3://{BUCKET}/landing-replaced")
    source = find_source(home, SOURCE)
    path = f"{home.landed(SOURCE)}/twice.csv"
    storage = storage_of(path)
    for attempt in range(_ATTEMPTS):
        storage.write(path, b"a,1\n")
        stamp, first = storage.stamp(path), discover(home, source, datetime.now(UTC)).files["twice.csv"].checksum
        storage.write(path, b"a,2\n")
        if storage.stamp(path) == stamp:
            second = discover(home, source, datetime.now(UTC)).files["twice.csv"].checksum
            print(f"  replaced in the same second at attempt {attempt + 1}", flush=True)
            if second == first:
                yield "the file that took its place was not read"
            return
    yield f"{_ATTEMPTS} times the second file had another time than the first"


@dataclass(frozen=True)
class Outage:
    """The store goes away in the middle of a step that has work to do, after an edit of a pattern.

    Args:
        window: of the pattern after the edit, another one than before.
        seconds: for how long; until the step has ended if None.
    """

    window: str
    seconds: float | None

    def faults(self, local: Home, store: Home, days: int, server: Server) -> Iterator[str]:
        """The step ends with one sentence and exit code 5, or well; the next run leaves the tables of the disk."""
        shipped = [day.day for day in shipped_days(store)[SOURCE][:days]]
        words = ("detect", SOURCE, f"{shipped[0]}", f"{Days.one(shipped[-1]).end}")
        for home in (local, store):
            edit(home, self.window)
        before = server.written()
        with running(child(store, *words)) as step:
            step.until(lambda: server.written() > before, "its first file in the store")
            server.stop()
            if self.seconds is None:
                code, said = step.finish()
                server.start()
            else:
                time.sleep(self.seconds)
                server.start()
                code, said = step.finish()
        print(f"  a step whose store went away ended with {code}: {said.strip().splitlines()[-2:]}", flush=True)
        if code not in ((5,) if self.seconds is None else (0, 5)) or "Traceback" in said:
            yield f"a step whose store went away ended with {code}: {said[-800:]}"
        for home in (store, local):
            with running(child(home, *words)) as step:
                code, said = step.finish()
            if code:
                yield f"the run after it of the {home.root.name} ended with {code}: {said[-800:]}"
        yield from compared(local, store)


def refusals(store: Home) -> Iterator[str]:
    """What is told of a store that cannot be used, before anything is changed."""
    cases: tuple[tuple[str, Home, dict[str, str], str], ...] = (
        ("a wrong key", store, {"CHAINLAKE_STORE_SECRET_KEY": "wrong"}, "refuses access"),
        ("a missing bucket", replace(store, lake="s3://none/lake"), {}, "has no bucket"),
        ("a store that is down", store, {"CHAINLAKE_STORE_ENDPOINT": "http://127.0.0.1:9"}, "does not answer"),
    )
    for name, home, more, wanted in cases:
        code, said = verb(home, "maintain", **more)
        print(f"  {name}: exit code {code}, {said.strip().splitlines()[0] if said.strip() else ''}", flush=True)
        if code != 5 or wanted not in said:
            yield f"{name}: exit code {code}, {said[-500:]}"


def overwriting(store: Home, server: Server) -> Iterator[str]:
    """A store that overwrites is refused."""
    # It must not look at signatures, in which the header is that is left out.
    trusting = Server(server.jar, server.folder.parent / "trusting", free_port(server.port + 1), "none")
    trusting.start()
    try:
        with between(trusting.url, Careless()) as url:
            probe = child(replace(store, lake=f"s3://{BUCKET}/careless"), "probe", CHAINLAKE_STORE_ENDPOINT=url)
            with running(probe):
                code, said = probe.finish()
    finally:
        trusting.stop()
    print(f"  a store that overwrites: {said.strip()[:120]}", flush=True)
    if code != 5 or "If-None-Match" not in said:
        yield f"a store that overwrites was not refused: {code}, {said[-500:]}"


def histories(local: Home, store: Home, days: int) -> list[str]:
    """A history on the disk and in the store, by processes without Spark: the same tables."""
    words = ["--here", "--days", str(days), SOURCE]
    took = [in_a_process(home, home.root / "history.log", words) for home in (local, store)]
    print(f"  {'step':<20} {'disk':>10} {'store':>10}")
    for name in took[0]:
        print(f"  {name:<20} {took[0][name]:>10.1f} {took[1][name]:>10.1f}")
    return compared(local, store)


NAMES = (
    *("refusals", "overwriting", "race", "killed", "machines", "late", "database", "drivers"),
    *("tables", "away", "minute", "verbs", "landing", "replaced", "spark"),
)
#: The parts of them that a server is fit for that looks at no key and holds everything in memory.
ANYWHERE = ("race", "killed", "machines", "late", "database", "drivers", "tables", "verbs", "replaced")
#: Windows of the pattern that is edited before the store goes away, and for how long it does.
OUTAGES = {"away": Outage("20 min", None), "minute": Outage("25 min", 60.0)}


def proof(root: Path, only: Sequence[str], days: int) -> int:
    """The parts that are asked for, on S3Proxy; 0 if nothing was wrong."""
    with s3proxy.serving(root, Home.from_env().cache) as server:
        local, store = _installations(root)
        bodies = _on_any(root, local, store, days) | {
            "refusals": lambda: refusals(store),
            "overwriting": lambda: overwriting(store, server),
            "landing": lambda: landing(root, server),
            "spark": lambda: spark_reads(root, server),
            **{name: partial(one.faults, local, store, days, server) for name, one in OUTAGES.items()},
        }
        return _run(bodies, only)


def proof_on_moto(root: Path, only: Sequence[str], days: int) -> int:
    """The parts that any server can be asked for, on Moto; 0 if nothing was wrong."""
    with moto.serving(root, Home.from_env().cache):
        return _run(_on_any(root, *_installations(root), days), [name for name in only if name in ANYWHERE])


Bodies = dict[str, Callable[[], Iterable[str]]]


def _installations(root: Path) -> tuple[Home, Home]:
    """Those with the lake on a disk and in the store."""
    store = installation(root / "store", f"s3://{BUCKET}/lake")
    return installation(root / "disk", None), replace(store, landing_root=f"s3://{BUCKET}/landing")


def _on_any(root: Path, local: Home, store: Home, days: int) -> Bodies:
    return {
        "race": lambda: race(store),
        "killed": lambda: killed_holder(store),
        "machines": lambda: machines(store),
        "late": lambda: late(store),
        "database": lambda: by_database(root, store),
        "drivers": lambda: drivers(root, days),
        "tables": lambda: histories(local, store, days),
        "verbs": lambda: verbs(local, store, days),
        "replaced": lambda: replaced(root),
    }


def _run(bodies: Bodies, only: Sequence[str]) -> int:
    needs = dict.fromkeys(("verbs", *OUTAGES), ("tables",))
    return run_parts([Part(name, bodies[name], needs.get(name, ())) for name in NAMES if name in bodies], only)


def main(argv: list[str]) -> int:
    """Run the proof."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof.store_proof", description=__doc__)
    parser.add_argument("--days", type=int, default=2, help="shipped days of a source (default 2)")
    add_only(parser, NAMES)
    add_server(parser)
    args = parser.parse_args(argv)
    run_all = proof if args.server == "s3proxy" else proof_on_moto
    return in_folder("chainlake-store-", lambda root: run_all(root, args.only, args.days))


if __name__ == "__main__":
    end(main(sys.argv[1:]))
