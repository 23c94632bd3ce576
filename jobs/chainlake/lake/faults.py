"""Kill points for crash tests: a step may be killed around every write, and a retry must give the same tables.

``CHAINLAKE_FAULT=POINT.before[:N]`` or ``POINT.after[:N]`` ends the process the N-th time (default 1) that it gets
there, as ``kill -9`` would. Without the variable, nothing happens.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

_counts: Counter[str] = Counter()

#: Exit status of a process ended here, as a shell reports SIGKILL.
KILLED = 137


def reached(point: str) -> None:
    """End the process if ``CHAINLAKE_FAULT`` names ``point`` and this is the N-th time."""
    wanted = os.environ.get("CHAINLAKE_FAULT")
    if not wanted:
        return
    name, _, times = wanted.partition(":")
    if name != point:
        return
    _counts[point] += 1
    if _counts[point] == int(times or 1):
        os._exit(KILLED)


@contextmanager
def around(point: str) -> Iterator[None]:
    """Reach ``POINT.before`` on entry and ``POINT.after`` on success."""
    reached(f"{point}.before")
    yield
    reached(f"{point}.after")
