"""``make thrift-proof``: the commands of docs/readers.md for a server for JDBC and ODBC, as they are on the page.

A shipped day is published in this process. Then the page's first block starts Spark's Thrift server, and its second
defines the views and asks for rows, on another port. A flat view must give the rows that ``chainlake sql`` gives, a
statement that would change a view must be refused, and no file of the lake may have changed.
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.env.java import use_java
from chainlake.env.ports import free_port
from chainlake.ingest.step import ingest
from chainlake.lake.spark.jars import delta_jars
from chainlake.lake.sql.query import SqlConnection
from chainlake.lake.store.files import FilesLake
from chainlake.local.run.shipped import land, shipped_days
from chainlake.paths import PROJECT, Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from tests.proof.processes import Program, run, running
from tests.proof.small import in_folder

SOURCE, QUERY = "stock", "SELECT * FROM matches.shakeout_flat ORDER BY match_id"
_BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT = re.compile(r"^\S+ jdbc:\S+> ")
_UP = "HiveThriftServer2 started"


def main() -> int:
    """Run the commands; 0 if they do what the page says."""
    use_java()
    return in_folder("thrift-", _proof)


def _proof(root: Path) -> int:
    home = _published(root)
    before = _files(home)
    serve, ask = (block.replace("10000", str(free_port(20000))) for block in _blocks())
    exports = "".join(line + "\n" for line in serve.splitlines() if line.startswith("export "))
    environment = {**os.environ, "HOME": str(root), "CHAINLAKE_HOME": str(home.root)}
    with running(Program(["bash", "-ec", serve], root / "server.log", environment)) as server:
        server.until(lambda: _UP in server.said(), _UP)
        # As in the second terminal: from the project, then in the server's folder.
        there = f"{exports}cd ~/thrift\n"
        code, said = run(["bash", "-ec", there + ask], root / "asked.log", environment)
        assert code == 0 and "3 rows selected" in said, said
        options = "--silent=true --outputformat=csv2"
        compared = there + ask.splitlines()[1].replace("-e ", f"{options} -e ").partition("'")[0] + f"'{QUERY}'"
        code, said = run(["bash", "-ec", compared], root / "compared.log", environment)
        # Beeline writes its prompt before the first line.
        lines = (_PROMPT.sub("", line) for line in said.splitlines() if line.count(",") > 5)
        header, *rows = list(csv.reader(lines))
        wanted = SqlConnection(home).query(QUERY)
        assert code == 0 and header == [column[0] for column in wanted.description or ()], said
        found = [[value[:19] for value in row] for row in rows]
        assert found == [[str(value)[:19] for value in row] for row in wanted.fetchall()], said
        print(f"the {len(rows)} rows of {QUERY} are those of chainlake sql", flush=True)
        refused = compared.replace(QUERY, "DELETE FROM matches.shakeout")
        code, said = run(["bash", "-ec", refused], root / "refused.log", environment)
        assert code != 0 and "DELTA_UNSUPPORTED_SOURCE" in said, said
    assert len(rows) > 3 and _files(home) == before, "files of the lake have changed"
    print(f"a change of a view is refused, and none of {len(before)} files of the lake has changed", flush=True)
    return 0


def _blocks() -> tuple[str, str]:
    """The commands that start the server, and those that ask it; the port is that of the page."""
    page = (PROJECT / "docs" / "readers.md").read_text(encoding="utf-8")
    serve, ask = _BLOCK.findall(page.partition("## A server for JDBC and ODBC")[2].partition("\n## ")[0])
    return serve, ask


def _published(root: Path) -> Home:
    """The first shipped day, with its matches, in a home whose user has Delta's JARs in the cache."""
    base = Home.from_env()
    delta_jars(base)
    (root / ".cache").mkdir()
    (root / ".cache" / "chainlake").symlink_to(base.cache)
    home = replace(base, root=root / "home", lake=str(root / "home" / "lake"), config=PROJECT / "dags" / "config")
    first = shipped_days(home)[SOURCE][0]
    land(home, SOURCE, first)
    ports = Ports(LocalTasks(), FilesLake(home))
    for step in (ingest, detect):
        step(home, SOURCE, Days.one(first.day), run_id="proof", ports=ports)
    return home


def _files(home: Home) -> dict[str, str]:
    """Every file of the lake, with its checksum."""
    found = (path for path in Path(home.lake).rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


if __name__ == "__main__":
    sys.exit(main())
