"""The processes that a proof of a lake in a store starts: each does one thing on the home of its environment."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from datetime import date

from chainlake.days import Days
from chainlake.env.processes.ending import end
from chainlake.lake.leases.conditional import require_conditional_writes
from chainlake.lake.records import ops
from chainlake.lake.records.runs import new_run_id
from chainlake.lake.store.files import FilesLake
from chainlake.paths import Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from chainlake.schemas.ops_rows import RateRow
from chainlake.storage.errors import StoreFailed
from tests.proof.history import STEPS, environment, without_pages
from tests.proof.processes import Program

#: How many rows a racer appends.
APPENDS = 8
#: A holder sleeps until it is killed, and no longer than this.
_HOLD_S = 86_400
#: A process in it has another machine's name, and neither sees the processes outside nor is it seen by its number.
_MACHINE = (
    "unshare",
    "--uts",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "sh",
    "-c",
    'hostname "$0"; exec "$@"',
)


def can_be_elsewhere() -> bool:
    """Whether processes can be as if on other machines."""
    return sys.platform.startswith("linux") and os.geteuid() == 0


def child(home: Home, *words: str, machine: str = "", **more: str) -> Program:
    """A process of this module that works on ``home``; its log lies in the folder of the home.

    Args:
        home: the installation.
        words: what it does.
        machine: the name of the machine that it is on; this one if empty.
        more: of its environment.
    """
    command = [sys.executable, "-m", "tests.proof.store_child", *words]
    where = [*_MACHINE, machine] if machine else []
    return Program([*where, *command], home.root / f"{'-'.join(words)}.log", environment(home, more))


def _append(home: Home, racer: str) -> None:
    row: RateRow = {"source": "race", "day": date(1970, 1, 1), "type": "t", "key": "k", "events": 1}
    for number in range(APPENDS):
        ops.append(home, "rates", [row], f"race-{racer}-{number}")


def _hold(home: Home, name: str) -> None:
    from chainlake.lake.leases import machine
    from chainlake.lake.locks import file_lock

    if name.startswith("elsewhere"):
        # As a process of another machine, whose life cannot be seen from here.
        machine._machine = lambda: name
    with file_lock(home, f"proof-{name.partition('-')[0]}"):
        print("held", flush=True)
        time.sleep(_HOLD_S)


def _publish(home: Home, name: str) -> None:
    from chainlake.lake.locks import file_lock
    from tests.lake.late import PURPOSE, publish

    with file_lock(home, PURPOSE):
        publish(FilesLake(home), name)


def _step(home: Home, name: str, source: str, start: str, until: str) -> int:
    from chainlake.errors import ChainlakeError
    from chainlake.lake.upkeep.damage import explained

    without_pages()
    ports = Ports(LocalTasks(), FilesLake(home))
    try:
        days = Days.parse(start, until)
        STEPS[name](home, source, days, run_id=new_run_id(name), ports=ports)
    except Exception as error:  # as the command line does
        found = explained(home, error)
        print(found)
        return found.exit_code if isinstance(found, ChainlakeError) else 1
    return 0


def main(words: Sequence[str]) -> int:
    """Do it."""
    home = Home.from_env()
    if words[0] == "probe":
        try:
            require_conditional_writes(home)
        except StoreFailed as error:
            print(error)
            return error.exit_code
    elif words[0] in STEPS:
        return _step(home, *words)
    else:
        {"append": _append, "hold": _hold, "publish": _publish}[words[0]](home, words[1])
    return 0


if __name__ == "__main__":
    end(main(sys.argv[1:]))
