"""What killed attempts leave behind is removed after a week, and nothing else is, whatever its folder is called."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from chainlake.cli.main import main
from chainlake.env.own_folders import MARKER, own_folder
from chainlake.lake.spark.session import code_archive
from chainlake.paths import Home
from chainlake.run.common import staging_folder, sweep_leftovers
from chainlake.storage.resolve import storage_of

WEEK_S = 7 * 86_400


def aged(folder: Path, age: float) -> Path:
    """A folder with a file in it, untouched for so long."""
    folder.mkdir(parents=True)
    (folder / "file").write_text("precious")
    os.utime(folder, (time.time() - age,) * 2)
    return folder


def test_only_what_nobody_has_touched_for_a_week_go(home: Home) -> None:
    old, young = [], []
    own = Path(staging_folder(home, "run", "p")).parent.parent
    assert own == Path(home.staging)
    for parent, name in ((own, "run.1"), (own_folder(home.temporary), "blockmgr-1"), (home.temporary, "result-1")):
        for kept, age in ((old, WEEK_S + 60), (young, WEEK_S - 60)):
            kept.append(aged(parent / f"{name}-{age}", age))
    for name, kept, age in (("old.so", old, WEEK_S + 60), ("young.so", young, WEEK_S - 60)):
        library = home.temporary / name
        library.write_text("unpacked by a JVM that was killed")
        os.utime(library, (time.time() - age,) * 2)
        kept.append(library)
    for folder in (own, home.temporary):
        os.utime(folder / MARKER, (0, 0))
    sweep_leftovers(home)
    assert not [path for path in old if path.exists()]
    assert all(path.exists() for path in (*young, own / MARKER, home.temporary / MARKER))


@pytest.mark.slow
def test_the_code_archive_stays_while_it_is_used(home: Home) -> None:
    archive = code_archive(own_folder(home.temporary))
    os.utime(archive, (0, 0))
    assert code_archive(home.temporary) == archive
    sweep_leftovers(home)
    assert archive.exists()


@pytest.mark.few(1)
@pytest.mark.parametrize("apart", [False, True])
def test_folders_of_others_are_left_alone(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], apart: bool
) -> None:
    """Beside the lake, in the home, in the home of an Airflow, and under our own names without the marker."""
    if apart:
        monkeypatch.setenv("CHAINLAKE_LAKE", str(home.root.parent / "data" / "lake"))
        home = Home.from_env()
    beside = Path(home.lake).parent
    foreign = [
        aged(parent / "my-own-work", 10 * 86_400)
        for parent in (beside / "staging", home.root / "tmp", Path(home.staging), home.temporary)
    ]
    foreign.append(aged(home.airflow / "result-of-my-thesis", 10 * 86_400))
    assert main(["maintain"]) == 0
    assert all((path / "file").read_text() == "precious" for path in foreign)
    said = capsys.readouterr().out
    for path in (beside / "staging", home.root / "tmp"):
        assert f"{path} is not used any more" in said
    for path in (Path(home.staging), home.temporary):
        assert f"{path} is not marked as Chainlake's" in said
    own_folder(Path(home.staging))
    assert not (Path(home.staging) / MARKER).exists()


def test_a_folder_that_is_found_empty_becomes_ours(home: Home) -> None:
    home.temporary.mkdir()
    assert (own_folder(home.temporary) / MARKER).exists()


def test_links_are_not_followed(home: Home) -> None:
    target = aged(home.root / "elsewhere", 10 * 86_400)
    link = own_folder(home.temporary) / "link"
    link.symlink_to(target)
    os.utime(link, (0, 0), follow_symlinks=False)
    sweep_leftovers(home)
    assert (target / "file").exists()


@pytest.mark.parametrize("run_id", ["../../outside", "..", "a/b", "scheduled__2025-10-01T00:00:00+00:00.1", ""])
def test_staged_output_lies_in_the_staging_folder_whatever_the_run_is_called(home: Home, run_id: str) -> None:
    folder = Path(os.path.abspath(staging_folder(home, run_id, "p")))
    assert folder.parent.parent == Path(home.staging) and ":" not in folder.name


def test_what_is_staged_for_a_lake_in_a_store_lies_beside_its_tables_and_is_swept_there(home: Home) -> None:
    remote = replace(home, lake=f"file://{home.root}/store")
    folder = staging_folder(remote, "r:1", "p")
    assert folder.startswith(f"file://{home.root}/store/chainlake-staging/r-1/p-") and remote.unused == []
    files = storage_of(folder)
    files.write(f"{folder}/part.parquet", b"rows")
    sweep_leftovers(remote)
    assert files.size(f"{folder}/part.parquet") == 4
    assert files.sweep(remote.staging, -60)
    assert files.size(f"{folder}/part.parquet") is None and files.size(f"{remote.staging}/{MARKER}")


def test_what_others_put_into_a_store_stays(home: Home) -> None:
    remote = replace(home, lake=f"file://{home.root}/store")
    storage_of(remote.staging).write(f"{remote.staging}/thesis/page", b"precious")
    staging_folder(remote, "r", "p")
    assert not storage_of(remote.staging).sweep(remote.staging, -60)
    assert storage_of(remote.staging).read(f"{remote.staging}/thesis/page") == b"precious"


def test_another_step_may_sweep_at_the_same_time(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    own_folder(Path(home.staging))
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter([self / "gone"]))
    sweep_leftovers(home)


def test_a_file_of_another_user_stops_no_step(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that several users write to, one may not remove the files of another."""
    folder = own_folder(home.temporary)
    for name in ("theirs", "ours"):
        (folder / name).write_text("left over")
        os.utime(folder / name, (0, 0))
    unlink = Path.unlink

    def guarded(path: Path, missing_ok: bool = False) -> None:
        if path.name == "theirs":
            raise PermissionError(1, "Operation not permitted", str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", guarded)
    sweep_leftovers(home)
    assert sorted(path.name for path in folder.iterdir()) == [MARKER, "theirs"]


def test_nothing_was_ever_run(home: Home) -> None:
    sweep_leftovers(home)
