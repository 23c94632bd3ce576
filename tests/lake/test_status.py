"""The status command: table and JSON, spans of days, notes on files and definitions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from chainlake.cli.main import main
from chainlake.definitions.source import Sources, load_source
from chainlake.lake.delta.log import marked
from chainlake.lake.records import ops
from chainlake.operations import status as judging
from chainlake.operations.status import status_table
from chainlake.paths import Home
from tests.lake.test_staleness import D0, day, done, event_day, pattern


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Two patterns over five days: one all done, one with something of everything."""
    root = tmp_path_factory.mktemp("made")
    home = Home(root=root, lake=str(root / "lake"), config=root / "config", cache=root / "cache")
    ops.append(home, "event_days", [event_day(n) for n in range(4)], "r")
    ops.append(home, "event_days", [event_day(4, status="provisional")], "r")
    ops.append(home, "files", [{"source": "s", "path": "f.csv", "file_id": "f", "load_id": "f"}], "r")
    write_deltalake(home.table("events", "s"), pa.table({"n": [1]}), commit_properties=marked("test"))
    for n in range(5):
        done(home, pattern("good"), n)
    done(home, pattern("mixed"), 0)
    done(home, pattern("mixed"), 1, "failed", reason="out of memory")
    return home


@pytest.fixture
def shown(made: Home, home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The same in a home of its own."""
    shutil.copytree(made.lake, home.lake)
    found = [pattern("good"), pattern("mixed")], [], {"pattern/x"}, ["broken pattern/x"]
    monkeypatch.setattr(judging, "all_definitions", lambda home: found)
    return home


def _lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["status", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.slow
def test_the_table_takes_equal_days_together(shown: Home, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [" ".join(line.split()) for line in _lines(capsys)]
    assert lines == [
        "definition from to days state rows why",
        "pattern/good 2025-10-01 2025-10-05 4 done 12",
        "pattern/good 2025-10-05 2025-10-06 1 done 3 provisional input",
        "pattern/good 2025-10-06 2025-10-07 1 waiting 0 no ingest has passed this day yet",
        "pattern/mixed 2025-10-01 2025-10-02 1 done 3",
        "pattern/mixed 2025-10-02 2025-10-03 1 failed 3 out of memory",
        "pattern/mixed 2025-10-03 2025-10-05 2 missing 0 never computed",
        "pattern/mixed 2025-10-05 2025-10-06 1 missing 0 never computed, provisional input",
        "pattern/mixed 2025-10-06 2025-10-07 1 waiting 0 no ingest has passed this day yet",
        "2 definitions, days: 6 done, 3 missing, 1 failed, 2 waiting",
        "broken pattern/x",
    ]


def test_json_has_every_day(shown: Home, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads("\n".join(_lines(capsys, "2025-10-02", "2025-10-04", "--json")))
    assert [(row["definition"], row["day"], row["state"]) for row in found["days"]] == [
        ("pattern/good", "2025-10-02", "done"),
        ("pattern/good", "2025-10-03", "done"),
        ("pattern/mixed", "2025-10-02", "failed"),
        ("pattern/mixed", "2025-10-03", "missing"),
    ]
    assert found["notes"] == ["broken pattern/x"]


def test_states_and_definitions_select(shown: Home, capsys: pytest.CaptureFixture[str]) -> None:
    lines = _lines(capsys, "--state", "failed", "--definition", "pattern/mixed")
    assert len(lines) == 4 and "out of memory" in lines[1]


def test_what_is_wrong_on_the_command_line_is_said(shown: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--definition", "pattern/none"]) == 2
    assert "there is no definition 'pattern/none'" in capsys.readouterr().err
    assert main(["status", "2025-10-01"]) == 2
    assert "FROM needs TO" in capsys.readouterr().err


@pytest.mark.slow
def test_definitions_without_a_file_are_listed_as_they_were_last(
    shown: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, state, why in (
        ("old", "retired", "retired, rows kept"), ("lost", "done", None), ("x", "failed", "no memory"),
    ):  # fmt: skip
        for n in (0, 1):
            done(shown, pattern(name), n, state, reason=why)
    lines = [" ".join(line.split()) for line in _lines(capsys)]
    assert [line for line in lines if line.split()[0] in ("pattern/old", "pattern/lost", "pattern/x")] == [
        "pattern/lost 2025-10-01 2025-10-03 2 done 6 its file is gone: 'chainlake retire pattern/lost' ends it",
        "pattern/old 2025-10-01 2025-10-03 2 retired 6 retired, rows kept",
        "pattern/x 2025-10-01 2025-10-03 2 failed 6 its file cannot be read; no memory",
    ]
    assert "2 retired" in lines[-2]
    only = _lines(capsys, "2025-10-02", "2025-10-03", "--definition", "pattern/old")
    assert " ".join(only[1].split()) == "pattern/old 2025-10-02 2025-10-03 1 retired 3 retired, rows kept"
    found = {(row["definition"], row["state"], row["why"]) for row in status_table(shown).to_pylist()}
    assert ("pattern/old", "retired", "retired, rows kept") in found
    assert ("pattern/lost", "done", "its file is gone: 'chainlake retire pattern/lost' ends it") in found


def test_files_dated_in_the_future_are_listed(shown: Home, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"source": "s", "path": "late.csv", "file_id": "f", "load_id": "l", "file_date": date(2999, 1, 1)}
    ops.append(shown, "files", [row, {**row, "path": "ok.csv", "file_date": D0}], "r")
    assert _lines(capsys)[-1] == "file dated in the future (2999-01-01): s/late.csv"
    assert day(0) == D0


def test_an_empty_installation(home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    empty = home.root / "config"
    for name in ("sources", "patterns", "models"):
        Path(empty, name).mkdir(parents=True)
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(empty))
    assert _lines(capsys) == [
        "0 definitions, no days yet",
        f"no source is defined in {empty}: 'chainlake init DIR' makes a project with one",
    ]


@pytest.mark.slow
def test_a_status_of_days_starts_without_pandas(made: Home, tmp_path: Path) -> None:
    for name in ("sources", "patterns", "models"):
        (tmp_path / name).mkdir()
    code = "from chainlake.cli.main import main; import sys; print(main(['status']), 'pandas' in sys.modules)"
    places = {"CHAINLAKE_HOME": str(made.root), "CHAINLAKE_CONFIG": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | places, capture_output=True, text=True, timeout=60, check=True
    )
    assert (made.root / "lake").is_dir() and "pattern/mixed" in done.stdout
    assert done.stdout.splitlines()[-1] == "0 False"


ROAD = """\
description: Readings.
key: detector
type: Reading
attributes: {speed: {type: double}}
identity: multiset
expect: ['a_{date:%Y%m%d}*', 'b_{date:%Y%m%d}.csv']
formats:
  - {name: csv, glob: '*.csv', header: [ts, detector], time: {column: ts, format: iso}}
"""


@pytest.mark.slow
def test_what_a_provisional_day_was_computed_without_is_named(
    shown: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text(ROAD)
    sources = Sources()
    sources["s"] = load_source(tmp_path / "s.yaml")
    monkeypatch.setattr(judging, "load_sources", lambda home: sources)
    here = {"source": "s", "path": "a_20251005.csv", "file_id": "a", "load_id": "a", "outcome": "ok"}
    bad = {"source": "s", "path": "old/b_20251005.csv", "file_id": "b", "load_id": "b", "outcome": "unreadable",
           "file_date": day(4)}  # fmt: skip
    for files, lacks in (
        ([], "a_20251005*, b_20251005.csv"), ([here], "b_20251005.csv"), ([bad], "old/b_20251005.csv")
    ):  # fmt: skip
        ops.append(shown, "files", files, "r")
        line = next(one for one in _lines(capsys, "--definition", "pattern/good") if "2025-10-05  2025-10-06" in one)
        assert line.endswith(f"  provisional input, without {lacks}")
        (row,) = (one for one in status_table(shown).to_pylist() if one["why"].startswith("provisional"))
        assert (row["day"], row["state"], row["why"]) == (day(4), "done", f"provisional input, without {lacks}")
