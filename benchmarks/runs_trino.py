"""A Trino server for benchmarks/runs.py: tables in memory, one folder of Parquet files, one thread for a query."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

_PORT = 18_080
_ADDRESS = f"http://127.0.0.1:{_PORT}"
_FILES = {
    "node.properties": "node.environment=runs\nnode.id=runs\nnode.data-dir={data}\n",
    "jvm.config": "-server\n-Xmx8G\n-XX:+UseG1GC\n-Djdk.attach.allowAttachSelf=true\n",
    "config.properties": "coordinator=true\nnode-scheduler.include-coordinator=true\nhttp-server.http.port={port}\n"
    "discovery.uri={address}\ntask.concurrency=1\ntask.max-worker-threads=1\nquery.max-memory-per-node=5GB\n"
    "query.max-memory=5GB\nquery.max-total-memory=6GB\nmemory.heap-headroom-per-node=1GB\n",
    "catalog/memory.properties": "connector.name=memory\nmemory.max-data-per-node=3GB\n",
    "catalog/files.properties": "connector.name=hive\nhive.metastore=file\nhive.metastore.catalog.dir=file://{data}/catalog\n"
    "hive.metastore.user=runs\nhive.security=allow-all\nhive.parquet.use-column-names=true\n",
}


@dataclass(frozen=True)
class Server:
    """One that runs."""

    @classmethod
    def running(cls, folder: Path) -> Server:
        """The server, started if need be, with a table ``events`` of the Parquet files of a folder."""
        server = cls()
        if not server._answers():
            server._start()
        server._run("CREATE SCHEMA IF NOT EXISTS files.runs")
        for table in ("files.runs.events", "memory.default.events"):
            server._run(f"DROP TABLE IF EXISTS {table}")
        columns = "(k bigint, ts bigint, type varchar, x double)"
        server._run(
            f"CREATE TABLE files.runs.events {columns} WITH (format = 'PARQUET', external_location = 'file://{folder}')"
        )
        server._run("CREATE TABLE memory.default.events AS SELECT * FROM files.runs.events")
        return server

    def make(self, name: str, query: str) -> None:
        """A table of the rows of a query."""
        self._run(f"DROP TABLE IF EXISTS memory.default.{name}")
        self._run(f"CREATE TABLE memory.default.{name} AS {query}")

    def rows(self, name: str) -> pa.Table:
        """The rows of a table of four whole numbers."""
        rows = [row for page in self._pages(f"SELECT * FROM memory.default.{name}") for row in page.get("data", ())]
        return pa.table({str(i): pa.array([row[i] for row in rows], pa.int64()) for i in range(4)})

    def _start(self) -> None:
        home = Path(os.environ["TRINO"])
        data = home / "data"
        for name, text in _FILES.items():
            path = home / "etc" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.format(data=data, port=_PORT, address=_ADDRESS))
        with (home / "output.txt").open("w") as output:
            subprocess.Popen([home / "bin" / "launcher", "run"], stdout=output, stderr=output)
        for _ in range(600):
            time.sleep(1)
            if self._answers():
                return
        raise TimeoutError(f"the server does not answer; see {home / 'output.txt'}")

    def _answers(self) -> bool:
        try:
            self._run("SELECT count(*) FROM system.runtime.nodes")
        except (OSError, RuntimeError, urllib.error.URLError):
            return False
        return True

    def _run(self, statement: str) -> None:
        for _ in self._pages(statement):
            pass

    def _pages(self, statement: str) -> Iterator[dict[str, Any]]:
        headers = {"X-Trino-User": "runs", "X-Trino-Catalog": "memory", "X-Trino-Schema": "default"}
        ask = urllib.request.Request(f"{_ADDRESS}/v1/statement", statement.encode(), headers)
        while True:
            with urllib.request.urlopen(ask) as answer:
                page = json.load(answer)
            if "error" in page:
                raise RuntimeError(f"{page['error']['message']}\n{statement}")
            yield page
            if "nextUri" not in page:
                return
            ask = urllib.request.Request(page["nextUri"], headers=headers)
