"""Reads matches, and the events that they may bind, with DuckDB: no JVM, no shuffle, bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from chainlake.lake.sql.matches import bound_select, consumed_select, ordered_select
from chainlake.lake.sql.scan import parquet_path, quoted
from chainlake.quality.matches.measures import all_ids, column_of, measures
from chainlake.quality.matches.rules import MatchRules
from chainlake.storage.parquet import parquet_dataset
from chainlake.storage.resolve import storage_of

if TYPE_CHECKING:
    import duckdb

#: Tables of a connection: keys shared by several matches, and ids that no event has. For patterns that use events up,
#: also ids of events used up before, the order of the matches, and the matches that bind events already used up.
_COPIED, _UNKNOWN, _BEFORE, _ORDER, _USED_UP = "copied", "unknown", "used_before", "published_order", "used_up"
#: Names under which files are registered that DuckDB cannot read itself; and SQL for the case of no events.
_MATCHES, _EVENTS, _NO_EVENT = "staged_matches", "read_events", "SELECT '' AS event_id WHERE false"


@dataclass(frozen=True)
class MatchFiles:
    """Matches and the events that they may bind, as Parquet files that this process can read.

    Args:
        matches: files that hold the matches, and nothing else; empty if there are no matches.
        events: files that hold the events of the read range, with at least ``event_id``.
        consumed: ids of the events that were used up before the days of the matches.
    """

    matches: Sequence[str]
    events: Sequence[str]
    consumed: pa.Array | None = None

    def read_by(self, con: duckdb.DuckDBPyConnection, rules: MatchRules) -> Matches:
        """The rows of the files, read by the connection ``con``."""
        events = f"SELECT event_id FROM {_read(con, _EVENTS, self.events)}" if self.events else _NO_EVENT
        rows = f"SELECT * FROM {_read(con, _MATCHES, self.matches)}" if self.matches else _nothing(rules)
        if self.consumed is not None:
            con.register(_BEFORE, pa.table({"event_id": self.consumed}))
        return Matches(con, rules, rows, events, None if self.consumed is None else f"SELECT event_id FROM {_BEFORE}")


class Matches:
    """The matches of a pattern with their measures.

    Args:
        con: the connection that reads them; its time zone is UTC.
        rules: the pattern's rules.
        matches: SQL that gives the rows, in the form of the pattern's match table.
        events: SQL that gives the ``event_id`` of all events that they may bind.
        before: SQL that gives the ``event_id`` of events used up before any of the rows; None: there are none.
    """

    def __init__(
        self, con: duckdb.DuckDBPyConnection, rules: MatchRules, matches: str, events: str, before: str | None = None
    ):
        self._con, self._rules, self._matches, self._events, self._before = con, rules, matches, events, before
        self.columns: list[str] = [name for name, *_ in con.execute(f"DESCRIBE {matches}").fetchall()]

    def aggregated(self) -> tuple[pa.Table, dict[str, bool]]:
        """For each decision day the number of rows, and for each measure the number of non-null values and extremes.

        Returns:
            a table with ``decision_day``, ``rows`` and, for the measure at each place of the mapping, ``n<place>`` and,
            if it is ordered, ``lo<place>`` and ``hi<place>``; and a mapping of each measure to whether it is ordered.
        """
        measured = self._measured
        described = self._con.execute(f"DESCRIBE {measured}").fetchall()
        ordered = {name: kind != "VARCHAR" for name, kind, *_ in described if name != "decision_day"}
        parts = ['count(*) AS "rows"']
        for at, (name, both) in enumerate(ordered.items()):
            parts.append(f"count({quoted(name)}) AS n{at}")
            if both:
                parts += [f"min({quoted(name)}) AS lo{at}", f"max({quoted(name)}) AS hi{at}"]
        sql = f"SELECT decision_day, {', '.join(parts)} FROM ({measured}) GROUP BY decision_day"
        return self._con.sql(sql).to_arrow_table(), ordered

    def rows(self, day: str | None, first: str, limit: int) -> pa.Table:
        """The measures of every row.

        Args:
            day: only rows of this day; None: of all.
            first: SQL on the measures; rows for which it is true come before all others.
            limit: the largest number of rows.
        """
        where = "" if day is None else f"WHERE decision_day = '{day}'"
        order = f"ORDER BY coalesce({first}, false) DESC LIMIT {limit}"
        return self._con.sql(f"SELECT * FROM ({self._measured}) {where} {order}").to_arrow_table()

    @cached_property
    def _measured(self) -> str:
        """SQL that gives the measures of every row.

        Whether any match occurs twice or binds an unknown event is first decided by hashes, which is cheap; only if so
        are those keys and ids looked up for every row.
        """
        named = ", ".join(f"m.{quoted(c)} AS {quoted(column_of(c))}" for c in self.columns)
        rows, copies, unknown = f"({self._matches}) AS m", "cast(1 AS BIGINT)", "cast(NULL AS VARCHAR)"
        used_up = "cast(0 AS BIGINT)"
        if self._find_copied():
            copies = "coalesce(c.rows, 1)"
            rows += f" LEFT JOIN {_COPIED} AS c ON {_same('c')}"
        if self._rules.consume != "none" and self._find_used_up():
            used_up = "coalesce(u.events, 0)"
            rows += f" LEFT JOIN {_USED_UP} AS u ON {_same('u')}"
        if self._find_unknown():
            unknown = f"(SELECT min(u.event_id) FROM {_UNKNOWN} u WHERE u.event_id IN (SELECT unnest(r.ids)))"
        found = measures(self._rules, self.columns)
        wanted = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in found.items())
        counted = f"SELECT {named}, {copies} AS copies, {used_up} AS used_up_events FROM {rows}"
        measured = f"SELECT {wanted}, copies, used_up_events, {all_ids(self._rules)} AS ids FROM ({counted})"
        return f"SELECT r.* EXCLUDE (ids), {unknown} AS unknown_event FROM ({measured}) AS r"

    def _find_copied(self) -> bool:
        """Make a table of the keys that several matches have; returns whether there are any."""
        keyed = f"SELECT match_id, decision_ts, hash(match_id, decision_ts) AS key FROM ({self._matches})"
        twice = f"SELECT key FROM ({keyed}) GROUP BY key HAVING count(*) > 1"
        return self._any(twice) and self._keep(
            _COPIED,
            f"SELECT match_id, decision_ts, count(*) AS rows FROM ({keyed}) WHERE key IN ({twice}) "
            "GROUP BY match_id, decision_ts HAVING count(*) > 1",
        )

    def _find_used_up(self) -> bool:
        """Make a table of matches that bind events which earlier ones used up, and of how many; returns whether there
        are any."""
        rules, rows = self._rules, f"({self._matches})"
        keys = "match_id, decision_ts"
        self._con.execute(f"CREATE OR REPLACE TEMP TABLE {_ORDER} AS {ordered_select(rows, rules.names)}")
        bound = f"SELECT b.event_id, o.* FROM ({bound_select(rows, rules.names)}) b JOIN {_ORDER} o USING ({keys})"
        spent = consumed_select(rows, rules.names, rules.consume)
        spent = f"SELECT s.event_id, o.place, o.terminator FROM ({spent}) s JOIN {_ORDER} o USING ({keys})"
        apart = "AND s.terminator <> b.terminator" if rules.together else ""
        found = (
            f"SELECT b.match_id, b.decision_ts, b.event_id FROM ({bound}) b JOIN ({spent}) s "
            f"ON s.event_id = b.event_id AND s.place < b.place {apart}"
        )
        if self._before is not None:
            found += f" UNION SELECT b.match_id, b.decision_ts, b.event_id FROM ({bound}) b "
            found += f"WHERE b.event_id IN ({self._before})"
        return self._keep(_USED_UP, f"SELECT {keys}, count(DISTINCT event_id) AS events FROM ({found}) GROUP BY {keys}")

    def _find_unknown(self) -> bool:
        """Make a table of the bound ids that no event has; returns whether there are any.

        It compares 64-bit hashes: among a billion existing ids, an unknown id has a chance of 1 in 18 billion of being
        taken for one of them.
        """
        bound = " UNION ALL ".join(
            f"SELECT unnest({quoted(name)}).event_id AS event_id FROM ({self._matches})"
            if kleene
            else f"SELECT {quoted(name)}.event_id AS event_id FROM ({self._matches})"
            for name, kleene in self._rules.names.items()
        )
        ids = f"SELECT event_id, hash(event_id) AS id FROM ({bound}) WHERE event_id IS NOT NULL"
        known = f"(SELECT hash(event_id) AS id FROM ({self._events})) AS known USING (id)"
        return self._any(f"SELECT id FROM ({ids}) AS bound ANTI JOIN {known}") and self._keep(
            _UNKNOWN, f"SELECT DISTINCT event_id FROM ({ids}) AS bound ANTI JOIN {known}"
        )

    def _any(self, sql: str) -> bool:
        """Whether the query gives a row; rows are counted, since a limit keeps DuckDB from using all cores."""
        ((rows,),) = self._con.execute(f"SELECT count(*) FROM ({sql})").fetchall()
        return bool(rows)

    def _keep(self, name: str, sql: str) -> bool:
        """Make a table of what ``sql`` gives; returns whether it gave a row."""
        self._con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")
        return self._any(f"FROM {name}")


def _same(other: str) -> str:
    """SQL for the condition that a row of another table is about the same match."""
    return " AND ".join(f"m.{key} IS NOT DISTINCT FROM {other}.{key}" for key in ("match_id", "decision_ts"))


def _read(con: duckdb.DuckDBPyConnection, name: str, paths: Sequence[str]) -> str:
    """The SQL source for the rows of files: DuckDB reads files on a disk itself, and Arrow those in a store."""
    if not storage_of(paths[0]).on_disk:
        con.register(name, parquet_dataset(paths))
        return name
    return f"read_parquet([{', '.join(map(parquet_path, paths))}], hive_partitioning = false)"


def _nothing(rules: MatchRules) -> str:
    """SQL that gives the match table's columns without rows."""
    bound = "STRUCT(event_id VARCHAR, ts TIMESTAMPTZ, seq BIGINT)"
    kinds = {"match_id": "VARCHAR", **{name: f"{bound}[]" if array else bound for name, array in rules.names.items()}}
    cells = (f"cast(NULL AS {kinds.get(column, 'TIMESTAMPTZ')}) AS {quoted(column)}" for column in rules.columns)
    return f"SELECT {', '.join(cells)} WHERE false"
