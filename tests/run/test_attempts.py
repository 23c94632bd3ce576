"""An attempt that is killed is told of, wherever one looks for its days, until it is repeated; no other one is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chainlake.cli.main import main
from chainlake.days import Days
from chainlake.errors import InputError
from chainlake.lake.locks import file_lock
from chainlake.paths import PROJECT, Home
from chainlake.report.make import make_report
from chainlake.run.attempts import Attempt, attempted, cut_off
from tests.steps.history import configured, day, deliver, pattern, readings

SPAN = ("2025-03-01", "2025-03-04")
#: A step that says that it is at work, and then is, for longer than any test waits.
PROGRAM = """\
import sys, time
from chainlake.{step} import step
def at_work(*given, **named):
    print("at work", flush=True)
    time.sleep(600)
step.{verb} = at_work
from chainlake.cli.main import main
main([{verb!r}, "lab", *{span!r}, "--run-id", "r-1", *sys.argv[1:]])
"""


@pytest.fixture
def lab(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Three days of events and two patterns, found by the command line."""
    made = configured(home, near=pattern(), far=pattern("26 h", step=1.0))
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(made.config))
    deliver(made, {n: readings(n) for n in range(3)})
    return made


@contextmanager
def at_work(verb: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process in which a step is at work; killed at the end."""
    step = {"detect": "detect", "ingest": "ingest", "monitor": "monitoring"}[verb]
    program = PROGRAM.format(step=step, verb=verb, span=SPAN)
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words], cwd=PROJECT, stdout=subprocess.PIPE, env=os.environ
    )
    assert process.stdout is not None
    try:
        while b"at work" not in (line := process.stdout.readline()):
            assert line, "the step ended"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def told(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """What status says about attempts."""
    assert main(["status", *words]) == 0
    return [line for line in capsys.readouterr().out.splitlines() if "ended without a result" in line]


@pytest.mark.slow
def test_a_killed_step_is_told_of_until_its_days_are_done(lab: Home, capsys: pytest.CaptureFixture[str]) -> None:
    began = datetime.now(UTC).replace(microsecond=0)
    with at_work("detect") as process:
        assert told(capsys) == [], "it is at work"
    (line,) = told(capsys)
    start = datetime.fromisoformat(line.split("begun ")[1][:19]).replace(tzinfo=UTC)
    assert began <= start <= datetime.now(UTC)
    assert line == (
        f"ended without a result: detect lab 2025-03-01 2025-03-04, begun {start:%Y-%m-%d %H:%M:%S} UTC by process "
        f"{process.pid} on {os.uname().nodename}, run r-1; it was killed, or its machine stopped; "
        "to do: 6 days of pattern/far, pattern/near"
    )
    (one,) = told(capsys, "2025-03-02", "2025-03-03", "--definition", "pattern/near")
    assert one.endswith("to do: 1 day of pattern/near")
    assert told(capsys, "--definition", "model/slope") == []
    assert "ended without a result: detect lab" in make_report(lab).index.read_text()
    assert main(["detect", "lab", "2025-03-02", "2025-03-04", "--pattern", "near"]) == 0
    capsys.readouterr()
    (line,) = told(capsys)
    # The run of the two days has also repaired the day before them, whose attempt was this one.
    assert line.endswith("to do: 3 days of pattern/far")
    assert main(["detect", "lab", *SPAN]) == 0
    capsys.readouterr()
    assert told(capsys) == []
    assert list(lab.temporary.glob("attempt-*")) == []


@pytest.mark.slow
def test_a_killed_ingest_is_told_of_until_another_ends(lab: Home, capsys: pytest.CaptureFixture[str]) -> None:
    with at_work("ingest"):
        pass
    (line,) = told(capsys)
    assert line.startswith("ended without a result: ingest lab 2025-03-01 2025-03-04") and line.endswith("; repeat it")
    assert told(capsys, "2024-01-01", "2024-02-01") == []
    assert main(["ingest", "lab", "2025-03-03", "2025-03-04"]) == 0
    capsys.readouterr()
    assert told(capsys) == []


def test_an_attempt_that_ends_leaves_nothing_however_it_ends(home: Home) -> None:
    days = Days(day(0), day(2))
    with attempted(home, Attempt.now("a b/c", "detect", "lab", days, None)):
        assert cut_off(home) == [], "this process holds it"
        assert len(list(home.temporary.glob("attempt-*"))) == 1
    for error in (InputError("no"), KeyboardInterrupt()):
        with pytest.raises(type(error)), attempted(home, Attempt.now("r", "detect", "lab", days, ["near"])):
            raise error
    assert list(home.temporary.glob("attempt-*")) == []
    Path(home.temporary, "attempt-cut.json").write_text('{"run_id": "r"')
    assert cut_off(home) == []


@pytest.mark.parametrize(
    ("step", "days", "names", "later", "covered"),
    [
        ("detect", (0, 3), None, 1, True),
        ("detect", (0, 3), ("near", "far"), 1, True),
        ("detect", (0, 3), ("near",), 1, False),
        ("detect", (1, 3), None, 1, False),
        ("detect", (0, 2), None, 1, False),
        ("detect", (0, 3), None, -1, False),
        ("monitor", (0, 3), None, 1, False),
    ],
)
def test_which_attempts_repeat_another(
    step: str, days: tuple[int, int], names: tuple[str, ...] | None, later: int, covered: bool
) -> None:
    began = datetime(2025, 3, 9, tzinfo=UTC)
    killed = Attempt("k", "detect", "lab", Days(day(0), day(3)), ("near", "far"), began, "process 1")
    span = Days(day(days[0]), day(days[1]))
    again = Attempt("a", step, "lab", span, names, began + timedelta(seconds=later), "process 2")
    assert again.covers(killed) is covered
    every = Attempt("k", "detect", "lab", Days(day(0), day(3)), None, began, "process 1")
    assert again.covers(every) is (covered and names is None)


def test_events_that_a_dead_ingest_has_half_changed_are_named(lab: Home, capsys: pytest.CaptureFixture[str]) -> None:
    deliver(lab, {1: readings(1)}, status="changing")
    marked = "events.lab is marked as being changed on 1 day from 2025-03-02"
    with file_lock(lab, "source-lab"):
        assert main(["status"]) == 0 and marked not in capsys.readouterr().out
    assert main(["status"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(marked)]
    assert line.endswith("Repeat the ingest: run 'chainlake ingest lab 2025-03-02 2025-03-03'.")
