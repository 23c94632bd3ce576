"""What the report remembers between runs: what each page was made from, what could not be made, and what is due.

``.made.json`` in the report's folder holds the first two. ``.due`` says that something has been published since, in one
line per step with its seconds. A step adds its line before it asks for the lock, and the holder of the lock looks for
lines again after releasing it, so that the last publisher's days are never left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from chainlake.lake.records.staleness import Judged
from chainlake.paths import Home

#: Raised by hand whenever a page would look different; then all pages are made again.
VERSION = 6
_MADE, _DUE = ".made.json", ".due"


@dataclass
class Made:
    """A page, or a definition's pages.

    Args:
        digest: digest of what they were made from.
        files: their paths in the report.
        at: when they were made, in seconds since 1970.
    """

    digest: str
    files: list[str]
    at: float


@dataclass
class Kept:
    """The state of a report.

    Args:
        pages: definition → its pages.
        failed: definition → why its pages could not be made, in one line.
        left: definitions whose pages are older than their days because time ran out.
        base_s: seconds that the last run took besides making the pages of definitions.
    """

    pages: dict[str, Made] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    base_s: float = 0.0

    @classmethod
    def read(cls, folder: Path) -> Kept:
        """The state in a folder; an empty one if there is none, or it is damaged or of another version."""
        try:
            found = json.loads((folder / _MADE).read_text(encoding="utf-8"))
            if found["version"] != VERSION:
                return cls()
            pages = {name: Made(**one) for name, one in found["pages"].items()}
            return cls(pages, dict(found["failed"]), list(found["left"]), float(found["base_s"]))
        except (OSError, ValueError, KeyError, TypeError):
            # Whatever is wrong, an empty state only means that all pages are made again.
            return cls()

    def write(self, folder: Path) -> None:
        """Write the state to a folder."""
        pages = {name: vars(one) for name, one in sorted(self.pages.items())}
        text = {"version": VERSION, "pages": pages, "failed": self.failed, "left": self.left, "base_s": self.base_s}
        replace_file(folder / _MADE, json.dumps(text, indent=1))


def replace_file(path: Path, text: str | bytes) -> None:
    """Write a file atomically: a reader sees either the old content or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        beside.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def note_due(folder: Path, seconds: float) -> None:
    """Note that a step has ended, and how many seconds it took."""
    folder.mkdir(parents=True, exist_ok=True)
    # A short line is appended in one piece.
    with (folder / _DUE).open("a", encoding="utf-8") as file:
        file.write(f"{seconds:.3f}\n")


def is_due(folder: Path) -> bool:
    """Whether a step has ended since the last report."""
    return (folder / _DUE).exists()


def take_due(folder: Path) -> float:
    """The seconds of the steps that have ended since the last report; they are removed from the notes."""
    taken = folder / f"{_DUE}.{uuid.uuid4().hex[:8]}"
    try:
        os.replace(folder / _DUE, taken)
        lines = taken.read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return 0.0
    taken.unlink(missing_ok=True)
    return sum(float(line) for line in lines if line.replace(".", "", 1).isdigit())


def digest_of(judged: Judged, *more: object) -> str:
    """Digest of everything that a page shows about a definition's days."""
    every = np.arange(len(judged.numbers))
    found = hashlib.blake2b(digest_size=16)
    found.update(judged.numbers.tobytes())
    found.update("\0".join(judged.state.tolist()).encode())
    found.update(judged.rows(every).tobytes())
    for name in ("published_version", "definition_hash", "rows_checksum", "input_fingerprint", "reason"):
        found.update("\0".join(map(str, judged.recorded(name).tolist())).encode())
    found.update(repr(more).encode())
    return found.hexdigest()


def folder_of(home: Home) -> Path:
    """The folder of the report."""
    return home.root / "report"


def notes_of(home: Home) -> list[str]:
    """A line for each page that could not be made."""
    return failures(Kept.read(folder_of(home)))


def failures(kept: Kept) -> list[str]:
    """The same lines from a state that is already read."""
    return [f"report: the page of {name} could not be made: {why}" for name, why in sorted(kept.failed.items())]
