"""Who holds a lock: a process, identified uniquely among all machines, and whether it still runs."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

from chainlake.env.processes.work import work

#: A holder about whom nothing is known.
UNKNOWN = "an unknown process"


class LockHolder(TypedDict, total=False):
    """The holder of a lock, as its file names it; other releases may write fewer fields.

    Args:
        purpose: the lock's name.
        pid: the process id.
        host: the name of its machine.
        since: when it took the lock.
        work: the command that it carries out; empty if it is none.
        machine: identifies its machine since the last boot, and its PID namespace; empty if the system does not say.
        started: when the process started, in the system's ticks.
    """

    purpose: str
    pid: int
    host: str
    since: str
    work: str
    machine: str
    started: str


def own_holder(purpose: str) -> LockHolder:
    """This process as the holder of a lock."""
    return {
        "purpose": purpose,
        "pid": os.getpid(),
        "host": os.uname().nodename,
        "since": datetime.now(UTC).isoformat(),
        "work": work(),
        "machine": _machine(),
        "started": _started(os.getpid()),
    }


def holder_text(signed: LockHolder | None) -> str:
    """A holder in words: what it does, which process it is, and since when, to the second."""
    if not isinstance(signed, dict) or not {"pid", "host", "since"} <= signed.keys():
        return UNKNOWN
    command = f"{signed['work']}, " if signed.get("work") else ""
    since = str(signed["since"])[: len("YYYY-MM-DD HH:MM:SS")].replace("T", " ")
    return f"{command}process {signed['pid']} on {signed['host']}, since {since} UTC"


def guarded(purpose: str) -> str:
    """What a lock protects, in words.

    Args:
        purpose: the lock's name.
    """
    kind, _, name = purpose.partition("-")
    return {"ops": "the tables of ops", "report": "the report", "docs": "Data Docs"}.get(purpose) or {
        "source": f"the events of {name}",
        "table": f"table {name}",
        "alerts": f"the alerts of {name}",
    }.get(kind, f"the lock '{purpose}'")


def is_dead(signed: LockHolder | None) -> bool:
    """Whether the holder was a process of this machine that has ended; False if one cannot tell from here."""
    if signed is None or not signed.get("machine") or signed["machine"] != _machine():
        return False
    return _started(signed["pid"]) != signed.get("started")


def _machine() -> str:
    """Boot id and PID namespace of this machine; empty if the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process started, in the system's ticks, since ids are reused; empty if there is no such process."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state[0] in "ZX" else state[19]
