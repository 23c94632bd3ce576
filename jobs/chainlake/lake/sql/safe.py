"""``chainlake sql --safe``: reading the lake's tables and nothing else, for statements that somebody else wrote.

DuckDB is told to touch no file, to load nothing and to change no setting, before it sees the statement. So it cannot
read the tables' files by itself either: they come through Arrow. What its own limits do not hold (one call of a
function can take minutes and memory beyond the limit) the process does that a statement is run in.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from chainlake.env.processes.child import die_with_parent
from chainlake.errors import UsageError
from chainlake.lake.delta.reader import open_table
from chainlake.lake.sql.scan import Scan, whole
from chainlake.paths import CODE, Home

if TYPE_CHECKING:
    import duckdb

#: Seconds that a statement and the printing of its rows may take.
SECONDS = 60.0
#: Memory of DuckDB's operators; nothing is spilled to a disk.
MEMORY = "1GB"
#: What the process may take beside what it has when it begins: twice that, and what single values take.
_BYTES = 3 << 30
#: Seconds for DuckDB to end a statement by itself, with its own message.
_GRACE_S = 5.0
#: Characters of a statement: one that a person writes is shorter by far.
_LONGEST = 100_000
#: Set in the process that a statement is run in.
_CONFINED = "CHAINLAKE_CONFINED"

CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "memory_limit": MEMORY,
    "temp_directory": "",
    "threads": "2",
}


class StatementTooSlow(UsageError):
    """A statement took longer than ``--safe`` allows."""

    def __init__(self) -> None:
        super().__init__(
            f"the statement took longer than the {SECONDS:.0f} s that --safe allows",
            hint="Ask for fewer days, or for fewer rows.",
        )


class StatementTooLong(UsageError):
    """A statement is longer than ``--safe`` allows."""

    def __init__(self) -> None:
        super().__init__(f"the statement has more than the {_LONGEST} characters that --safe allows")


class StatementEndedItsProcess(UsageError):
    """A statement was too much for the process it was run in."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"the statement needed more memory than --safe allows (its process ended by signal {number})",
            hint="Ask for fewer days, or for fewer rows.",
        )


def check_length(sql: str) -> None:
    """See that a statement can be parsed in bounded time.

    Raises:
        StatementTooLong: it has too many characters.
    """
    if len(sql) > _LONGEST:
        raise StatementTooLong


def lock(con: duckdb.DuckDBPyConnection) -> None:
    """No setting of ``con`` can be changed any more."""
    con.execute("SET lock_configuration = true")


def interrupt_later(con: duckdb.DuckDBPyConnection) -> threading.Timer:
    """Have ``con`` interrupted when its time is over; cancel what is returned when it is done earlier."""
    timer = threading.Timer(SECONDS, con.interrupt)
    timer.daemon = True
    timer.start()
    return timer


def arrow_scan(home: Home, schema: str, name: str) -> Scan:
    """The current version of the Delta table ``schema.name``, read by Arrow.

    Raises:
        UnreadableTable: its files alone do not tell its rows.
        deltalake.exceptions.DeltaError: it cannot be read.
    """
    return whole(home.table(schema, name), open_table(home, schema, name))


def confined() -> bool:
    """Whether this process was made for one statement."""
    return os.environ.get(_CONFINED) == "1"


def confine() -> None:
    """Bound the memory of this process from here on, where the system can say how much it has."""
    pa.set_cpu_count(2)
    pa.set_io_thread_count(2)
    pages = Path("/proc/self/statm")
    if pages.exists():
        size = int(pages.read_text().split()[0]) * resource.getpagesize() + _BYTES
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_confined(words: Sequence[str]) -> int:
    """Run ``chainlake WORDS…`` in a process of its own, whose output is this one's; its exit code.

    Raises:
        StatementTooSlow: it took too long, and was ended.
        StatementEndedItsProcess: the system ended it.
    """
    env = os.environ | {_CONFINED: "1", "MALLOC_ARENA_MAX": "2", "PYTHONPATH": str(CODE)}
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    command = [sys.executable, "-m", "chainlake", *words]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, env=env, preexec_fn=die_with_parent(signal.SIGKILL)
    ) as process:
        try:
            code = process.wait(SECONDS + _GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise StatementTooSlow from None
        except BaseException:
            process.kill()
            raise
    if code < 0:
        raise StatementEndedItsProcess(-code)
    return code
