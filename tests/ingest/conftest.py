"""A lake with the test sources, and short ways to land files and look at tables."""

from __future__ import annotations

import dataclasses
import gzip
import os
import shutil
import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from chainlake.days import Days
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.runs import new_run_id
from chainlake.lake.store.files import FilesLake
from chainlake.paths import Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks

SOURCES = Path(__file__).parent / "sources"
#: Long after all test data, so that lags are over.
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Lake:
    """A home with its own copy of the test sources."""

    def __init__(self, root: Path, cache: Path) -> None:
        shutil.copytree(SOURCES, root / "config" / "sources")
        self.home = Home(root=root, lake=str(root / "lake"), config=root / "config", cache=cache)

    def land(self, source: str, name: str, content: str | bytes) -> Path:
        """Write a landing file, an hour old; ``.gz`` names are compressed."""
        data = content.encode() if isinstance(content, str) else content
        path = self.home.landing(source) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
        os.utime(path, (time.time() - 3600, time.time() - 3600))
        return path

    def ingest(self, source: str, start: str, end: str, **options: Any) -> dict[str, Any]:
        """Run the step, in this process unless ``ports`` says otherwise; ``None`` are those of the installation."""
        from chainlake.ingest.step import ingest

        options.setdefault("now", NOW)
        options.setdefault("ports", Ports(LocalTasks(), FilesLake(self.home)))
        return ingest(self.home, source, Days.parse(start, end), run_id=new_run_id("ingest"), **options)

    def events(self, source: str, *columns: str) -> list[tuple[Any, ...]]:
        """The events, sorted, as tuples of ``columns`` (times as ISO texts)."""
        return rows(tables.arrow(self.home, "events", source, columns=list(columns)).to_pylist(), columns)

    def quarantine(self, source: str, *columns: str) -> list[tuple[Any, ...]]:
        """The quarantine, likewise."""
        return rows(tables.arrow(self.home, "quarantine", source, columns=list(columns)).to_pylist(), columns)

    def days(self, source: str) -> dict[date, dict[str, Any]]:
        """Current rows of ``ops.event_days``."""
        return {row["day"]: row for row in ops.current(self.home, "event_days", source=source)}

    def files(self, source: str) -> dict[str, dict[str, Any]]:
        """Current rows of ``ops.files``."""
        return {row["path"]: row for row in ops.current(self.home, "files", source=source)}

    def version(self, schema: str, source: str) -> int | None:
        """Version of a table."""
        return tables.version(self.home, schema, source)

    def other(self, name: str) -> Lake:
        """A second, empty lake with the same sources as this one has now."""
        root = self.home.root.parent / name
        root.mkdir()
        lake = object.__new__(Lake)
        shutil.copytree(self.home.config, root / "config")
        lake.home = dataclasses.replace(self.home, root=root, lake=str(root / "lake"), config=root / "config")
        return lake


def rows(dicts: list[dict[str, Any]], columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Dicts as sorted tuples; times as texts, so that they read well in a failing test."""

    def plain(value: Any) -> Any:
        return value.strftime("%Y-%m-%d %H:%M:%S") if isinstance(value, datetime) else value

    found = [tuple(plain(row[name]) for name in columns) for row in dicts]
    return sorted(found, key=lambda row: tuple((value is not None, value) for value in row))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An empty lake; its path holds a space."""
    root = tmp_path / "the lake"
    root.mkdir()
    return Lake(root, Home.from_env().cache)
