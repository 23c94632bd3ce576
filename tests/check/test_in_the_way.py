"""A file that is where a table's folder should be: it is named, and set aside by a repair."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainlake.cli.main import main
from chainlake.lake.delta import tables
from chainlake.lake.delta.damaged import DamagedTable
from chainlake.lake.records import ops
from chainlake.operations.check import Scope, check
from chainlake.operations.repair import repair
from chainlake.paths import Home


def in_place_of(home: Home, *way: str) -> Path:
    file = Path(home.lake, *way)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("a note")
    return file


@pytest.mark.parametrize("way", [("events",), ("events", "lab"), ("events", "lab", "_delta_log")])
def test_whoever_opens_the_table_is_told_of_the_file(home: Home, way: tuple[str, ...]) -> None:
    file = in_place_of(home, *way)
    with pytest.raises(DamagedTable, match=f"events.lab is damaged: {file} should be a folder, but is a file"):
        tables.exists(home, "events", "lab")


@pytest.mark.slow
@pytest.mark.parametrize("table", ["events.lab", "raw.lab", "matches.many", "models.changes", "ops.runs", "ops.rates"])
def test_a_check_names_the_file_and_a_repair_sets_it_aside(home: Home, table: str) -> None:
    file = in_place_of(home, *table.split("."))
    checked = check(home, run_id="r", scope=Scope())
    assert [str(one) for one in checked.damage] == [f"{table}: {file} should be a folder, but is a file"]
    assert check(home, run_id="r", scope=Scope(tables=(table,))).damage == checked.damage
    _, result = repair(home, run_id="r", scope=Scope(), say=lambda line: None)
    assert result.left == []
    assert not file.is_file() and [path.read_text() for path in Path(home.damaged).glob("*/*")] == ["a note"]
    assert check(home, run_id="r", scope=Scope()).damage == []


def test_a_file_in_the_place_of_all_tables_of_a_schema_is_left_to_people(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    file = in_place_of(home, "ops")
    assert main(["check", "--repair"]) != 0
    said = "".join(capsys.readouterr())
    assert f"{file} should be a folder, but is a file" in said and "unexpected" not in said
    assert file.read_text() == "a note"
    assert main(["status"]) != 0
    assert "is damaged" in capsys.readouterr().err


def test_a_file_of_others_beside_the_tables_is_no_damage(home: Home) -> None:
    in_place_of(home, "matches", "README.md")
    in_place_of(home, "ops", "notes")
    ops.append(home, "runs", [], "r")
    assert check(home, run_id="r", scope=Scope()).damage == []


def test_a_folder_in_the_place_of_a_lock_is_said_by_a_check(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    lock = home.locks / "ops.lock"
    lock.mkdir(parents=True)
    assert main(["check"]) == 1
    assert f"damaged: locks: {lock} cannot be used as a lock: it is a folder" in capsys.readouterr().out
