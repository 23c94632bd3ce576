"""A table that is kept open is what a fresh opening gives, whatever others do to it meanwhile."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from chainlake.lake.delta import tables
from chainlake.lake.delta.damaged import DamagedTable
from chainlake.lake.delta.reader import open_table
from chainlake.lake.upkeep.maintain import maintain_table
from chainlake.paths import Home

NAME = ("events", "s")


def told(table: DeltaTable) -> tuple[int, list[str]]:
    return table.version(), sorted(table.file_uris())


@pytest.fixture
def path(home: Home) -> str:
    path = home.table(*NAME)
    write_deltalake(path, pa.table({"n": [1]}))
    return path


def newest(path: str) -> Path:
    return max((Path(path) / "_delta_log").glob("*.json"))


def opened(home: Home) -> DeltaTable:
    return open_table(home, *NAME)


def made_anew(path: str) -> None:
    """With as many versions, so that the names in its log are those of before."""
    versions = DeltaTable(path).version()
    shutil.rmtree(path)
    for number in range(versions + 1):
        write_deltalake(path, pa.table({"n": [100 + number]}), mode="append")


def other_file_named(path: str) -> None:
    """An entry that is written over in its place and has the length of before."""
    entry = newest(path)
    text = entry.read_text()
    (name,) = (file for file in text.split('"') if file.endswith(".parquet"))
    shutil.copy(Path(path) / name, Path(path) / ("x" + name[1:]))
    before = entry.stat()
    entry.write_text(text.replace(name, "x" + name[1:]))
    assert (entry.stat().st_ino, entry.stat().st_size) == (before.st_ino, before.st_size)


CHANGES: dict[str, Callable[[str], object]] = {
    "appended": lambda path: write_deltalake(path, pa.table({"n": [2]}), mode="append"),
    "written anew": lambda path: write_deltalake(path, pa.table({"n": [3]}), mode="overwrite"),
    "rows deleted": lambda path: DeltaTable(path).delete("n >= 0"),
    "checkpoint": lambda path: DeltaTable(path).create_checkpoint(),
    "made anew": made_anew,
    "taken back": lambda path: newest(path).unlink(),
    "another file": other_file_named,
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_another_does_is_seen(home: Home, path: str, change: str) -> None:
    write_deltalake(path, pa.table({"n": [2]}), mode="append")
    before = told(opened(home))
    CHANGES[change](path)
    assert told(opened(home)) == told(DeltaTable(path))
    assert change == "checkpoint" or told(opened(home)) != before


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_any_history_is_seen(home: Home, path: str, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        names = [name for name in CHANGES if name not in ("taken back", "another file")]
        CHANGES[rng.choice(names)](path)
        for version in (None, rng.randrange(DeltaTable(path).version() + 1)):
            for without_files in rng.sample([True, False, False, True], 4):
                found = open_table(home, *NAME, version=version, without_files=without_files)
                assert found.version() == DeltaTable(path, version=version).version()
                assert without_files or told(found) == told(DeltaTable(path, version=version))


def test_an_unchanged_table_is_opened_once_for_readers_and_anew_for_each_writer(home: Home, path: str) -> None:
    first = opened(home)
    assert opened(home) is first and open_table(home, *NAME, without_files=True) is first
    writer = open_table(home, *NAME, to_write=True)
    assert writer is not first and open_table(home, *NAME, to_write=True) is not writer
    write_deltalake(writer, pa.table({"n": [2]}), mode="append")
    # Who began to read before goes on with what it began with.
    assert (first.version(), len(first.file_uris())) == (0, 1)
    assert (opened(home).version(), len(opened(home).file_uris())) == (1, 2)


def test_what_was_opened_without_its_files_is_not_given_to_who_needs_them(home: Home, path: str) -> None:
    open_table(home, *NAME, without_files=True)
    assert len(opened(home).file_uris()) == 1


def test_damage_is_seen_though_the_table_is_open(home: Home, path: str) -> None:
    write_deltalake(path, pa.table({"n": [2]}), mode="append")
    opened(home)
    newest(path).write_text("")
    with pytest.raises(DamagedTable):
        opened(home)
    with pytest.raises(DamagedTable):
        tables.exists(home, *NAME)


def test_a_table_is_there_as_delta_has_it(home: Home) -> None:
    path = Path(home.table(*NAME))
    assert not tables.exists(home, *NAME)
    (path / "_delta_log").mkdir(parents=True)
    (path / "_delta_log" / "_last_checkpoint").write_text("{}")
    assert not tables.exists(home, *NAME) and not DeltaTable.is_deltatable(str(path))
    write_deltalake(str(path), pa.table({"n": [1]}))
    opened(home)
    maintain_table(home, *NAME, keep=timedelta(0))
    assert tables.exists(home, *NAME) and opened(home).to_pyarrow_table()["n"].to_pylist() == [1]
    shutil.rmtree(path)
    assert not tables.exists(home, *NAME)


def test_readers_in_threads_see_what_was_committed_before_they_asked(home: Home, path: str) -> None:
    """While a writer commits; each reader asks after it has recorded how far the writer had come."""
    committed, late = [0], []
    end = threading.Event()

    def read() -> None:
        while not end.is_set():
            least = committed[0]
            found = opened(home)
            if found.version() < least or len(found.file_uris()) != found.version() + 1:
                late.append((least, told(found)))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(1, 15):
        write_deltalake(path, pa.table({"n": [number]}), mode="append")
        committed[0] = number
    end.set()
    for reader in readers:
        reader.join()
    assert late == []
