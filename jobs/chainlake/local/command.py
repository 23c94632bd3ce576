"""Runs an Airflow command beside a running launcher: ``python -m chainlake.local.command backfill create …``.

Airflow's settings are environment variables of the launcher's processes, and some of them (ports, keys) differ from
start to start. The launcher writes them to a file that only its user can read, from which a command takes them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from chainlake.env.private import write_private
from chainlake.env.processes.warm_driver import ADDRESS
from chainlake.errors import ChainlakeError
from chainlake.local.access import USER, passwords_file
from chainlake.local.api import Api, ApiUnreachable
from chainlake.local.errors import AirflowUnavailable, NoCommand
from chainlake.local.guard import MARK, is_launched_for
from chainlake.paths import Home

#: Variables that commands must not get: the first would make the guard end them, the second is for tasks.
_LAUNCHERS_OWN = (MARK, ADDRESS)


def keep_environment(home: Home, env: Mapping[str, str]) -> None:
    """Keep what the launcher added to its own environment, for commands of this user.

    Args:
        home: the installation.
        env: the environment of Airflow's components.
    """
    added = {name: value for name, value in env.items() if os.environ.get(name) != value and name not in _LAUNCHERS_OWN}
    write_private(_file(home), json.dumps(added, indent=1))


def forget_environment(home: Home) -> None:
    """Remove the kept environment, since Airflow is not running any more."""
    _file(home).unlink(missing_ok=True)


def kept_environment(home: Home) -> dict[str, str]:
    """The environment for commands to the Airflow that runs for ``home``.

    Raises:
        InfrastructureError: Airflow is not running.
    """
    try:
        kept = dict(json.loads(_file(home).read_text()))
        # A killed launcher leaves the file behind.
        Api(kept["AIRFLOW__API__BASE_URL"]).health()
    except (FileNotFoundError, ApiUnreachable):
        raise AirflowUnavailable.not_running(home.root) from None
    mine = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
    return mine | {str(name): str(value) for name, value in kept.items()}


def running_api(home: Home) -> Api:
    """A logged-in client of the Airflow that runs for ``home``.

    Raises:
        InfrastructureError: Airflow is not running.
    """
    page = kept_environment(home)["AIRFLOW__API__BASE_URL"]
    password = str(json.loads(passwords_file(home).read_text())[USER])
    return Api(page, password, is_launched_for(str(home.root)))


def _file(home: Home) -> Path:
    return home.airflow / "environment.json"


def command(words: list[str]) -> None:
    """Become the process ``airflow WORDS…``; does not return.

    Raises:
        UsageError: there are no words.
        InfrastructureError: Airflow is not running.
    """
    if not words:
        raise NoCommand.of()
    env = kept_environment(Home.from_env())
    os.execve(sys.executable, [sys.executable, "-m", "airflow", *words], env)


if __name__ == "__main__":
    try:
        command(sys.argv[1:])
    except ChainlakeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
