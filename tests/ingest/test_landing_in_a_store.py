"""Landed files in an object store: found, told apart and read as on a disk; a store that is away lets them wait."""

from __future__ import annotations

import gzip
import os
import time
import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chainlake.definitions.source import Source, load_source
from chainlake.ingest.landing.discovery import discover
from chainlake.ingest.rows.parse import read_file
from chainlake.ingest.rows.parsed import Task
from chainlake.ingest.source_lint import lint_source
from chainlake.local.run.shipped import land, shipped_days
from chainlake.paths import PROJECT, Home, LandingInStore
from chainlake.storage.errors import StoreFailed
from chainlake.storage.objects import ObjectStorage
from chainlake.storage.resolve import storage_of
from tests.steps.history import SOURCE

NOW = datetime(2031, 1, 1, tzinfo=UTC)
ROWS = "ts,sensor,x,y\n2025-01-01T00:00:00,a,1,2\n2025-01-01T01:00:00,b,3,4\n"


@pytest.fixture
def disk(home: Home) -> Home:
    """A home with the source ``lab``, whose files have to rest before they are read on a disk."""
    config = home.root / "config"
    (config / "sources").mkdir(parents=True)
    (config / "sources" / "lab.yaml").write_text(SOURCE + "settle: 10 min\n")
    home.landing("lab").mkdir(parents=True)
    return replace(home, config=config)


@pytest.fixture
def store(disk: Home, tmp_path: Path) -> Home:
    """Another home, whose landing is the same folder, treated as a store."""
    other = tmp_path / "other"
    return replace(disk, root=other, lake=str(other / "lake"), landing_root=f"file://{disk.landed_all}")


@pytest.fixture
def lab(disk: Home) -> Source:
    return load_source(disk.config / "sources" / "lab.yaml")


def old(path: Path) -> None:
    os.utime(path, (time.time() - 7200, time.time() - 7200))


def fill(folder: Path) -> None:
    """Files of all kinds, those that are never taken among them."""
    (folder / "deep").mkdir()
    (folder / ".hidden").mkdir()
    (folder / "a%20b c é.csv").write_text(ROWS)
    (folder / "deep" / "packed.csv").write_bytes(gzip.compress(ROWS.encode() * 20_000))
    (folder / "deep" / "cut.csv").write_bytes(gzip.compress(os.urandom(4000))[:2000])
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        archive.writestr("one.csv", ROWS)
        archive.writestr("two.csv", ROWS + "x")
    (folder / "broken.zip").write_bytes((folder / "all.zip").read_bytes()[:150])
    for name in ("coming.csv.part", ".hidden/x.csv", "deep/.y.csv"):
        (folder / name).write_text(ROWS)
    for path in folder.rglob("*"):
        old(path)


def test_the_same_files_are_found_with_the_same_content(disk: Home, store: Home, lab: Source) -> None:
    fill(disk.landing("lab"))
    here, there = (discover(home, lab, NOW) for home in (disk, store))
    assert set(here.files) == {
        "a%20b c é.csv", "all.zip!one.csv", "all.zip!two.csv", "broken.zip", "deep/cut.csv", "deep/packed.csv"
    }  # fmt: skip
    assert {path: replace(one, file="") for path, one in there.files.items()} == {
        path: replace(one, file="") for path, one in here.files.items()
    }
    assert here.waiting == there.waiting == {}
    assert discover(store, lab, NOW) == there


def test_a_file_of_a_store_need_not_rest_and_one_that_is_replaced_is_read_again(
    disk: Home, store: Home, lab: Source
) -> None:
    path = disk.landing("lab") / "new.csv"
    path.write_text(ROWS)
    now = datetime.now(UTC)
    # In whole seconds, by the store's clock, which is nine minutes slow.
    second = int(now.timestamp()) - 540
    os.utime(path, (second, second))
    assert discover(disk, lab, now).waiting == {"new.csv": "it is younger than 'settle'"}
    at = f"{store.landed('lab')}/new.csv"
    before, told = discover(store, lab, now).files["new.csv"], storage_of(at).stamp(at)
    path.write_text(ROWS.replace("a,1", "a,9"))
    os.utime(path, (second, second))
    # In the same second: neither size nor time tell.
    assert storage_of(at).stamp(at) == told
    assert discover(store, lab, now).files["new.csv"].checksum != before.checksum


def test_a_checksum_is_remembered_for_a_file_that_lies_there_for_long(
    disk: Home, store: Home, lab: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(disk.landing("lab"))
    first = discover(store, lab, NOW)
    monkeypatch.setattr(ObjectStorage, "opened", None)
    assert discover(store, lab, NOW) == first


def test_a_store_that_does_not_answer_lets_its_files_wait(
    disk: Home, store: Home, lab: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(disk.landing("lab"))

    def away(self: ObjectStorage, path: str) -> None:
        raise StoreFailed.away(path)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStorage, "opened", away)
        found = discover(store, lab, NOW)
        assert not found.files and set(found.waiting) == {
            "a%20b c é.csv", "all.zip", "broken.zip", "deep/cut.csv", "deep/packed.csv"
        }  # fmt: skip
        assert found.waiting["all.zip"].endswith("does not answer")
        patch.setattr(ObjectStorage, "files", away)
        found = discover(store, lab, NOW)
        assert not found.files and found.waits("all.zip") and found.waiting["."].endswith("does not answer")


def test_what_fails_in_the_middle_of_a_file_is_no_damage(
    disk: Home, store: Home, lab: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(disk.landing("lab"))
    opened = ObjectStorage.opened

    class Broken:
        """A file of which only the first request is answered."""

        def __init__(self, file: object) -> None:
            self._file, self._asked = file, 0

        def readable(self) -> bool:
            return True

        def __enter__(self) -> Broken:
            return self

        def __exit__(self, *_: object) -> None:
            """Nothing."""

        def __getattr__(self, name: str) -> object:
            self._asked += name == "readinto"
            if self._asked > 1:
                raise StoreFailed.away("landing")
            return getattr(self._file, name)

    monkeypatch.setattr(ObjectStorage, "opened", lambda self, path: Broken(opened(self, path)))
    waiting = discover(store, lab, NOW).waiting
    assert "does not answer" in waiting["deep/packed.csv"]


def test_the_lint_of_a_source_looks_at_files_in_a_store(disk: Home, store: Home) -> None:
    fill(disk.landing("lab"))
    file = disk.config / "sources" / "lab.yaml"
    told = [lint_source(home, file) for home in (disk, store)]
    assert [str(error) for error in told[0].errors] == [str(error) for error in told[1].errors] != []
    assert told[0].files == told[1].files == 5


def test_files_that_only_a_folder_could_give_are_asked_for_in_vain(store: Home) -> None:
    with pytest.raises(LandingInStore, match="CHAINLAKE_LANDING puts them into file://.*/landing/lab"):
        store.landing("lab")


@pytest.mark.slow
def test_rows_are_read_as_from_a_disk(disk: Home, store: Home, lab: Source) -> None:
    fill(disk.landing("lab"))
    read = [
        {
            path: (whole.rows.to_pydict(), whole.bad.to_pydict(), whole.counts)
            for path, one in discover(home, lab, NOW).files.items()
            for whole in [read_file(lab, Task.of(one, ""))]
        }
        for home in (disk, store)
    ]
    assert read[0] == read[1]
    assert len(read[0]["all.zip!one.csv"][0]["ts"]) == 2


def test_shipped_files_land_in_a_store_once(store: Home) -> None:
    store = replace(store, config=PROJECT / "dags" / "config")
    shipped = shipped_days(store)["sensor"][0]
    assert [land(store, "sensor", shipped) for _ in range(2)] == [len(shipped.files), 0]
    place = storage_of(store.landed("sensor"))
    assert [file.path for file in place.files(store.landed("sensor"))] == sorted(file.name for file in shipped.files)
