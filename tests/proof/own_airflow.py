"""``make own-airflow-proof``: one shipped day in an Airflow that a site has made itself, without our launcher.

The wheel with the extra ``airflow`` in a virtual environment of its own, a PostgreSQL of the system, LocalExecutor, the
folder ``dags`` as a DAG bundle, a pool of another name. Takes five minutes with packages at hand. ``--airflow 3.1``
takes the newest Airflow of that release, with what it needs, instead of our lock file's. ``OWN_AIRFLOW_VENV`` names an
environment that is there already.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from chainlake.env.ports import free_port
from chainlake.paths import PROJECT
from tests.proof import database
from tests.proof.processes import Program, run, running
from tests.proof.small import in_folder

#: The source and how many of its days.
SOURCE, DAYS = "stock", 1
POOL = "chainlake"
COMPONENTS = ("api-server", "scheduler", "dag-processor")


def main(argv: list[str]) -> int:
    """Run the day; 0 if it ended green, with rows."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof.own_airflow", description=__doc__)
    parser.add_argument("--airflow", metavar="RELEASE", help="such as 3.1 (default: the version of our lock file)")
    args = parser.parse_args(argv)
    tools = database.installed()
    if tools is None:
        print("skipped: this machine has no PostgreSQL in /usr/lib/postgresql")
        return 0
    return in_folder("own-airflow-", lambda root: _proof(root, tools, args.airflow))


def _proof(root: Path, postgres: Path, release: str | None) -> int:
    # The database's account passes through.
    root.chmod(0o755)
    begun = time.monotonic()
    python = _environment_of_its_own(root, release)
    _say(begun, f"Airflow {_version(python)} in {python.parent.parent}")
    with ExitStack() as stack:
        url = stack.enter_context(database.serving(root / "database", postgres, "airflow"))
        port = free_port(18080)
        environment = _settings(root, python, url, port)
        # Where the program looks for what ships with the project.
        (root / "data").symlink_to(PROJECT / "data")
        _airflow(root, python, environment, "db", "migrate")
        _airflow(root, python, environment, "pools", "set", POOL, "1", "Spark applications that run at a time")
        _say(begun, "tables and pool are there")
        for name in COMPONENTS:
            command = [str(python), "-m", "airflow", name]
            stack.enter_context(running(Program(command, root / f"{name}.log", environment, root)))
        page = ["--page", f"http://localhost:{port}", "--passwords", str(root / "passwords.json")]
        what = ["--source", SOURCE, "--days", str(DAYS)]
        command = [str(python), "-m", "chainlake.local.run.elsewhere", *page, *what]
        code, said = run(command, root / "run.log", environment, root)
    print(said)
    rows = subprocess.run(
        [str(python), "-m", "chainlake", "sql", "SELECT count(*) AS n FROM matches.all", "--format", "csv"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    matches = int((rows.stdout.split() or ["", "0"])[-1])
    good = code == 0 and "0 not" in said and matches > 0
    _say(begun, f"{'green' if good else 'NOT GREEN'}: exit code {code}, {matches} matches")
    return 0 if good else 1


def _say(begun: float, text: str) -> None:
    print(f"[{time.monotonic() - begun:4.0f}s] {text}", flush=True)


def _environment_of_its_own(root: Path, release: str | None) -> Path:
    """The Python of a virtual environment that has our wheel with its extra, and what a site with PostgreSQL has."""
    given = os.environ.get("OWN_AIRFLOW_VENV")
    if given:
        return Path(given).absolute() / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    _run([*uv, "build", "--quiet", "--wheel", "--out-dir", str(root / "dist"), str(PROJECT)])
    (wheel,) = (root / "dist").glob("*.whl")
    python = root / "venv" / "bin" / "python"
    _run([*uv, "venv", "--quiet", "--python", "3.11", str(root / "venv")])
    wanted = [f"chainlake[airflow] @ {wheel.as_uri()}", "psycopg2-binary", "asyncpg"]
    versions = [f"apache-airflow=={release}.*"] if release else ["-c", str(PROJECT / "requirements.txt")]
    _run([*uv, "pip", "install", "--quiet", "--python", str(python), *versions, *wanted])
    return python


def _version(python: Path) -> str:
    """The version of Airflow that it has."""
    program = 'from importlib.metadata import version; print(version("apache-airflow"))'
    return subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True)


def _settings(root: Path, python: Path, database: str, port: int) -> dict[str, str]:
    """What the site sets, and nothing of ours but the variables of docs/deploy.md."""
    (root / "passwords.json").write_text(json.dumps({"admin": secrets.token_hex(16)}))
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "CHAINLAKE", "SPARK", "PYTHON"))}
    bundle = {
        "name": "chainlake",
        "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
        "kwargs": {"path": str(PROJECT / "dags")},
    }
    options = {
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__PARALLELISM": "4",
        # Airflow gives a DAG file half a minute, in which a busy machine does not even import it.
        "CORE__DAGBAG_IMPORT_TIMEOUT": "900",
        "DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "1000",
        "CORE__EXECUTION_API_SERVER_URL": f"http://localhost:{port}/execution/",
        "CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(root / "passwords.json"),
        "API__HOST": "127.0.0.1",
        "API__PORT": str(port),
        "API__WORKERS": "1",
        "API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "API__SECRET_KEY": secrets.token_hex(32),
        "DATABASE__SQL_ALCHEMY_CONN": database,
        "DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle]),
    }
    return kept | {
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "AIRFLOW_HOME": str(root / "airflow"),
        **{f"AIRFLOW__{name}": value for name, value in options.items()},
        "CHAINLAKE_HOME": str(root / "home"),
        "CHAINLAKE_CONFIG": str(PROJECT / "dags" / "config"),
        "CHAINLAKE_POOL": POOL,
    }


def _airflow(root: Path, python: Path, environment: dict[str, str], *words: str) -> None:
    with (root / f"{words[0]}.log").open("ab") as log:
        command = [str(python), "-m", "airflow", *words]
        subprocess.run(command, cwd=root, env=environment, stdout=log, stderr=log, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
