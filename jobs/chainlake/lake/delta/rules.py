"""The rules of a table, checked on Arrow rows: NOT NULL and CHECK constraints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from chainlake.env.databases import cursor
from chainlake.lake.errors import RowRefused
from chainlake.schemas.table import Check, Table

if TYPE_CHECKING:
    import duckdb


class Rules:
    """Tells which row breaks which rule, with DuckDB, which understands the part of Spark SQL that ``schemas`` uses.

    Args:
        table: the table.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._con: duckdb.DuckDBPyConnection | None = None
        mentioned = {name for check in table.checks for name in _names(check)}
        self._columns = [name for name in table.column_names if name in mentioned]
        self._all = " AND ".join(f"coalesce({check.sql}, true)" for check in table.checks)

    @property
    def columns(self) -> list[str]:
        """The columns that rules are about."""
        return [c.name for c in self._table.columns if c.name in self._columns or not c.nullable]

    def check(self, rows: pa.Table) -> None:
        """Make sure that ``rows``, which have at least ``columns``, break no rule.

        Raises:
            AuditFailed: a row breaks a rule; the message names rule and row.
        """
        for column in self._table.columns:
            if not column.nullable and rows[column.name].null_count:
                raise RowRefused.null(self._table.path_name, column.name)
        if not self._table.checks:
            return
        con = self._connected()
        con.register("rows", rows.select(self._columns))
        try:
            if con.execute(f"SELECT count(*) FROM rows WHERE NOT ({self._all})").fetchall()[0][0]:
                self._refuse(con)
        finally:
            con.unregister("rows")

    def _connected(self) -> duckdb.DuckDBPyConnection:
        if self._con is None:
            self._con = cursor()
            self._con.execute("SET TimeZone = 'UTC'")
            self._con.execute("CREATE TEMP MACRO to_date(x) AS CAST(x AS DATE)")
        return self._con

    def _refuse(self, con: duckdb.DuckDBPyConnection) -> None:
        for check in self._table.checks:
            names = [name for name in self._columns if name in _names(check)]
            listed = ", ".join(f'"{name}"' for name in names)
            rule = f"coalesce({check.sql}, true)"
            found = con.execute(f"SELECT {listed} FROM rows WHERE NOT {rule} LIMIT 1").fetchall()
            if found:
                values = dict(zip(names, found[0], strict=True))
                raise RowRefused.check(self._table.path_name, check.name, rule, values)


def _names(check: Check) -> set[str]:
    """The words of a rule outside its string literals, column names among them."""
    return set(re.findall(r"\w+", re.sub(r"'[^']*'", "", check.sql)))
