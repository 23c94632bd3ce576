"""``make kill-random``: steps by hand, each killed at a random moment and tried again, against steps nobody killed.

Every history lands three days and a late file, and runs ingest, detect and monitor for each, then a backfill and
maintenance; each run is killed with SIGKILL (the process, or all of its group) at a moment drawn from the time that it
took when nobody killed it, up to twice, and is then left alone. At the end no day may be half published or between two
states, no lock may be held, ``check`` must find nothing, and the tables must be those of the history nobody killed.
Work is done in the process itself; every tenth history leaves it to Spark. With ``--store`` the lakes of those that are
killed lie in an object store, and that of the history nobody killed on the disk. Exit code 0 if all is so, else 1.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.env.processes.child import die_with_parent
from chainlake.env.processes.ending import end
from chainlake.ingest.step import ingest
from chainlake.lake.records.runs import new_run_id
from chainlake.lake.store.files import FilesLake
from chainlake.monitoring.step import monitor
from chainlake.paths import PROJECT, Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from tests.proof.s3proxy import BUCKET, serving
from tests.proof.small import DAYS, control, deliver, differences, in_folder, installation
from tests.proof.traces import half_published, held_locks, unsettled
from tests.steps.history import day

STEPS: dict[str, Callable[..., object]] = {"ingest": ingest, "detect": detect, "monitor": monitor}
#: A run is killed this often at most before it is left alone.
_MOST_KILLS = 2
#: Every so many histories Spark does the work.
_SPARK_EVERY = 10
#: A run that takes longer than this hangs.
_MOST_S = 600


@dataclass(frozen=True)
class Command:
    """A run of a history: a step on one day, or a verb of the command line."""

    verb: str
    days: Days | None

    @property
    def name(self) -> str:
        """As it is printed."""
        return self.verb if self.days is None else f"{self.verb} {self.days}"

    def arguments(self, spark: bool) -> list[str]:
        """What runs it."""
        days = [] if self.days is None else [f"{self.days.start}", f"{self.days.end}"]
        if self.verb not in STEPS:
            return ["-m", "chainlake", self.verb, *days]
        return ["-m", "chainlake" if spark else "tests.proof.kill_anywhere", self.verb, "lab", *days]


@dataclass
class Tally:
    """What was killed, and what was wrong afterwards."""

    kills: list[str] = field(default_factory=list)
    ended: int = 0
    wrong: list[str] = field(default_factory=list)


def history() -> Iterator[tuple[tuple[int, bool] | None, Command]]:
    """The runs of a history, each with the file that lands before it: number of its day, and whether it is late."""
    every = Days(day(0), day(DAYS))
    for landing, days in [((n, False), Days.one(day(n))) for n in range(DAYS)] + [((0, True), Days.one(day(DAYS)))]:
        for step in STEPS:
            yield (landing if step == "ingest" else None), Command(step, days)
    yield None, Command("backfill", every)
    yield None, Command("maintain", None)
    yield None, Command("backfill", every)


def run(home: Home, spark: bool, kill: Callable[[Command, int], float | None], tally: Tally) -> dict[str, float]:
    """Run a history, and tell how long each run took; ``kill`` says after how many seconds a try is killed."""
    took = {}
    for landing, command in history():
        if landing is not None:
            deliver(home.landing("lab"), landing[0], late=landing[1])
        for tried in range(_MOST_KILLS + 1):
            begin = time.monotonic()
            ended = _tried(command, spark, kill(command, tried), tally)
            if ended:
                took[command.name] = time.monotonic() - begin
                break
    return took


def _tried(command: Command, spark: bool, after: float | None, tally: Tally) -> bool:
    """Whether a try came to its end."""
    with open(os.devnull) as nothing:
        process = subprocess.Popen(
            [sys.executable, *command.arguments(spark)], cwd=PROJECT, stdin=nothing, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True, preexec_fn=die_with_parent(),
        )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=_MOST_S if after is None else after)
    except subprocess.TimeoutExpired:
        whole = len(tally.kills) % 2 == 0
        (os.killpg if whole else os.kill)(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        if after is None:
            tally.wrong.append(f"{command.name} hung: {said[-2000:]}")
            return True
        tally.kills.append(f"{command.name} after {after:.2f} s, {'all of it' if whole else 'the process alone'}")
        return False
    tally.ended += 1
    if process.returncode:
        tally.wrong.append(f"{command.name} ended with {process.returncode}: {said[-2000:]}")
    return True


def _checked(home: Home, whole: Home) -> list[str]:
    """What the kills left behind."""
    check = subprocess.run([sys.executable, "-m", "chainlake", "check"], cwd=PROJECT, capture_output=True, text=True)
    found = [f"check: {check.stdout[-2000:]}{check.stderr[-2000:]}"] if check.returncode else []
    return found + differences(whole, home) + half_published(home, whole) + unsettled(home) + held_locks(home)


def proof(root: Path, kills: int, seed: int, lakes: str) -> int:
    """Kill that often; 0 if nothing was lost by it.

    Args:
        root: for the installations.
        kills: how many.
        seed: draws the moments.
        lakes: the place in a store of the lakes that runs are killed on; empty if they lie on the disk.
    """

    def place(name: str) -> str | None:
        return f"{lakes}/{name}" if lakes else None

    def timed(name: str, spark: bool) -> dict[str, float]:
        """How long the runs take that nobody kills."""
        return run(installation(root / name, place(name)), spark, lambda command, tried: None, tally)

    whole, tally = installation(root / "whole"), Tally()
    took = run(whole, False, lambda command, tried: None, tally)
    if lakes:
        took = timed("whole-store", False)
    spark_took: dict[str, float] = {}
    pick, number = random.Random(seed), 0
    last = whole
    while len(tally.kills) < kills and not tally.wrong:
        number += 1
        spark = number % _SPARK_EVERY == 0
        if spark and not spark_took:
            spark_took = timed("whole-spark", True)
        times = spark_took if spark else took

        def kill(command: Command, tried: int, times: dict[str, float] = times) -> float | None:
            lost = tried < _MOST_KILLS and pick.random() < 0.5 and len(tally.kills) < kills
            return pick.uniform(0.05, 1.0) * times[command.name] if lost else None

        last = installation(root / f"killed-{number}", place(f"killed-{number}"))
        before = len(tally.kills)
        run(last, spark, kill, tally)
        tally.wrong += [f"{last.root.name}: {line}" for line in _checked(last, whole)]
        print(f"history {number}{' by Spark' if spark else ''}: {len(tally.kills) - before} kills", flush=True)
    for line in tally.kills + tally.wrong:
        print(f"  {line}")
    seen = bool(tally.wrong) or control(whole, last)
    print(f"seed {seed}: {len(tally.kills)} kills, {tally.ended} runs to the end, {len(tally.wrong)} faults")
    return 1 if tally.wrong or not seen else 0


def _victim(verb: str, source: str, start: str, until: str) -> NoReturn:
    """A step whose work is done in this process, which ends as those of the command line do."""
    home = Home.from_env()
    ports = Ports(LocalTasks(), FilesLake(home))
    STEPS[verb](home, source, Days.parse(start, until), run_id=new_run_id(verb), ports=ports)
    end(0)


def main(argv: list[str]) -> int:
    """Run the proof, or one step of it."""
    if argv and argv[0] in STEPS:
        _victim(*argv)
    parser = argparse.ArgumentParser(prog="python -m tests.proof.kill_anywhere", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="how many (default 50)")
    parser.add_argument("--seed", type=int, help="draws the moments; a new one if omitted")
    parser.add_argument("--store", action="store_true", help="the lakes lie in an object store (S3Proxy)")
    args = parser.parse_args(argv)
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(2**32)

    def body(root: Path) -> int:
        if not args.store:
            return proof(root, args.kills, seed, "")
        with serving(root, Home.from_env().cache):
            return proof(root, args.kills, seed, f"s3://{BUCKET}")

    return in_folder("chainlake-kills-", body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
