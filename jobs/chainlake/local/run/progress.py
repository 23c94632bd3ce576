"""What ``make run`` shows while it works: a line for each run that ended, and what is running now."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import Any

from chainlake.airflow.names import GATE
from chainlake.local.api import Api, ApiError
from chainlake.local.run.chain import Chain, DagRun
from chainlake.terminal import for_commands, one_line

#: Without a terminal, a sign of life is printed after this many seconds of silence.
QUIET_S = 20.0
#: How often tasks are looked at, seconds, with and without a terminal: often enough to see a failed try before the next
#: one. Each look costs the API server CPU time that the steps could use.
LOOK_S, QUIET_LOOK_S = 2.0, 5.0
_ACTIVE = ("running", "queued", "up_for_retry", "up_for_reschedule")


class Progress:
    """Prints progress; times are seconds since the object was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._terminal = sys.stdout.isatty()
        self._shown = ""
        self._last_line = self._start
        self._looked = 0.0
        self._tries: dict[str, int] = {}

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._clear()
        print(f"[{time.monotonic() - self._start:4.0f}s] {text}", flush=True)
        self._last_line = time.monotonic()

    def _clear(self) -> None:
        if self._shown:
            for_commands(sys.stdout).write("\r" + " " * len(self._shown) + "\r")
            self._shown = ""

    def now(self, text: str) -> None:
        """Show what is going on: on a terminal in a line that is overwritten, otherwise in a line now and then."""
        if self._terminal:
            self._clear()
            self._shown = one_line(f"       {text}")[:110]
            print(self._shown, end="", flush=True)
        elif time.monotonic() - self._last_line > QUIET_S:
            self.say(text)

    def ended(self, api: Api, run: DagRun) -> None:
        """Print how a run ended, and the reason if it failed."""
        what = f"{run.dag_id:<16} {run.day}"
        if run.skipped:
            self.say(f"{what}  skipped: {run.skipped}")
        elif run.state == "success":
            self.say(f"{what}  ok       {run.seconds:5.1f} s")
        else:
            for task in failed_tasks(api, run):
                self.say(f"{what}  FAILED   {task['task_id']}: {reason(api, task, int(task['try_number']))}")

    def tasks(self, api: Api, chain: Chain) -> None:
        """Show the tasks that are running or waiting, and report attempts that failed and will be repeated."""
        runs = {(run.dag_id, run.run_id): run for run in chain.runs if run.asked and not run.ended}
        now = time.monotonic()
        if not runs or now - self._looked < (LOOK_S if self._terminal else QUIET_LOOK_S):
            return
        self._looked = now
        shown = []
        for task in api.task_instances({run.dag_id for run in runs.values()}, _ACTIVE):
            run = runs.get((task["dag_id"], task["dag_run_id"]))
            if run is None:
                continue
            self._failed_try(api, run, task)
            state = "" if task["state"] == "running" else f" ({str(task['state']).replace('_', ' ')})"
            if task["task_id"] == GATE:
                state = " (waits for the events of its day)"
            name = "" if run.dag_id.startswith(task["task_id"]) or task["task_id"] == GATE else f" {task['task_id']}"
            shown.append(f"{run.dag_id} {run.day}{name}{state}")
        if shown:
            self.now("now: " + ", ".join(sorted(shown)))

    def _failed_try(self, api: Api, run: DagRun, task: dict[str, Any]) -> None:
        if task["state"] != "up_for_retry" or self._tries.get(task["id"]) == task["try_number"]:
            return
        self._tries[task["id"]] = task["try_number"]
        attempt = int(task["try_number"])
        why = reason(api, task, attempt)
        self.say(f"{run.dag_id:<16} {run.day}  try {attempt} of {task['task_id']} failed, trying again: {why}")


def failed_tasks(api: Api, run: DagRun) -> list[dict[str, Any]]:
    """The failed task instances of a run."""
    return [t for t in api.task_instances([run.dag_id], ["failed"]) if t["dag_run_id"] == run.run_id]


def reason(api: Api, task: dict[str, Any], attempt: int) -> str:
    """Why an attempt of a task failed, from its log: the last error of Chainlake's, or else the last error of any."""
    try:
        records = api.log(task, max(attempt, 1))
    except ApiError as error:
        return f"its log cannot be read ({error.what})"
    return _last_error(records) or f"see its log on the Airflow page ({api.page})"


def _last_error(records: Iterable[dict[str, Any]]) -> str:
    ours, any_error = "", ""
    for record in records:
        if str(record.get("level", "")).lower() in ("error", "critical"):
            text = str(record.get("event", "")).strip()
            details = record.get("error_detail") or []
            if details and isinstance(details[-1], dict):
                text = f"{details[-1].get('exc_type')}: {details[-1].get('exc_value')}"
            any_error = " ".join(text.split()) or any_error
            if record.get("logger") == "chainlake":
                ours = any_error
    return (ours or any_error)[:600]
