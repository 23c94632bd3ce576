"""Gate of ``ranked.<pattern>``: keys, owned days, ranks, scores, and that no better match is left out.

What is looked at is the rows alone and the matches that they are made of, by SQL, and not as they were merged.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.matches.best import rule_of
from chainlake.cep.pattern import Pattern
from chainlake.cep.ranking.periods import periods
from chainlake.cep.ranking.rule import Rule
from chainlake.cep.ranking.score import scores
from chainlake.lake.sql.duck import connected
from chainlake.quality.audit import Audit
from chainlake.quality.gates.models import Gate, audit_table, day_text
from chainlake.quality.verdict import Verdict
from chainlake.schemas.ranked import ranked_table
from chainlake.schemas.table import Table

_ADDED = ("owned_day", "rank_gap", "rank_fits", "score_falls", "score_fits", "match_fits", "in_period", "whole_list")


def audit_rankings(
    audit: Audit, pattern: Pattern, staged: pa.Table, matches: pa.Table, days: Sequence[date]
) -> Verdict:
    """Which days of staged rankings may be published.

    Args:
        audit: the application's audit.
        pattern: with a ranking.
        staged: the rows.
        matches: the matches that can be in the periods.
        days: the UTC days that the run owns, ascending.
    """
    rule, table = rule_of(pattern), ranked_table(pattern.name, pattern.source or "")
    with connected(audit.home, len(os.sched_getaffinity(0))) as con:
        con.register("staged", staged)
        con.register("matches", matches)
        con.register("entered", _entered(rule, matches))
        con.execute(f"CREATE TEMP TABLE made AS {_made(rule)}")
        owned = ", ".join(f"'{day}'" for day in days)
        con.execute(f"CREATE TEMP TABLE lists AS {_lists(rule, owned)}")
        measured = con.sql(_measured(rule)).to_arrow_table()
        lacking = con.sql(_LACKING).to_arrow_table()
    rows = staged
    for name in ("rank_gap", "rank_fits", "score_falls", "match_fits", "in_period", "whole_list"):
        rows = rows.append_column(name, measured[name])
    rows = rows.append_column("score_fits", pa.array(_score_fits(rule, staged), pa.bool_()))
    rows = rows.append_column("owned_day", day_text(pc.cast(staged["scope_start"], pa.date32(), safe=False)))
    rows = rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema]))
    rows = pa.concat_tables([rows, _as_rows(lacking, rows.schema, rule)])
    gate = Gate("rankings", _flat(table), lambda found, _: found, _ADDED)
    # Great Expectations would list every field of a struct as a column of its own.
    rows = rows.select([*gate.table.column_names, *_ADDED])
    return audit_table(audit, gate, rows, table.name, list(days))


def _flat(table: Table) -> Table:
    """The table without its lists."""
    columns = tuple(column for column in table.columns if not pa.types.is_list(column.type))
    return Table(table.schema, table.name, table.comment, columns, table.key, day_column=table.day_column)


def _entered(rule: Rule, matches: pa.Table) -> pa.Table:
    """Every match and period that it is in: the row of the match and the begin of the period in µs."""
    start, end = (np.asarray(matches[name].cast(pa.int64())) for name in ("start_ts", "end_ts"))
    match, begins, _ = periods(rule.period, start, end)
    return pa.table({"match": pa.array(match, pa.int64()), "begins": pa.array(begins, pa.int64())})


def _key(rule: Rule, number: str) -> str:
    """What a score is compared by, the largest first."""
    return number if rule.quantum is None else f"floor({number} / {rule.quantum!r} + 0.5)"


def _keys(rule: Rule, numbers: Sequence[str]) -> str:
    return f"[{', '.join(_key(rule, number) for number in numbers)}]"


def _made(rule: Rule) -> str:
    """SQL of the staged rows, numbered, with what they are compared by."""
    numbers = [f"scores[{n + 1}]" for n in range(rule.scores[0].width)]
    return (
        "SELECT row_number() OVER () AS row, epoch_us(scope_start) AS begins, epoch_us(scope_end) AS ends, per, rank, "
        "match_id, epoch_us(decision_ts) AS decided, epoch_us(start_ts) AS start, epoch_us(end_ts) AS last, "
        f"scores, criteria, {_keys(rule, numbers)} AS key FROM staged"
    )


def _lists(rule: Rule, owned: str) -> str:
    """SQL of the lists that begin on some days and lack a match: too few are kept, or a better one is left out."""
    width = rule.scores[0].width
    least = "" if rule.least is None else f" AND NOT score_1 < {rule.least!r}"
    columns = _keys(rule, [f"score_{n + 1}" for n in range(width)])
    every = (
        f"SELECT e.begins, m.per, m.match_id, epoch_us(m.decision_ts) AS decided, {columns} AS key "
        "FROM (SELECT *, row_number() OVER () - 1 AS match FROM matches) AS m JOIN entered AS e USING (match) "
        f"WHERE score_1 IS NOT NULL{least} AND CAST(make_timestamp(e.begins) AS DATE) IN ({owned})"
    )
    kept = "SELECT begins, per, count(*) AS kept, min(key) AS worst FROM made GROUP BY begins, per"
    beaten = "" if rule.distinct or rule.non_overlapping else (
        f"OR coalesce(kept, 0) < least({rule.count}, count(*)) OR count(*) FILTER (WHERE key > worst) > "
        "(SELECT count(*) FROM made d WHERE d.begins = c.begins AND d.per = c.per AND d.key > k.worst)"
    )  # fmt: skip
    return (
        f"SELECT c.begins, c.per FROM ({every}) AS c LEFT JOIN ({kept}) AS k ON k.begins = c.begins AND k.per = c.per "
        f"GROUP BY c.begins, c.per, kept, worst HAVING coalesce(kept, 0) = 0 {beaten}"
    )


def _measured(rule: Rule) -> str:
    """SQL of what the suite tests, row by row."""
    width, criteria = rule.scores[0].width, rule.criteria
    numbers = ", ".join(f"m.score_{n + 1}" for n in range(width))
    raw = ", ".join(f"m.criterion_{n + 1}" for n in range(criteria))
    of_list = "PARTITION BY begins, per ORDER BY rank"
    kth = f"max(CASE WHEN rank = {rule.count} THEN key END) OVER (PARTITION BY begins, per) AS kth"
    ties = " OR d.key = d.kth" if rule.with_ties else ""
    at = "d.start" if rule.period.by_first else "d.last"
    inside = {"all": "d.ends IS NULL", "hop": "d.start >= d.begins AND d.last < d.ends"}
    return (
        "SELECT d.rank - d.place AS rank_gap, "
        f"(d.rank <= {rule.count}{ties}) AS rank_fits, coalesce(d.key <= d.before, true) AS score_falls, "
        f"coalesce(m.per = d.per AND [{numbers}] = d.scores AND [{raw}] IS NOT DISTINCT FROM d.criteria "
        "AND epoch_us(m.start_ts) = d.start AND epoch_us(m.end_ts) = d.last, false) AS match_fits, "
        f"coalesce({inside.get(rule.period.kind, f'{at} >= d.begins AND {at} < d.ends')}, false) AS in_period, "
        "l.begins IS NULL AS whole_list FROM (SELECT *, "
        f"row_number() OVER ({of_list}) AS place, lag(key) OVER ({of_list}) AS before, {kth} FROM made) AS d "
        "LEFT JOIN matches AS m ON m.match_id = d.match_id AND epoch_us(m.decision_ts) = d.decided "
        "LEFT JOIN lists AS l ON l.begins = d.begins AND l.per = d.per ORDER BY d.row"
    )


#: Lists of which no row was staged.
_LACKING = "SELECT l.begins, l.per FROM lists l ANTI JOIN made d ON d.begins = l.begins AND d.per = l.per"


def _score_fits(rule: Rule, staged: pa.Table) -> list[bool]:
    """Whether the criteria of each row give its score, in the way of one of the branches."""
    raw = np.array([[np.nan if one is None else one for one in row] for row in staged["criteria"].to_pylist()])
    given = np.array([[np.nan if one is None else one for one in row] for row in staged["scores"].to_pylist()])
    found = np.zeros(len(staged), bool)
    for score in {one: None for one in rule.scores}:
        if len(staged):
            found |= (scores(score, raw[:, : len(score.criteria)]) == given).all(axis=1)
    return found.tolist()


def _as_rows(lacking: pa.Table, schema: pa.Schema, rule: Rule) -> pa.Table:
    """Lists that lack all their matches, as rows that say so."""
    rows = [
        {
            "scope_kind": rule.period.kind, "per": row["per"], "rank": 1, "match_id": "none", "rank_gap": 0,
            "rank_fits": True, "score_falls": True, "score_fits": True, "match_fits": True, "in_period": True,
            "whole_list": False,
        }
        for row in lacking.to_pylist()
    ]  # fmt: skip
    found = pa.Table.from_pylist(rows, schema)
    begins = lacking["begins"].cast(schema.field("scope_start").type)
    days = day_text(pc.cast(begins, pa.date32(), safe=False))
    for name, values in (("scope_start", begins), ("owned_day", days)):
        found = found.set_column(found.column_names.index(name), schema.field(name), values)
    return found
