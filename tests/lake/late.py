"""A process that holds a lock, is paused on its way to a commit, and comes back late."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from chainlake.lake.delta import tables
from chainlake.lake.locks import file_lock
from chainlake.lake.store import delta_commits
from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.port import Part, Staged, Turn
from chainlake.paths import PROJECT, Home
from tests.lake.things import THINGS, thing, things

if TYPE_CHECKING:
    from chainlake.lake.store.port import Lake

PURPOSE = "table-matches.things"
#: Where it pauses: with its rows at hand, or when it has made sure of its lock and is about to commit.
BEFORE, BETWEEN = "before it asks", "after it has asked"


def publish(lake: Lake, name: str) -> None:
    """Make a table of one row, as a writer that holds its lock."""
    lake.commit(lake.change(THINGS, Staged(rows=things([thing(name)])), Part([[]])), Turn(PURPOSE))


def late_commit(home: Home, where: str, replaced: Callable[[int], None]) -> str:
    """How the commit of a holder ended that was paused, and while it was, another one published.

    Args:
        home: the installation; its locks are seen by other machines.
        where: where the holder pauses.
        replaced: makes the lock free of it, given its process.
    """
    command = [sys.executable, "-m", "tests.lake.late", home.lake, where]
    with subprocess.Popen(command, cwd=PROJECT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == f"{where}\n"
            holder.send_signal(signal.SIGSTOP)
            replaced(holder.pid)
            with file_lock(home, PURPOSE, wait_s=30.0):
                publish(FilesLake(home), "newer")
            holder.send_signal(signal.SIGCONT)
            return holder.communicate("\n")[0].strip()
        finally:
            holder.kill()


def rows(home: Home) -> list[str]:
    """What is published."""
    names: list[str] = tables.arrow(home, "matches", "things")["id"].to_pylist()
    return names


def _main(home: Home, where: str) -> None:
    def pause() -> None:
        print(where, flush=True)
        sys.stdin.readline()

    asked = delta_commits.require_locks

    def ask_and_pause() -> None:
        asked()
        pause()

    lake = FilesLake(home)
    with file_lock(home, PURPOSE, wait_s=5.0):
        change = lake.change(THINGS, Staged(rows=things([thing("late")])), Part([[]]))
        if where == BETWEEN:
            delta_commits.require_locks = ask_and_pause
        else:
            pause()
        try:
            lake.commit(change, Turn(PURPOSE))
            print("committed")
        except Exception as error:  # the test looks at its name
            print(type(error).__name__)


if __name__ == "__main__":
    _main(replace(Home.from_env(), lake=sys.argv[1]), sys.argv[2])
