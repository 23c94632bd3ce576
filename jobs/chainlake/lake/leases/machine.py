"""Who holds a lock: the process, told from all others of all machines, and whether it still runs."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict


class LockHolder(TypedDict, total=False):
    """The holder of a lock, as its file says it; another version may have said less.

    Args:
        purpose: of the lock.
        pid: its number.
        host: the name of its machine.
        since: when it took the lock.
        machine: this run of its machine; empty if the system does not say.
        started: when the process started, in the system's ticks.
    """

    purpose: str
    pid: int
    host: str
    since: str
    machine: str
    started: str


def own_holder(purpose: str) -> LockHolder:
    """This process as the holder of a lock."""
    return {
        "purpose": purpose,
        "pid": os.getpid(),
        "host": os.uname().nodename,
        "since": datetime.now(UTC).isoformat(),
        "machine": _machine(),
        "started": _started(os.getpid()),
    }


def told(signed: LockHolder | None) -> str:
    """A holder in words."""
    if signed is None or not {"pid", "host", "since", "purpose"} <= signed.keys():
        return "an unknown process"
    return f"process {signed['pid']} on {signed['host']} since {signed['since']} for {signed['purpose']}"


def is_dead(signed: LockHolder | None) -> bool:
    """Whether the holder was a process of this machine that has ended; False if that cannot be told from here."""
    if signed is None or not signed.get("machine") or signed["machine"] != _machine():
        return False
    return _started(signed["pid"]) != signed.get("started")


def _machine() -> str:
    """This run of this machine, and the processes that see each other's numbers; empty if the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process started, in the system's ticks: numbers are given again; empty if there is no such process."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state[0] in "ZX" else state[19]
