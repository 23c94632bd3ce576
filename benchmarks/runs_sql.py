"""The queries for other engines for the tasks of benchmarks/runs.py, each as users of the engine would write it.

The table ``events`` has the key ``k``, the time ``ts`` in whole µs, the type ``type``, and the price ``x``. Answers
have a row for each match: its key, first and last time, and number of events.
"""

from __future__ import annotations

PAUSE_S = 30
_PAUSE = PAUSE_S * 1_000_000

_STEPS = f"""
    SELECT k, ts, lag(ts) OVER w AS before,
        CASE WHEN ts - lag(ts) OVER w > {_PAUSE} THEN 0
             WHEN x > lag(x) OVER w THEN 1 WHEN x < lag(x) OVER w THEN -1 ELSE 0 END AS way
    FROM events WINDOW w AS (PARTITION BY k ORDER BY ts)"""
#: Consecutive events whose steps have the same direction; steps after a pause, or between equal prices, have none.
_LEGS = f"""
    SELECT k, leg, any_value(way) AS way, min(before) AS before, min(ts) AS first, max(ts) AS last, count(*) AS n
    FROM (SELECT *, sum(turn) OVER (PARTITION BY k ORDER BY ts ROWS UNBOUNDED PRECEDING) AS leg
          FROM (SELECT *, CASE WHEN way = 0 OR way IS DISTINCT FROM lag(way) OVER (PARTITION BY k ORDER BY ts)
                          THEN 1 ELSE 0 END AS turn FROM ({_STEPS}) AS steps) AS turns) AS numbered
    GROUP BY k, leg"""


def _legs(*ways: int) -> str:
    """SQL for legs with these directions, one right after the other."""
    more = range(1, len(ways))
    columns = "".join(f", lead(way, {i}) OVER v AS way_{i}, lead(n, {i}) OVER v AS n_{i}" for i in more)
    tests = "".join(f" AND way_{i} = {ways[i]}" for i in more)
    events = "".join(f" + n_{i}" for i in more)
    last = f"lead(last, {len(ways) - 1}) OVER v AS end_ts" if more else "last AS end_ts"
    return f"""
    SELECT k, before, end_ts, n + 1{events}
    FROM (SELECT *, {last}{columns} FROM ({_LEGS}) AS legs WINDOW v AS (PARTITION BY k ORDER BY leg)) AS beside
    WHERE way = {ways[0]}{tests}"""


#: Queries with window functions, for DuckDB and Spark.
WINDOWS = {
    "sessions": f"""
    SELECT k, min(ts), max(ts), count(*)
    FROM (SELECT k, ts, sum(new) OVER (PARTITION BY k ORDER BY ts ROWS UNBOUNDED PRECEDING) AS session
          FROM (SELECT k, ts, CASE WHEN ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) <= {_PAUSE}
                       THEN 0 ELSE 1 END AS new FROM events) AS steps) AS numbered
    GROUP BY k, session""",
    "rises": _legs(1),
    "valleys": _legs(-1, 1),
    "bottoms": _legs(-1, 1, -1, 1),
    "funnel": """
    SELECT k, first, ts, 3
    FROM (SELECT k, ts, type, lag(type) OVER w AS type_1, lag(type, 2) OVER w AS type_2,
                 lag(ts, 2) OVER w AS first
          FROM events WHERE type IN ('View', 'Cart', 'Buy') WINDOW w AS (PARTITION BY k ORDER BY ts)) AS steps
    WHERE type = 'Buy' AND type_1 = 'Cart' AND type_2 = 'View'""",
}

#: Queries for ClickHouse, which counts matches and gives no rows for them.
COUNTED = {
    "funnel": """
    SELECT k, sequenceCount('(?1)(?2)(?3)')(
        ts::UInt64, type = 'View', type = 'Cart', type = 'Buy')
    FROM events GROUP BY k""",
}


def _recognized(define: str, pattern: str, skip: str, table: str = "{events}") -> str:
    return f"""
    SELECT k, first_ts, last_ts, n FROM {table} MATCH_RECOGNIZE (
        PARTITION BY k ORDER BY ts
        MEASURES FIRST(ts) AS first_ts, LAST(ts) AS last_ts, COUNT(*) AS n
        ONE ROW PER MATCH AFTER MATCH SKIP {skip}
        PATTERN ({pattern}) DEFINE {define})"""


def _steps(**ways: str) -> str:
    return ", ".join(f"{name} AS x {way} PREV(x) AND ts - PREV(ts) <= {_PAUSE}" for name, way in ways.items())


#: Queries with MATCH_RECOGNIZE, for Trino; ``{events}`` is the table. A peak can belong to two shapes, so the next
#: search begins there.
RECOGNIZED = {
    "sessions": _recognized(f"b AS ts - PREV(ts) <= {_PAUSE}", "a b*", "PAST LAST ROW"),
    "rises": _recognized(_steps(b=">"), "a b+", "PAST LAST ROW"),
    "valleys": _recognized(_steps(b="<", c=">"), "a b+ c+", "TO LAST c"),
    "bottoms": _recognized(_steps(b="<", c=">", d="<", e=">"), "a b+ c+ d+ e+", "TO LAST c"),
    "funnel": _recognized(
        "a AS type = 'View', b AS type = 'Cart', c AS type = 'Buy'",
        "a b c",
        "PAST LAST ROW",
        "(SELECT * FROM {events} WHERE type IN ('View', 'Cart', 'Buy'))",
    ),
}
