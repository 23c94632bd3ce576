"""The supervised child: its output, its exit code, and that it never outlives its parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chainlake.airflow import tasks
from chainlake.days import Days
from chainlake.env.processes import child
from chainlake.env.processes.child import run_child, wait_until
from chainlake.errors import InfrastructureError
from chainlake.local import settings
from chainlake.local.drivers.keeper import KEPT
from chainlake.paths import PROJECT, Home


def gone(pid: int) -> bool:
    """Whether the process has ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def run_python(program: str, tmp_path: Path, on_line: Callable[[str], None]) -> int:
    return run_child([sys.executable, "-c", program], env=os.environ, cwd=tmp_path, on_line=on_line)


def test_lines_and_exit_code(tmp_path: Path) -> None:
    lines: list[str] = []
    program = "import sys; print('one'); print('two', file=sys.stderr); sys.stdout.write('no end'); sys.exit(3)"
    code = run_python(program, tmp_path, lines.append)
    assert code == 3
    assert sorted(lines) == ["no endtwo", "one"] or sorted(lines) == ["no end", "one", "two"]


def test_an_exception_here_ends_the_child_even_if_it_ignores_sigterm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "GRACE_S", 0.3)
    monkeypatch.setattr(child.stop_process, "__defaults__", (0.3,))
    program = (
        "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(os.getpid(), flush=True)\ntime.sleep(60)"
    )
    seen: list[int] = []

    def raise_at(line: str) -> None:
        seen.append(int(line))
        raise TimeoutError("the task's time is over")

    with pytest.raises(TimeoutError):
        run_python(program, tmp_path, raise_at)
    assert gone(seen[0])


PARENT = """
import os, sys
from pathlib import Path
from chainlake.env.processes.child import run_child
inner = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
def note(line):
    Path(sys.argv[1]).write_text(line)
run_child([sys.executable, "-c", inner], env=os.environ, cwd=Path("/"), on_line=note)
"""


def test_a_killed_parent_takes_its_child_along(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(note)], cwd=PROJECT)
    assert wait_until(lambda: note.exists() and note.read_text() != "", 30)
    pid = int(note.read_text())
    assert not gone(pid)
    parent.kill()
    parent.wait()
    assert wait_until(lambda: gone(pid), 5)


def test_a_task_whose_supervisor_was_killed_ends_its_child(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    # A scheduler's worker that is killed leaves its task process behind, in a process group of its own.
    program = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', sys.argv[1], sys.argv[2]], process_group=0)\ntime.sleep(60)"
    )
    supervisor = subprocess.Popen([sys.executable, "-c", program, PARENT, str(note)], cwd=PROJECT)
    assert wait_until(lambda: note.exists() and note.read_text() != "", 30)
    pid = int(note.read_text())
    supervisor.kill()
    supervisor.wait()
    assert wait_until(lambda: gone(pid), 10)


DAY = Days.parse("2025-10-01", "2025-10-02")


def fake_child(code: int, result: dict[str, object] | None, lines: tuple[str, ...]) -> Callable[..., int]:
    def run(command: list[str], *, on_line: Callable[[str], None], **rest: object) -> int:
        if result is not None:
            Path(command[command.index("--result") + 1]).write_text(json.dumps(result))
        for line in lines:
            on_line(line)
        return code

    return run


def test_a_step_returns_its_result(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "run_child", fake_child(0, {"rows": 7}, ()))
    assert tasks.run_step("ingest", "stock", DAY, run_id="r") == {"rows": 7}


@pytest.mark.parametrize("code", [1, 2, 3, 4])
def test_lasting_failures_are_not_retried(home: Home, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    monkeypatch.setattr(tasks, "run_child", fake_child(code, {"error": "the file is wrong"}, ("error: x", "hint: y")))
    with pytest.raises(AirflowFailException, match="^the file is wrong$"):
        tasks.run_step("detect", "stock", DAY, run_id="r")


@pytest.mark.parametrize("code", [5, 137, -signal.SIGKILL])
def test_other_failures_are(home: Home, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setattr(tasks, "run_child", fake_child(code, None, ("error: no disk", "hint: y")))
    with pytest.raises(InfrastructureError, match="no disk"):
        tasks.run_step("detect", "stock", DAY, run_id="r")


def test_the_command_of_a_step(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **rest: object) -> int:
        commands.append(command)
        return 0

    monkeypatch.setattr(tasks, "run_child", run)
    tasks.run_step("detect", "stock", DAY, run_id="r", definitions=["a", "b"])
    assert commands[0][1:6] == ["-m", "chainlake", "detect", "stock", "2025-10-01"]
    assert commands[0][6:11] == ["2025-10-02", "--pattern", "a", "--pattern", "b"]
    assert commands[0][11:13] == ["--run-id", "r"]


def test_a_slow_grandchild_does_not_hold_the_task(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys; print('done', flush=True)\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(20)'])"
    )
    begin = time.monotonic()
    assert run_python(program, tmp_path, lambda line: None) == 0
    assert time.monotonic() - begin < 15


def test_a_wait_says_for_what_after_a_second(capfd: pytest.CaptureFixture[str]) -> None:
    assert not wait_until(lambda: False, 1.3, what="process 7 to end")
    assert capfd.readouterr().err.startswith("waiting for process 7 to end (1 s so far)")
    assert wait_until(lambda: True, 1.3) and capfd.readouterr().err == ""


@pytest.mark.parametrize(("master", "warm"), [("local[2]", True), ("spark://a:7077", False), ("yarn", False)])
def test_drivers_are_kept_warm_on_this_machine_alone(
    home: Home, monkeypatch: pytest.MonkeyPatch, master: str, warm: bool
) -> None:
    """Idle ones would hold the executors of a cluster."""
    asked = []
    monkeypatch.setenv("SPARK_MASTER", master)
    monkeypatch.setenv(tasks.ADDRESS, "1:token")
    monkeypatch.setattr(tasks, "run_in_driver", lambda *_, fresh: asked.append("fresh" if fresh else "warm") or 0)
    monkeypatch.setattr(tasks, "run_child", lambda *_, **__: asked.append("child") or 0)
    for short in (True, False):
        tasks.run_step("ingest", "lab", Days.parse("2025-01-06", "2025-01-07"), run_id="r.1", warm=short)
    assert asked == (["warm", "fresh"] if warm else ["child", "child"])
    assert settings.spark_slots() == (KEPT + 1 if warm else KEPT)


def test_what_is_about_tables_takes_no_driver_and_starts_nothing_where_there_is_none(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.setenv(tasks.ADDRESS, "1:token")
    monkeypatch.setattr(tasks, "run_child", lambda command, **__: started.append(command) or 0)
    assert tasks.run_on_tables(["check"], run_id="r.1") == {} and started == []
    (Path(home.lake) / "events").mkdir(parents=True)
    tasks.run_on_tables(["check"], run_id="r.1")
    assert [command[3] for command in started] == ["check"]


@pytest.mark.parametrize("master", ["local[2]", "spark://a:7077"])
def test_a_step_has_the_address_and_python_that_the_session_chooses(
    home: Home, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    monkeypatch.setenv("SPARK_MASTER", master)
    for name in ("SPARK_LOCAL_IP", "PYSPARK_PYTHON", tasks.ADDRESS):
        monkeypatch.delenv(name, raising=False)
    given: dict[str, str] = {}
    monkeypatch.setattr(tasks, "run_child", lambda *_, env, **__: given.update(env) or 0)
    tasks.run_step("ingest", "lab", Days.parse("2025-01-06", "2025-01-07"), run_id="r.1")
    assert not {"SPARK_LOCAL_IP", "PYSPARK_PYTHON"} & given.keys() and "JAVA_HOME" in given
