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
        rows: ``ops.intervals`` rows of the pattern: day, table_name, status, seq. A day counts for a table by the
            newest row that names this table.
    """
    newest: dict[tuple[str, date], tuple[int, str]] = {}
    for row in rows:
        key = (row["table_name"].removeprefix("matches."), row["day"])
        newest[key] = max(newest.get(key, (0, "")), (row["seq"], row["status"]))
    done: dict[str, set[date]] = {}
    for (table, day), (_, status) in newest.items():
        if status == "done":
            done.setdefault(table, set()).add(day)
    tables = [pattern if version == 1 else f"{pattern}/v{version}" for version in sorted(versions)]
    registered = tables[0]
    for table in tables[1:]:
        if done.get(registered, set()) <= done.get(table, set()):
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
        return pattern
    rows = arrow(
        home,
        "ops",
        "intervals",
        columns=["day", "table_name", "status", "seq"],
        filters=[("definition", "=", f"pattern/{pattern}")],
    )
    return choose(pattern, versions, rows.to_pylist())
