"""What has landed: files, archive members, their content checksums and path fields (design §3, "Files").

No Spark. Reading every file at every run would make a run with nothing to do as dear as one with work, so checksums are
remembered per (path, size, mtime, inode). That memory is a cache: without it the same answer takes longer.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from zoneinfo import ZoneInfo

from jobs.ingest.container import DAMAGE, gather, members, open_bytes
from jobs.ingest.globs import UNFINISHED, expected_glob
from jobs.paths import Home
from jobs.sources import Source

_CHUNK = 1 << 20
#: A file changed within this time may change again without its mtime moving.
_MTIME_GRAIN_S = 2.0


@dataclass(frozen=True)
class Landed:
    """One landed file, or one member of a landed archive.

    Args:
        path: relative to ``landing/<source>/``, ``!member`` appended for a member.
        file: the file on disk; ``member`` inside it or ``None``.
        size: bytes of the landed file.
        checksum: of the decompressed bytes.
        file_id: of checksum and path fields (design §3).
        fields: named groups of the source's path expression.
        file_date, revision: from the path; ``None`` and 0 if it names none.
        problem: reason code if the content cannot be read to its end or the path names an impossible date, else "".
    """

    path: str
    file: str
    member: str | None
    size: int
    checksum: str
    file_id: str
    fields: dict[str, str] = field(hash=False)
    file_date: date | None
    revision: int
    problem: str = ""


@dataclass(frozen=True)
class Landing:
    """What was found: files by path, and the paths left for later because they are young or still growing."""

    files: dict[str, Landed]
    waiting: tuple[str, ...]


def path_fields(source: Source, path: str) -> tuple[dict[str, str], date | None, int, str]:
    """``(fields, file_date, revision, problem)`` of a path by the source's expression."""
    if source.path.pattern is None:
        return {}, None, 0, ""
    found = re.search(source.path.pattern, path)
    if found is None:
        return {}, None, 0, ""
    fields = {name: text for name, text in found.groupdict().items() if text is not None}
    file_date, problem = None, ""
    if "date" in fields:
        file_date = _parse_date(fields["date"], source.path.date_format)
        problem = "" if file_date is not None else "bad_path_date"
    digits = re.sub(r"\D", "", fields.get("revision", ""))
    return fields, file_date, int(digits) if digits else 0, problem


def _parse_date(text: str, form: str) -> date | None:
    if not form:
        text, form = re.sub(r"\D", "", text), "%Y%m%d"
    try:
        return datetime.strptime(text, form).date()
    except ValueError:
        return None


def date_begins(file_date: date, zone: str) -> datetime:
    """The instant at which ``file_date`` begins in ``zone``."""
    return datetime(file_date.year, file_date.month, file_date.day, tzinfo=ZoneInfo(zone)).astimezone(UTC)


def expected_globs(source: Source, day: date) -> list[str]:
    """The globs of the files that ``expect`` names for the UTC day ``day``."""
    return [expected_glob(glob, day) for glob in source.expect]


def glob_matches(glob: str, path: str) -> bool:
    """Whether ``glob`` names ``path``, the archive that holds it, or the last part of either."""
    outer = path.split("!", 1)[0]
    return any(fnmatchcase(name, glob) for name in (path, path.rsplit("/", 1)[-1], outer, outer.rsplit("/", 1)[-1]))


def missing_expected(source: Source, day: date, paths: Iterable[str]) -> list[str]:
    """The globs expected for ``day`` that none of ``paths`` fits."""
    paths = list(paths)
    return [glob for glob in expected_globs(source, day) if not any(glob_matches(glob, path) for path in paths)]


def discover(home: Home, source: Source, now: datetime) -> Landing:
    """All settled files of the landing folder of ``source``; a missing folder holds none.

    Args:
        now: the present, against which ``settle`` is measured.
    """
    folder = home.landing(source.name)
    memory = _Memory(home.root / "cache" / f"checksums-{source.name}.json")
    files: dict[str, Landed] = {}
    waiting: list[str] = []
    for file in walk(folder):
        relative = file.relative_to(folder).as_posix()
        try:
            before = file.stat()
        except OSError:
            # Gone, or on its way, between listing and looking: the next run sees what has become of it.
            waiting.append(relative)
            continue
        # A file from the future (a clock that is wrong) would never settle: it is taken as it is.
        if 0 <= now.timestamp() - before.st_mtime < source.settle.total_seconds():
            waiting.append(relative)
            continue
        contents = memory.get(relative, before)
        if contents is None:
            contents = _contents(source, file)
            try:
                after = file.stat()
            except OSError:
                after = None
            if after is None or (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
                waiting.append(relative)
                continue
            memory.put(relative, before, contents)
        for member, checksum, problem in contents:
            landed = _landed(source, file, relative, member, before.st_size, checksum, problem)
            files[landed.path] = landed
    memory.save()
    return Landing(files, tuple(sorted(waiting)))


def look_into(source: Source, file: Path, relative: str) -> list[Landed]:
    """One file, or each member of an archive, as if it lay at ``relative`` in the landing folder of ``source``."""
    size = file.stat().st_size
    return [
        _landed(source, file, relative, member, size, checksum, problem)
        for member, checksum, problem in _contents(source, file)
    ]


def walk(folder: Path) -> list[Path]:
    """The files under a landing folder that are meant to be taken, by path; a missing folder holds none."""
    found = []
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            file = Path(at) / name
            if not name.startswith(".") and not name.endswith(UNFINISHED) and file.is_file():
                found.append(file)
    return sorted(found)


def _landed(
    source: Source, file: Path, relative: str, member: str | None, size: int, checksum: str, problem: str
) -> Landed:
    path = relative if member is None else f"{relative}!{member}"
    fields, file_date, revision, path_problem = path_fields(source, path)
    text = json.dumps([checksum, sorted(fields.items())])
    file_id = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return Landed(
        path, str(file), member, size, checksum, file_id, fields, file_date, revision, problem or path_problem
    )


def _contents(source: Source, file: Path) -> list[tuple[str | None, str, str]]:
    """``(member or None, checksum, problem)`` of each content in a file."""
    try:
        names = members(file, members_glob(source, file.name))
    except PermissionError:
        return [(None, "unreadable", "unreadable")]
    except DAMAGE:
        return [(None, _checksum_raw(file), "damaged_archive")]
    found = []
    for member in names if names is not None else [None]:
        checksum, problem = _checksum(file, member)
        found.append((member, checksum, problem))
    return found


def members_glob(source: Source, name: str) -> str:
    """Which members of an archive of this name are files of the source."""
    return next((f.members for f in source.formats if f.fits_path(name)), "*")


def _checksum(file: Path, member: str | None) -> tuple[str, str]:
    digest = hashlib.blake2b(digest_size=16)
    chunk, damaged = b"-", False
    try:
        with open_bytes(file, member) as stream:
            while chunk and not damaged:
                chunk, damaged = gather(stream, _CHUNK)
                digest.update(chunk)
    except PermissionError:
        return "unreadable", "unreadable"
    except DAMAGE:
        damaged = True
    if damaged:
        # A damaged file and a whole one with the same readable part are different contents.
        digest.update(b"\0damaged")
    return digest.hexdigest(), "damaged" if damaged else ""


def _checksum_raw(file: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


class _Memory:
    """Checksums of files that have not changed since they were read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._old: dict[str, list] = {}
        self._new: dict[str, list] = {}
        try:
            self._old = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self._old = {}

    def get(self, path: str, stat: os.stat_result) -> list[tuple[str | None, str, str]] | None:
        entry = self._old.get(path)
        if entry is None or entry[0] != [stat.st_size, stat.st_mtime_ns, stat.st_ino]:
            return None
        self._new[path] = entry
        return [(member, checksum, problem) for member, checksum, problem in entry[1]]

    def put(self, path: str, stat: os.stat_result, contents: list[tuple[str | None, str, str]]) -> None:
        unreadable = any(problem == "unreadable" for _, _, problem in contents)
        if not unreadable and time.time() - stat.st_mtime > _MTIME_GRAIN_S:
            self._new[path] = [[stat.st_size, stat.st_mtime_ns, stat.st_ino], contents]

    def save(self) -> None:
        if self._new == self._old:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps(self._new), encoding="utf-8")
        temporary.replace(self._path)
