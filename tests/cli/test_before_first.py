"""A lake before its first ingest: ``status``, ``plan`` and ``backfill`` say what has landed and what to do next."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from chainlake.cli.main import main
from chainlake.paths import PROJECT, Home
from chainlake.report.make import make_report

STOCK = (
    "no day of stock is ingested yet: 3 files have landed; 'chainlake ingest stock 2013-10-07 2013-10-10' takes them"
)
ROAD = "no day of traffic is ingested yet: 1 file has landed; 'chainlake ingest traffic 2025-10-01 2025-10-03' takes it"
RANGE = ("2013-10-01", "2025-11-01")


def land(home: Home, source: str, glob: str = "*") -> None:
    """Copy shipped files into the landing folder."""
    home.landing(source).mkdir(parents=True, exist_ok=True)
    for file in sorted((PROJECT / "data" / source).glob(glob)):
        shutil.copy(file, home.landing(source))


def said(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """What a verb prints, line by line."""
    assert main(list(words)) == 0
    return capsys.readouterr().out.splitlines()


def test_files_that_have_landed_are_counted_and_the_ingest_named(
    project: Path, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    land(home, "stock")
    land(home, "traffic", "*_10_01*")
    assert said(capsys, "status") == ["3 definitions, no days yet", STOCK, ROAD]
    assert said(capsys, "plan", *RANGE) == [STOCK, ROAD]
    assert said(capsys, "backfill", *RANGE)[:2] == [STOCK, ROAD]
    assert said(capsys, "plan", *RANGE, "--patterns", "shakeout") == [STOCK]
    assert json.loads("\n".join(said(capsys, "plan", *RANGE, "--json")))["idle"] == [STOCK, ROAD]
    only = said(capsys, "status", "--definition", "pattern/shakeout")
    assert only == ["1 definition, no days yet", STOCK]
    assert STOCK.replace("'", "&#x27;") in make_report(home).index.read_text()


def test_where_nothing_has_landed_the_folders_are_named(
    project: Path, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(capsys, "status")
    assert lines[0] == "3 definitions, no days yet" and len(lines) == 4
    for line, source in zip(lines[1:], ("sensor", "stock", "traffic"), strict=True):
        assert line.startswith(f"no day of {source} is ingested yet: nothing has landed for {source}: ")
        assert f"{home.landing(source)} does not exist" in line
    assert said(capsys, "plan", *RANGE) == lines[2:]
    assert said(capsys, "restate")[:2] == lines[2:]
    home.landing("stock").mkdir(parents=True)
    (home.landing("stock") / "prices.txt").write_text("x")
    (found,) = said(capsys, "plan", *RANGE, "--patterns", "shakeout")
    assert found.startswith("no day of stock is ingested yet: of 1 file that landed, none can be read")


def test_after_the_first_ingest_only_what_is_outside_is_told(
    project: Path, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    land(home, "stock")
    said(capsys, "ingest", "stock", "2013-10-07", "2013-10-10")
    assert not any("ingested yet" in line for line in said(capsys, "status"))
    outside = (
        "the events of stock are from 2013-10-07 to 2013-10-09, so its definitions have no day "
        "from 2020-01-01 to 2020-02-01"
    )
    assert said(capsys, "plan", "2020-01-01", "2020-02-01", "--patterns", "shakeout") == [outside]
    land(home, "traffic", "*_10_01*")
    assert ROAD in said(capsys, "status")
    assert ROAD in said(capsys, "plan", *RANGE)
    assert (
        said(capsys, "restate", "--source", "stock")[0] == "nothing to do: no day that was computed is stale or failed"
    )


def test_without_definitions_this_is_said(project: Path, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    land(home, "stock")
    shutil.rmtree(project / "patterns")
    shutil.rmtree(project / "models")
    lines = said(capsys, "status")
    assert lines[:2] == ["0 definitions, no days yet", f"no pattern and no model is defined in {project}"]
    assert STOCK in lines
    assert said(capsys, "plan", *RANGE) == [f"no pattern and no model is defined for this in {project}"]
    shutil.rmtree(project / "sources")
    assert said(capsys, "status")[-1:] == [
        f"no source is defined in {project}: 'chainlake init DIR' makes a project with one"
    ]
