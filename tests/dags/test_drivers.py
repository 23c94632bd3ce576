"""Warm drivers: reused while steps succeed, ended with the task, with the keeper, after a failure, by new code."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import psutil
import pytest

from chainlake import paths
from chainlake.env.processes.child import wait_until
from chainlake.env.processes.warm_driver import run_in_driver
from chainlake.errors import InfrastructureError
from chainlake.local.drivers import keeper as drivers
from chainlake.local.drivers.keeper import KEPT, start_keeper
from chainlake.paths import CODE, PROJECT, Home

LIST = ["sql", "SELECT 41 + 1 AS answer", "--format", "csv"]
FOREVER = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range + b.range = -1"


@pytest.fixture
def keeper(home: Home) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    process, address = start_keeper({**os.environ, "PYTHONPATH": str(CODE)})
    yield process, address
    assert process.stdin is not None
    process.stdin.close()
    process.wait(10)


def processes(keeper: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(keeper.pid).children()


def test_a_driver_runs_the_next_step_too_and_its_lines_come_in_order(keeper):
    process, address = keeper
    seen = []
    for _ in range(2):
        lines: list[str] = []
        assert run_in_driver(address, LIST, lines.append) == 0
        assert lines == ["answer", "42"]
        seen += processes(process)
    assert len(seen) == 2 and seen[0].pid == seen[1].pid


def test_a_failed_step_ends_its_driver_and_its_code_comes_back(keeper):
    process, address = keeper
    lines: list[str] = []
    assert run_in_driver(address, ["sql", "SELECT nonsense"], lines.append) != 0
    assert any("nonsense" in line for line in lines)
    assert run_in_driver(address, ["no-such-verb"], lines.append) == 2
    assert wait_until(lambda: not processes(process), 5)


def test_two_steps_at_a_time_have_two_drivers(keeper):
    process, address = keeper
    codes: list[int | None] = []
    threads = [threading.Thread(target=lambda: codes.append(run_in_driver(address, LIST, str))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0, 0] and len(processes(process)) == 2


def test_a_third_step_waits_for_its_turn_and_one_whose_task_went_meanwhile_never_runs(keeper):
    process, address = keeper

    def forever() -> None:
        # The end of the test is the end of the keeper, which is an error for the steps that it leaves.
        with contextlib.suppress(InfrastructureError):
            run_in_driver(address, ["sql", FOREVER], str)

    for _ in range(KEPT):
        threading.Thread(target=forever, daemon=True).start()
    assert wait_until(lambda: len(processes(process)) == KEPT, 20)
    port, _, token = address.partition(":")
    with socket.create_connection(("127.0.0.1", int(port)), timeout=20) as gone:
        gone.sendall(json.dumps({"token": token, "arguments": LIST, "fresh": False}).encode() + b"\n")
        assert b"waiting until another step ends" in gone.recv(1000)
    lines: list[str] = []
    codes: list[int | None] = []
    third = threading.Thread(target=lambda: codes.append(run_in_driver(address, LIST, lines.append)), daemon=True)
    third.start()
    assert wait_until(lambda: lines == ["waiting until another step ends: 2 run at a time"], 20)
    assert len(processes(process)) == KEPT and not codes
    processes(process)[0].kill()
    third.join(60)
    # Of the two that waited, the one that is still there.
    assert codes == [0] and lines[1:] == ["answer", "42"]


def test_a_fresh_driver_runs_one_step_beside_those_that_are_kept(keeper):
    process, address = keeper
    assert run_in_driver(address, LIST, str) == 0
    (kept,) = processes(process)
    lines: list[str] = []
    assert run_in_driver(address, LIST, lines.append, fresh=True) == 0
    assert lines == ["answer", "42"]
    assert wait_until(lambda: [p.pid for p in processes(process)] == [kept.pid], 10)


def test_a_prepared_driver_is_there_before_it_is_asked_and_serves_even_if_it_could_not_be(home):
    # Without Java its preparation fails; the step needs none.
    process, address = start_keeper({**os.environ, "PYTHONPATH": str(CODE), "JAVA_HOME": str(home.root)}, prepared=1)
    try:
        assert wait_until(lambda: bool(processes(process)), 20)
        (prepared,) = processes(process)
        assert "--prepare" in prepared.cmdline()
        lines: list[str] = []
        assert run_in_driver(address, LIST, lines.append) == 0
        assert lines[-2:] == ["answer", "42"] and any("could not be prepared" in line for line in lines)
        assert [p.pid for p in processes(process)] == [prepared.pid]
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(10)


def test_a_killed_driver_is_told_and_replaced(keeper):
    process, address = keeper
    assert run_in_driver(address, LIST, str) == 0
    (driver,) = processes(process)
    driver.suspend()
    codes: list[int | None] = []
    thread = threading.Thread(target=lambda: codes.append(run_in_driver(address, LIST, str)))
    thread.start()
    driver.kill()
    thread.join()
    # Killed before the keeper saw it, a new one did the step; after, the signal is the code.
    assert codes in ([0], [-signal.SIGKILL])
    assert run_in_driver(address, LIST, str) == 0
    assert driver.pid not in [p.pid for p in processes(process)]


def test_a_task_that_goes_takes_its_driver_with_it(keeper):
    process, address = keeper
    program = (
        "import sys\n"
        "from chainlake.env.processes.warm_driver import run_in_driver\n"
        "run_in_driver(sys.argv[1], ['sql', sys.argv[2]], print)"
    )
    task = subprocess.Popen([sys.executable, "-c", program, address, FOREVER], cwd=PROJECT)
    assert wait_until(lambda: bool(processes(process)), 20)
    (driver,) = processes(process)
    assert wait_until(lambda: driver.cpu_times().user > 0.3, 20)
    task.kill()
    task.wait()
    assert wait_until(lambda: not driver.is_running() or driver.status() == psutil.STATUS_ZOMBIE, 10)


def test_the_end_of_the_keeper_is_the_end_of_its_drivers_and_an_error_for_its_steps(keeper):
    process, address = keeper
    assert run_in_driver(address, LIST, str) == 0
    (driver,) = processes(process)
    process.kill()
    process.wait()
    assert wait_until(lambda: not driver.is_running() or driver.status() == psutil.STATUS_ZOMBIE, 10)
    assert run_in_driver(address, LIST, str) is None


def test_a_keeper_that_is_told_to_end_ends_in_the_middle_of_a_step_and_says_nothing(home):
    process, address = start_keeper({**os.environ, "PYTHONPATH": str(CODE)})
    errors: list[BaseException] = []

    def step() -> None:
        try:
            run_in_driver(address, ["sql", FOREVER], str)
        except InfrastructureError as error:
            errors.append(error)

    thread = threading.Thread(target=step)
    thread.start()
    assert wait_until(lambda: bool(processes(process)), 20)
    (driver,) = processes(process)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    assert process.wait(10) == 0
    thread.join()
    assert errors and process.stdout.read() == b""
    assert wait_until(lambda: not driver.is_running() or driver.status() == psutil.STATUS_ZOMBIE, 10)


def test_a_keeper_that_answers_nothing_is_an_infrastructure_error():
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        with pytest.raises(InfrastructureError, match="keeper"):
            run_in_driver(f"{server.getsockname()[1]}:token", LIST, str)


def test_a_wrong_token_runs_nothing(keeper):
    process, address = keeper
    with pytest.raises(InfrastructureError):
        run_in_driver(address.partition(":")[0] + ":wrong", LIST, str)
    assert not processes(process)


def test_an_edited_file_changes_the_state_of_the_code(tmp_path, monkeypatch):
    file = tmp_path / "thing.py"
    file.write_text("x = 1\n")
    monkeypatch.setattr(paths, "PACKAGE", tmp_path)
    before = drivers.code_state()
    assert drivers.code_state() == before
    os.utime(file, (1, 1))
    assert drivers.code_state() != before
