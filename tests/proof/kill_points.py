"""``make kill-proof``: three days through a real launcher, scheduler and Spark, with ``kill -9`` at named points.

Each kill hits one process (a Spark driver's Python or its JVM, the task, the scheduler, the launcher) at a point that
:mod:`tests.proof.points` names. Nothing is repaired by hand: Airflow retries, the launcher restarts the scheduler, and
a killed launcher is started again. After each kill everything that worked for the attempt must be gone, and no day may
be published by half; at the end the tables must be those of an undisturbed run by hand, and no process and no lock may
be left. Exit code 0 if so, else 1. Takes ten to fifteen minutes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.env.processes.child import die_with_parent
from chainlake.errors import InfrastructureError
from chainlake.ingest.step import ingest
from chainlake.lake.spark.session import stop_session
from chainlake.local.api import Api, ApiUnreachable, day_of_run
from chainlake.local.command import running_api
from chainlake.local.run.chain import OPEN_STATES
from chainlake.local.run.progress import Progress
from chainlake.monitoring.step import monitor
from chainlake.paths import PROJECT, Home
from tests.proof.points import DETECT, INGEST, MONITOR, Attempt, Point
from tests.proof.scheduler_replay import end
from tests.proof.small import DAYS, control, deliver, differences, in_folder, installation, print_tables
from tests.proof.traces import half_published, held_locks, unsettled
from tests.proof.victims import Family, Victims, all_of, described, send, wait_gone
from tests.steps.history import day

STEPS = {"ingest": INGEST, "detect": DETECT, "monitor": MONITOR}
#: Step, number of its day, point, and what is killed there; a task has three tries, so two kills a day and step.
PLAN = (
    ("ingest", 0, "reading", "driver"),
    ("ingest", 0, "raw", "jvm"),
    ("ingest", 1, "changing", "driver"),
    ("ingest", 1, "events", "scheduler"),
    ("ingest", 2, "quarantine", "task"),
    ("ingest", 2, "files", "launcher"),
    ("detect", 0, "matching", "jvm"),
    ("detect", 0, "audit", "scheduler"),
    ("detect", 1, "publishing", "launcher"),
    ("detect", 1, "published", "driver"),
    ("detect", 2, "second", "task"),
    # The model changes on the third day only.
    ("monitor", 1, "metrics", "scheduler"),
    ("monitor", 2, "changes", "driver"),
    ("monitor", 2, "done", "driver"),
)
#: Points that must have been hit exactly.
ENOUGH = 10
#: Longest wait for a point, for the end of processes, and for a start of Airflow.
POINT_S = 120.0
GONE_S = 20.0
START_S = 120.0
#: Longest time for all of it: a run that waits for ever has not recovered.
TOTAL_S = 1200.0
#: A killed task or scheduler is noticed within a second; the step's processes stand still for that time, so that the
#: attempt ends at the point.
HOLD_S = 2.0
LOOK_S = 0.001


@dataclass
class Kill:
    """One kill of the plan, and what came of it."""

    step: str
    n: int
    point: Point
    target: str
    exact: bool = False
    at: float = 0.0
    gone_s: float = 0.0
    recovered_s: float = 0.0

    def line(self, number: int) -> str:
        """For the report."""
        what = f"{number:2} {self.target:<9} {self.step:<7} {day(self.n)}  {self.point.name}"
        if not self.at:
            return f"{what}: NOT REACHED"
        what += "" if self.exact else " (and a moment later)"
        return f"{what:<90} gone after {self.gone_s:4.1f} s, recovered after {self.recovered_s:5.1f} s"


class Proof:
    """The disturbed run.

    Args:
        home: the installation that is disturbed.
        whole: the installation of the undisturbed run.
        progress: where to tell what happens.
    """

    def __init__(self, home: Home, whole: Home, progress: Progress) -> None:
        self.kills = [Kill(step, n, STEPS[step][point], target) for step, n, point, target in PLAN]
        self.problems: list[str] = []
        self._home = home
        self._whole = whole
        self._progress = progress
        self._output = home.root / "launcher.txt"
        self._launcher: subprocess.Popen[bytes] | None = None
        self._api = Api("")
        self._end = time.monotonic() + TOTAL_S

    def run(self) -> None:
        """Start Airflow, take the days through every step and strike; stops Airflow however it ends."""
        try:
            self._start()
            self._unpause()
            # Not earlier: the runs of yesterday, made by unpausing, would take all files.
            _land(self._home)
            for step in STEPS:
                self._step(step)
            self._stop()
        finally:
            if self._launcher is not None:
                self._launcher.kill()
                self._launcher.wait()

    def _start(self) -> None:
        with open(self._output, "ab") as out:
            begin = out.tell()
            self._launcher = subprocess.Popen(
                [sys.executable, "-m", "chainlake.local.run.serve"],
                cwd=PROJECT,
                stdout=out,
                stderr=out,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
        end = time.monotonic() + START_S
        while "Ctrl-C stops it" not in self._output.read_text()[begin:]:
            if self._launcher.poll() is not None or time.monotonic() > end:
                raise InfrastructureError(f"Airflow did not start: {self._output.read_text()[-1000:]}")
            time.sleep(0.1)
        self._api = running_api(self._home)

    def _stop(self) -> None:
        """End Airflow as a user does, and see that nothing is left."""
        assert self._launcher is not None
        self._launcher.send_signal(signal.SIGTERM)
        self._launcher.wait(60)
        self._launcher = None
        self.problems += [f"process left at the end: {described(process)}" for process in all_of(self._home)]
        self.problems += held_locks(self._home)
        self.problems += unsettled(self._home)

    def _unpause(self) -> None:
        """Unpause the daily DAGs, and wait for the runs of yesterday that this makes."""
        for step in STEPS:
            self._api.pause(f"{step}_lab", False)
            while not any(run["state"] not in OPEN_STATES for run in self._api.runs([f"{step}_lab"])):
                self._pause(f"the run for yesterday of {step}_lab")

    def _step(self, step: str) -> None:
        """All days of a step by one backfill, with the kills that are planned in it."""
        dag_id = f"{step}_lab"
        waiting = [kill for kill in self.kills if kill.step == step]
        # The first point can be reached before the command has ended.
        armed = self._arm(waiting[0]) if waiting[0].n == 0 else None
        words = ["backfill", "create", "--dag-id", dag_id, "--from-date", str(day(0)), "--to-date", str(day(DAYS - 1))]
        command = subprocess.Popen(
            [sys.executable, "-m", "chainlake.local.command", *words, "--max-active-runs", "1"],
            cwd=PROJECT,
            stdout=subprocess.DEVNULL,
        )
        if armed is not None:
            self._strike(waiting.pop(0), *armed)
        if command.wait() != 0:
            raise InfrastructureError(f"airflow {' '.join(words)} failed")
        while True:
            states = self._states(dag_id)
            self._settle(step, states)
            failed = [str(one) for one, state in states.items() if state == "failed"]
            if failed:
                raise InfrastructureError(f"{dag_id} failed for good on {', '.join(failed)}: it wants repair by hand")
            if waiting and states.get(day(waiting[0].n)) == "success":
                self._progress.say(f"not reached: {waiting.pop(0).point.name}")
            elif waiting and states.get(day(waiting[0].n)) == "running":
                self._strike(waiting[0], *self._arm(waiting.pop(0)))
            elif len(states) == DAYS and set(states.values()) == {"success"}:
                return
            self._pause(f"the runs of {dag_id}: {states}")

    def _arm(self, kill: Kill) -> tuple[Attempt, Family]:
        """What there is before the point is waited for."""
        assert self._launcher is not None
        return Attempt(self._home, kill.point), Family(Victims(self._home, self._launcher.pid).keeper)

    def _pause(self, what: str) -> None:
        if time.monotonic() > self._end:
            raise InfrastructureError(f"still waiting after {TOTAL_S:.0f} s for {what}")
        time.sleep(0.3)

    def _states(self, dag_id: str) -> dict[date, str]:
        """State of the run of each day; nothing while the API server is away."""
        try:
            runs = self._api.runs([dag_id])
        except ApiUnreachable:
            return {}
        wanted = {day(n) for n in range(DAYS)}
        return {one: str(run["state"]) for run in runs if (one := day_of_run(run)) in wanted and one is not None}

    def _settle(self, step: str, states: dict[date, str]) -> None:
        """Note since when the runs that were disturbed have ended well."""
        for kill in self.kills:
            if kill.step == step and kill.at and not kill.recovered_s and states.get(day(kill.n)) == "success":
                kill.recovered_s = time.monotonic() - kill.at

    def _strike(self, kill: Kill, attempt: Attempt, family: Family) -> None:
        """Wait for the point and kill."""
        assert self._launcher is not None
        end = time.monotonic() + POINT_S
        while not attempt.reached():
            if time.monotonic() > end:
                self._progress.say(f"not reached within {POINT_S:.0f} s: {kill.point.name}")
                return
            family.look()
            time.sleep(LOOK_S)
        family.freeze()
        kill.exact = attempt.exact()
        victims = Victims(self._home, self._launcher.pid)
        send(victims.step, signal.SIGSTOP)
        self._settle_earlier(kill)
        kill.at = time.monotonic()
        targets, leave = victims.chosen(kill.target)
        send(targets, signal.SIGKILL)
        if kill.target in ("task", "scheduler"):
            time.sleep(HOLD_S)
        send(victims.step, signal.SIGCONT)
        family.thaw()
        if kill.target == "launcher":
            self._launcher.wait()
        left = wait_gone(leave, GONE_S)
        kill.gone_s = time.monotonic() - kill.at
        self.problems += [f"{kill.point.name}: still there after the kill: {described(process)}" for process in left]
        self.problems += [f"{kill.point.name}: {line}" for line in half_published(self._home, self._whole)]
        self._progress.say(
            f"kill -9 of the {kill.target} ({len(targets)}) in {kill.step} {day(kill.n)}: {kill.point.name}"
            f"{'' if kill.exact else ' (and a moment later)'}; {len(leave)} processes gone after {kill.gone_s:.1f} s"
        )
        if kill.target == "launcher":
            self._start()

    def _settle_earlier(self, kill: Kill) -> None:
        """An attempt that has come to a later point of its run has recovered from the kill before."""
        for earlier in self.kills:
            if (earlier.step, earlier.n) == (kill.step, kill.n) and earlier.at and not earlier.recovered_s:
                earlier.recovered_s = time.monotonic() - earlier.at


def main() -> int:
    """Run both, compare, report; 0 if nothing is left behind and the tables are the same, else 1."""
    return in_folder("chainlake-kill-proof-", _proof)


def _proof(root: Path) -> int:
    progress = Progress()
    whole = _undisturbed(root / "undisturbed")
    progress.say("the undisturbed run, by hand, is done")
    home = installation(root / "killed")
    proof = Proof(home, whole, progress)
    proof.run()
    problems = proof.problems + differences(whole, home)
    progress.say("the disturbed run is done")
    print_tables(whole, home)
    for number, kill in enumerate(proof.kills, 1):
        print(kill.line(number))
    exact = {(kill.step, kill.point.name) for kill in proof.kills if kill.exact}
    if len(exact) < ENOUGH:
        problems.append(f"only {len(exact)} points were hit exactly, {ENOUGH} are wanted")
    for line in problems:
        print(f"PROBLEM: {line}")
    seen = control(whole, home)
    verdict = "see the problems" if problems else "same tables, no process and no lock left, no day by half"
    print(f"kill -9 at {len(exact)} points: {verdict}")
    return 1 if problems or not seen else 0


def _land(home: Home) -> None:
    """All files of all days, each dated."""
    for n in range(DAYS):
        deliver(home.landing("lab"), n, all_hours=True)


def _undisturbed(root: Path) -> Home:
    """The same days by hand, in one go."""
    home, days = installation(root), Days(day(0), day(DAYS))
    _land(home)
    for name, step in (("ingest", ingest), ("detect", detect), ("monitor", monitor)):
        step(home, "lab", days, run_id=name)
    stop_session()
    # Spark has taken Ctrl-C for itself.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return home


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = str(PROJECT)
    end(main)
