"""What has landed: files, archive members, their content checksums and path fields.

No Spark. If every run read every file, a run with nothing to do would cost as much as one with work, so checksums are
remembered per (path, size, mtime, inode, ctime). That memory is a cache: without it, the same answer takes longer.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Container, Mapping
from dataclasses import astuple, dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from chainlake.definitions.source import Source
from chainlake.digests import text_digest
from chainlake.env.own_folders import own_folder
from chainlake.ingest.landing.container import (
    Damaged,
    NotReadable,
    archives_stay_open,
    checksum_of,
    members,
    open_bytes,
)
from chainlake.ingest.landing.walk import Entry, walk
from chainlake.ingest.parser_version import parser_version
from chainlake.ingest.path_fields import path_fields
from chainlake.paths import Home
from chainlake.schemas.ops_rows import FileProblem
from chainlake.storage.errors import StoreFailed
from chainlake.storage.port import Stamp
from chainlake.storage.resolve import storage_of
from chainlake.terminal import storable

#: A file that changed less than this ago may change again without its times changing.
_MTIME_GRAIN_S = 2.0
#: Stores give times in whole seconds, of their own clock; one that differs by more than 15 minutes refuses requests.
_STORE_GRAIN_NS, _STORE_GRAIN_S = 1_000_000_000, 900.0


@dataclass(frozen=True)
class Landed:
    """One landed file, or one member of a landed archive.

    Args:
        path: relative to ``landing/<source>/``, with ``!member`` appended for a member.
        file: the file on disk; ``member`` inside it or ``None``.
        size: bytes of the landed file.
        checksum: checksum of the decompressed bytes.
        file_id: digest of checksum, path fields and, if not all formats of the source take such a name, those that do.
        fields: named groups of the source's path expression.
        file_date, revision: from the path; ``None`` and 0 if it gives none.
        problem: code for what is wrong with the content or the path, else "".
        detail: the same in words.
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
    problem: FileProblem | Literal[""] = ""
    detail: str = ""


@dataclass(frozen=True)
class Landing:
    """What was found.

    Args:
        files: the files, by path.
        waiting: why others are left for later, by path.
        settling: the ones among ``waiting`` that are only too young or still growing.
        contents: what was found in each file of the folder, for `discover` to use again.
    """

    files: dict[str, Landed]
    waiting: dict[str, str]
    settling: frozenset[str] = frozenset()
    contents: Mapping[str, _Looked] = field(default_factory=dict, compare=False, repr=False)

    def waits(self, path: str) -> bool:
        """Whether ``path``, the archive that holds it or a folder above it waits."""
        return bool(self.why(path))

    def why(self, path: str) -> str:
        """Why it waits; empty if it does not."""
        above = (why for one, why in self.waiting.items() if one == "." or path.startswith((f"{one}!", f"{one}/")))
        return self.waiting.get(path) or next(above, "")


def discover(
    home: Home, source: Source, now: datetime, *, known: bool = False, before: Landing | None = None
) -> Landing:
    """All settled files of the landing folder of ``source``; a missing folder holds none.

    Whatever is wrong with one file, the others are found; files that cannot be read for now are among ``waiting``.

    Args:
        now: the current time, against which ``settle`` is measured.
        known: whether files of the source were read before; if so, a missing folder, such as one on a disk that is not
            mounted, is waited for.
        before: what this run found earlier; only files that have changed since then are looked into again. One that was
            replaced without a trace is noticed when it is read for its rows.
    """
    earlier = before.contents if before is not None else {}
    memory = _Memory(home.root / "cache" / f"checksums-{source.name}.json", parser_version(source), earlier)
    walked = walk(home.landed(source.name), follow_links=source.follow_links)
    files: dict[str, Landed] = {}
    waiting = dict(walked.waiting)
    folder = home.landed(source.name)
    if known and storage_of(folder).on_disk and not os.path.lexists(folder):
        waiting["."] = "the folder is missing, though files in it were read; create it again if it should be empty"
    settling: set[str] = set()
    for entry in walked.entries:
        try:
            found = [_refused(source, entry)] if entry.stat is None else _looked_into(source, entry, memory, now)
        except _NotYet as error:
            waiting[entry.relative] = str(error)
            settling.add(entry.relative)
        except NotReadable as error:
            waiting[entry.relative] = str(error)
        except Exception as error:
            # Whatever this file does to the reader, it must not keep the others from being read.
            waiting[entry.relative] = " ".join(f"{type(error).__name__}: {error}".split())
        else:
            for landed in found:
                files[landed.path] = _doubled(landed) if landed.path in files else landed
    memory.save()
    return Landing(files, dict(sorted(waiting.items())), frozenset(settling), memory.looked)


class _NotYet(Exception):
    """A file is being written, or may be."""


def _looked_into(source: Source, entry: Entry, memory: _Memory, now: datetime) -> list[Landed]:
    """The contents of a file.

    Raises:
        _NotYet: it is younger than ``settle``, or was changed meanwhile.
        NotReadable: the file system does not return it.
    """
    before = entry.stat
    assert before is not None
    # A file from the future (due to a wrong clock) would not settle for a long time, so it is taken as it is. In a
    # store, a file is there completely or not at all.
    files = storage_of(entry.file)
    grain, young_s = (1, _MTIME_GRAIN_S) if files.on_disk else (_STORE_GRAIN_NS, _STORE_GRAIN_S)
    if not files.whole_files and 0 <= now.timestamp() - before.modified_ns / 1e9 < source.settle.total_seconds():
        raise _NotYet("it is younger than 'settle'")
    contents = memory.get(entry.relative, before)
    if contents is None:
        contents = _contents(source, entry.file)
        try:
            after = files.stamp(entry.file)
        except (OSError, StoreFailed) as error:
            raise NotReadable(error) from error
        if (after.size, after.modified_ns // grain) != (before.size, before.modified_ns // grain):
            raise _NotYet("it is still growing")
        memory.put(entry.relative, before, contents, young_s)
    return [_landed(source, entry.file, entry.relative, before.size, content) for content in contents]


def look_into(source: Source, file: str | Path, relative: str) -> list[Landed]:
    """One file, or each member of an archive, as if it were at ``relative`` in the landing folder of ``source``.

    Raises:
        NotReadable: the file system does not return the file.
    """
    place = str(file)
    size = storage_of(place).stamp(place).size
    return [_landed(source, place, storable(relative), size, content) for content in _contents(source, place)]


class _Content(NamedTuple):
    """One content of a file: the member or ``None``, its checksum, and a code and words for what is wrong, or ""."""

    member: str | None
    checksum: str
    problem: FileProblem | Literal[""] = ""
    detail: str = ""


def _landed(source: Source, file: str, relative: str, size: int, content: _Content) -> Landed:
    member, checksum, problem, detail = content
    path = relative if member is None else f"{relative}!{member}"
    named = path_fields(source, path)
    facts: list[Any] = [checksum, sorted(named.fields.items())]
    taking = [at for at, form in enumerate(source.formats) if form.fits_path(path)]
    if len(taking) < len(source.formats):
        # Another format gives other rows for the same bytes, and may say whose they are.
        facts.append(taking)
    return Landed(
        path=path,
        file=file,
        member=member,
        size=size,
        checksum=checksum,
        file_id=text_digest(json.dumps(facts)),
        fields=named.fields,
        file_date=named.file_date,
        revision=named.revision,
        problem=problem or named.problem,
        detail=detail if problem else named.detail,
    )


def _refused(source: Source, entry: Entry) -> Landed:
    content = _Content(None, _mark(entry.problem, entry.relative), entry.problem, entry.detail)
    return _landed(source, entry.file, entry.relative, 0, content)


def _doubled(landed: Landed) -> Landed:
    """A path that two files have; nobody knows which is meant, so neither is read."""
    mark = _mark("doubled_path", landed.path)
    what = "two files have this path, such as a member of an archive and a file with its name"
    return replace(landed, checksum=mark, file_id=mark, problem="doubled_path", detail=what)


def _mark(problem: str, path: str) -> str:
    """A stand-in for the checksum of something that is not read."""
    return text_digest(json.dumps([problem, path]))


def _contents(source: Source, file: str) -> list[_Content]:
    try:
        names = members(file, members_glob(source, os.path.basename(file)))
    except Damaged as error:
        return [_Content(None, checksum_of(file), "damaged_archive", str(error))]
    if names is None:
        return [_checked(file, None)]
    if not names:
        return [_Content(None, checksum_of(file), "no_format", "the archive has no member that a format takes")]
    with archives_stay_open():
        return [_checked(file, name) if count == 1 else _several(file, name, count) for name, count in names.items()]


def untaken(home: Home, source: Source, known: Container[str]) -> list[str]:
    """The files of the landing folder of ``source`` that none of its formats takes, as their names say alone.

    Args:
        known: paths of files that are passed over, since what became of them is recorded.
    """
    walked = walk(home.landed(source.name), follow_links=source.follow_links)
    files = {entry.relative: entry.file for entry in walked.entries if entry.stat is not None}
    return [path for path, file in files.items() if path not in known and not _taken_by_name(source, file, path)]


def _taken_by_name(source: Source, file: str, path: str) -> bool:
    if any(form.fits_path(path) for form in source.formats):
        return True
    try:
        inside = members(file, members_glob(source, os.path.basename(file)))
    except (NotReadable, Damaged):
        # What is wrong with it is for the ingest to find.
        return True
    return any(form.fits_path(f"{path}!{name}") for name in inside or () for form in source.formats)


def members_glob(source: Source, name: str) -> str:
    """The glob for members of an archive of this name that are files of the source."""
    return next((f.members for f in source.formats if f.fits_path(name)), "*")


def _several(file: str, member: str, count: int) -> _Content:
    what = f"{count} members of the archive have this name"
    return _Content(member, _mark("doubled_path", f"{os.path.basename(file)}!{member}"), "doubled_path", what)


def _checked(file: str, member: str | None) -> _Content:
    try:
        with open_bytes(file, member) as stream:
            try:
                while stream.read():
                    pass
            except Damaged as error:
                return _Content(member, stream.checksum(), "damaged", str(error))
            return _Content(member, stream.checksum())
    except Damaged as error:
        # The member cannot even be opened: it needs a password, or is packed in an unknown way.
        return _Content(member, text_digest("\0damaged"), "damaged", str(error))


#: The state of a file, and its contents then.
_Looked = tuple[Stamp, list[_Content]]


class _Memory:
    """Checksums of files that have not changed since this version of the parser read them: it unpacks them, too."""

    def __init__(self, path: Path, version: int, earlier: Mapping[str, _Looked]) -> None:
        self._path = path
        self._version = version
        self._earlier = earlier
        self.looked: dict[str, _Looked] = {}
        self._old: dict[str, list[Any]] = {}
        self._new: dict[str, list[Any]] = {}
        try:
            self._old = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self._old = {}

    def get(self, path: str, stat: Stamp) -> list[_Content] | None:
        known = self._earlier.get(path)
        if known is not None and known[0] == stat:
            self.looked[path] = known
        entry = self._old.get(path)
        if entry is not None and entry[0] == self._stamp(stat):
            self._new[path] = entry
            self.looked[path] = stat, [_Content(*content) for content in entry[1]]
        return self.looked[path][1] if path in self.looked else None

    def put(self, path: str, stat: Stamp, contents: list[_Content], young_s: float) -> None:
        self.looked[path] = stat, contents
        # Both times are tested, because a file with an old modification time may have been written just now.
        if time.time() - max(stat.modified_ns, stat.changed_ns) / 1e9 > young_s:
            self._new[path] = [self._stamp(stat), [list(one) for one in contents]]

    def _stamp(self, stat: Stamp) -> list[Any]:
        return [self._version, *astuple(stat)]

    def save(self) -> None:
        if self._new == self._old:
            return
        own_folder(self._path.parent)
        temporary = self._path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps(self._new), encoding="utf-8")
        temporary.replace(self._path)
