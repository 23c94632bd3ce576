"""Whether two lakes hold the same tables; every replay test uses this one function.

It compares events, quarantine, matches, episodes, rankings, alerts and what models publish except their state, in all
non-volatile columns, with floats equal within 1e-9 relative. It also compares the current intervals in definition, day,
status and rows, ignoring done days without rows.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.defined.registered import registered_table
from chainlake.lake.sql.scan import list_tables
from chainlake.paths import Home
from chainlake.schemas.models import FINDINGS, METRICS
from chainlake.schemas.ranked import KEY

RELATIVE = 1e-9

#: Schema → key columns of its tables, and the columns that depend on when a row was written or from which file.
COMPARED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "events": (("event_id",), ("file_id", "line", "ingested_at")),
    "quarantine": (("file_id", "line", "entry", "stage"), ("written_at",)),
    "matches": (("match_id", "decision_ts"), ()),
    "episodes": (("first_match", "decision_ts"), ()),
    "ranked": (KEY, ()),
    "alerts": (("monitor", "ts"), ()),
}
MODELS = {table.name: table.key for table in (*FINDINGS, METRICS) if table.schema == "models"}

#: How many differing rows of a table are named; the rest are counted.
_EXAMPLES = 3


def same_tables(home_a: Home, home_b: Home) -> list[str]:
    """The differences between two installations, one line each; none if their tables are the same.

    Args:
        home_a: one installation; both lakes must lie on a local disk.
        home_b: the other one.
    """
    found: list[str] = []
    names = sorted({name for home in (home_a, home_b) for name in published_tables(home)})
    for schema, name in names:
        key, volatile = COMPARED.get(schema, ((), ()))
        key = key or MODELS[name]
        sides = [_rows(home, schema, _folder(home, schema, name), key, volatile) for home in (home_a, home_b)]
        found += [f"{schema}.{name}: {line}" for line in _compare(sides[0], sides[1], list(key))]
    return found + [f"intervals: {line}" for line in _compare_intervals(home_a, home_b)]


def published_tables(home: Home) -> list[tuple[str, str]]:
    """``(schema, name)`` of the tables that are compared and exist on local disk; a pattern's tables count as one."""
    found = []
    for schema in (*COMPARED, "models"):
        for name in list_tables(home, schema):
            name = name.partition("/")[0]
            if schema != "models" or name in MODELS:
                found.append((schema, name))
    return sorted(set(found))


def _folder(home: Home, schema: str, name: str) -> str:
    """The table that a pattern's name stands for; other versions that edits have opened are history."""
    return registered_table(home, name) if schema == "matches" else name


def _rows(home: Home, schema: str, name: str, key: tuple[str, ...], volatile: tuple[str, ...]) -> pa.Table | None:
    if not tables.exists(home, schema, name):
        return None
    columns = [column for column in tables.arrow_schema(home, schema, name).names if column not in volatile]
    rows = tables.arrow(home, schema, name, columns=columns)
    return rows.sort_by([(column, "ascending") for column in key])


def _compare(a: pa.Table | None, b: pa.Table | None, key: list[str]) -> list[str]:
    """Differences between two tables that are sorted by ``key``; a missing table counts as empty."""
    if a is None or b is None:
        rows = a if a is not None else b
        return [] if rows is None or not len(rows) else [f"only one side has it, with {len(rows)} rows"]
    if set(a.column_names) != set(b.column_names):
        # An attribute that was added later comes last, so the columns' order does not matter.
        return [f"columns differ: {sorted(set(a.column_names) ^ set(b.column_names))}"]
    keys = [list(zip(*(side[name].to_pylist() for name in key), strict=True)) for side in (a, b)]
    if keys[0] != keys[1]:
        only = [sorted(set(x) - set(y), key=str) for x, y in (keys, keys[::-1])]
        lines = [
            f"{len(rows)} rows only in the {side}, such as {', '.join(map(str, rows[:_EXAMPLES]))}"
            for rows, side in zip(only, ("first", "second"), strict=True)
            if rows
        ]
        return lines or [f"keys repeat: {len(keys[0])} rows against {len(keys[1])}"]
    found = []
    for name in a.column_names:
        if a[name].equals(b[name]):
            continue
        pairs = zip(keys[0], a[name].to_pylist(), b[name].to_pylist(), strict=True)
        differ = [(at, x, y) for at, x, y in pairs if not same_value(x, y)]
        if differ:
            examples = "; ".join(f"{at}: {x} against {y}" for at, x, y in differ[:_EXAMPLES])
            found.append(f"{name} differs in {len(differ)} rows: {examples}")
    return found


def same_value(x: Any, y: Any) -> bool:
    """Whether two values are the same: nested ones part by part, floats within 1e-9 relative."""
    if isinstance(x, float) and isinstance(y, float):
        return x == y or (math.isnan(x) and math.isnan(y)) or math.isclose(x, y, rel_tol=RELATIVE, abs_tol=0.0)
    if isinstance(x, dict) and isinstance(y, dict):
        return x.keys() == y.keys() and all(same_value(x[name], y[name]) for name in x)
    if isinstance(x, list) and isinstance(y, list):
        return len(x) == len(y) and all(map(same_value, x, y))
    return bool(x == y)


def _compare_intervals(home_a: Home, home_b: Home) -> list[str]:
    sides = []
    for home in (home_a, home_b):
        rows = ops.current_table(home, "intervals", columns=["definition", "day", "status", "rows"]).to_pylist()
        sides.append(
            {
                (row["definition"], row["day"]): (row["status"], row["rows"])
                for row in rows
                if not (row["status"] == "done" and not row["rows"])
            }
        )
    a, b = sides
    return [
        f"{at[0]} {at[1]}: {a.get(at, 'nothing')} against {b.get(at, 'nothing')}"
        for at in sorted(a.keys() | b.keys())
        if a.get(at) != b.get(at)
    ]
