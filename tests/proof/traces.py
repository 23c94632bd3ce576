"""What a killed process may not leave behind: half a day, a lock, days that stay between two states."""

from __future__ import annotations

import fcntl
from collections import defaultdict
from typing import Any

from chainlake.lake.delta import tables
from chainlake.lake.leases.conditional import FOLDER
from chainlake.lake.locks import held, holder
from chainlake.lake.records import ops
from chainlake.lake.upkeep.same import COMPARED, MODELS, published_tables
from chainlake.paths import Home
from chainlake.storage.resolve import storage_of

#: Column whose days (of quarantine: whose values) are committed at once.
_UNIT = {"events": "event_date", "quarantine": "file_id", "matches": "decision_ts", "changes": "event_date"}


def half_published(home: Home, whole: Home) -> list[str]:
    """Days (of quarantine: files) that have some of their rows and not the others; a line each.

    Args:
        home: the installation that is looked at.
        whole: one that has all rows of all days.
    """
    found = []
    for schema, name in published_tables(home):
        mine, all_rows = _units(home, schema, name), _units(whole, schema, name)
        found += [
            f"{schema}.{name} has {len(rows & all_rows[unit])} of {len(all_rows[unit])} rows of {unit} and "
            f"{len(rows - all_rows[unit])} others"
            for unit, rows in mine.items()
            if rows != all_rows[unit]
        ]
    return found


def _units(home: Home, schema: str, name: str) -> dict[str, set[tuple[Any, ...]]]:
    key = COMPARED[schema][0] if schema in COMPARED else MODELS[name]
    column = _UNIT.get(name if schema == "models" else schema, "day")
    units: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for row in tables.arrow(home, schema, name, columns=sorted({*key, column})).to_pylist():
        unit = str(row[column])
        units[unit if column == "file_id" else unit[:10]].add(tuple(row[part] for part in key))
    return units


def held_locks(home: Home) -> list[str]:
    """Locks of the lake and of the launcher that somebody still holds; a line each."""
    names = sorted(path.stem for path in home.locks.glob("*.lock"))
    if not storage_of(home.lake).on_disk:
        place = f"{home.lake}/{FOLDER}"
        names = sorted(storage_of(place).listed(place)[0])
    found = [f"the lock {name} is held by {holder(home, name)}" for name in names if held(home, name)]
    launcher = home.airflow / "launcher.lock"
    if not launcher.exists():
        return found
    with open(launcher, "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found.append("the launcher's lock is held")
    return found


def unsettled(home: Home) -> list[str]:
    """Days whose current row says that somebody is at work on them; a line each."""
    days = [(row["source"], row["day"], row["status"]) for row in ops.current(home, "event_days")]
    days += [(row["definition"], row["day"], row["status"]) for row in ops.current(home, "intervals")]
    return [f"{name} {one} is {status}" for name, one, status in days if status in ("changing", "publishing")]
