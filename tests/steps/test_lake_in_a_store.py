"""A lake in a store, whose files no process may open: Spark reads and changes it, and the rows are the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.ingest.step import ingest
from chainlake.lake.store.files import FilesLake
from chainlake.lake.upkeep.same import same_tables
from chainlake.monitoring.step import monitor
from chainlake.paths import Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from tests.steps.history import MODEL, SOURCE, day, pattern

if TYPE_CHECKING:
    pass

DAYS = Days(day(0), day(2))


def text(edition: int = 0) -> dict[str, str]:
    """Files of two days: a value an hour of two sensors."""
    files = {}
    for number in range(2):
        rows = ["ts,sensor,x,y"]
        for hour in range(24):
            for at, sensor in enumerate("ab"):
                x = (hour * 7 + number * 3 + at * 5 + edition) % 11
                rows.append(f"{day(number)}T{hour:02}:{at * 30:02}:00,{sensor},{x},{2 * x + (number > 0)}")
        files[f"lab_{day(number):%Y%m%d}.csv"] = "\n".join(rows) + "\n"
    return files


def run(home: Home, files: dict[str, str], ports: Ports | None = None) -> list[dict[str, object]]:
    """Land the files and run the three steps."""
    folder = home.landing("lab")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content)
    return [
        ingest(home, "lab", DAYS, run_id="i", ports=ports),
        detect(home, "lab", DAYS, run_id="d", ports=ports),
        monitor(home, "lab", DAYS, run_id="m", ports=ports),
    ]


@pytest.fixture
def lab(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home with the definitions of the lab."""
    config = home.root / "config"
    for name, content in {
        "sources/lab.yaml": SOURCE,
        "patterns/near.sase": pattern(),
        "models/slope.yaml": MODEL,
    }.items():
        (config / name).parent.mkdir(parents=True, exist_ok=True)
        (config / name).write_text(content)
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(config))
    return Home.from_env()


@pytest.mark.slow
@pytest.mark.on_spark()
def test_the_tables_are_those_of_a_lake_in_a_folder(lab: Home, tasks: None, tmp_path: Path) -> None:
    other = replace(lab, root=tmp_path / "other")
    store = replace(other, lake=f"file://{tmp_path}/store")
    plain = replace(other, root=tmp_path / "plain", lake=str(tmp_path / "plain" / "lake"))
    here = Ports(LocalTasks(), FilesLake(plain))
    for edition in (0, 1):
        assert run(store, text(edition)) == run(plain, text(edition), here)
        assert same_tables(store, plain) == []
