"""``make store-proof``: the lake in an object store against the lake on a disk, by real servers, on loopback addresses.

S3Proxy, which keeps to conditional writes, is fetched once into the cache and checked; or ``CHAINLAKE_S3PROXY`` names
its JAR. Two lakes get the same shipped days, a late file, an edited pattern, a pattern that uses events up and a model,
and must hold the same tables. Then, in the store: processes race for one lock and one table, a holder is killed, the
store goes away in the middle of a step and comes back, a wrong key and a missing bucket are told, and a store that
overwrites is refused. Exit code 0 if all is so, else 1.
"""

from __future__ import annotations

import argparse
import http.client
import http.server
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.env.ports import free_port
from chainlake.env.processes.child import die_with_parent
from chainlake.env.processes.ending import end
from chainlake.ingest.step import ingest
from chainlake.lake.leases.conditional import require_conditional_writes
from chainlake.lake.records import ops
from chainlake.lake.records.runs import new_run_id
from chainlake.lake.store.files import FilesLake
from chainlake.lake.upkeep.same import published_tables, same_tables
from chainlake.local.run.shipped import land, shipped_days
from chainlake.monitoring.step import monitor
from chainlake.paths import PROJECT, Home
from chainlake.quality.audit import Audit
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from chainlake.schemas.ops_rows import RateRow
from chainlake.storage.errors import StoreFailed
from tests.proof.s3proxy import BUCKET, KEY, SECRET, Server, server_jar
from tests.proof.small import in_folder

_STEPS: dict[str, Callable[..., Any]] = {"ingest": ingest, "detect": detect, "monitor": monitor}
#: A process that takes longer than this hangs.
_MOST_S = 900
_RACERS, _APPENDS = 3, 8
#: Within which a killed holder is replaced on a busy machine; the start of a process is in it.
_REPLACED_S = 60.0

#: A pattern that uses events up, beside the shipped ones of its source.
_CONSUMING = """---
source: sensor
---
PATTERN SEQ(Reading clean, Reading gas)
WHERE clean.channel = R7 AND gas.channel = R7 AND gas.value <= clean.value * 0.9
WITHIN 10 min CONSUME all
"""


def installation(root: Path, lake: str | None) -> Home:
    """A home with its own copy of the shipped definitions and the consuming pattern."""
    root.mkdir()
    config = root / "config"
    shutil.copytree(PROJECT / "dags" / "config", config)
    (config / "patterns" / "switched.sase").write_text(_CONSUMING)
    base = Home.from_env()
    return replace(base, root=root, lake=lake or str(root / "lake"), config=config)


def without_pages() -> None:
    """Data Docs lie on a disk in any case, and take longer than all else."""
    Audit.build_docs = lambda audit: audit.home.docs / "index.html"  # type: ignore[method-assign]


def run_history(home: Home, sources: Sequence[str], days: int) -> dict[str, float]:
    """The shipped days, the first file of each source late, then an edit; seconds of CPU and of the clock by step."""
    ports = Ports(LocalTasks(), FilesLake(home))
    took: dict[str, float] = {}

    def steps(source: str, day: Days) -> None:
        for name, step in _STEPS.items():
            begun = time.monotonic(), time.process_time()
            step(home, source, day, run_id=new_run_id(name), ports=ports)
            took[f"{name}, s"] = took.get(f"{name}, s", 0.0) + time.monotonic() - begun[0]
            took[f"{name}, s of CPU"] = took.get(f"{name}, s of CPU", 0.0) + time.process_time() - begun[1]

    for source in sources:
        shipped = shipped_days(home)[source][:days]
        for day in shipped[1:]:
            land(home, source, day)
            steps(source, Days.one(day.day))
        land(home, source, shipped[0])
        steps(source, Days.one(shipped[-1].day))
    edited = home.config / "patterns" / "switched.sase"
    edited.write_text(_CONSUMING.replace("10 min", "30 min"))
    if "sensor" in sources:
        whole = shipped_days(home)["sensor"][:days]
        steps("sensor", Days(whole[0].day, Days.one(whole[-1].day).end))
    return took


def environment(home: Home, **more: str) -> dict[str, str]:
    """The environment of a process that works on ``home``."""
    own = {"CHAINLAKE_HOME": str(home.root), "CHAINLAKE_LAKE": home.lake, "CHAINLAKE_CONFIG": str(home.config)}
    return os.environ | own | more


def child(home: Home, *words: str, **more: str) -> subprocess.Popen[str]:
    """A process of this module that works on ``home``."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.proof.store_proof", *words], cwd=PROJECT, env=environment(home, **more),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=die_with_parent(signal.SIGKILL),
    )  # fmt: skip


def verb(home: Home, *words: str, **more: str) -> tuple[int, str]:
    """The exit code of a verb of the command line, and all that it said."""
    done = subprocess.run(
        [sys.executable, "-m", "chainlake", *words], cwd=PROJECT, env=environment(home, **more), capture_output=True,
        text=True, timeout=_MOST_S,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def verbs(local: Home, store: Home) -> Iterator[str]:
    """Verbs that say the same of both lakes, and those that change one; a line for each that does not."""
    query = "select count(*) n, min(event_id) a, max(event_id) b from events.sensor"
    same = (("sql", query), ("sql", "--safe", query), ("changes", "matches.gas_seen", "--since", "0"), ("status",))
    for words in same:
        told = [verb(home, *words) for home in (local, store)]
        if told[0] != told[1]:
            yield f"{words[0]} says {told[1]} of the store, and {told[0]} of the disk"
    for words, wanted in ((("check",), "no damage"), (("maintain",), "tables "), (("plan",), "0 Spark applications")):
        code, said = verb(store, *words)
        if code or wanted not in said:
            yield f"{words[0]} ended with {code}: {said[-500:]}"
    (store.config / "patterns" / "switched.sase").unlink()
    code, said = verb(store, "retire", "switched", "--drop")
    if code or ("matches", "switched") in published_tables(store):
        yield f"retire ended with {code}: {said[-500:]}"


def race(store: Home) -> Iterator[str]:
    """Processes append to one log, each row under the lock: no number twice, none missing."""
    racers = [child(store, "append", str(number)) for number in range(_RACERS)]
    for racer in racers:
        said, _ = racer.communicate(timeout=_MOST_S)
        if racer.returncode:
            yield f"a racer ended with {racer.returncode}: {said[-500:]}"
    rows = ops.current_table(store, "rates", columns=["run_id", "seq"], as_log=True).to_pylist()
    raced = sorted(row["seq"] for row in rows if row["run_id"].startswith("race-"))
    if raced != list(range(1, _RACERS * _APPENDS + 1)):
        yield f"{len(raced)} numbers of {_RACERS * _APPENDS} rows: {raced}"


def killed_holder(store: Home) -> Iterator[str]:
    """A holder is killed: at once replaced on this machine, and after its time by who cannot see its process."""
    short = {"CHAINLAKE_LEASE_SECONDS": "6"}
    cases: tuple[tuple[str, dict[str, str], float], ...] = (("here", {}, 0.0), ("elsewhere", short, 3.0))
    for name, more, least in cases:
        holder = child(store, "hold", name, **more)
        assert holder.stdout is not None
        if holder.stdout.readline() != "held\n":
            yield f"the holder {name} did not come to hold it: {holder.communicate()[0][-500:]}"
            continue
        holder.kill()
        holder.wait()
        begun = time.monotonic()
        after = child(store, "hold", f"{name}-after", **more)
        assert after.stdout is not None
        said, waited = after.stdout.readline(), time.monotonic() - begun
        after.kill()
        after.wait()
        print(f"  a killed holder, {name}: replaced after {waited:.1f} s", flush=True)
        if said != "held\n" or not least <= waited <= _REPLACED_S:
            yield f"a killed holder {name} was replaced after {waited:.1f} s: {said!r}"


def outage(store: Home, server: Server, source: str, day: Days) -> Iterator[str]:
    """The store goes away in the middle of a step: one sentence and exit code 5, and the next run comes to its end."""
    step = child(store, "detect", source, f"{day.start}", f"{day.end}")
    time.sleep(6.0)
    server.stop()
    said, _ = step.communicate(timeout=_MOST_S)
    server.start()
    print(f"  a step whose store went away ended with {step.returncode}: {said.strip().splitlines()[-2:]}", flush=True)
    if step.returncode not in (0, 5) or "Traceback" in said:
        yield f"a step whose store went away ended with {step.returncode}: {said[-800:]}"
    again = child(store, "detect", source, f"{day.start}", f"{day.end}")
    said, _ = again.communicate(timeout=_MOST_S)
    if again.returncode:
        yield f"the run after it ended with {again.returncode}: {said[-800:]}"


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


@contextmanager
def careless(server: Server) -> Iterator[str]:
    """A store that ignores If-None-Match: a proxy that leaves it out; its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kept = {name: value for name, value in self.headers.items() if name.lower() != "if-none-match"}
            asked = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
            asked.request(self.command, self.path, body or None, kept)
            answer = asked.getresponse()
            data = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            self.wfile.write(data)
            asked.close()

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass  # noqa: N815

        def log_message(self, *given: object) -> None:
            """Nothing."""

    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}"
    finally:
        proxy.shutdown()


def overwriting(store: Home, server: Server) -> Iterator[str]:
    """A store that overwrites is refused."""
    # It must not look at signatures, in which the header is that is left out.
    trusting = Server(server.jar, server.folder.parent / "trusting", free_port(server.port + 1), "none")
    trusting.folder.mkdir()
    trusting.start()
    with careless(trusting) as url:
        probe = child(replace(store, lake=f"s3://{BUCKET}/careless"), "probe", CHAINLAKE_STORE_ENDPOINT=url)
        said, _ = probe.communicate(timeout=_MOST_S)
    trusting.stop()
    print(f"  a store that overwrites: {said.strip()[:120]}", flush=True)
    if probe.returncode != 5 or "If-None-Match" not in said:
        yield f"a store that overwrites was not refused: {probe.returncode}, {said[-500:]}"


def proof(root: Path, sources: Sequence[str], days: int) -> int:
    """All of it; 0 if nothing was wrong."""
    without_pages()
    server = Server(server_jar(Home.from_env().cache), root / "s3", free_port(19_100))
    server.folder.mkdir()
    server.start()
    os.environ |= {
        "CHAINLAKE_STORE_ENDPOINT": server.url, "CHAINLAKE_STORE_ACCESS_KEY": KEY,
        "CHAINLAKE_STORE_SECRET_KEY": SECRET, "CHAINLAKE_STORE_REGION": "us-east-1",
    }  # fmt: skip
    local, store = installation(root / "disk", None), installation(root / "store", f"s3://{BUCKET}/lake")
    wrong: list[str] = []
    try:
        took = [run_history(home, sources, days) for home in (local, store)]
        print(f"  {'step':<20} {'disk':>10} {'store':>10}")
        for name in took[0]:
            print(f"  {name:<20} {took[0][name]:>10.1f} {took[1][name]:>10.1f}")
        tables = published_tables(local)
        rows = {f"{schema}.{name}" for schema, name in tables} ^ {f"{s}.{n}" for s, n in published_tables(store)}
        wrong += [*same_tables(local, store), *(f"{name} is in one of them only" for name in rows)]
        print(f"{len(tables)} tables compared, {len(wrong)} differences", flush=True)
        first = shipped_days(store)[sources[0]][0].day
        parts: dict[str, Callable[[], Iterator[str]]] = {
            "refusals": lambda: refusals(store),
            "a store that overwrites": lambda: overwriting(store, server),
            "a race": lambda: race(store),
            "a killed holder": lambda: killed_holder(store),
            "verbs": lambda: verbs(local, store),
            "the store away": lambda: outage(store, server, sources[0], Days.one(first)),
        }
        for name, part in parts.items():
            found = list(part())
            print(f"{name}: {len(found)} faults", flush=True)
            wrong += found
    finally:
        server.stop()
    for line in wrong:
        print(f"  {line}")
    return 1 if wrong else 0


def _child(words: Sequence[str]) -> int:
    """What one of the processes does."""
    home = Home.from_env()
    if words[0] == "probe":
        try:
            require_conditional_writes(home)
        except StoreFailed as error:
            print(error)
            return error.exit_code
    elif words[0] == "append":
        row: RateRow = {"source": "race", "day": date(1970, 1, 1), "type": "t", "key": "k", "events": 1}
        for number in range(_APPENDS):
            ops.append(home, "rates", [row], f"race-{words[1]}-{number}")
    elif words[0] == "hold":
        from chainlake.lake.leases import machine
        from chainlake.lake.locks import file_lock

        if words[1].startswith("elsewhere"):
            # As a process of another machine, whose life cannot be seen from here.
            machine._machine = lambda: words[1]
        with file_lock(home, f"proof-{words[1].partition('-')[0]}"):
            print("held", flush=True)
            time.sleep(_MOST_S)
    else:
        return _step(home, *words)
    return 0


def _step(home: Home, name: str, source: str, start: str, until: str) -> int:
    from chainlake.errors import ChainlakeError
    from chainlake.lake.upkeep.damage import explained

    without_pages()
    ports = Ports(LocalTasks(), FilesLake(home))
    try:
        days = Days.parse(start, until)
        _STEPS[name](home, source, days, run_id=new_run_id(name), ports=ports)
    except Exception as error:  # as the command line does
        found = explained(home, error)
        print(found)
        return found.exit_code if isinstance(found, ChainlakeError) else 1
    return 0


def main(argv: list[str]) -> int:
    """Run the proof, or what one of its processes does."""
    if argv and argv[0] in ("probe", "append", "hold", *_STEPS):
        end(_child(argv))
    parser = argparse.ArgumentParser(prog="python -m tests.proof.store_proof", description=__doc__)
    parser.add_argument("--sources", default="sensor,stock", help="of the shipped data (default sensor,stock)")
    parser.add_argument("--days", type=int, default=3, help="shipped days of each (default 3)")
    args = parser.parse_args(argv)
    return in_folder("chainlake-store-", lambda root: proof(root, args.sources.split(","), args.days))


if __name__ == "__main__":
    end(main(sys.argv[1:]))
