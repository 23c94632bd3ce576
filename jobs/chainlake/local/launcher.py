"""Starts Airflow's components, keeps them running, and leaves nothing behind.

``airflow standalone`` leaves components running on SIGTERM, and never restarts one. Everything here happens in one
thread, since the kernel's death signal, on which the clean-up relies, depends on the thread that started a process.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import IO
from urllib.parse import urlsplit

from chainlake.airflow.names import BROKEN_DEFINITIONS, SPARK_POOL, dag_ids
from chainlake.env.ports import HOST, foreign, free_port
from chainlake.env.private import marked_folder, private_folder, write_private
from chainlake.env.processes.ending import unexpected
from chainlake.env.processes.waiting import Notice
from chainlake.env.processes.warm_driver import ADDRESS
from chainlake.env.variables import value_of
from chainlake.errors import ChainlakeError
from chainlake.local import airflow_tables, guard, settings
from chainlake.local.access import USER, login_address, new_password, passwords_file
from chainlake.local.api import Api, ApiUnreachable
from chainlake.local.command import forget_environment, keep_environment
from chainlake.local.components import COMPONENTS, Components, last_line
from chainlake.local.drivers.keeper import start_keeper
from chainlake.local.errors import PAGE_PORT, AirflowUnavailable, DatabaseUnavailable, PortTaken
from chainlake.local.postgres import Postgres
from chainlake.paths import Home
from chainlake.terminal import for_people

FIRST_API_PORT = 8080
#: How many ports are tried if other programs take each one after it was found free and before the server binds it.
PORTS_TRIED = 5
START_TIMEOUT_S = 300.0
#: A name that is not ours, to check that the API server refuses it.
_FOREIGN_HOST = "chainlake.invalid"


class Stopped(BaseException):
    """SIGTERM or SIGHUP was received: unwind and stop everything, as Ctrl-C does."""


class Airflow:
    """A running Airflow; to be used as a context manager, in the main thread.

    Args:
        home: the installation.
        say: receives a line for everything worth knowing.
        prepared: number of Spark drivers to prepare while Airflow starts, for work that is certain to come.
        parse_s: seconds between two looks at a DAG file that has not changed.
    """

    def __init__(
        self,
        home: Home,
        say: Callable[[str], None] = print,
        *,
        prepared: int = 0,
        parse_s: int = settings.PARSE_S,
    ) -> None:
        self.home = home
        self.say = say
        self._prepared = prepared
        self._ours = guard.is_launched_for(str(home.root))
        self._parse_s = parse_s
        self.api = Api("")
        self.page = ""
        #: The address of the page with the login; it gives full access.
        self.address = ""
        self._components: Components | None = None
        self._env: dict[str, str] = {}
        self._postgres: Postgres | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None

    @property
    def database(self) -> str:
        """SQLAlchemy URL of the metadata database."""
        return self._env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]

    def __enter__(self) -> Airflow:
        for sig in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(sig, _raise_stopped)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def tick(self) -> None:
        """Restart components that have ended; to be called about once a second.

        Raises:
            InfrastructureError: a component keeps ending.
        """
        if self._components is not None:
            self._components.tick(self._before_restart)
        if self._postgres is not None and not self._postgres.running():
            self.say("the database ended; starting it again")
            # The components are configured with the old port, which is still free unless it was taken just now.
            port = self._postgres.port
            self._postgres.port = port - 1
            self._postgres.start(self._env)
            if self._postgres.port != port:
                raise DatabaseUnavailable.port_taken(port)

    def begin_stop(self) -> None:
        """Let the components end while something else is done; :meth:`stop` does the rest.

        After this, ``tick`` must not be called: it would start them again.
        """
        if self._components is not None:
            self._components.ask_to_end()

    def stop(self) -> None:
        """Stop everything that was started, and return when it is gone; Ctrl-C in the meantime has no effect."""
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(sig, signal.SIG_IGN)
        if self._components is not None:
            self._components.stop()
            self._components = None
        if self._keeper is not None:
            assert self._keeper.stdin is not None and self._keeper.stdout is not None
            self._keeper.stdin.close()
            self._keeper.wait()
            self._keeper.stdout.close()
            self._keeper = None
        if self._guard is not None:
            # Tasks and their Spark applications have their own process groups.
            guard.end_all(str(self.home.root))
        if self._postgres is not None:
            self._postgres.stop()
            self._postgres = None
        if self._guard is not None:
            guard.dismiss(self._guard)
            self._guard = None
        if self._env:
            forget_environment(self.home)
            passwords_file(self.home).unlink(missing_ok=True)
            self._env = {}
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for sig in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(sig, signal.SIG_DFL)

    def _start(self) -> None:
        self._take_lock()
        left = guard.end_all(str(self.home.root))
        if left:
            self.say(f"ended {left} processes that an earlier run had left behind")
        self._guard = guard.start(str(self.home.root))
        database = os.environ.get("CHAINLAKE_DB", "")
        if not database:
            self._postgres = Postgres(self.home.airflow / "postgres")
            # The database does not get the mark: a death signal of its own lets it shut down cleanly.
            self._postgres.start(dict(os.environ))
            database = self._postgres.url
        password = new_password()
        write_private(passwords_file(self.home), json.dumps({USER: password}) + "\n")
        self._keeper, drivers = start_keeper(settings.base_environment(self.home), self._prepared)
        first = first_port()
        port, components = self._prepare_components(first, password, database, drivers)
        if port != first:
            self.say(f"port {first} is taken: the Airflow page is at {self.page}")
        self._migrate(database, components)
        for left in reversed(range(PORTS_TRIED)):
            try:
                self._start_components()
                break
            except PortTaken as taken:
                if not left:
                    raise
                components.stop()
                _, components = self._prepare_components(taken.port + 1, password, database, drivers)
                self.say(f"{taken.summary}: the Airflow page is at {self.page}")
        self._wait_ready()
        if self.api.answers_to(_FOREIGN_HOST):
            raise AirflowUnavailable.unprotected(components.log("api-server"))
        self.api.set_pool(SPARK_POOL, settings.spark_slots(), "Tasks of steps on Spark that begin at a time")

    def _prepare_components(self, first: int, password: str, database: str, drivers: str) -> tuple[int, Components]:
        """Everything that depends on the page's port, which is chosen here; starts no component.

        Returns:
            the port, and the components.
        """
        port = free_port(first)
        self.page = f"http://{HOST}:{port}"
        self.address = login_address(self.page, password)
        self.api = Api(self.page, password, self._ours)
        self._env = settings.airflow_environment(self.home, database, port) | {ADDRESS: drivers}
        self._env[settings.PARSE_INTERVAL] = str(self._parse_s)
        keep_environment(self.home, self._env)
        self._components = Components(self._env, self.home.airflow / "logs" / "components", self.say)
        return port, self._components

    def _start_components(self) -> None:
        assert self._components is not None
        for name in reversed(COMPONENTS):
            if name == "scheduler":
                # It takes up the tasks of a killed run at once, and a task that finds no API server loses a try.
                self._wait_api()
            self._components.start(name)

    def _take_lock(self) -> None:
        private_folder(self.home.airflow)
        marked_folder(self.home.airflow / "logs")
        path = self.home.airflow / "launcher.lock"
        # Opened without truncation, since the holder has written there who it is.
        self._lock = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._lock.read().strip() or "another process"
            self._lock.close()
            self._lock = None
            raise AirflowUnavailable.already_running(self.home.root, holder) from None
        self._lock.truncate(0)
        self._lock.write(f"process {os.getpid()}")
        self._lock.flush()

    def _migrate(self, database: str, components: Components) -> None:
        """Create or update Airflow's tables, unless this database is known to be up to date."""
        stamp = self.home.airflow / "migrated"
        if not (stamp.exists() and stamp.read_text() == airflow_tables.schema_version(database)):
            self.say("preparing the Airflow database (once)")
            if components.run("migrate", ["db", "migrate"]) != 0:
                log = components.log("migrate")
                raise AirflowUnavailable.no_tables(last_line(log), log)
            write_private(stamp, airflow_tables.schema_version(database))
        if self._postgres is not None:
            # The lock proves that no component of an earlier run is alive. On a user's own database other machines may
            # run schedulers, so there Airflow waits for heartbeats to stop.
            airflow_tables.fail_running_jobs(database)

    def _before_restart(self, name: str) -> None:
        if name == "scheduler" and self._postgres is not None:
            airflow_tables.fail_running_jobs(self._postgres.url, "SchedulerJob")

    def _wait_api(self) -> None:
        """Wait until the API server answers, including its interface for tasks.

        Raises:
            PortTaken: another program answers on its port, which was free when it was chosen.
        """
        end = time.monotonic() + START_TIMEOUT_S
        notice = Notice(lambda: "the API server to answer", self.say)
        port = urlsplit(self.page).port or 80
        while time.monotonic() < end:
            # Before the components are looked after: without its port, the server ends, and would be started in vain.
            for listener in foreign(port, self._ours):
                raise PortTaken(port, listener)
            self.tick()
            notice.turn()
            try:
                # The first request makes the server build the tasks' interface for some seconds: better now than later.
                self.api.warm_up()
                return
            except ApiUnreachable:
                time.sleep(0.2)
        raise self._not_ready("the API server")

    def _wait_ready(self) -> None:
        """Wait until all components are healthy and every DAG is known."""
        wanted = set(dag_ids(self.home))
        missing = "the API server"
        end = time.monotonic() + START_TIMEOUT_S
        notice = Notice(lambda: f"Airflow to be ready: {missing}", self.say)
        while time.monotonic() < end:
            self.tick()
            notice.turn()
            try:
                health = self.api.health()
                sick = [part for part in ("metadatabase", "scheduler", "dag_processor") if health[part] != "healthy"]
                missing = ", ".join(sick)
                if not sick:
                    errors = self.api.import_errors()
                    dags = [error for error in errors if BROKEN_DEFINITIONS not in error[0]]
                    if dags:
                        raise AirflowUnavailable.broken_dag(*dags[0])
                    absent = sorted(wanted - self.api.dags().keys())
                    missing = f"the DAGs {', '.join(absent)}"
                    if not absent:
                        return
            except ApiUnreachable:
                missing = "the API server"
            time.sleep(0.2)
        raise self._not_ready(missing)

    def _not_ready(self, missing: str) -> AirflowUnavailable:
        return AirflowUnavailable.not_ready(missing, START_TIMEOUT_S, self.home.airflow / "logs" / "components")


def first_port() -> int:
    """The first port that is tried for Airflow's page.

    Raises:
        WrongVariable: the variable that sets it holds something else.
    """
    return int(value_of(PAGE_PORT) or FIRST_API_PORT)


def _raise_stopped(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)


def run_program(body: Callable[[], int]) -> int:
    """Run ``body`` as a program: an error is printed in one line, Ctrl-C and SIGTERM are clean ends.

    Returns:
        The exit code for ``sys.exit``.
    """
    try:
        with for_people():
            return body()
    except ChainlakeError as error:
        print(f"chainlake: {error.summary}", file=sys.stderr)
        return error.exit_code
    except (KeyboardInterrupt, Stopped):
        print(
            "chainlake: stopped; nothing is left running. Run it again to continue where it stopped.", file=sys.stderr
        )
        return 130
    except Exception as error:
        return unexpected(error)
