"""Globs of file names that cannot match any file, found before one lands."""

from __future__ import annotations

import re
from datetime import date, timedelta
from fnmatch import translate

from chainlake.definitions.formats.time_formats import Problem

#: Endings that uploaders give to the names of unfinished files.
UNFINISHED = (".part", ".partial", ".tmp", ".crdownload", ".filepart")
#: Parts of a path that do not name a file.
_FOLDERS = (".", "..")
#: ``{date}``, ``{date-1}``, ``{date+1:%Y%m%d}`` in an ``expect`` glob.
DATE_FIELD = re.compile(r"\{date(?:([+-]\d+))?(?::([^{}]+))?\}")
#: The most days between a day and the date in the name of one of its files.
_FURTHEST = 3660


def is_ignored(path: str) -> bool:
    """Whether a file with this path is never taken: it is hidden, in a hidden folder, or an unfinished upload."""
    hidden = (part for part in path.split("/") if part.startswith(".") and part not in _FOLDERS)
    return path.endswith(UNFINISHED) or any(hidden)


def glob_problem(glob: str) -> Problem | None:
    """Why ``glob`` can match no landed file's path, relative to the source's landing folder; None if it can."""
    if not glob or glob != glob.strip():
        return Problem("is empty, or begins or ends with white space", "E.g. 'bars_*.csv'.")
    if "{" in glob and "}" in glob:
        return Problem("has braces, which match only themselves", "Write * for what differs between the files.")
    if glob.startswith(("/", "./", "../", "landing/")) or "//" in glob or glob.endswith("/") or "\\" in glob:
        return Problem(
            "is not a path within the landing folder of the source",
            "A path there is like bars.csv or 2025/bars.csv; the name alone is enough, too.",
        )
    if "(?!)" in translate(glob):
        return Problem("has a range that holds no character", "Write [a-z] with the smaller one first.")
    if glob.endswith(UNFINISHED) or glob.rsplit("/", 1)[-1].startswith("."):
        return Problem(
            "names hidden or unfinished files",
            f"Files whose names begin with . or end in {', '.join(UNFINISHED)} are never read.",
        )
    return None


def expected_glob(glob: str, day: date) -> str:
    """The glob of ``expect`` for the UTC day ``day``."""

    def fill(found: re.Match[str]) -> str:
        named = day + timedelta(days=int(found[1] or 0))
        return named.strftime(found[2] or "%Y-%m-%d")

    return DATE_FIELD.sub(fill, glob)


def expect_problem(glob: str) -> Problem | None:
    """Why a glob of ``expect`` cannot match the landed files of one particular day; None if it can."""
    hint = "E.g. bars_{date:%Y%m%d}.csv, {date-1}."
    rest = DATE_FIELD.sub("", glob)
    if "{" in rest or "}" in rest:
        return Problem("is not understood", hint)
    for days, form in DATE_FIELD.findall(glob):
        if len(days) > 6 or abs(int(days or 0)) > _FURTHEST:
            return Problem("names a day that is too far away", hint)
        unknown = [letter for letter in re.findall(r"%(.?)", form) if letter not in tuple("aAbBdGjmuUVwWyY%")]
        if unknown or (form and "%" not in form):
            return Problem(f"contains '{form}', which is not a date format", hint)
    if not (problem := glob_problem(expected_glob(glob, date(2025, 11, 28)))) and not DATE_FIELD.search(glob):
        return Problem("is the same for all days, so that one file would make every day complete", hint)
    return problem
