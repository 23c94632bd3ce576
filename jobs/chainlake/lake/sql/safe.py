"""``chainlake sql --safe``: reading the lake's tables and nothing else, for statements that someone else wrote.

Before DuckDB sees the statement, it is told to touch no file, load nothing and change no setting. So it cannot read the
tables' files by itself either: they come through Arrow. A single function call can take minutes, and more memory than
DuckDB's own limit; the process in which the statement runs sets limits for that.
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

#: How many seconds a statement and the printing of its rows may take.
SECONDS = 60.0
#: Memory for DuckDB's operators; nothing is spilled to disk.
MEMORY = "1GB"
#: Address space that the process may take beyond what it starts with: twice ``MEMORY``, and room for single values.
_BYTES = 3 << 30
#: How many more seconds DuckDB gets to end a statement itself, with its own message.
_GRACE_S = 5.0
#: The most characters of a statement; one that a person writes is far shorter.
_LONGEST = 100_000
#: The environment variable that is set in a process that runs one statement.
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
    """A statement was too much for the process in which it ran."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"the statement needed more memory than --safe allows (its process ended by signal {number})",
            hint="Ask for fewer days, or for fewer rows.",
        )


def check_length(sql: str) -> None:
    """Make sure that a statement can be parsed in bounded time.

    Raises:
        StatementTooLong: it has too many characters.
    """
    if len(sql) > _LONGEST:
        raise StatementTooLong


def lock(con: duckdb.DuckDBPyConnection) -> None:
    """Lock the settings of ``con``, so that none can be changed from now on."""
    con.execute("SET lock_configuration = true")


def interrupt_later(con: duckdb.DuckDBPyConnection) -> threading.Timer:
    """Interrupt ``con`` when its time is up; the caller cancels the returned timer if it finishes earlier."""
    timer = threading.Timer(SECONDS, con.interrupt)
    timer.daemon = True
    timer.start()
    return timer


def arrow_scan(home: Home, schema: str, name: str) -> Scan:
    """The current version of the Delta table ``schema.name``, read by Arrow.

    Raises:
        UnreadableTable: its files alone do not determine its rows.
        deltalake.exceptions.DeltaError: it cannot be read.
    """
    return whole(home.table(schema, name), open_table(home, schema, name))


def confined() -> bool:
    """Whether this process was made for one statement."""
    return os.environ.get(_CONFINED) == "1"


def confine() -> None:
    """Bound the memory of this process from now on, if the system can say how much it uses."""
    pa.set_cpu_count(2)
    pa.set_io_thread_count(2)
    pages = Path("/proc/self/statm")
    if pages.exists():
        size = int(pages.read_text().split()[0]) * resource.getpagesize() + _BYTES
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_confined(words: Sequence[str]) -> int:
    """Run ``chainlake WORDS…`` in its own process, which shares this one's output; return its exit code.

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
