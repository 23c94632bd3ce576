"""``ops.*`` in memory for the light mode: the same log, numbers and current rows, without a commit for each row.

Two thirds of a light seed's time would go into opening and committing these tables; their own tests are tests/lake.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from chainlake.lake.delta import tables
from chainlake.paths import Home
from chainlake.schemas.ops import ALL

Key = tuple[Any, ...]


class MemoryOps:
    """The logs of all homes of a seed; ``append`` and ``current_table`` are those of ``chainlake.lake.records.ops``."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        self._arrow, self._exists = tables.arrow, tables.exists

    def append(self, home: Home, table: str, rows: list[dict[str, Any]], run_id: str) -> None:
        """Append rows."""
        log, key = self._logs[home.lake, table], ALL[table].key
        for row in rows:
            full = {**dict.fromkeys(ALL[table].column_names), **row, "run_id": run_id, "written_at": datetime.now(UTC)}
            last = max((old["seq"] for old in log if _key(old, key) == _key(full, key)), default=0)
            full["seq"] = last + 1
            log.append(full)

    def current_table(
        self,
        home: Home,
        table: str,
        *,
        columns: list[str] | None = None,
        filters: Any = None,
        as_log: bool = False,
        **_: Any,
    ) -> pa.Table:
        """The current row of each key in the order of the keys, or all rows."""
        rows = self._logs[home.lake, table]
        if not as_log:
            newest: dict[Key, dict[str, Any]] = {}
            for row in rows:
                newest[_key(row, ALL[table].key)] = row
            rows = [newest[key] for key in sorted(newest)]
        return self._table(table, rows, filters).select(columns or ALL[table].column_names)

    def arrow(self, home: Home, schema: str, name: str, **options: Any) -> pa.Table:
        """``tables.arrow``, which knows these logs."""
        if schema != "ops":
            return self._arrow(home, schema, name, **options)
        found = self._table(name, self._logs[home.lake, name], options.get("filters"))
        return found.select(options.get("columns") or ALL[name].column_names)

    def exists(self, home: Home, schema: str, name: str) -> bool:
        """``tables.exists``, likewise."""
        return bool(self._logs[home.lake, name]) if schema == "ops" else self._exists(home, schema, name)

    def _table(self, name: str, rows: list[dict[str, Any]], filters: Any) -> pa.Table:
        plain = [
            {key: list(value.items()) if isinstance(value, dict) else value for key, value in row.items()}
            for row in rows
            if not filters or _passes(row, filters)
        ]
        return pa.Table.from_pylist(plain, schema=ALL[name].arrow())


#: A null passes none of them.
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda value, wanted: value is not None and value == wanted,
    "!=": lambda value, wanted: value is not None and value != wanted,
    "<": lambda value, wanted: value is not None and value < wanted,
    "<=": lambda value, wanted: value is not None and value <= wanted,
    ">": lambda value, wanted: value is not None and value > wanted,
    ">=": lambda value, wanted: value is not None and value >= wanted,
    "in": lambda value, wanted: value in wanted,
}


def _passes(row: dict[str, Any], filters: list[Any]) -> bool:
    """Whether a row passes conditions that all have to hold, or one of several lists of such."""
    lists = [filters] if isinstance(filters[0], tuple) else filters
    return any(all(_COMPARED[op](row[name], wanted) for name, op, wanted in one) for one in lists)


def _key(row: dict[str, Any], names: tuple[str, ...]) -> Key:
    return tuple(row[name] for name in names)
