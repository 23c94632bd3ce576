"""Which files ``expect`` names for a day, and which of them are there."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from datetime import date
from fnmatch import fnmatchcase

from chainlake.definitions.formats.globs import expected_glob
from chainlake.definitions.source import Source


def expected_globs(source: Source, day: date) -> list[str]:
    """The globs of the files that ``expect`` names for the UTC day ``day``."""
    return [expected_glob(glob, day) for glob in source.expect]


def glob_matches(glob: str, path: str) -> bool:
    """Whether ``glob`` names ``path``, the archive that holds it, or the last part of either."""
    return any(fnmatchcase(name, glob) for name in _names(path))


def _names(path: str) -> tuple[str, ...]:
    outer = path.split("!", 1)[0]
    return path, path.rsplit("/", 1)[-1], outer, outer.rsplit("/", 1)[-1]


class LandedNames:
    """The names of files that globs can match, sorted so that a glob is compared with few of them.

    A source with years of days has as many globs as files; comparing each with each would take minutes.

    Args:
        paths: paths of the files.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        names = {name for path in paths for name in _names(path)}
        self._forward = sorted(names)
        self._backward = sorted(name[::-1] for name in names)

    def has(self, glob: str) -> bool:
        """Whether ``glob`` names one of the files, as :func:`glob_matches` says."""
        begin = re.split(r"[*?\[]", glob, maxsplit=1)[0]
        end = re.split(r"[*?\]]", glob)[-1][::-1]
        first, last = _range(self._forward, begin)
        low, high = _range(self._backward, end)
        if last - first <= high - low:
            return any(fnmatchcase(name, glob) for name in self._forward[first:last])
        return any(fnmatchcase(name[::-1], glob) for name in self._backward[low:high])


def _range(names: list[str], begin: str) -> tuple[int, int]:
    """The range of the sorted names that begin with ``begin``."""
    size = len(begin)
    return bisect_left(names, begin), bisect_right(names, begin, key=lambda name: name[:size])


def missing_expected(source: Source, day: date, names: LandedNames) -> list[str]:
    """The globs expected for ``day`` that match none of the files."""
    return [glob for glob in expected_globs(source, day) if not names.has(glob)]
