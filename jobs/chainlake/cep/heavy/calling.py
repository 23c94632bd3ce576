"""Runs users' code in a thread beside the search, so that a call that never ends does not block it."""

from __future__ import annotations

import contextvars
import ctypes
import queue
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_OF_THREAD = threading.local()


@dataclass
class Outcome:
    """What came of a call.

    Args:
        gave: what it returned.
        error: what it raised instead, of whatever class.
        seconds: how long it took, or how long the caller waited.
        done: whether it ended.
    """

    gave: Any = None
    error: BaseException | None = None
    seconds: float = 0.0
    done: bool = True


def outcome(call: Callable[[], Any], longest: float) -> Outcome:
    """The outcome of a call, which is given up after ``longest`` seconds.

    All calls from one thread run in one other thread, since code may keep objects that only the thread that made them
    can use.
    """
    caller: _Caller | None = getattr(_OF_THREAD, "caller", None)
    if caller is None or not caller.thread.is_alive():  # a forked process has none of the threads of its parent
        caller = _OF_THREAD.caller = _Caller()
    found = caller.outcome(call, longest)
    if not found.done:
        del _OF_THREAD.caller
        caller.stop()
    return found


@dataclass
class _Job:
    call: Callable[[], Any]
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    outcome: Outcome = field(default_factory=Outcome)
    done: threading.Event = field(default_factory=threading.Event)


class _Caller:
    """A thread that makes calls; it ends when this object is no longer referenced."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=_serve, args=(self._jobs,), name="functions", daemon=True)
        self.thread.start()
        weakref.finalize(self, self._jobs.put, None)

    def outcome(self, call: Callable[[], Any], longest: float) -> Outcome:
        job, began = _Job(call), time.perf_counter()
        self._jobs.put(job)
        if job.done.wait(min(longest, threading.TIMEOUT_MAX)):
            return job.outcome
        return Outcome(seconds=time.perf_counter() - began, done=False)

    def stop(self) -> None:
        """End the current call if it is in Python code; one that waits in C continues until the process ends."""
        ident = ctypes.c_ulong(self.thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(SystemExit))


def _serve(jobs: queue.SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        found, began = job.outcome, time.perf_counter()
        try:
            found.gave = job.context.run(job.call)
        except BaseException as error:  # of users' code; the caller reports it
            found.error = error
        found.seconds = time.perf_counter() - began
        job.done.set()
        del job, found
