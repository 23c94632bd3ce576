"""SQL on the published tables without a JVM: DuckDB over delta-rs.

Only the tables that a query mentions are opened. delta-rs names their files and DuckDB reads them, with filters and
projections (also of single struct fields) pushed down, so that an answer takes about a second however large the lake
is.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from chainlake.errors import UsageError
from chainlake.lake.delta import tables
from chainlake.lake.records.defined.registered import registered_table
from chainlake.lake.sql import safe as safely
from chainlake.lake.sql import zones
from chainlake.lake.sql.errors import FilesUnreadable, NotInTheLake, OnlyReads, StatementRefused
from chainlake.lake.sql.matches import view_of, view_select
from chainlake.lake.sql.origin import SUFFIX, origin_select
from chainlake.lake.sql.ranked import BOUND, bound_select_of
from chainlake.lake.sql.scan import Scan, empty, in_memory, list_tables, literal, quoted, scan
from chainlake.paths import Home
from chainlake.schemas import models, ops

if TYPE_CHECKING:
    import duckdb

SCHEMAS = ("raw", "events", "quarantine", "matches", "episodes", "ranked", "models", "alerts", "ops")
#: The view over the matches of all patterns; no pattern may have its name.
ALL = "all"
_CURRENT = "current_"
#: Extensions come with the wheel; looking for others would start a download in the middle of a query.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
}
#: Tables of models that have an origin view → their day column.
_MODEL_DAYS = {table.name: table.day_column for table in (*models.FINDINGS, models.METRICS) if table.schema == "models"}
_PART = r'(?:"(?:[^"]|"")*"|[^\W\d]\w*)'
#: Matches ``schema.name`` of the lake; strings and comments are matched only to skip them.
_TOKEN = re.compile(
    rf"""'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|(?<![\w".])(?P<schema>"?\b(?:{"|".join(SCHEMAS)})\b"?)\s*\.\s*{_PART}|{_PART}""",
    re.IGNORECASE | re.DOTALL,
)
#: What DuckDB says about a Parquet file whose bytes have changed since they were written.
_OF_FILES = re.compile(r"\.parquet'|No magic bytes|TProtocolException|decompress|Snappy|corrupt", re.IGNORECASE)
_KNOWN = {("ops", name): table for name, table in ops.ALL.items()} | {
    (table.schema, table.name): table for table in models.SHARED
}


class SqlConnection:
    """A DuckDB connection that knows the lake's tables.

    Args:
        home: the installation.
        derived: ``(schema, name)`` → function that makes the rows of a table that is not stored anywhere, called when a
            query mentions it.
        safe: for statements that someone else wrote, which may read the tables and nothing else; see
            ``chainlake.lake.sql.safe``.
    """

    def __init__(
        self,
        home: Home,
        derived: Mapping[tuple[str, str], Callable[[], pa.Table]] | None = None,
        *,
        safe: bool = False,
    ) -> None:
        import duckdb

        self.home = home
        self.safe = safe
        self._timer: threading.Timer | None = None
        self._derived = dict(derived or {})
        self.con: duckdb.DuckDBPyConnection = duckdb.connect(":memory:", config=safely.CONFIG if safe else _CONFIG)
        self.con.execute("SET TimeZone = 'UTC'")
        if safe:
            safely.lock(self.con)
        for schema in SCHEMAS:
            self.con.execute(f"CREATE SCHEMA {schema}")
        self._listed: dict[str, list[str]] = {}
        self._ready: dict[tuple[str, str], list[tuple[str, str]]] = {}

    def query(self, sql: str) -> duckdb.DuckDBPyConnection:
        """Run one reading statement; rows and ``description`` are the connection's.

        With ``safe``, the time limit includes fetching the rows, which can raise errors for :meth:`explained`.

        Raises:
            UsageError: not one reading statement, or a table, column or function that does not exist; the message
                says in one sentence what exists.
        """
        with self._explaining(sql):
            self._prepare(sql)
            return self.con.execute(sql)

    def table(self, sql: str) -> pa.Table:
        """Run one reading statement and return its rows.

        Raises:
            UsageError: see :meth:`query`.
        """
        with self._explaining(sql):
            self._prepare(sql)
            return self.con.sql(sql).to_arrow_table()

    def tables(self) -> list[str]:
        """Everything that can be queried, as ``schema.name``."""
        found = [f"{schema}.{_shown(name)}" for schema in SCHEMAS for name in self._names(schema)]
        if self._names("matches"):
            found.append(f"matches.{ALL}")
        if self._names("ops"):
            found += [f"{schema}.{name}" for schema, name in self._derived]
        return sorted(found + [f"ops.{_CURRENT}{name}" for name in self._names("ops")])

    @contextmanager
    def _explaining(self, sql: str) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            raise self.explained(error, sql) from error

    def _prepare(self, sql: str) -> None:
        """Look at a statement, begin its time, and make known what it mentions."""
        self._check_statement(sql)
        if self.safe:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = safely.interrupt_later(self.con)
        for schema, name in self._mentioned(sql):
            self._define(schema, name)

    def _check_statement(self, sql: str) -> None:
        import duckdb

        if self.safe:
            safely.check_length(sql)
        statements = self.con.extract_statements(sql)
        if len(statements) != 1:
            raise StatementRefused.several(len(statements))
        kind = statements[0].type
        if self.safe and kind != duckdb.StatementType.SELECT:
            raise OnlyReads.of(kind.name, safe=True)
        if kind not in (
            duckdb.StatementType.SELECT,
            duckdb.StatementType.EXPLAIN,
            duckdb.StatementType.COPY,
        ):
            raise OnlyReads.of(kind.name, safe=False)

    def _mentioned(self, sql: str) -> list[tuple[str, str]]:
        """What ``sql`` may mention as ``schema.name``; aliases look the same, so not all of it need exist."""
        if re.match(r"\s*show\b", sql, re.IGNORECASE):
            return [_parts(name) for name in self.tables()]
        return [_parts(found[0]) for found in _TOKEN.finditer(sql) if found["schema"]]

    def _define(self, schema: str, name: str) -> None:
        """Make ``schema.name`` known to DuckDB if there is such a table; otherwise DuckDB will raise its own error."""
        if (schema, name.lower()) in self._ready:
            return
        if (schema, name.lower()) == ("matches", ALL):
            self._define_all()
        elif schema == "ops" and name.lower().startswith(_CURRENT):
            self._define_current(name.lower())
        elif found := self._found(schema, name):
            self._register(schema, found, self._scan(schema, found))
        elif (schema, name.lower()) in self._derived:
            self._register(schema, name.lower(), in_memory(f"{schema}_{name}", self._derived[schema, name.lower()]()))
        elif (schema, name.lower()) == ("models", zones.NAME):
            self._define_zones()
        elif schema in ("matches", "episodes", "ranked", "models") and name.lower().endswith(SUFFIX):
            self._define_origin(schema, name[: -len(SUFFIX)])
        elif schema == "ranked" and name.lower().endswith(BOUND):
            self._define_bound(name[: -len(BOUND)])
        elif schema == "matches" and (view := view_of(name)) is not None:
            self._define_view(*view)
        elif (schema, name.lower()) in _KNOWN and any(self._names(s) for s in SCHEMAS):
            # A table to which nothing has been written yet is an empty table, not an unknown one.
            self._register(schema, name.lower(), empty(_KNOWN[schema, name.lower()].arrow()))

    def _found(self, schema: str, name: str) -> str | None:
        """The table's name as it is written in the lake; DuckDB's names are case-insensitive."""
        known = self._names(schema)
        return name if name in known else next((n for n in known if n.lower() == name.lower()), None)

    def _register(self, schema: str, name: str, found: Scan) -> None:
        if found.dataset is not None:
            self.con.register(found.handle, found.dataset)
        self.con.execute(f"CREATE VIEW {schema}.{quoted(name)} AS {found.sql}")
        self._ready[schema, name.lower()] = [(field.name, str(field.type)) for field in found.schema]

    def _define_current(self, name: str) -> None:
        base = name.removeprefix(_CURRENT)
        self._define("ops", base)
        if ("ops", base) not in self._ready:
            return
        table = ops.ALL[base]
        key = ", ".join(table.key)
        self.con.execute(
            f"CREATE VIEW ops.{name} AS SELECT * FROM ops.{base} "
            f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY seq DESC) = 1"
        )
        self._ready["ops", name] = self._ready["ops", base]

    def _define_origin(self, schema: str, base: str) -> None:
        """Define the view of a table of matches, episodes, rankings or models with the origin of each row's day."""
        self._define(schema, base)
        self._define("ops", "intervals")
        found = self._found(schema, base)
        if found is None or (schema == "models" and found not in _MODEL_DAYS):
            return
        rows = f"{schema}.{quoted(found)}"
        if schema == "matches":
            stands_for = literal(f"matches.{registered_table(self.home, found)}")
            select = origin_select(rows, literal(f"pattern/{found}"), stands_for, "CAST(m.decision_ts AS DATE)")
        elif schema in ("episodes", "ranked"):
            day = "scope_start" if schema == "ranked" else "decision_ts"
            select = origin_select(rows, literal(f"{schema}/{found}"), None, f"CAST(m.{day} AS DATE)")
        else:
            select = origin_select(rows, "'model/' || m.model", None, f"m.{_MODEL_DAYS[found]}", added="")
        self.con.execute(f"CREATE VIEW {schema}.{quoted(found + SUFFIX)} AS {select}")
        self._ready[schema, (found + SUFFIX).lower()] = self._ready[schema, found.lower()]

    def _define_zones(self) -> None:
        self._define("models", "zone_events")
        if ("models", "zone_events") in self._ready:
            self.con.execute(f"CREATE VIEW models.{zones.NAME} AS {zones.SELECT}")
            self._ready["models", zones.NAME] = list(zones.COLUMNS)

    def _define_view(self, base: str, kind: str) -> None:
        """Define one of the views of a match table: see ``chainlake.lake.sql.matches``."""
        self._define("matches", base)
        found = self._found("matches", base)
        if found is None:
            return
        schema = tables.arrow_schema(self.home, "matches", registered_table(self.home, found))
        select = view_select(self.home, found, schema, f"matches.{quoted(found)}", kind)
        if select is not None:
            self.con.execute(f"CREATE VIEW matches.{quoted(found + kind)} AS {select}")
            self._ready["matches", (found + kind).lower()] = self._ready["matches", found.lower()]

    def _define_bound(self, base: str) -> None:
        """Define the best matches of a pattern with the events that they bind, taken from its match table."""
        for schema in ("ranked", "matches"):
            self._define(schema, base)
        found = self._found("ranked", base)
        if found is None or self._found("matches", found) is None:
            return
        columns = [name for name, _ in self._ready["matches", found.lower()]]
        select = bound_select_of(columns, quoted(found))
        self.con.execute(f"CREATE VIEW ranked.{quoted(found + BOUND)} AS {select}")
        self._ready["ranked", (found + BOUND).lower()] = self._ready["matches", found.lower()]

    def _define_all(self) -> None:
        if not any(self._names(schema) for schema in SCHEMAS):
            return
        patterns = [name for name in self._names("matches") if "/" not in name]
        with ThreadPoolExecutor(8) as pool:
            opened = list(pool.map(lambda name: self._scan("matches", name), patterns))
        selects = []
        for pattern, scanned in zip(patterns, opened, strict=True):
            if ("matches", pattern.lower()) not in self._ready:
                self._register("matches", pattern, scanned)
            selects.append(_all_select(pattern, scanned.schema))
        if not selects:
            selects = [
                "SELECT NULL::VARCHAR AS pattern, NULL::VARCHAR AS match_id, NULL::TIMESTAMPTZ AS start_ts, "
                "NULL::TIMESTAMPTZ AS end_ts, NULL::TIMESTAMPTZ AS decision_ts, "
                "NULL::MAP(VARCHAR, VARCHAR[]) AS events WHERE false"
            ]
        self.con.execute(f"CREATE VIEW matches.{quoted(ALL)} AS {' UNION ALL '.join(selects)}")
        names = ("pattern", "match_id", "start_ts", "end_ts", "decision_ts", "events")
        self._ready["matches", ALL] = [(name, "") for name in names]

    def _names(self, schema: str) -> list[str]:
        """Names of the tables of ``schema``: patterns by their own name, later versions as ``x/v2``."""
        if schema not in self._listed:
            self._listed[schema] = sorted(list_tables(self.home, schema))
        return self._listed[schema]

    def _scan(self, schema: str, name: str) -> Scan:
        from deltalake.exceptions import DeltaError

        folder = registered_table(self.home, name) if schema == "matches" and "/" not in name else name
        try:
            if self.safe:
                return safely.arrow_scan(self.home, schema, folder)
            return scan(self.con, self.home, schema, folder)
        except (DeltaError, OSError) as error:
            raise FilesUnreadable.of_table(f"{schema}.{name}", error) from error

    def _unknown(self, name: str, sql: str) -> UsageError:
        meant = [_parts(found[0]) for found in _TOKEN.finditer(sql) if found["schema"]]
        schema = next((s for s, n in meant if n == name and (s, n.lower()) not in self._ready), None)
        full = f"{schema}.{_shown(name)}" if schema else name
        exists = self.tables()
        if not exists:
            return NotInTheLake.empty(self.home.lake, full)
        homes = [f"{s}.{_shown(name)}" for s in SCHEMAS if self._found(s, name)]
        if schema is None and homes:
            return NotInTheLake.needs_schema(name, homes)
        return NotInTheLake.listed("table", full, exists)

    def explained(self, error: Exception, sql: str) -> UsageError | FilesUnreadable:
        """DuckDB's message as one sentence, with the columns that exist if one was not found.

        A damaged file may be noticed when a statement starts, or only when its rows are fetched.
        """
        import duckdb

        if isinstance(error, duckdb.IOException) or _OF_FILES.search(str(error)):
            return FilesUnreadable.of_query(error)
        if isinstance(error, duckdb.InterruptException):
            return safely.StatementTooSlow()
        text = str(error).strip()
        first = re.sub(r"^\w+( \w+)? Error: ", "", text.splitlines()[0])
        column = re.search(r'Referenced column "(.+?)" |does not have a column named "(.+?)"', text)
        if column:
            return NotInTheLake.inside("column", column[1] or column[2], self._columns())
        if field := re.search(r'Could not find key "(.+?)" in struct', text):
            return NotInTheLake.inside("field", field[1], self._columns())
        if array := re.search(r"Cannot extract field '(.+?)' from expression \"(.+?)\"", text):
            return NotInTheLake.of_many(array[2], array[1])
        if table := re.search(r"Table with name (.+?) does not exist", text):
            return self._unknown(table[1].strip('"'), sql)
        # Only the start of the message is tested, because a function that does not exist is a "Catalog Error", too.
        if place := re.match(r"(?:Catalog|Schema with name) \"?(.+?)\"? does not exist", first):
            return NotInTheLake.listed("schema", place[1], SCHEMAS)
        mark = re.search(r"^LINE \d+: .*\n.*\^", text, re.MULTILINE)
        return StatementRefused.of(first, mark[0] if mark else None)

    def _columns(self) -> str:
        said = [
            f"{schema}.{_shown(name)} has {', '.join(_described(column, kind) for column, kind in columns)}"
            for (schema, name), columns in self._ready.items()
        ]
        return "; ".join(said) + "." if said else ""


def _parts(name: str) -> tuple[str, str]:
    """``matches."my-pattern"`` → ``("matches", "my-pattern")``."""
    schema, table = (
        part[1:-1].replace('""', '"') if part.startswith('"') else part for part in re.findall(_PART, name)
    )
    return schema.lower(), table


def _shown(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else quoted(name)


def _described(column: str, kind: str) -> str:
    if "struct<" not in kind:
        return column
    fields = re.findall(r"[<,]\s*(\w+):", kind.split("struct", 1)[1])
    return f"{column}{'[]' if kind.startswith(('list', 'large_list')) else ''}({', '.join(fields)})"


def _all_select(pattern: str, schema: pa.Schema) -> str:
    """One pattern's part of ``matches.all``; names that are not bound are left out of the map."""
    entries = []
    for field in schema:
        column = quoted(field.name)
        if pa.types.is_struct(field.type):
            ids = f"CASE WHEN {column} IS NULL THEN NULL ELSE [{column}.event_id] END"
        elif pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
            ids = f"list_transform({column}, lambda x: x.event_id)"
        else:
            continue
        entries.append(f"{{'k': {literal(field.name)}, 'v': {ids}}}")
    bound = f"list_filter([{', '.join(entries)}], lambda e: e.v IS NOT NULL)"
    return (
        f"SELECT {literal(pattern)} AS pattern, match_id, start_ts, end_ts, decision_ts, "
        f"map_from_entries({bound}) AS events FROM matches.{quoted(pattern)}"
    )
