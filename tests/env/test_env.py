"""Checks of the machine: one clear sentence each, never a stack trace."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chainlake.env import doctor, java
from chainlake.env.ports import HOST, ForeignServer, free_port, require_own
from chainlake.errors import InfrastructureError
from chainlake.paths import PROJECT, Home

pytestmark = pytest.mark.slow


def fake_java(folder: Path, version: str) -> Path:
    """A Java home whose ``java -version`` says ``version``."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.fixture(autouse=True)
def fresh_search() -> None:
    java.java_home.cache_clear()


@pytest.mark.parametrize(
    ("text", "version"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("21.0.1-ea", 21), ("25.0.2", 25)]
)
def test_versions_are_read(tmp_path: Path, text: str, version: int) -> None:
    assert java.java_version(fake_java(tmp_path / "a java", text) / "bin" / "java") == version


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "jdk 21", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.java_home() == home


def test_a_wrong_java_home_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    good = fake_java(tmp_path / "good", "17.0.1")
    monkeypatch.setenv("PATH", str(good / "bin"))
    assert java.java_home() == good


def test_no_usable_java_says_what_was_found_and_how_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setattr(java, "_candidates", lambda: iter([old / "bin" / "java", tmp_path / "none"]))
    with pytest.raises(InfrastructureError) as caught:
        java.java_home()
    assert "only Java 11 at" in caught.value.summary
    assert "nstall" in caught.value.summary
    assert "\n" not in caught.value.summary


def test_no_java_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_candidates", lambda: iter([]))
    with pytest.raises(InfrastructureError, match="no Java was found"):
        java.java_home()


def test_a_full_disk_is_one_sentence(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(home.root)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage._replace(free=10))
    with pytest.raises(InfrastructureError, match="free disk are needed") as caught:
        doctor.require(home)
    assert "\n" not in caught.value.summary


def test_a_data_folder_that_is_a_file(home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    monkeypatch.setenv("CHAINLAKE_HOME", str(taken))
    done = subprocess.run([sys.executable, "-m", "chainlake.env.doctor"], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 5
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Set CHAINLAKE_HOME" in done.stderr


def test_a_taken_port_gets_the_next_free_one() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) > port
        with pytest.raises(InfrastructureError, match="no free port"):
            free_port(port, tries=1)


def set_up(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the set-up in ``folder`` with a lock file that wants one package."""
    (folder / "requirements.txt").write_text("no-such-package-of-chainlake==1.0\n")
    return subprocess.run(
        [sys.executable, str(PROJECT / "jobs" / "chainlake" / "env" / "setup.py"), ".venv", "requirements.txt"],
        cwd=folder,
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_set_up_without_a_network_is_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    # A proxy that nobody answers at: what a machine without a network looks like, at once.
    nowhere = "http://127.0.0.1:9"
    done = set_up(
        folder, HTTPS_PROXY=nowhere, HTTP_PROXY=nowhere, ALL_PROXY=nowhere, PIP_RETRIES="0", PIP_FIND_LINKS=""
    )
    assert done.returncode == 5
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "cannot be reached" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("lock", ["requirements.txt", "jobs/chainlake/env/installer.txt"])
def test_every_package_is_locked_by_the_hashes_of_its_files(lock: str) -> None:
    text = (PROJECT / lock).read_text()
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    pin = re.compile(r"[a-z0-9._-]+==\S+( ; .*)? \\\n    --hash=sha256:[0-9a-f]{64}")
    assert blocks and [one for one in blocks if not pin.match(one)] == []
    assert "://" not in text and "index-url" not in text and "find-links" not in text


def test_the_lock_fits_other_machines() -> None:
    """A release has one file per platform, and those that are compiled have more than one."""
    text = (PROJECT / "requirements.txt").read_text()
    for name in ("numpy", "pyarrow", "duckdb", "deltalake", "numba", "psycopg2-binary"):
        block = text[text.index(f"\n{name}==") + 1 :].split("    # via")[0]
        assert block.count("--hash=") > 4, name


def test_a_file_that_is_not_the_locked_one_ends_the_set_up(tmp_path: Path) -> None:
    """A package of the installer's name and version, as somebody in between would offer it."""
    locked = (PROJECT / "jobs" / "chainlake" / "env" / "installer.txt").read_text()
    version = re.search(r"^uv==(\S+)", locked, re.MULTILINE)
    assert version is not None
    offered = tmp_path / "offered"
    offered.mkdir()
    info = f"uv-{version[1]}.dist-info"
    with zipfile.ZipFile(offered / f"uv-{version[1]}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: uv\nVersion: {version[1]}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    done = set_up(tmp_path, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(offered))
    assert done.returncode == 5
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "not the one that was locked" in done.stderr


def test_make_lists_its_targets() -> None:
    done = subprocess.run(["make"], cwd=PROJECT, capture_output=True, text=True, check=True)
    for target in ("setup", "run", "airflow", "test", "check", "lock", "clean"):
        assert f"make {target}" in done.stdout


def test_a_folder_that_delta_cannot_address_is_refused_with_a_hint(tmp_path: Path) -> None:
    home = replace(Home.from_env(), root=tmp_path / "a[1]")
    with pytest.raises(InfrastructureError, match="bracket") as raised:
        doctor.check_home(home)
    assert raised.value.hint is not None and not home.root.exists()


def test_a_cache_that_everybody_can_write_to_is_refused(home: Home, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    own = Home(home.root, home.lake, home.config, cache)
    assert str(cache) in doctor.check_cache(own)
    cache.chmod(0o777)
    with pytest.raises(InfrastructureError, match="every user of this machine can write to the cache"):
        doctor.check_cache(own)


@pytest.fixture
def neighbour() -> Iterator[tuple[int, int]]:
    """Pid and port of another program of this user, which answers to nothing."""
    code = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"
    program = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdin is not None and program.stdout is not None
    with program:
        yield program.pid, int(program.stdout.readline())
        program.stdin.close()


def test_a_program_that_is_not_ours_gets_nothing_though_its_user_is_the_same(neighbour: tuple[int, int]) -> None:
    pid, port = neighbour
    require_own(port)
    require_own(port, lambda one: one == pid)
    with pytest.raises(ForeignServer, match=rf"port {port} of 127.0.0.1 is held by another program, process {pid} \("):
        require_own(port, lambda one: one != pid)
    with socket.create_server((HOST, 0)) as own:
        require_own(own.getsockname()[1], lambda one: one == os.getpid())
