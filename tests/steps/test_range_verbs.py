"""plan, backfill and restate on the command line: what they say, exit codes, and how children are called."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from chainlake.cli.main import _parser, main, module_of
from chainlake.days import Days
from chainlake.env.processes.child import wait_until
from chainlake.operations.backfills import launch
from chainlake.operations.backfills.applications import Application
from chainlake.operations.backfills.plan import plan_range
from chainlake.paths import PROJECT, Home
from tests.steps.history import configured, day, deliver, pattern, readings

pytestmark = pytest.mark.slow


@pytest.fixture
def lab(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Three days of events, one pattern and a model, found by the command line."""
    made = configured(home, near=pattern())
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(made.config))
    deliver(made, {n: readings(n) for n in range(3)})
    return made


def test_plan_shows_what_would_be_done(lab: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "2025-03-01", "2025-03-04", "--chunk", "2d"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "application definition days why reads events published rows",
        "detect lab 2025-03-01 2025-03-03 pattern/near 2 2 missing 2025-02-28 2025-03-03 16 0",
        "detect lab 2025-03-03 2025-03-04 pattern/near 1 1 missing 2025-03-02 2025-03-04 16 0",
        "monitor lab 2025-03-02 2025-03-03 model/slope 1 1 missing 2025-03-02 2025-03-03 8 0",
        "monitor lab 2025-03-03 2025-03-04 model/slope 1 1 missing 2025-03-03 2025-03-04 8 0",
        "4 Spark applications for 2 definitions, with 5 days to compute",
    ]
    assert not Path(lab.table("ops", "intervals")).exists()
    assert main(["plan", "2025-03-01", "2025-03-04", "--patterns", "near", "--json"]) == 0
    (application,) = json.loads(capsys.readouterr().out)["applications"]
    assert application["definitions"][0]["days"] == ["2025-03-01", "2025-03-02", "2025-03-03"]
    assert main(["plan", "2025-03-01", "2025-03-04", "--patterns", "nil"]) == 2
    with pytest.raises(SystemExit) as raised:
        main(["plan", "2025-03-01", "2025-03-04", "--chunk", "0d"])
    assert raised.value.code == 2


def test_a_broken_definition_is_an_exit_code_and_hides_nothing(lab: Home, capsys: pytest.CaptureFixture[str]) -> None:
    (lab.config / "patterns" / "wrong.sase").write_text(pattern().replace("p.x", "p.z"))
    assert main(["plan", "2025-03-01", "2025-03-02", "--patterns", "near", "wrong"]) == 3
    out = capsys.readouterr().out
    assert "pattern/near" in out and "cannot be computed: pattern/wrong" in out


@pytest.mark.parametrize("only_stale", [False, True])
def test_the_steps_understand_what_a_child_is_told(lab: Home, only_stale: bool) -> None:
    for application in plan_range(lab, Days(day(0), day(3))).applications:
        first = application.parts[0]
        kind, name = first.definition.split("/")
        others = [replace(first, definition=f"{one}/{name}2") for one in (kind, "episodes")]
        parts = (*application.parts, *others)
        asked = Application(application.step, "lab", application.days, only_stale, parts)
        words = launch.command_of(asked, "r.1")
        args = _parser(words[0], importlib.import_module(module_of(words[0]))).parse_args(words[1:])
        assert (args.repair_horizon, args.only_stale, args.run_id) == (0, only_stale, "r.1")
        names = args.pattern if application.step == "detect" else args.model
        assert names == [name, f"{name}2"]
        assert Days.parse(args.start, args.end) == application.days


def test_a_child_that_fails_is_an_error_of_its_exit_code(
    lab: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        launch, "command_of", lambda application, run_id: ["detect", "road", "2025-03-01", "2025-03-02"]
    )
    assert main(["backfill", "2025-03-01", "2025-03-04", "--patterns", "near"]) == 2
    said = capsys.readouterr()
    assert "no source 'road'" in said.out and "[1/1] failed" in said.out
    assert "no source 'road'" in said.err


def test_what_a_killed_backfill_leaves_lies_in_the_home(lab: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    places = []

    def run(command: list[str], **rest: object) -> int:
        places.append(Path(command[command.index("--result") + 1]).parent)
        return 5

    monkeypatch.setattr(launch, "run_child", run)
    assert main(["backfill", "2025-03-01", "2025-03-04", "--patterns", "near"]) == 5
    assert {place.parent for place in places} == {lab.temporary}


def test_a_backfill_can_be_stopped(lab: Home) -> None:
    program = (
        "import sys, time\n"
        "from chainlake.operations.backfills import launch\n"
        "def run(command, **rest):\n"
        "    print('at work', flush=True)\n"
        "    time.sleep(60)\n"
        "launch.run_child = run\n"
        "from chainlake.cli.main import main\n"
        "sys.exit(main(['backfill', '2025-03-01', '2025-03-04', '--patterns', 'near']))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=PROJECT, stdout=subprocess.PIPE, env=os.environ)
    assert process.stdout is not None
    seen = b""
    while b"at work" not in seen:
        seen += process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert wait_until(lambda: process.poll() is not None, 30)
    assert process.returncode == 130 and b"continues where this one stopped" in process.stdout.read()
