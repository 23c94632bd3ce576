"""The gate of ``episodes.<pattern>``: keys, owned days, and that the matches give these episodes and no others.

The episodes are found a second time, by SQL over the matches, in a different way from how they were made.
"""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.episodes.days import Timing
from chainlake.days import Days
from chainlake.lake.sql.duck import connected
from chainlake.quality.audit import Audit
from chainlake.quality.gates.models import Gate, audit_table, day_text
from chainlake.quality.verdict import Verdict
from chainlake.schemas.episodes import MOST_IDS
from chainlake.schemas.table import Table

_ADDED = ("owned_day", "as_found")


def audit_episodes(
    audit: Audit, table: Table, staged: pa.Table, matches: pa.Table, days: Days, timing: Timing
) -> Verdict:
    """Which days of staged episodes may be published.

    Args:
        audit: the application's audit.
        table: the table of the episodes.
        staged: the staged rows.
        matches: the matches as spans: those of the days and of episodes that were open before them, and no others.
        days: the UTC days that the run owns.
        timing: when episodes are decided.
    """
    with connected(audit.home, len(os.sched_getaffinity(0))) as con:
        con.register("matches", matches)
        con.register("staged", staged)
        lo, hi = days.micros()
        con.execute(f"CREATE TEMP TABLE found AS {_episodes(timing, lo, hi)}")
        con.execute(f"CREATE TEMP TABLE made AS SELECT {_COMPARED} FROM staged")
        differ = con.sql(
            "SELECT DISTINCT first_match, decided FROM "
            "((FROM made EXCEPT ALL FROM found) UNION ALL (FROM found EXCEPT ALL FROM made))"
        ).to_arrow_table()
        lacking = con.sql(
            "SELECT f.* FROM found f ANTI JOIN made m ON f.first_match = m.first_match AND f.decided = m.decided"
        ).to_arrow_table()
    rows = pa.concat_tables([staged, _as_rows(lacking, table)]) if len(lacking) else staged
    wrong = set(zip(differ["first_match"].to_pylist(), differ["decided"].to_pylist(), strict=True))
    decided = rows["decision_ts"].cast(pa.int64()).to_pylist()
    fits = [place not in wrong for place in zip(rows["first_match"].to_pylist(), decided, strict=True)]
    measured = rows.append_column("owned_day", day_text(pc.cast(rows["decision_ts"], pa.date32(), safe=False)))
    measured = measured.append_column("as_found", pa.array(fits, pa.bool_()))
    gate = Gate("episodes", table, lambda found, _: found, _ADDED)
    return audit_table(audit, gate, measured, table.name, list(days))


#: The columns that are compared, in plain types.
_COMPARED = (
    "key, epoch_us(start_ts) AS begun, epoch_us(end_ts) AS ended, epoch_us(decision_ts) AS decided, matches, "
    "first_match, top_match, severity, match_ids"
)


def _episodes(timing: Timing, lo: int, hi: int) -> str:
    """SQL that gives the episodes of ``matches`` decided in ``[lo, hi)``, microseconds."""
    of_key = "PARTITION BY key ORDER BY start, top_match"
    before = (
        f'SELECT *, max("end") OVER ({of_key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest FROM matches'
    )
    new = f"latest IS NULL OR start - latest > {timing.pause}"
    begins = f"SELECT *, CASE WHEN {new} THEN 1 ELSE 0 END AS begins FROM ({before})"
    numbered = f"SELECT *, sum(begins) OVER ({of_key} ROWS UNBOUNDED PRECEDING) AS number FROM ({begins})"
    order = "ORDER BY start, top_match"
    top = "ORDER BY severity DESC NULLS LAST, start, top_match"
    return (
        f'SELECT CAST(key AS VARCHAR) AS key, min(start) AS begun, max("end") AS ended, '
        f'max("end") + {timing.late} AS decided, count(*) AS matches, first(top_match {order}) AS first_match, '
        f"first(top_match {top}) AS top_match, CAST(first(severity {top}) AS DOUBLE) AS severity, "
        f"list(top_match {order})[1:{MOST_IDS}] AS match_ids FROM ({numbered}) AS spans GROUP BY spans.key, number "
        f'HAVING max("end") + {timing.late} >= {lo} AND max("end") + {timing.late} < {hi}'
    )


def _as_rows(found: pa.Table, table: Table) -> pa.Table:
    schema = table.arrow()
    names = {"start_ts": "begun", "end_ts": "ended", "decision_ts": "decided"}
    columns = [found[names.get(name, name)] for name in schema.names]
    return pa.table([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
