"""The points of a run at which something is killed, as they show from outside: what files are there, and what not yet.

Nothing in the product tells where it is. Every phase leaves a file when it ends (a commit, a staged file, a signed
lock), so a look a thousand times a second finds the moment, and the writer is stopped (SIGSTOP) before anything else
is done to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chainlake.paths import Home

#: The commit that makes a table.
_MADE = f"{0:020d}.json"


@dataclass(frozen=True)
class Sign:
    """The ``count``-th file that fits ``pattern`` (below the home) and was not there when the attempt began.

    Args:
        pattern: a glob.
        count: how many.
        written: a file counts again whenever it was written again.
    """

    pattern: str
    count: int = 1
    written: bool = False


def commit(table: str, count: int = 1) -> Sign:
    """The ``count``-th commit to a table; the one that makes the table is none."""
    return Sign(f"lake/{table}/_delta_log/*[0-9].json", count)


@dataclass(frozen=True)
class Point:
    """A point of a step: ``seen`` is there, ``unseen`` is not.

    Args:
        name: in words.
        seen: what the attempt has done.
        unseen: what it does next.
    """

    name: str
    seen: Sign
    unseen: Sign


#: Where steps stage what they found.
STAGING = "lake/chainlake-staging"
#: The points of each step, in their order.
INGEST = {
    "reading": Point("landing is read, nothing is written", Sign("locks/source-lab.lock", 2, True), commit("raw/lab")),
    "raw": Point("raw rows are written, the days are not marked", commit("raw/lab"), commit("ops/event_days")),
    "changing": Point("days are marked, events are not written", commit("ops/event_days"), commit("events/lab")),
    "events": Point("events are written, quarantine is not", commit("events/lab"), commit("quarantine/lab")),
    "quarantine": Point(
        "quarantine is written, the files are not recorded", commit("quarantine/lab"), commit("ops/files")
    ),
    "files": Point("files are recorded, the days are not final", commit("ops/files"), commit("ops/event_days", 2)),
}
DETECT = {
    "matching": Point("matching has begun", Sign(f"{STAGING}/*/far-*"), commit("ops/plans")),
    "audit": Point("the audit has begun, nothing is published", commit("ops/plans"), commit("ops/intervals")),
    "publishing": Point("publishing is recorded, not done", commit("ops/intervals"), commit("matches/far")),
    "published": Point(
        "the first pattern is published, not recorded", commit("matches/far"), commit("ops/intervals", 2)
    ),
    "second": Point("one pattern is done, the other is at work", commit("ops/intervals", 2), commit("matches/near")),
}
MONITOR = {
    "changes": Point("changes are published, metrics are not", commit("models/changes"), commit("models/metrics")),
    "metrics": Point("metrics are published, not recorded", commit("models/metrics"), commit("ops/intervals", 2)),
    "done": Point(
        "the day is recorded as done, its state is not written", commit("ops/intervals", 2), commit("models/state")
    ),
}


class Attempt:
    """What an attempt has done since it began.

    Args:
        home: the installation it works in.
        point: the point that is waited for.
    """

    def __init__(self, home: Home, point: Point) -> None:
        self._root = home.root
        self._point = point
        self._before = {sign: self._files(sign) for sign in (point.seen, point.unseen)}
        self._new: dict[Sign, set[tuple[Path, int]]] = {sign: set() for sign in self._before}

    def reached(self) -> bool:
        """Whether the first half of the point holds."""
        return self._holds(self._point.seen)

    def exact(self) -> bool:
        """Whether the attempt, which is stopped now, is still at the point."""
        return self.reached() and not self._holds(self._point.unseen)

    def _holds(self, sign: Sign) -> bool:
        self._new[sign] |= self._files(sign) - self._before[sign]
        return len(self._new[sign]) >= sign.count

    def _files(self, sign: Sign) -> set[tuple[Path, int]]:
        found = set()
        for path in self._root.glob(sign.pattern):
            if path.name != _MADE:
                found.add((path, path.stat().st_mtime_ns if sign.written else 0))
        return found
