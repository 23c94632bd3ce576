"""Which version of a match table a pattern's name stands for.

An edit that changes the output columns opens ``<pattern>/v2`` beside the table. When every day that the old table had
is done in the new one, the name stands for the new one, so that a reader never sees a half-filled table. From then on
``chainlake.lake.commits.places`` moves the new one's rows and columns into the old one's place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

from chainlake.lake.delta import tables as delta_tables
from chainlake.paths import Home
from chainlake.schemas.ops_rows import PublishedDay
from chainlake.storage.resolve import storage_of

_VERSION = re.compile(r"v([2-9]|[1-9]\d+)")
_NAME = re.compile(r"matches\..*/v(\d+)")


def choose(pattern: str, versions: Iterable[int], rows: Iterable[PublishedDay]) -> str:
    """The table that ``matches.<pattern>`` stands for.

    Args:
        pattern: name of the pattern.
        versions: the versions whose tables exist.
        rows: all ``ops.intervals`` rows of the pattern, in the order in which they were written. An edit can be undone,
            so of a table's days only those count that were done since the name left it.
    """
    tables = [pattern if version == 1 else f"{pattern}/v{version}" for version in sorted(versions)]
    registered = tables[0] if tables else pattern
    done: dict[str, set[date]] = {table: set() for table in tables}
    for row in rows:
        table, day = row["table_name"].removeprefix("matches."), row["day"]
        if table not in done:
            continue
        if row["status"] != "done":
            # The table that has the name keeps the rows of a day that is being published or has failed.
            if table != registered:
                done[table].discard(day)
            continue
        for other in tables:
            if other not in (table, registered):
                done[other].discard(day)
        done[table].add(day)
        if table != registered and done[registered] <= done[table]:
            done[registered].clear()
            registered = table
    return registered


def later_versions(home: Home, pattern: str) -> list[int]:
    """Numbers of the versions of a match table that are beside it, ascending; no JVM."""
    places = (f"{home.next_tables('matches')}/{pattern}", home.nested_table("matches", pattern))
    names = {name for place in places for name in storage_of(place).folders(place) if _VERSION.fullmatch(name)}
    numbers = sorted(int(name[1:]) for name in names)
    return [number for number in numbers if delta_tables.exists(home, "matches", f"{pattern}/v{number}")]


def next_version(home: Home, pattern: str) -> int:
    """A number that no version of the match table has ever had.

    Days are recorded as done under the name of their table, so the name of a removed table must not come back with
    other rows.
    """
    names = {str(row["table_name"]) for row in recorded(home, pattern)}
    numbers = [int(found[1]) for found in map(_NAME.fullmatch, names) if found]
    return 1 + max([1, *numbers, *later_versions(home, pattern)])


def recorded(home: Home, pattern: str) -> list[PublishedDay]:
    """All rows of ``ops.intervals`` of a pattern, in the order in which they were written."""
    if not delta_tables.exists(home, "ops", "intervals"):
        return []
    columns = ["day", "table_name", "status", "seq", "written_at"]
    mine = [("definition", "=", f"pattern/{pattern}")]
    rows = delta_tables.arrow(home, "ops", "intervals", columns=columns, filters=mine)
    result: list[PublishedDay] = rows.sort_by([("written_at", "ascending"), ("seq", "ascending")]).to_pylist()
    return result


def registered_table(home: Home, pattern: str) -> str:
    """Name under ``matches`` of the table that ``matches.<pattern>`` stands for; no JVM.

    It reads ``ops.intervals`` only if the pattern has several versions.
    """
    later = later_versions(home, pattern)
    versions = [1, *later] if delta_tables.exists(home, "matches", pattern) else later
    return choose(pattern, versions, recorded(home, pattern) if len(versions) > 1 else [])
