"""Cleans up what grows beside the tables: logs, and caches that later runs may use but could make again.

Files are removed only from folders that carry our mark, and only if their names are ours. Links are not
followed.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chainlake.env.own_folders import MARKER, is_own
from chainlake.lake.spark.jars import ARTIFACTS
from chainlake.paths import Home

_DAY_S = 86_400
#: Logs are kept for as long as versions of tables can be read, so that a row can be traced to the log of its run.
LOGS_KEPT_DAYS = 30
#: A log that a long-lived process writes is cut when it reaches the first size; its end, of the second size, is kept.
LOG_BYTES, LOG_LEFT_BYTES = 64 << 20, 8 << 20
#: Kernels, class archives and JARs are kept this long; a project that was idle for longer makes them again.
CACHE_KEPT_DAYS = 90
#: A kernel takes about 100 kB; this is room for those of thousands of patterns.
KERNEL_BYTES = 256 << 20
#: A class archive takes 180 MB; each version of Java or Spark has its own.
ARCHIVES = 3
#: After how many days what a killed process left in the cache is removed.
_UNFINISHED_DAYS = 1

_KERNEL = re.compile(r"(chainlake_kernel_[0-9a-f]{32})\b.*\.(?:py|nbc|nbi)")
_ARCHIVE = re.compile(r"[0-9a-f]{16}\.jsa")
_JAR = re.compile(r"delta-(?:spark_[\d._]+|storage)-[\d.]+\.jar")
_UNFINISHED = re.compile(r"\.make-\w+|\.fetch-\w+|tmp\w+\.tmp|checksums-\w+\.\d+\.tmp")
_ERROR = re.compile(r"error-\d{8}T\d{6}-\d+\.txt")
_CODE = re.compile(r"chainlake-[0-9a-f]{16}\.zip")


@dataclass
class Swept:
    """What was removed.

    Args:
        logs: number of log files removed or cut.
        cached: number of things removed from the cache; all files of a kernel count as one.
        bytes: bytes freed by both.
        foreign: folders of logs that were left alone because they do not carry our mark.
    """

    logs: int = 0
    cached: int = 0
    bytes: int = 0
    foreign: tuple[Path, ...] = ()


def sweep(home: Home, now: float | None = None) -> Swept:
    """Remove old logs and cache entries that nothing uses any more.

    Args:
        home: the installation; its cache may be shared with others.
        now: seconds since 1970; the current time if not given.
    """
    now = time.time() if now is None else now
    logs, cached, freed = 0, 0, 0
    airflow = home.airflow / "logs"
    marked = is_own(airflow)
    old_errors = _own(home.logs, _ERROR, lambda path: _age_days(path, now) > LOGS_KEPT_DAYS)
    old_code = _own(home.temporary, _CODE, lambda path: _age_days(path, now) > LOGS_KEPT_DAYS)
    for path in (*old_errors, *old_code, *(_old_files(airflow, now) if marked else ())):
        freed += _remove(path)
        logs += 1
    if marked:
        for path in sorted(airflow.glob("components/*.log")):
            cut = _cut(path)
            freed += cut
            logs += cut > 0
        _remove_empty(airflow, now)
    for paths in (*_kernels(home.cache / "kernels", now), *_others(home, now)):
        freed += sum(_remove(path) for path in paths)
        cached += 1
    return Swept(logs, cached, freed, () if marked or not airflow.exists() else (airflow,))


def _age_days(path: Path, now: float) -> float:
    return (now - _time(path)) / _DAY_S


def _time(path: Path) -> float:
    """When a file was last written; infinitely late if another process has just removed it."""
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return math.inf


def _used(path: Path) -> float:
    """When a file of a kernel was last used; a source's modification time is fixed, so its change time counts."""
    try:
        return path.lstat().st_ctime if path.suffix == ".py" else path.lstat().st_mtime
    except FileNotFoundError:
        return math.inf


def _own(folder: Path, name: re.Pattern[str], wanted: Callable[[Path], bool]) -> list[Path]:
    """Wanted entries of ``folder`` with such a name, oldest first; none if the folder does not carry our mark."""
    if not is_own(folder):
        return []
    found = [path for path in folder.iterdir() if name.fullmatch(path.name) and wanted(path)]
    return sorted(found, key=_time)


def _old_files(folder: Path, now: float) -> Iterator[Path]:
    """Files and links under a marked folder that have not been written to for a long time."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if path != folder / MARKER and _age_days(path, now) > LOGS_KEPT_DAYS:
                yield path


def _remove_empty(folder: Path, now: float) -> None:
    """Remove folders of runs whose logs are gone; a new folder stays, since a run may be about to write into it."""
    for place, _, _ in os.walk(folder, topdown=False):
        path = Path(place)
        if path != folder and not any(path.iterdir()) and _age_days(path, now) > _UNFINISHED_DAYS:
            path.rmdir()


def _cut(path: Path) -> int:
    """Keep only the end of a log that has grown too long; returns the number of bytes removed.

    Its writer appends, so the file may be shortened while it writes; lines written at that moment can be lost.
    """
    size = path.stat().st_size
    if size <= LOG_BYTES:
        return 0
    with open(path, "r+b") as log:
        log.seek(size - LOG_LEFT_BYTES)
        log.readline()
        end = log.read()
        log.seek(0)
        log.write(end)
        log.truncate()
    return size - len(end)


def _kernels(folder: Path, now: float) -> Iterator[Sequence[Path]]:
    """The files of each kernel that has not been used for long, or no longer fits into the room for all kernels."""
    found: dict[tuple[Path, str], list[Path]] = {}
    versions = [place for place in folder.glob("*") if is_own(place)]
    for path in (one for place in versions for one in (*place.glob("*"), *place.glob("__pycache__/*"))):
        if name := _KERNEL.fullmatch(path.name):
            version = path.parent.parent if path.parent.name == "__pycache__" else path.parent
            found.setdefault((version, name[1]), []).append(path)
    used = {key: max(map(_used, paths)) for key, paths in found.items()}
    room = KERNEL_BYTES
    for key in sorted(found, key=lambda key: used[key], reverse=True):
        room -= sum(path.lstat().st_size for path in found[key] if path.exists())
        if room < 0 or (now - used[key]) / _DAY_S > CACHE_KEPT_DAYS:
            yield found[key]


def _others(home: Home, now: float) -> Iterator[Sequence[Path]]:
    """Class archives and JARs that are old or too many, and unfinished files."""
    cache = home.cache
    archives = _own(cache / "cds", _ARCHIVE, lambda path: True)
    for number, path in enumerate(reversed(archives)):
        if number >= ARCHIVES or _age_days(path, now) > CACHE_KEPT_DAYS:
            yield [path]
    # Other programs give Delta's JARs the same names, and CHAINLAKE_CACHE may name a folder with their JARs.
    for path in _own(cache / "jars", _JAR, lambda path: path.name not in ARTIFACTS):
        if _age_days(path, now) > CACHE_KEPT_DAYS:
            yield [path]
    for folder in (cache / "cds", cache / "jars", *(cache / "kernels").glob("*"), home.root / "cache"):
        for path in _own(folder, _UNFINISHED, lambda path: _age_days(path, now) > _UNFINISHED_DAYS):
            yield [path]


def _remove(path: Path) -> int:
    """Remove a file, a link or a folder of ours, and return its size; another process may already have removed it."""
    try:
        size = path.lstat().st_size
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except FileNotFoundError:
        return 0
    return size
