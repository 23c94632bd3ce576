"""Attempts of steps: each has a file as long as it works, which is how one that was killed is told from one that ended.

An attempt holds a lock on its file, which the operating system takes away when its process ends, however it ends. So a
file that nobody holds is of an attempt that could not say how it ended. Files are swept after a week, as everything in
their folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from chainlake.days import Days
from chainlake.env.own_folders import NotWritable, own_folder
from chainlake.paths import Home


@dataclass(frozen=True)
class Attempt:
    """A call of a step.

    Args:
        run_id: id of its run in ``ops``.
        step: ``ingest``, ``detect`` or ``monitor``.
        source: name of the source.
        days: the days asked for.
        definitions: names of the patterns or models; None for all of the source.
        began: when it began.
        process: which process it is, in words.
    """

    run_id: str
    step: str
    source: str
    days: Days
    definitions: tuple[str, ...] | None
    began: datetime
    process: str

    @classmethod
    def now(cls, run_id: str, step: str, source: str, days: Days, definitions: Sequence[str] | None) -> Attempt:
        """One of this process that begins now."""
        names = None if definitions is None else tuple(definitions)
        process = f"process {os.getpid()} on {os.uname().nodename}"
        return cls(run_id, step, source, days, names, datetime.now(UTC), process)

    def covers(self, other: Attempt) -> bool:
        """Whether whatever ``other`` had to do was tried again by this one, which began later."""
        if (self.step, self.source) != (other.step, other.source) or self.began < other.began:
            return False
        if self.step == "ingest":
            # It takes all files up to the end, whatever the first day is.
            return self.days.end >= other.days.end
        if self.definitions is not None:
            if other.definitions is None or not set(other.definitions) <= set(self.definitions):
                return False
        return self.days.start <= other.days.start and other.days.end <= self.days.end


@contextlib.contextmanager
def attempted(home: Home, attempt: Attempt) -> Iterator[None]:
    """Keep the file of an attempt while the block runs; then also remove those of earlier ones that it repeats.

    Raises:
        NotWritable: the folder cannot be written to.
    """
    folder = own_folder(home.temporary)
    path = folder / f"attempt-{re.sub(r'[^A-Za-z0-9]+', '-', attempt.run_id)[-60:]}-{uuid.uuid4().hex[:8]}.json"
    try:
        file = path.open("x", encoding="utf-8")
    except OSError as error:
        raise NotWritable.home(path, error) from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump(_written(attempt), file)
        file.flush()
        try:
            yield
        finally:
            for other, left in _left(home):
                if attempt.covers(left):
                    other.unlink(missing_ok=True)
            path.unlink(missing_ok=True)


def cut_off(home: Home) -> list[Attempt]:
    """The attempts on this machine that ended without saying how, and were not repeated since; the earliest first."""
    return sorted((attempt for _, attempt in _left(home)), key=lambda attempt: attempt.began)


def _left(home: Home) -> Iterator[tuple[Path, Attempt]]:
    for path in sorted(home.temporary.glob("attempt-*.json")):
        # Another process may be removing it, and what a full disk has cut off tells nothing.
        with contextlib.suppress(FileNotFoundError, BlockingIOError, ValueError, KeyError), path.open() as file:
            # Those who look share their lock, so that none of them takes another for the attempt itself.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            yield path, _read(json.load(file))


def _written(attempt: Attempt) -> dict[str, Any]:
    return {
        "run_id": attempt.run_id,
        "step": attempt.step,
        "source": attempt.source,
        "days": [str(attempt.days.start), str(attempt.days.end)],
        "definitions": attempt.definitions,
        "began": attempt.began.isoformat(),
        "process": attempt.process,
    }


def _read(known: dict[str, Any]) -> Attempt:
    start, end = known["days"]
    names = known["definitions"]
    return Attempt(
        str(known["run_id"]), str(known["step"]), str(known["source"]),
        Days(date.fromisoformat(start), date.fromisoformat(end)),
        None if names is None else tuple(names),
        datetime.fromisoformat(known["began"]), str(known["process"]),
    )  # fmt: skip
