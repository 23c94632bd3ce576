"""What a suite needs to see of many matches, from their Parquet files by DuckDB: no job, no shuffle, bounded memory.

For lakes in plain folders, where it takes a tenth of the time that Spark needs for the same
(:func:`chainlake.quality.matches.extremes.extremes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from chainlake.lake.sql.scan import parquet_path, quoted
from chainlake.quality.matches.sql import DUCKDB, MatchRules, bound_column, measured
from chainlake.schemas.matches import FIXED_COLUMNS

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class MatchFiles:
    """Staged matches and the events that they may bind, as files that this process can read.

    Args:
        con: the connection that reads them; its time zone is UTC.
        staged: Parquet files that hold the staged rows, and nothing else.
        events: Parquet files that hold the events of the read range, at least ``event_id``.
    """

    con: duckdb.DuckDBPyConnection
    staged: Sequence[str]
    events: Sequence[str]


def some_twice(files: MatchFiles) -> bool:
    """Whether two matches may have one key; equal hashes of different keys are looked at as well."""
    sql = f"SELECT hash(match_id, decision_ts) AS key FROM {_read(files.staged)} GROUP BY key HAVING count(*) > 1"
    return _any(files, sql)


def some_unknown(rules: MatchRules, files: MatchFiles) -> bool:
    """Whether a bound event is not among the events, by 64-bit hashes of the ids: beside a billion ids that are there,
    one that is not has a chance of 1 in 18 billion to be taken for one of them."""
    bound = [
        f"SELECT hash({'x' if kleene else quoted(name)}.event_id) AS id FROM "
        + (f"(SELECT unnest({quoted(name)}) AS x FROM {_read(files.staged)})" if kleene else _read(files.staged))
        + f" WHERE {'x' if kleene else quoted(name)}.event_id IS NOT NULL"
        for name, kleene in rules.names.items()
    ]
    known = f"SELECT hash(event_id) AS id FROM {_read(files.events)}" if files.events else "SELECT 0 WHERE false"
    return _any(files, f"SELECT id FROM ({' UNION ALL '.join(bound)}) ANTI JOIN ({known}) AS known(id) USING (id)")


def measured_rows(rules: MatchRules, columns: Sequence[str], files: MatchFiles) -> str:
    """SQL that gives the measures of every row; nothing binds an unknown event, and no match is there twice.

    Args:
        rules: what is known of the pattern.
        columns: those of the match table.
        files: where the rows are.
    """
    apart = {c if c in FIXED_COLUMNS else bound_column(c): c for c in columns}
    found = measured(rules, list(apart), DUCKDB, copies="1")
    del found["event_ids"]
    found["unknown_event"] = "cast(NULL AS VARCHAR)"
    named = ", ".join(f"{quoted(c)} AS {quoted(name)}" for name, c in apart.items())
    wanted = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in found.items())
    return f"SELECT {wanted} FROM (SELECT {named} FROM {_read(files.staged)})"


def aggregated(rules: MatchRules, columns: Sequence[str], files: MatchFiles) -> tuple[pa.Table, dict[str, bool]]:
    """Per decision day the rows, and of each measure how many values are not null, the least and the largest.

    Args:
        rules, columns, files: see :func:`measured_rows`.

    Returns:
        columns ``decision_day``, ``rows``, and of the measure at each place of the second ``n<place>`` and, where its
        values have an order that counts, ``lo<place>`` and ``hi<place>``; and the measures with whether they have.
    """
    measures = measured_rows(rules, columns, files)
    described = files.con.execute(f"DESCRIBE {measures}").fetchall()
    ordered = {name: kind != "VARCHAR" for name, kind, *_ in described if name != "decision_day"}
    parts = ['count(*) AS "rows"']
    for at, (name, both) in enumerate(ordered.items()):
        parts.append(f"count({quoted(name)}) AS n{at}")
        if both:
            parts += [f"min({quoted(name)}) AS lo{at}", f"max({quoted(name)}) AS hi{at}"]
    sql = f"SELECT decision_day, {', '.join(parts)} FROM ({measures}) GROUP BY decision_day"
    return files.con.sql(sql).to_arrow_table(), ordered


def _read(paths: Sequence[str]) -> str:
    return f"read_parquet([{', '.join(map(parquet_path, paths))}], hive_partitioning = false)"


def _any(files: MatchFiles, sql: str) -> bool:
    """Whether the query gives a row; counted, since a limit keeps DuckDB from working on all cores."""
    found = files.con.execute(f"SELECT count(*) FROM ({sql})").fetchone()
    return found is not None and found[0] > 0
