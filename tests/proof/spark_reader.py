"""A part of ``make store-proof``: a Spark of one's own reads a lake in a store, as docs/readers.md says."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from chainlake.env.java import use_java
from chainlake.lake.sql.query import SqlConnection
from chainlake.paths import PROJECT, Home
from tests.proof.history import environment, in_a_process, installation
from tests.proof.processes import run
from tests.proof.s3proxy import BUCKET, KEY, SECRET, Server

SOURCE, PREFIX = "stock", f"{BUCKET}/spark"
#: Table → how the page's job names its rows, and their key.
_READ = {
    "events.stock": ("events", "event_id"),
    "matches.shakeout": (f'spark.read.format("delta").load("s3a://{PREFIX}/matches/shakeout")', "match_id"),
    "matches.shakeout_flat": ('spark.table("matches.shakeout_flat")', "match_id"),
}
_BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def spark_reads(root: Path, server: Server) -> Iterator[str]:
    """The page's commands on a shipped day; a line for each table whose rows are not those of ``chainlake sql``."""
    use_java()
    home = installation(root / "spark", f"s3://{PREFIX}")
    in_a_process(home, root / "spark.log", ["--here", "--days", "1", SOURCE])
    folder = root / "reader"
    folder.mkdir()
    settings, job, commands = _blocks()
    # The JARs are kept, and fetched by Spark alone.
    (folder / "store.conf").write_text(f"{settings}spark.jars.ivy {Home.from_env().cache / 'proof' / 'ivy'}\n")
    job = job.replace("s3a://bucket/prefix", f"s3a://{PREFIX}")
    job += "import pyarrow.parquet\n"
    for name, (rows, _) in _READ.items():
        job += f"pyarrow.parquet.write_table({rows}.toArrow(), '{name}.parquet')\n"
    (folder / "rows.py").write_text(job)
    told = {"AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    told["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    before, begun = server.written(), time.monotonic()
    code, said = run(["bash", "-ec", commands], root / "reader.log", environment(home, told), folder)
    print(f"  Spark's own reader: {time.monotonic() - begun:.0f} s", flush=True)
    if code:
        yield f"the page's commands ended with {code}: {said[-3000:]}"
        return
    if server.written() != before:
        yield "Spark has written into the store"
    for name, (_, key) in _READ.items():
        asked = SqlConnection(home).query(f"SELECT * FROM {name} ORDER BY {key}")
        columns = [column[0] for column in asked.description or ()]
        wanted = [dict(zip(columns, row, strict=True)) for row in asked.fetchall()]
        found = pq.read_table(folder / f"{name}.parquet").sort_by(key).to_pylist()
        print(f"  {name}: {len(found)} rows, {len(columns)} columns", flush=True)
        if not found or found != wanted:
            yield f"{name}: the {len(found)} rows by Spark are not the {len(wanted)} of chainlake sql"


def _blocks() -> tuple[str, str, str]:
    """The settings, the job and the commands."""
    page = (PROJECT / "docs" / "readers.md").read_text(encoding="utf-8")
    settings, job, commands = _BLOCK.findall(page.partition("## Spark and a lake in a store")[2].partition("\n## ")[0])
    return settings, job, commands
