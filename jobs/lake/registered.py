"""Which version of a match table its name stands for (design §4, match_id).

An edit that changes the output columns opens ``<pattern>/v2``. The name moves there only when every day that the old
table had is done in the new one, so that a reader never sees a half-filled table.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

from jobs.paths import Home


def choose(pattern: str, versions: Iterable[int], rows: Iterable[dict[str, Any]]) -> str:
    """The table that ``matches.<pattern>`` stands for.

    Args:
        pattern: name of the pattern.
        versions: the versions whose tables exist.
        rows: all ``ops.intervals`` rows of the pattern, in the order in which they were written: day, table_name,
            status. An edit can be taken back, so a table's days count only as they were done since the name left it.
    """
    tables = [pattern if version == 1 else f"{pattern}/v{version}" for version in sorted(versions)]
    registered = tables[0] if tables else pattern
    done: dict[str, set[date]] = {table: set() for table in tables}
    for row in rows:
        table, day = row["table_name"].removeprefix("matches."), row["day"]
        if table not in done:
            continue
        if row["status"] != "done":
            # The name's own table keeps the rows of a day that is being published or has failed.
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


def registered_table(home: Home, pattern: str) -> str:
    """Name under ``matches`` of the table that ``matches.<pattern>`` stands for; no JVM.

    Only a pattern with several versions costs a look into ``ops.intervals``.
    """
    from deltalake import DeltaTable

    from jobs.lake.tables import arrow, exists

    versions = [1] if exists(home, "matches", pattern) else []
    number = 2
    while DeltaTable.is_deltatable(home.table("matches", f"{pattern}/v{number}")):
        versions.append(number)
        number += 1
    if len(versions) < 2 or not exists(home, "ops", "intervals"):
        return choose(pattern, versions, [])
    rows = arrow(
        home,
        "ops",
        "intervals",
        columns=["day", "table_name", "status", "seq", "written_at"],
        filters=[("definition", "=", f"pattern/{pattern}")],
    )
    rows = rows.sort_by([("written_at", "ascending"), ("seq", "ascending")])
    return choose(pattern, versions, rows.to_pylist())
