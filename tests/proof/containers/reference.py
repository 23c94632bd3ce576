"""What the lake of the containers is compared with: lakes that this machine makes without any, and copies of theirs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from chainlake.lake.delta import tables
from chainlake.lake.upkeep.same import published_tables
from chainlake.paths import PROJECT, Home
from tests.proof.processes import run

#: The parts of a summary that do not depend on the place and the time: from one heading to another.
_PARTS = (("== Rows per source", "== Where things are"), ("== SELECT ", "== Where the time went"))


def home_at(root: Path) -> Home:
    """A home in a folder, with the shipped definitions."""
    home = Home.from_env()
    return replace(home, root=root, lake=str(root / "lake"), config=PROJECT / "dags" / "config", landing_root="")


def made_by_run(root: Path, log: Path, words: Sequence[str]) -> tuple[Home, str]:
    """``make run`` with options in a new home; the home, and what was said.

    Raises:
        RuntimeError: a run failed.
    """
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("AIRFLOW", "CHAINLAKE", "SPARK"))}
    home = home_at(root)
    own = {"CHAINLAKE_HOME": str(root), "CHAINLAKE_CACHE": str(home.cache)}
    code, said = run([sys.executable, "-m", "chainlake.local.run.demo", *words], log, kept | own)
    if code:
        raise RuntimeError(f"the run without containers ended with {code}:\n{said[-3000:]}")
    return home, said


def copied_lake(volume: Path, root: Path) -> Home:
    """A home with a copy of the tables that lie in a volume."""
    home = home_at(root)
    shutil.copytree(volume / "lake", home.lake)
    return home


def summary(said: str) -> list[str]:
    """What a summary says of the rows, whatever the place and the time.

    Raises:
        ValueError: there is no summary.
    """
    lines = said.splitlines()
    found: list[str] = []
    for first, last in _PARTS:
        begin = next((at for at, line in enumerate(lines) if line.startswith(first)), None)
        end = next((at for at, line in enumerate(lines) if line.startswith(last)), None)
        if begin is None or end is None:
            raise ValueError(f"there is no part from '{first}' to '{last}' in:\n{said[-3000:]}")
        found += lines[begin:end]
    return found


def other_lines(first: str, second: str) -> Iterator[str]:
    """Lines that only one of two summaries has."""
    one, two = summary(first), summary(second)
    yield from (f"summary: only without containers: {line}" for line in one if line not in two)
    yield from (f"summary: only in containers: {line}" for line in two if line not in one)


def versions(home: Home) -> dict[str, int | None]:
    """Every table that is compared, and its version."""
    return {f"{schema}.{name}": tables.version(home, schema, name) for schema, name in published_tables(home)}
