"""SQL on the published tables without a JVM: DuckDB over delta-rs (design §2, tables.md).

Only the tables that a query mentions are opened, as Arrow datasets into which DuckDB pushes filters and projections
(also of single struct fields), so that an answer takes about a second whatever the lake holds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from jobs.errors import InfrastructureError, UsageError
from jobs.lake.registered import registered_table
from jobs.paths import Home
from schemas import models, ops

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

SCHEMAS = ("raw", "events", "quarantine", "matches", "models", "ops")
#: The view over the matches of all patterns; no pattern may have its name.
ALL = "all"
_CURRENT = "current_"
_PART = r'"(?:[^"]|"")*"|[^\s."(]+'
_NAME = re.compile(rf"(?:{_PART})(?:\.(?:{_PART}))*")
_KNOWN = {("ops", name): table for name, table in ops.ALL.items()} | {
    ("models", table.name): table for table in (models.CHANGES, models.METRICS, models.STATE)
}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Lake:
    """A DuckDB connection that knows the lake's tables.

    Args:
        home: the installation.
    """

    def __init__(self, home: Home) -> None:
        import duckdb

        self.home = home
        # Extensions come with the wheel; looking for others would be a download in the middle of a query.
        self.con: duckdb.DuckDBPyConnection = duckdb.connect(
            ":memory:",
            config={"autoinstall_known_extensions": "false", "python_enable_replacements": "false"},
        )
        self.con.execute("SET TimeZone = 'UTC'")
        for schema in SCHEMAS:
            self.con.execute(f"CREATE SCHEMA {schema}")
        self._listed: dict[str, list[str]] = {}
        self._ready: dict[tuple[str, str], list[tuple[str, str]]] = {}

    def query(self, sql: str) -> duckdb.DuckDBPyConnection:
        """Run one reading statement; rows and ``description`` are the connection's.

        Raises:
            UsageError: not one reading statement, or a table, column or function that does not exist; the message
                says in one sentence what exists.
        """
        import duckdb

        try:
            self._check_statement(sql)
            for name in self._mentioned(sql):
                self._prepare(name)
            return self.con.execute(sql)
        except duckdb.Error as error:
            raise self._explained(error) from None

    def tables(self) -> list[str]:
        """Everything that can be queried, as ``schema.name``."""
        found = [f"{schema}.{_shown(name)}" for schema in SCHEMAS for name in self._names(schema)]
        if self._names("matches"):
            found.append(f"matches.{ALL}")
        return sorted(found + [f"ops.{_CURRENT}{name}" for name in self._names("ops")])

    def _check_statement(self, sql: str) -> None:
        import duckdb

        statements = self.con.extract_statements(sql)
        if len(statements) != 1:
            raise UsageError(f"one statement at a time, this is {len(statements)}")
        if statements[0].type not in (
            duckdb.StatementType.SELECT,
            duckdb.StatementType.EXPLAIN,
            duckdb.StatementType.COPY,
        ):
            raise UsageError(
                f"this only reads: {statements[0].type.name} is not possible",
                hint="Use SELECT, FROM, DESCRIBE, SUMMARIZE, SHOW ALL TABLES, EXPLAIN, or COPY (SELECT …) TO 'file'.",
            )

    def _mentioned(self, sql: str) -> list[list[str]]:
        """The tables that ``sql`` mentions, each as its parts."""
        if re.match(r"\s*show\b", sql, re.IGNORECASE):
            return [_parts(name) for name in self.tables()]
        return [_parts(name) for name in sorted(self.con.get_table_names(sql, qualified=True))]

    def _prepare(self, parts: Sequence[str]) -> None:
        if len(parts) > 2 or (len(parts) == 2 and parts[0].lower() not in (*SCHEMAS, "information_schema", "main")):
            raise self._unknown(".".join(parts))
        if len(parts) == 1:
            homes = [s for s in SCHEMAS if parts[0] in self._names(s)]
            if homes:
                raise UsageError(
                    f"table {parts[0]} needs its schema",
                    hint=f"Write {' or '.join(f'{schema}.{_shown(parts[0])}' for schema in homes)}.",
                )
        elif (schema := parts[0].lower()) in SCHEMAS:
            self._define(schema, parts[1])

    def _define(self, schema: str, name: str) -> None:
        if (schema, name.lower()) in self._ready:
            return
        if (schema, name.lower()) == ("matches", ALL):
            self._define_all()
            return
        if schema == "ops" and name.lower().startswith(_CURRENT):
            self._define_current(name.lower())
            return
        known = self._names(schema)
        found = name if name in known else next((n for n in known if n.lower() == name.lower()), None)
        if found is not None:
            self._register(schema, found, self._dataset(schema, found))
        elif (schema, name.lower()) in _KNOWN and any(self._names(s) for s in SCHEMAS):
            # A table that nothing has been written to yet is an empty table, not an unknown one.
            self._register(schema, name.lower(), _KNOWN[schema, name.lower()].arrow().empty_table())
        else:
            raise self._unknown(f"{schema}.{name}")

    def _register(self, schema: str, name: str, rows: Any) -> None:
        handle = f"_{schema}_{len(self._ready)}"
        self.con.register(handle, rows)
        self.con.execute(f"CREATE VIEW {schema}.{_quoted(name)} AS SELECT * FROM {handle}")
        self._ready[schema, name.lower()] = [(field.name, str(field.type)) for field in rows.schema]

    def _define_current(self, name: str) -> None:
        base = name.removeprefix(_CURRENT)
        table = ops.ALL.get(base)
        if table is None:
            raise self._unknown(f"ops.{name}")
        self._define("ops", base)
        key = ", ".join(table.key)
        self.con.execute(
            f"CREATE VIEW ops.{name} AS SELECT * FROM ops.{base} "
            f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY seq DESC) = 1"
        )
        self._ready["ops", name] = self._ready["ops", base]

    def _define_all(self) -> None:
        if not any(self._names(schema) for schema in SCHEMAS):
            raise self._unknown(f"matches.{ALL}")
        patterns = [name for name in self._names("matches") if "/" not in name]
        with ThreadPoolExecutor(8) as pool:
            opened = list(pool.map(lambda name: self._dataset("matches", name), patterns))
        selects = []
        for pattern, rows in zip(patterns, opened, strict=True):
            if ("matches", pattern.lower()) not in self._ready:
                self._register("matches", pattern, rows)
            selects.append(_all_select(pattern, rows.schema))
        if not selects:
            selects = [
                "SELECT NULL::VARCHAR AS pattern, NULL::VARCHAR AS match_id, NULL::TIMESTAMPTZ AS start_ts, "
                "NULL::TIMESTAMPTZ AS end_ts, NULL::TIMESTAMPTZ AS decision_ts, "
                "NULL::MAP(VARCHAR, VARCHAR[]) AS events WHERE false"
            ]
        self.con.execute(f"CREATE VIEW matches.{_quoted(ALL)} AS {' UNION ALL '.join(selects)}")
        names = ("pattern", "match_id", "start_ts", "end_ts", "decision_ts", "events")
        self._ready["matches", ALL] = [(name, "") for name in names]

    def _names(self, schema: str) -> list[str]:
        """Names of the tables of ``schema``: patterns by their own name, older and newer versions as ``x/v2``."""
        if schema not in self._listed:
            self._listed[schema] = sorted(list_tables(self.home, schema))
        return self._listed[schema]

    def _dataset(self, schema: str, name: str) -> Any:
        from deltalake.exceptions import DeltaError

        folder = registered_table(self.home, name) if schema == "matches" and "/" not in name else name
        try:
            return open_dataset(self.home.table(schema, folder))
        except (DeltaError, OSError) as error:
            first = str(error).strip().splitlines()[0]
            raise InfrastructureError(f"table {schema}.{name} cannot be read: {first}") from error

    def _unknown(self, name: str) -> UsageError:
        exists = self.tables()
        if not exists:
            return UsageError(
                f"the lake at {self.home.lake} is empty: there is no table {name} yet",
                hint="`make run` fills it with the shipped data; `python -m jobs ingest SOURCE FROM TO` with yours.",
            )
        return UsageError(f"there is no table {name}", hint=f"There are {', '.join(exists)}.")

    def _explained(self, error: Exception) -> UsageError:
        """DuckDB's message as one sentence, with the columns that exist where one was not found."""
        text = str(error).strip()
        first = re.sub(r"^\w+( \w+)? Error: ", "", text.splitlines()[0])
        column = re.search(r'Referenced column "(.+?)" |does not have a column named "(.+?)"', text)
        if column:
            return UsageError(f"there is no column {column[1] or column[2]}", hint=self._columns())
        if field := re.search(r'Could not find key "(.+?)" in struct', text):
            return UsageError(f"there is no field {field[1]}", hint=self._columns())
        if array := re.search(r"Cannot extract field '(.+?)' from expression \"(.+?)\"", text):
            return UsageError(
                f"{array[2]} has no field {array[1]}: it is not one event",
                hint=f"If it is an array of events, write {array[2]}[1].{array[1]} or unnest({array[2]}).",
            )
        if table := re.search(r"Table with name (\S+) does not exist", text):
            return self._unknown(table[1])
        mark = re.search(r"^LINE \d+: .*\n.*\^", text, re.MULTILINE)
        return UsageError(f"{first}\n{mark[0]}" if mark else first)

    def _columns(self) -> str:
        said = [
            f"{schema}.{_shown(name)} has {', '.join(_described(column, kind) for column, kind in columns)}"
            for (schema, name), columns in self._ready.items()
        ]
        return "; ".join(said) + "."


def _parts(name: str) -> list[str]:
    """``matches."my-pattern" AS m`` → ``["matches", "my-pattern"]``."""
    found = _NAME.match(name)
    parts = re.findall(_PART, found[0] if found else name)
    return [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts]


def _shown(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else _quoted(name)


def _described(column: str, kind: str) -> str:
    if "struct<" not in kind:
        return column
    fields = re.findall(r"[<,]\s*(\w+):", kind.split("struct", 1)[1])
    return f"{column}{'[]' if kind.startswith(('list', 'large_list')) else ''}({', '.join(fields)})"


def _all_select(pattern: str, schema: pa.Schema) -> str:
    """One pattern's part of ``matches.all``; names that a branch lacks are left out of the map."""
    import pyarrow as pa

    entries = []
    for field in schema:
        column = _quoted(field.name)
        if pa.types.is_struct(field.type):
            ids = f"CASE WHEN {column} IS NULL THEN NULL ELSE [{column}.event_id] END"
        elif pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
            ids = f"list_transform({column}, lambda x: x.event_id)"
        else:
            continue
        entries.append(f"{{'k': {_literal(field.name)}, 'v': {ids}}}")
    bound = f"list_filter([{', '.join(entries)}], lambda e: e.v IS NOT NULL)"
    return (
        f"SELECT {_literal(pattern)} AS pattern, match_id, start_ts, end_ts, decision_ts, "
        f"map_from_entries({bound}) AS events FROM matches.{_quoted(pattern)}"
    )


def list_tables(home: Home, schema: str) -> list[str]:
    """Names of the Delta tables under ``schema``, those of a newer version as ``name/v2``."""
    from pyarrow import fs

    place = home.lake if "://" in home.lake else os.path.abspath(home.lake)
    system, root = fs.FileSystem.from_uri(place) if "://" in place else (fs.LocalFileSystem(), place)

    def folders(path: str) -> list[str]:
        entries = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return [entry.base_name for entry in entries if entry.type == fs.FileType.Directory]

    found = []
    for name in folders(f"{root}/{schema}"):
        inside = folders(f"{root}/{schema}/{name}")
        if "_delta_log" in inside:
            found.append(name)
        if schema == "matches":
            versions = [v for v in inside if re.fullmatch(r"v\d+", v)]
            found += [f"{name}/{v}" for v in versions if "_delta_log" in folders(f"{root}/{schema}/{name}/{v}")]
    return found


def open_dataset(uri: str) -> Any:
    """The current version of a Delta table as an Arrow dataset."""
    from deltalake import DeltaTable

    return DeltaTable(uri).to_pyarrow_dataset()
