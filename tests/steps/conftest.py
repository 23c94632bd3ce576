"""A lake with one day of stock events, made once; each test works on a copy of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chainlake.days import Days
from chainlake.ingest.step import ingest
from chainlake.lake.store.files import FilesLake
from chainlake.paths import PROJECT, Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks

DAY = Days.parse("2013-10-07", "2013-10-08")


def land(home: Home, source: str, *names: str) -> None:
    """Copy shipped files to landing."""
    folder = home.landing(source)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy(PROJECT / "data" / source / name, folder / name)


@pytest.fixture(scope="session")
def stock_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The root of a home in which the first shipped stock day is ingested."""
    root = tmp_path_factory.mktemp("stock lake")
    base = Home.from_env()
    home = replace(base, root=root, lake=str(root / "lake"), config=PROJECT / "dags" / "config")
    land(home, "stock", "us_equity_minute_trade_20131007.csv.gz")
    ingest(home, "stock", DAY, run_id="made", ports=Ports(LocalTasks(), FilesLake(home)))
    yield root


@pytest.fixture
def stock_home(stock_lake: Path, home: Home) -> Home:
    """A copy of that lake, with an empty folder of patterns."""
    shutil.copytree(stock_lake, home.root, dirs_exist_ok=True)
    config = home.root / "config"
    (config / "patterns").mkdir(parents=True)
    shutil.copytree(PROJECT / "dags" / "config" / "sources", config / "sources")
    return replace(home, config=config)


@pytest.fixture
def add_pattern(stock_home: Home) -> Callable[[str, str], Path]:
    """Write a pattern file; the name of a shipped pattern as text copies that one."""

    def add(name: str, text: str) -> Path:
        shipped = PROJECT / "dags" / "config" / "patterns" / f"{text}.sase"
        path = stock_home.config / "patterns" / f"{name}.sase"
        path.write_text(shipped.read_text() if shipped.is_file() else text)
        return path

    return add
