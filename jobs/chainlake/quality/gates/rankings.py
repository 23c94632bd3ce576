"""The gate of ``ranked.<pattern>``: keys, owned days, ranks, scores, and that no better match is left out.

Only the rows and the matches that they are made from are looked at, by SQL and not in the way in which they were
merged. Criteria and the values of ``FOR EACH`` and ``DISTINCT ON`` are computed again from the bound events that the
matches carry.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.matches.best import rule_of
from chainlake.cep.matches.criteria import criteria_of
from chainlake.cep.pattern import Pattern
from chainlake.cep.ranking.periods import periods
from chainlake.cep.ranking.rule import Rule
from chainlake.cep.ranking.score import scores
from chainlake.lake.sql.duck import connected
from chainlake.lake.sql.scan import quoted
from chainlake.quality.audit import Audit
from chainlake.quality.gates.models import Gate, audit_table, day_text
from chainlake.quality.verdict import Verdict
from chainlake.schemas.ranked import ranked_table
from chainlake.schemas.table import Table

#: The measures of each row that SQL computes.
_BY_SQL = (
    "rank_gap", "rank_fits", "score_falls", "match_fits", "events_fit", "in_period", "apart", "whole_list",
)  # fmt: skip
_ADDED = ("owned_day", "score_fits", *_BY_SQL)
#: Sums may differ by this share, since the order of addition may.
_ROUNDING = 1e-9


def audit_rankings(
    audit: Audit, pattern: Pattern, staged: pa.Table, matches: pa.Table, days: Sequence[date]
) -> Verdict:
    """Which days of staged rankings may be published.

    Args:
        audit: the application's audit.
        pattern: a pattern with a ranking.
        staged: the staged rows.
        matches: the matches that can be in the periods.
        days: the UTC days that the run owns, ascending.
    """
    rule, table = rule_of(pattern), ranked_table(pattern.name, pattern.source or "")
    with connected(audit.home, len(os.sched_getaffinity(0))) as con:
        con.register("staged", staged)
        con.register("bound", _with_events(pattern, staged, matches))
        con.register("entered", _entered(rule, matches))
        con.execute(f"CREATE TEMP TABLE matches AS {_matches(pattern, rule)}")
        con.execute(f"CREATE TEMP TABLE made AS {_made(rule)}")
        owned = ", ".join(f"'{day}'" for day in days)
        con.execute(f"CREATE TEMP TABLE lists AS {_lists(rule, owned)}")
        measured = con.sql(_measured(rule)).to_arrow_table()
        lacking = con.sql(_LACKING).to_arrow_table()
    rows = staged
    for name in _BY_SQL:
        rows = rows.append_column(name, measured[name])
    rows = rows.append_column("score_fits", pa.array(_score_fits(rule, staged), pa.bool_()))
    rows = rows.append_column("owned_day", day_text(pc.cast(staged["scope_start"], pa.date32(), safe=False)))
    rows = rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema]))
    rows = pa.concat_tables([rows, _as_rows(lacking, rows.schema, rule)])
    gate = Gate("rankings", _flat(table), lambda found, _: found, _ADDED)
    # Columns of structs are left out, since Great Expectations would list every field as its own column.
    rows = rows.select([*gate.table.column_names, *_ADDED])
    return audit_table(audit, gate, rows, table.name, list(days))


def _flat(table: Table) -> Table:
    """The table without its list columns."""
    columns = tuple(column for column in table.columns if not pa.types.is_list(column.type))
    return Table(table.schema, table.name, table.comment, columns, table.key, day_column=table.day_column)


def _entered(rule: Rule, matches: pa.Table) -> pa.Table:
    """Every pair of a match and a period that it is in: the match's row, and the start of the period in µs."""
    start, end = (np.asarray(matches[name].cast(pa.int64())) for name in ("start_ts", "end_ts"))
    match, begins, _ = periods(rule.period, start, end)
    return pa.table({"match": pa.array(match, pa.int64()), "begins": pa.array(begins, pa.int64())})


def _key(rule: Rule, number: str) -> str:
    """SQL for the value by which scores are compared, the largest first."""
    return number if rule.quantum is None else f"floor({number} / {rule.quantum!r} + 0.5)"


def _keys(rule: Rule, numbers: Sequence[str]) -> str:
    return f"[{', '.join(_key(rule, number) for number in numbers)}]"


def _with_events(pattern: Pattern, staged: pa.Table, matches: pa.Table) -> pa.Table:
    """The matches, and whether their bound events give the values by which they are ranked; null for a match without a
    staged row."""
    fits = np.zeros(len(matches), bool)
    asked = np.asarray(pc.is_in(matches["match_id"], value_set=staged["match_id"].combine_chunks()))
    places = np.flatnonzero(asked)
    some = matches.take(pa.array(places, pa.int64()))
    for found in criteria_of(pattern, some):
        given = [some[f"criterion_{n + 1}"].to_numpy() for n in range(found.criteria.shape[1])]
        given = np.stack(given, axis=1).astype(np.float64)[found.rows]
        same = np.isclose(found.criteria, given, rtol=_ROUNDING, atol=0.0, equal_nan=True) | ~found.known
        good = same.all(axis=1)
        for name, texts in found.texts.items():
            stored = some[name].take(pa.array(found.rows, pa.int64())).to_pylist()
            good &= np.array([_alike(*both) for both in zip(stored, texts.to_pylist(), strict=True)], bool)
        fits[places[found.rows]] |= good
    return matches.append_column("events_fit", pa.array(fits, mask=~asked))


def _alike(stored: str, found: str) -> bool:
    """Whether two JSON lists of values are equal, up to the rounding of sums in a different order."""
    if stored == found:
        return True
    both = list(zip(json.loads(stored), json.loads(found), strict=True))
    return all(
        a == b or isinstance(a, float) and isinstance(b, int | float) and math.isclose(a, b, rel_tol=_ROUNDING)
        for a, b in both
    )


def _matches(pattern: Pattern, rule: Rule) -> str:
    """SQL for the matches, numbered, with the values by which they are compared and the events that they bind."""
    ids, order = [], []
    for name in pattern.names:
        column = quoted(name.name)
        events = column if name.kleene else f"CASE WHEN {column} IS NULL THEN [] ELSE [{column}] END"
        ids.append(f"list_transform(coalesce({events}, []), lambda e: '{name.name} ' || e.event_id)")
        place = "{'ts': e.ts, 'seq': coalesce(e.seq, 0), 'id': e.event_id}"
        places = f"list_sort(list_transform(coalesce({events}, []), lambda e: {place}))"
        # A set that is a prefix of a longer one comes before it, and a name without an event comes last.
        order.append(f"CASE WHEN len({places}) = 0 THEN NULL ELSE {places} END NULLS LAST")
    numbers = [f"score_{n + 1}" for n in range(rule.scores[0].width)]
    criteria = ", ".join(f"criterion_{n + 1}" for n in range(rule.criteria))
    return (
        "SELECT row_number() OVER () - 1 AS match, match_id, epoch_us(decision_ts) AS decided, "
        "epoch_us(start_ts) AS start, epoch_us(end_ts) AS last, per, distinct_on, "
        f"[{', '.join(numbers)}] AS scores, [{criteria}] AS criteria, {_keys(rule, numbers)} AS key, "
        f"row_number() OVER (ORDER BY {', '.join(order)}) AS turn, flatten([{', '.join(ids)}]) AS events, events_fit "
        "FROM bound"
    )


def _made(rule: Rule) -> str:
    """SQL for the staged rows, numbered, with the values by which they are compared and those of their matches."""
    numbers = [f"scores[{n + 1}]" for n in range(rule.scores[0].width)]
    return (
        "SELECT s.*, m.match, m.turn, m.distinct_on, m.events_fit, coalesce(m.per = s.per AND m.scores = s.scores "
        "AND m.criteria IS NOT DISTINCT FROM s.criteria AND m.start = s.start AND m.last = s.last "
        "AND m.events = s.events, false) AS match_fits FROM "
        "(SELECT row_number() OVER () AS row, epoch_us(scope_start) AS begins, epoch_us(scope_end) AS ends, per, rank, "
        "match_id, epoch_us(decision_ts) AS decided, epoch_us(start_ts) AS start, epoch_us(end_ts) AS last, "
        f"scores, criteria, list_transform(events, lambda e: e.name || ' ' || e.event_id) AS events, "
        f"{_keys(rule, numbers)} AS key FROM staged) AS s "
        "LEFT JOIN matches AS m ON m.match_id = s.match_id AND m.decided = s.decided"
    )


def _lists(rule: Rule, owned: str) -> str:
    """SQL for the lists that begin on some days and lack a match which no kept match excludes.

    A match is rightly left out if enough kept matches come before it (under ``WITH TIES``: have better scores), or if
    kept matches that come before it have the same values of ``DISTINCT ON``, or share an event with it.
    """
    least = "" if rule.least is None else f" AND NOT scores[1] < {rule.least!r}"
    every = (
        "SELECT e.begins, m.* FROM matches AS m JOIN entered AS e USING (match) "
        f"WHERE scores[1] IS NOT NULL{least} AND CAST(make_timestamp(e.begins) AS DATE) IN ({owned})"
    )
    before = "(d.key > c.key OR d.key = c.key AND d.turn < c.turn)"
    excluded = [f"count(*) FILTER (WHERE {'d.key > c.key' if rule.with_ties else before}) >= {rule.count}"]
    if rule.distinct:
        excluded.append(f"count(*) FILTER (WHERE {before} AND d.distinct_on = c.distinct_on) >= {rule.most}")
    if rule.non_overlapping:
        excluded.append(f"coalesce(bool_or({before} AND list_has_any(d.ids, c.ids)), false)")
    ids = "list_transform(events, lambda e: substr(e, instr(e, ' ') + 1)) AS ids"
    return (
        f"SELECT DISTINCT begins, per FROM (SELECT c.begins, c.per, c.match FROM (SELECT *, {ids} FROM ({every})) AS c "
        f"ANTI JOIN made AS k ON k.begins = c.begins AND k.per = c.per AND k.match = c.match "
        f"LEFT JOIN (SELECT *, {ids} FROM made) AS d ON d.begins = c.begins AND d.per = c.per "
        f"GROUP BY c.begins, c.per, c.match HAVING NOT ({' OR '.join(excluded)}))"
    )


def _measured(rule: Rule) -> str:
    """SQL for the measures that the suite tests, row by row."""
    of_list = "PARTITION BY begins, per ORDER BY rank"
    kth = f"max(CASE WHEN rank = {rule.count} THEN key END) OVER (PARTITION BY begins, per) AS kth"
    ties = " OR d.key = d.kth" if rule.with_ties else ""
    at = "d.start" if rule.period.by_first else "d.last"
    inside = {"all": "d.ends IS NULL", "hop": "d.start >= d.begins AND d.last < d.ends"}
    apart = ["true"]
    if rule.distinct:
        apart.append(f"coalesce(d.alike <= {rule.most}, true)")
    if rule.non_overlapping:
        apart.append("d.taken = 0")
    ids = "list_transform(events, lambda e: substr(e, instr(e, ' ') + 1))"
    taken = (
        "(SELECT count(*) FROM made o WHERE o.begins = made.begins AND o.per = made.per AND o.rank < made.rank "
        f"AND list_has_any({ids.replace('events', 'o.events', 1)}, {ids.replace('events', 'made.events', 1)})) AS taken"
    )
    return (
        "SELECT d.rank - d.place AS rank_gap, "
        f"(d.rank <= {rule.count}{ties}) AS rank_fits, "
        "coalesce(d.key < d.before OR d.key = d.before AND d.turn > d.earlier, d.place = 1) AS score_falls, "
        "d.match_fits, coalesce(d.events_fit, false) AS events_fit, "
        f"coalesce({inside.get(rule.period.kind, f'{at} >= d.begins AND {at} < d.ends')}, false) AS in_period, "
        f"({' AND '.join(apart)}) AS apart, "
        f"l.begins IS NULL AS whole_list FROM (SELECT *, row_number() OVER ({of_list}) AS place, "
        "row_number() OVER (PARTITION BY begins, per, distinct_on ORDER BY rank) AS alike, "
        f"{taken if rule.non_overlapping else '0 AS taken'}, "
        f"lag(key) OVER ({of_list}) AS before, lag(turn) OVER ({of_list}) AS earlier, {kth} FROM made) AS d "
        "LEFT JOIN lists AS l ON l.begins = d.begins AND l.per = d.per ORDER BY d.row"
    )


#: SQL for lists of which no row was staged.
_LACKING = "SELECT l.begins, l.per FROM lists l ANTI JOIN made d ON d.begins = l.begins AND d.per = l.per"


def _score_fits(rule: Rule, staged: pa.Table) -> list[bool]:
    """Whether the criteria of each row give its score, by the rule of some branch."""
    raw = np.array([[np.nan if one is None else one for one in row] for row in staged["criteria"].to_pylist()])
    given = np.array([[np.nan if one is None else one for one in row] for row in staged["scores"].to_pylist()])
    found = np.zeros(len(staged), bool)
    for score in {one: None for one in rule.scores}:
        if len(staged):
            found |= (scores(score, raw[:, : len(score.criteria)]) == given).all(axis=1)
    return found.tolist()


def _as_rows(lacking: pa.Table, schema: pa.Schema, rule: Rule) -> pa.Table:
    """Lists that lack all their matches, each as a row that shows it."""
    rows = [
        {
            "scope_kind": rule.period.kind, "per": row["per"], "rank": 1, "match_id": "none", "rank_gap": 0,
            "rank_fits": True, "score_falls": True, "score_fits": True, "match_fits": True, "events_fit": True,
            "in_period": True, "apart": True, "whole_list": False,
        }
        for row in lacking.to_pylist()
    ]  # fmt: skip
    found = pa.Table.from_pylist(rows, schema)
    begins = lacking["begins"].cast(schema.field("scope_start").type)
    days = day_text(pc.cast(begins, pa.date32(), safe=False))
    for name, values in (("scope_start", begins), ("owned_day", days)):
        found = found.set_column(found.column_names.index(name), schema.field(name), values)
    return found
