"""The launcher with a real Airflow and a real database: it restarts what dies and leaves nothing behind."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg2
import pytest

from chainlake.env.processes.child import wait_until
from chainlake.errors import InfrastructureError
from chainlake.local import airflow_tables, guard
from chainlake.local.command import kept_environment, running_api
from chainlake.local.postgres import Postgres
from chainlake.local.settings import airflow_version
from chainlake.paths import PROJECT, Home
from tests.other_user import as_other_user

#: Starting takes about ten seconds on an idle machine and a minute on a busy one.
PATIENCE_S = 280.0


def test_the_statements_know_the_installed_release() -> None:
    """After an update the statements on Airflow's tables are read again, and ``CHECKED`` is raised."""
    assert airflow_tables.CHECKED == airflow_version()


@pytest.fixture
def launcher(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """``make airflow`` on a small configuration, up and running, and the file with its output."""
    config = home.root / "config" / "sources"
    config.mkdir(parents=True)
    (config / "road.yaml").write_text("key: detector\n")
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(config.parent))
    output = home.root / "output.txt"
    with open(output, "wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "chainlake.local.run.serve"], cwd=PROJECT, stdout=out, stderr=out, env=os.environ,
            # Whoever runs the suite in the background has it ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
    try:
        assert wait_until(lambda: "Ctrl-C stops it" in output.read_text() or process.poll() is not None, PATIENCE_S)
        assert process.poll() is None, output.read_text()
        yield process, output
    finally:
        process.kill()
        process.wait()
        wait_until(lambda: not left(home), 30)
        guard.end_all(str(home.root), grace_s=0)


def left(home: Home) -> list[psutil.Process]:
    """Processes of the launcher and its database that are still there."""
    database = [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(home.airflow / "postgres") in (process.info["cmdline"] or [])
    ]
    return guard.launched_for(str(home.root)) + database


def scheduler(home: Home) -> psutil.Process | None:
    """The scheduler's main process: the one whose parent is the nursery and whose children are the workers."""
    titles = {process.pid: " ".join(process.cmdline()) for process in guard.launched_for(str(home.root))}
    workers = [pid for pid, title in titles.items() if "LocalExecutor" in title]
    return psutil.Process(workers[0]).parent() if workers else None


def first_time(log: Path, words: str) -> str:
    """When a log first says ``words``."""
    return next(line.split()[0] for line in log.read_text().splitlines() if words in line)


@pytest.mark.kill_proof
def test_a_killed_launcher_leaves_nothing(home: Home, launcher: tuple[subprocess.Popen[bytes], Path]) -> None:
    assert len(left(home)) >= 4
    launcher[0].kill()
    launcher[0].wait()
    assert wait_until(lambda: not left(home), 30), left(home)
    with pytest.raises(InfrastructureError, match="Airflow is not running"):
        kept_environment(home)


def dead_scheduler_is_replaced(home: Home, output: Path) -> None:
    given = subprocess.run(
        [sys.executable, "-m", "chainlake.local.command", "pools", "list", "--output", "plain"],
        cwd=PROJECT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert given.returncode == 0 and "spark" in given.stdout, given.stderr
    assert stat.S_IMODE((home.airflow / "environment.json").stat().st_mode) == 0o600
    assert wait_until(lambda: scheduler(home) is not None, 60)
    old = scheduler(home)
    assert old is not None
    old.kill()
    assert wait_until(lambda: "Airflow's scheduler ended (code -9); starting it again" in output.read_text(), 30)
    assert wait_until(lambda: (new := scheduler(home)) is not None and new.pid != old.pid, PATIENCE_S)

    second = subprocess.run(
        [sys.executable, "-m", "chainlake.local.run.serve"], cwd=PROJECT, capture_output=True, text=True, timeout=120
    )
    assert second.returncode == 5
    assert "Airflow is already running" in second.stderr and len(second.stderr.strip().splitlines()) == 1


def test_the_page_is_for_its_user_alone_a_dead_scheduler_is_replaced_and_ctrl_c_ends_everything(
    home: Home, launcher: tuple[subprocess.Popen[bytes], Path]
) -> None:
    """In one Airflow, since each takes half a minute of CPU to start."""
    page_is_for_its_user_alone(home, launcher)
    process, output = launcher
    logs = home.airflow / "logs" / "components"
    # A task that an earlier scheduler left starts as soon as there is one, and needs the API server.
    assert first_time(logs / "api-server.log", "startup complete") < first_time(logs / "scheduler.log", "Starting the")
    kept = kept_environment(home)
    assert kept["AIRFLOW_HOME"] == str(home.airflow) and guard.MARK not in kept
    assert len(left(home)) >= 4
    dead_scheduler_is_replaced(home, output)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(60)
    assert not left(home)
    assert not (home.airflow / "environment.json").exists()
    assert process.returncode == 0
    assert output.read_text().strip().splitlines()[-1].startswith("chainlake: stopped; nothing is left running")
    assert "Traceback" not in output.read_text()
    assert time.monotonic() - begin < 60


def answer(url: str, method: str = "GET", body: bytes | None = None, **headers: str) -> tuple[int, str, str]:
    """Status, text and cookie of a request, whose redirects are not followed."""
    parts = urlsplit(url)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with contextlib.closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)) as connection:
        connection.request(method, f"{parts.path}?{parts.query}", body, named)
        found = connection.getresponse()
        return found.status, found.read().decode(), (found.getheader("set-cookie") or "").partition(";")[0]


def tried_by_others(page: str, database: str, files: list[Path], pids: list[int]) -> dict[str, object]:
    """What a user without rights gets at: files, environments, command lines, the database, the page."""
    opened, shown, environments = [], [], []
    for path in files:
        with contextlib.suppress(PermissionError):
            opened.append([str(path), str(os.listdir(path) if path.is_dir() else path.read_bytes()[:1])])
    for pid in pids:
        with contextlib.suppress(OSError):
            shown.append(Path(f"/proc/{pid}/cmdline").read_bytes().decode())
        with contextlib.suppress(OSError):
            environments.append(Path(f"/proc/{pid}/environ").read_text())
    try:
        psycopg2.connect(database).close()
        refused = ""
    except psycopg2.OperationalError as error:
        refused = str(error)
    asked = [answer(f"{page}{path}")[0] for path in ("/api/v2/dags", "/ui/auth/me", "/auth/token", "/auth/token/login")]
    return {"opened": opened, "shown": shown, "environments": environments, "refused": refused, "asked": asked}


def page_is_for_its_user_alone(home: Home, launcher: tuple[subprocess.Popen[bytes], Path]) -> None:
    address = next(word for word in launcher[1].read_text().split() if word.startswith("http://") and "/login" in word)
    page = address.partition("/chainlake")[0]
    assert answer(f"{page}/api/v2/dags")[0] == 401
    assert answer(address, host=f"rebound.example:{urlsplit(page).port}")[0] == 421
    form = {"content_type": "application/x-www-form-urlencoded", "origin": "https://evil.example"}
    assert answer(f"{page}/auth/token", "POST", b"username=admin&password=admin", **form)[0] == 403
    status, _, cookie = answer(address)
    assert status == 303
    assert answer(f"{page}/api/v2/dags", cookie=cookie)[0] == 200
    pause = (f"{page}/api/v2/dags/ingest_road?update_mask=is_paused", "PATCH", b'{"is_paused": true}')
    json_type = "application/json"
    assert answer(*pause, cookie=cookie, content_type=json_type, origin="http://127.0.0.1:9")[0] == 403
    assert answer(*pause, cookie=cookie, content_type=json_type, origin=page)[0] == 200
    assert running_api(home).dags()["ingest_road"]

    secrets = [address.rpartition("=")[2], (home.airflow / "postgres.password").read_text().strip()]
    secrets += json.loads((home.airflow / "keys.json").read_text()).values()
    logs = "".join(path.read_text(errors="replace") for path in (home.airflow / "logs").rglob("*.log"))
    assert "request finished" in logs and not [secret for secret in secrets if secret in logs]
    port = int((home.airflow / "postgres" / "postmaster.pid").read_text().splitlines()[3])
    url = f"postgresql://chainlake@127.0.0.1:{port}/postgres"
    # The last file is open to all, to see that the way to the others was.
    files, pids = [home.airflow, *home.airflow.rglob("*"), launcher[1]], [process.pid for process in left(home)]
    for folder in launcher[1].parents if os.geteuid() == 0 else ():
        # Another run of pytest beside this one closes the folder that all runs share.
        folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    found = as_other_user(lambda: tried_by_others(page, url, files, pids))
    assert found["opened"] == [[str(launcher[1]), str(b"c")]] and found["environments"] == [], found
    assert len(found["shown"]) == len(pids) and not [s for s in secrets if s in "".join(found["shown"])]
    assert "no password supplied" in found["refused"] and found["asked"] == [401, 401, 403, 403]


def test_the_database_survives_a_kill_and_a_stale_pid_file(home: Home) -> None:
    first = Postgres(home.airflow / "postgres")
    first.start(dict(os.environ))
    assert first.process is not None
    pid_file = home.airflow / "postgres" / "postmaster.pid"
    stale = pid_file.read_text()
    # The postmaster first: alive, it would end the other backends itself as soon as one is killed.
    backends = psutil.Process(first.process.pid).children(recursive=True)
    first.process.kill()
    for backend in backends:
        with contextlib.suppress(psutil.NoSuchProcess):
            backend.kill()
    first.process.wait()
    # As after a crash of the machine: the pid in the file now belongs to somebody else.
    pid_file.write_text(f"{os.getpid()}\n" + stale.split("\n", 1)[1])
    second = Postgres(home.airflow / "postgres")
    second.start(dict(os.environ))
    try:
        assert second.running()
    finally:
        second.stop()
    assert not left(home)
