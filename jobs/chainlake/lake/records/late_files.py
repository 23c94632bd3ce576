"""Which landed files changed a day's events after it was computed, by name: from the log of ``ops.files``, no JVM."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import numpy as np

from chainlake.days import US_PER_DAY, us_of
from chainlake.lake.records import ops
from chainlake.paths import Home
from chainlake.schemas.ops_rows import FileRow

#: Said if no file is known to have done it, such as after a crash between two writes of an ingest.
UNKNOWN = "its events changed (late or corrected files)"
REDEFINED = "the definition of its source was edited"

#: How many files are named; of the rest only the number is given.
_NAMED = 3
_COLUMNS = [
    "source", "path", "file_id", "load_id", "file_date", "definition_hash", "parser_version", "first_ts", "last_ts",
    "written_at", "seq",
]  # fmt: skip


class LateFiles:
    """What was ingested for a source, and when.

    Args:
        home: the installation.
        source: its name.
    """

    def __init__(self, home: Home, source: str) -> None:
        table = ops.current_table(home, "files", columns=_COLUMNS, filters=[("source", "=", source)], as_log=True)
        rows = sorted(table.to_pylist(), key=lambda row: (row["written_at"], row["path"], row["seq"]))
        self._names: list[str | None] = []
        found: list[tuple[int, int, int]] = []
        for row, name, reach in _changes(rows):
            self._names.append(name)
            found.append((*reach, us_of(row["written_at"])))
        self._first, self._last, self._written = np.array(found, dtype=np.int64).reshape(-1, 3).T
        self._inside: dict[tuple[int, int], np.ndarray] = {}

    def since(self, written_us: int, lo_us: int, hi_us: int) -> str:
        """What changed events with ``lo_us`` ≤ ts < ``hi_us`` after the moment ``written_us`` (all µs), in one line."""
        key = lo_us // US_PER_DAY, (hi_us - 1) // US_PER_DAY
        inside = self._inside.get(key)
        if inside is None:
            inside = self._inside[key] = np.flatnonzero((self._first <= key[1]) & (self._last >= key[0]))
        names = {self._names[at] for at in inside[self._written[inside] > written_us].tolist()}
        files = sorted(name for name in names if name is not None)
        text = [REDEFINED] if None in names else []
        if files:
            more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
            word = "late or corrected file" + ("s" if len(files) > 1 else "")
            text.append(f"{word}: {', '.join(files[:_NAMED])}{more}")
        return ", ".join(text) or UNKNOWN


def _changes(rows: list[FileRow]) -> list[tuple[FileRow, str | None, tuple[int, int]]]:
    """The rows of the log that changed something: the row, the file's name (None: it was read again after an edit of
    the source), and the first and last day (since 1970) that it reaches.

    A file reaches the days of its own rows, of the file that had its path before, and of the other files of its date,
    which it can replace.
    """
    held: dict[str, FileRow] = {}
    contents: Counter[tuple[Any, ...]] = Counter()
    of_date: dict[date, tuple[int, int]] = {}
    found = []
    for row in rows:
        path, old = row["path"], held.get(row["path"])
        content = _content(row)
        known = contents[content] > 0
        if old is not None:
            contents[_content(old)] -= 1
        contents[content] += 1
        held[path] = row
        reach = _reach(row)
        if row["file_date"] is not None:
            of_date[row["file_date"]] = _union(reach, of_date.get(row["file_date"]))
        if known:
            # The same content under another name, or taken once more, changes no event.
            continue
        whole = _union(reach, _reach(old) if old else None)
        if row["file_date"] is not None:
            whole = _union(whole, of_date[row["file_date"]])
        again = old is not None and old["file_id"] == row["file_id"]
        if whole[0] <= whole[1]:
            found.append((row, None if again else path, whole))
    return found


def _content(row: FileRow) -> tuple[Any, ...]:
    return row["file_id"], row["definition_hash"], row["parser_version"]


def _reach(row: FileRow) -> tuple[int, int]:
    """First and last day of a file's rows; an empty range if it has none."""
    first, last = row["first_ts"], row["last_ts"]
    if first is None or last is None:
        return 1 << 40, -(1 << 40)
    return us_of(first) // US_PER_DAY, us_of(last) // US_PER_DAY


def _union(one: tuple[int, int], other: tuple[int, int] | None) -> tuple[int, int]:
    return one if other is None else (min(one[0], other[0]), max(one[1], other[1]))
