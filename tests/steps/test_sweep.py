"""What maintenance sweeps beside the tables, and what it must leave alone."""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path

import pytest

from chainlake.cep.search.compiled import machine
from chainlake.cli.main import main
from chainlake.env.own_folders import MARKER as MARK
from chainlake.env.own_folders import is_own, own_folder
from chainlake.env.private import marked_folder
from chainlake.env.processes.ending import stack_kept
from chainlake.lake.spark.jars import ARTIFACTS
from chainlake.local.launcher import Airflow
from chainlake.operations import sweep as sweeping
from chainlake.operations.sweep import sweep
from chainlake.paths import Home

pytestmark = pytest.mark.slow

DAY = 86_400
KERNEL = "chainlake_kernel_" + "0a" * 16


def old(path: Path, days: float, size: int = 10) -> Path:
    """A file that was written so many days ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (time.time() - days * DAY,) * 2)
    return path


@pytest.fixture
def place(home: Home, tmp_path: Path) -> Home:
    """An installation with a cache of its own and a folder of Airflow's logs that we made."""
    marked_folder(home.airflow / "logs")
    cache = tmp_path / "cache"
    for folder in (home.logs, home.root / "cache", cache / "cds", cache / "kernels" / "1-numba0"):
        own_folder(folder)
    return dataclasses.replace(home, cache=cache)


def test_old_logs_go_and_young_ones_and_foreign_ones_stay(place: Home, tmp_path: Path) -> None:
    logs = place.airflow / "logs"
    gone = [
        old(logs / "dag_id=ingest_x" / "run_id=1" / "task_id=t" / "attempt=1.log", 31),
        old(logs / "dag_processor" / "2024-01-01" / "x.log", 31),
        old(place.logs / "error-20240101T000000-12.txt", 31),
    ]
    outside = old(tmp_path / "outside" / "mine.log", 400)
    (logs / "link").symlink_to(outside.parent)
    stay = [
        old(logs / "dag_id=ingest_x" / "run_id=2" / "attempt=1.log", 29),
        old(place.logs / "error-20240101T000000-13.txt", 29),
        old(place.logs / "notes.txt", 400),
        old(place.root / "landing" / "x" / "old.csv", 400),
        outside,
    ]
    os.utime(logs / MARK, (0, 0))
    swept = sweep(place)
    assert not [path for path in gone if path.exists()] and all(path.exists() for path in [*stay, logs / MARK])
    assert (swept.logs, swept.bytes, swept.foreign) == (3, 30, ())
    for folder in (logs / "dag_processor", logs / "dag_processor" / "2024-01-01"):
        os.utime(folder, (0, 0))
    sweep(place)
    assert not (logs / "dag_processor" / "2024-01-01").exists() and (logs / "dag_id=ingest_x" / "run_id=2").exists()


def test_logs_in_a_folder_of_somebody_else_stay(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """An Airflow of the user's own, whose home our home happens to hold."""
    log = old(home.airflow / "logs" / "dag_id=mine" / "attempt=1.log", 400)
    airflow = Airflow(home)
    airflow._take_lock()
    airflow.stop()
    assert sweep(home).foreign == (home.airflow / "logs",) and log.exists()
    assert main(["maintain"]) == 0
    assert "are not removed" in capsys.readouterr().out and log.exists()


def test_the_launcher_marks_the_folder_that_it_makes(home: Home) -> None:
    airflow = Airflow(home)
    airflow._take_lock()
    airflow.stop()
    assert (home.airflow / "logs" / MARK).exists()


def test_a_log_that_grows_for_ever_keeps_its_end(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "LOG_BYTES", 1000)
    monkeypatch.setattr(sweeping, "LOG_LEFT_BYTES", 100)
    log = place.airflow / "logs" / "components" / "api-server.log"
    log.parent.mkdir()
    with open(log, "ab") as writer:
        writer.writelines(b"line %04d\n" % number for number in range(200))
        writer.flush()
        sweep(place)
        writer.write(b"line 0200\n")
    assert log.read_bytes() == b"".join(b"line %04d\n" % number for number in range(191, 201))


def test_kernels_that_nobody_uses_go_whole(place: Home) -> None:
    folder = place.cache / "kernels" / "1-numba0"
    files = [folder / f"{KERNEL}.py", folder / "__pycache__" / f"{KERNEL}.kernel-1.py311.1.nbc"]
    files.append(folder / "__pycache__" / f"{KERNEL}.kernel-1.py311.nbi")
    for path in files:
        old(path, 400)
    other = old(folder / "__pycache__" / "mine.nbc", 400)
    # The source has just been put there: it may be being compiled.
    assert sweep(place).cached == 0
    later = time.time() + 89 * DAY
    os.utime(files[2], (later, later))
    assert sweep(place, now=later + 89 * DAY).cached == 0
    assert sweep(place, now=later + 91 * DAY).cached == 1
    assert not [path for path in files if path.exists()] and other.exists()


def test_kernels_beyond_their_size_go_the_longest_unused_first(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "KERNEL_BYTES", 25)
    names = [f"chainlake_kernel_{number:032x}" for number in range(3)]
    cache = place.cache / "kernels" / "1-numba0" / "__pycache__"
    paths = [old(cache / f"{name}.kernel-1.nbi", days) for name, days in zip(names, (3, 1, 2), strict=True)]
    assert sweep(place).cached == 1
    assert [path.exists() for path in paths] == [False, True, True]


def test_without_our_mark_nothing_goes_whatever_it_is_called(home: Home, tmp_path: Path) -> None:
    """Folders of others that CHAINLAKE_CACHE or CHAINLAKE_HOME name by mistake hold files of the same names."""
    place = dataclasses.replace(home, cache=tmp_path / "theirs")
    names = (
        "jars/delta-spark_2.12-3.2.0.jar",
        "jars/.fetch-abc",
        f"cds/{'a' * 16}.jsa",
        "cds/.make-abc",
        f"kernels/1-numba0/{KERNEL}.py",
        f"kernels/1-numba0/__pycache__/{KERNEL}.kernel-1.nbi",
        "kernels/1-numba0/tmpabc.tmp",
    )
    theirs = [old(place.cache / name, 400) for name in names]
    theirs += [
        old(place.logs / "error-20240101T000000-12.txt", 400),
        old(place.root / "cache" / "checksums-stock.123.tmp", 400),
        old(place.temporary / f"chainlake-{'0' * 16}.zip", 400),
    ]
    for path in theirs:
        assert own_folder(path.parent) == path.parent
    swept = sweep(place, now=time.time() + 400 * DAY)
    assert all(path.exists() for path in theirs) and (swept.logs, swept.cached) == (0, 0)


def test_what_we_make_carries_our_mark(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINLAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(machine, "_loaded", {})
    machine.load("def kernel(floats, ints, bools, shorts, fc, ic, state):\n    return 8\n")
    stack_kept(ValueError("x"))
    assert is_own(machine.folder()) and is_own(Home.from_env().logs)


def test_archives_jars_and_unfinished_things(place: Home) -> None:
    own_folder(place.cache / "jars")
    gone = [
        old(place.cache / "cds" / f"{'a' * 16}.jsa", 91),
        old(place.cache / "cds" / f"{'b' * 16}.jsa", 9),
        old(place.cache / "jars" / "delta-storage-4.0.0.jar", 91),
        old(place.cache / "jars" / ".fetch-abc" / "x", 2).parent,
        old(place.cache / "kernels" / "1-numba0" / "tmpabc.tmp", 2),
        old(place.root / "cache" / "checksums-stock.123.tmp", 2),
    ]
    os.utime(gone[3], (time.time() - 2 * DAY,) * 2)
    stay = [old(place.cache / "cds" / f"{letter * 16}.jsa", 5) for letter in "cde"]
    stay += [old(place.cache / "jars" / name, 400) for name in ARTIFACTS]
    stay += [old(place.root / "cache" / "checksums-stock.json", 400)]
    stay += [old(place.cache / "jars" / "other.jar", 400), old(place.cache / "jars" / ".fetch-new" / "x", 0)]
    sweep(place)
    assert not [path for path in gone if path.exists()] and all(path.exists() for path in stay)


def test_machine_code_that_others_could_have_written_is_not_run(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINLAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(machine, "_loaded", {})
    source = "def kernel(floats, ints, bools, shorts, fc, ic, state):\n    return 7\n"
    machine.load(source)
    folder = machine.folder()
    assert folder.stat().st_mode & 0o077 == 0
    code = next((folder / "__pycache__").glob("*.nbi"))
    os.utime(code, (0, 0))
    machine._loaded.clear()
    machine.load(source)
    assert time.time() - code.stat().st_mtime < 60
    folder.chmod(0o777)
    os.utime(code, (0, 0))
    machine._loaded.clear()
    with pytest.warns(RuntimeWarning, match="other users can write to"):
        machine.load(source)
    assert code.stat().st_mtime == 0


def test_a_process_keeps_a_bounded_number_of_kernels(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINLAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(machine, "_loaded", {})
    monkeypatch.setattr(machine, "_MOST_LOADED", 2)
    source = "def kernel(floats, ints, bools, shorts, fc, ic, state):\n    return {}\n"
    for number in range(3):
        machine.load(source.format(number))
    assert list(machine._loaded) == [machine._name(source.format(number)) for number in (1, 2)]
