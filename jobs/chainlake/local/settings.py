"""Airflow's configuration, only by environment variables: no file to edit, nothing outside ``CHAINLAKE_HOME``."""

from __future__ import annotations

import json
import os
import secrets
from importlib.metadata import version

from chainlake.env.java import java_home
from chainlake.env.ports import HOST
from chainlake.env.private import write_private
from chainlake.env.threads import one_thread_each
from chainlake.lake.spark.site import Site
from chainlake.local.access import ROLE, USER, passwords_file
from chainlake.local.drivers.keeper import KEPT
from chainlake.local.guard import MARK
from chainlake.paths import CODE, PACKAGE, PROJECT, Home

#: Number of tasks at a time: two whose steps run, one that has begun and waits for its turn, and two gates.
PARALLELISM = KEPT + 3
#: Seconds between two looks at a DAG file that has not changed (definitions may have), and the variable that sets it.
PARSE_S = 30
PARSE_INTERVAL = "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL"


def spark_slots() -> int:
    """Slots of the pool of Spark tasks: one more than the steps that run at a time, if the keeper limits those."""
    return KEPT + 1 if Site.from_env().on_this_machine else KEPT


def airflow_version() -> str:
    """The installed version of Airflow."""
    return version("apache-airflow")


def _keys(home: Home) -> dict[str, str]:
    """Signing keys, made once and kept, since the components must agree on them, and open pages survive a restart."""
    path = home.airflow / "keys.json"
    if not path.exists():
        write_private(path, json.dumps({name: secrets.token_urlsafe(64) for name in ("jwt", "pages")}))
    return {str(name): str(value) for name, value in json.loads(path.read_text()).items()}


def base_environment(home: Home) -> dict[str, str]:
    """The environment that every process of a launcher inherits, including Spark applications.

    Raises:
        InfrastructureError: no usable Java was found.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
    env |= {
        MARK: str(home.root),
        "CHAINLAKE_HOME": str(home.root),
        "CHAINLAKE_LAKE": home.lake,
        "CHAINLAKE_LANDING": home.landed_all,
        "CHAINLAKE_CONFIG": str(home.config),
        "CHAINLAKE_CACHE": str(home.cache),
        "JAVA_HOME": str(java_home()),
        "PYTHONPATH": str(CODE),
        "PYTHONUNBUFFERED": "1",
        # Otherwise process titles would overwrite the environment by which the guard recognises its processes.
        "SPT_NOENV": "1",
    }
    one_thread_each(env)
    return env


def airflow_environment(home: Home, database: str, api_port: int) -> dict[str, str]:
    """The environment of Airflow's components.

    Args:
        home: the installation.
        database: SQLAlchemy URL of the metadata database.
        api_port: port of the page and the API, on loopback.
    """
    keys = _keys(home)
    page = f"http://{HOST}:{api_port}"
    options = {
        "CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__PARALLELISM": str(PARALLELISM),
        "CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
        "CORE__EXECUTION_API_SERVER_URL": f"{page}/execution/",
        # If this were true, Airflow would log in everybody who can reach the port, that is every user of the machine.
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:{ROLE.lower()}",
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords_file(home)),
        # The folder with the layer that refuses other names in ``Host`` and requests from other pages.
        "CORE__PLUGINS_FOLDER": str(PACKAGE / "local" / "plugins"),
        "API__HOST": HOST,
        "API__PORT": str(api_port),
        "API__BASE_URL": page,
        "API__WORKERS": "1",
        "API__SECRET_KEY": keys["pages"],
        "API_AUTH__JWT_SECRET": keys["jwt"],
        "DATABASE__SQL_ALCHEMY_CONN": database,
        "LOGGING__BASE_LOG_FOLDER": str(home.airflow / "logs"),
        "LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": str(home.airflow / "logs" / "dag_processor"),
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "1",
        "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "2",
        "SCHEDULER__JOB_HEARTBEAT_SEC": "2",
        "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "30",
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        # A restart of the API server must not end running tasks.
        "WORKERS__MAX_FAILED_HEARTBEATS": "24",
        # Nor may a task that starts at that time lose a try: it asks for about a minute, which a busy machine needs.
        "WORKERS__EXECUTION_API_RETRIES": "20",
        "WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "5",
        "DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(home.airflow / "bundles"),
        "DAG_PROCESSOR__REFRESH_INTERVAL": "30",
        "DAG_PROCESSOR__PARSING_PROCESSES": "1",
    }
    env = base_environment(home)
    env["AIRFLOW_HOME"] = str(home.airflow)
    env |= {f"AIRFLOW__{name}": value for name, value in options.items()}
    return env
