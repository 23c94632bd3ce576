"""A process that imports Airflow once and forks its components, since separate imports would cost seconds each.

The scheduler's task processes are forks, too, and so start with everything imported.

Protocol: a line ``start NAME ARGUMENT…`` on stdin forks a component; stdout gets the lines ``started NAME PID`` and
``ended NAME PID CODE``. The end of stdin ends the nursery, whose end ends the components (by the kernel's death
signal).
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import sys
import traceback
from pathlib import Path

from chainlake.env.processes.child import die_with_parent

#: Modules that the components and the tasks import anyway.
PRELOAD = (
    "airflow.__main__",
    "airflow.cli.commands.scheduler_command",
    "airflow.jobs.scheduler_job_runner",
    "airflow.executors.local_executor",
    "airflow.dag_processing.manager",
    "airflow.dag_processing.processor",
    "airflow.sdk.execution_time.supervisor",
    "airflow.sdk.execution_time.task_runner",
    "airflow.serialization.serialized_objects",
    "airflow.providers.standard.decorators.sensor",
    "airflow.providers.standard.decorators.python",
    "chainlake.airflow.dag",
)
_LOOK_S = 0.2


def _run_component(arguments: list[str], log: Path) -> None:
    """In the forked process, become the Airflow command ``arguments`` with its output in ``log``; does not return."""
    code = 1
    try:
        with open(os.devnull) as nothing, open(log, "ab") as out:
            os.dup2(nothing.fileno(), 0)
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
        sys.argv = ["airflow", *arguments]
        from airflow.__main__ import main as airflow

        airflow()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _start(arguments: list[str], log: Path, close: list[int]) -> int:
    prepare = die_with_parent(signal.SIGKILL)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        prepare()
        for descriptor in close:
            os.close(descriptor)
        _run_component(arguments, log)
    os.setpgid(pid, pid)
    return pid


def main(folder: Path) -> None:
    """Serve requests until stdin ends.

    Args:
        folder: where the components' logs go, one file each.
    """
    answers = os.dup(1)
    with open(folder / "nursery.log", "ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    for module in PRELOAD:
        importlib.import_module(module)
    running: dict[int, str] = {}
    waiting = b""

    def tell(*words: object) -> None:
        os.write(answers, (" ".join(str(word) for word in words) + "\n").encode())

    while True:
        if select.select([0], [], [], _LOOK_S)[0]:
            block = os.read(0, 4096)
            if not block:
                return
            *lines, waiting = (waiting + block).split(b"\n")
            for line in lines:
                _, name, *arguments = line.decode().split(" ")
                pid = _start(arguments, folder / f"{name}.log", [answers])
                running[pid] = name
                tell("started", name, pid)
        for pid, name in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del running[pid]
                tell("ended", name, pid, os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
