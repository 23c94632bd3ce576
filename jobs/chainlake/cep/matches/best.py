"""The best of published matches: a pure function of the rows of a match table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.columns import ticks_of
from chainlake.cep.pattern import Pattern
from chainlake.cep.ranking import part as parts
from chainlake.cep.ranking.part import Part
from chainlake.cep.ranking.periods import periods
from chainlake.cep.ranking.rule import Rule
from chainlake.cep.ranking.score import sort_keys
from chainlake.cep.values.arrow import int64_array, numpy_of
from chainlake.schemas.ranked import ranked_table
from chainlake.schemas.table import TIMESTAMP


def rule_of(pattern: Pattern) -> Rule:
    """The rule of a ranked pattern."""
    ranking = pattern.extras.ranking
    assert ranking is not None, "only ranked patterns get here"
    return ranking.rule


def names_of(pattern: Pattern) -> tuple[str, ...]:
    """The columns of the bound events, in the order in which they break ties of score."""
    return tuple(name.name for name in pattern.names)


def columns_of(pattern: Pattern) -> list[str]:
    """The columns of a match table by which its rows are ranked."""
    rule = rule_of(pattern)
    scores = [f"score_{n + 1}" for n in range(rule.scores[0].width)]
    criteria = [f"criterion_{n + 1}" for n in range(rule.criteria)]
    fixed = ["match_id", "decision_ts", "start_ts", "end_ts", "per", "distinct_on"]
    return [*fixed, *scores, *criteria, *names_of(pattern)]


def thinned(pattern: Pattern, rows: pa.Table) -> pa.Table:
    """The rows of a match table that can be among the best, whatever is decided on other days.

    Args:
        pattern: with a ranking that does not keep all matches.
        rows: of the match table: all those of some days that can be among the best, and perhaps others.
    """
    days = ticks_of(rows["decision_ts"], "decision_ts") // rule_of(pattern).period.day
    kept = [np.zeros(0, np.int64)]
    for day in np.unique(days).tolist():
        mine = np.flatnonzero(days == day)
        part = part_of(pattern, rows.take(int64_array(mine)))
        kept.append(mine[np.unique(numpy_of(parts.kept(rule_of(pattern), part)["row"]))])
    return rows.take(int64_array(np.concatenate(kept)))


def part_of(pattern: Pattern, rows: pa.Table) -> Part:
    """Rows of a match table as ``chainlake.cep.ranking.part`` ranks them.

    Returns:
        one row for each period that a match is in; ``row`` is the number of the match.
    """
    rule = rule_of(pattern)
    scores = _numbers(rows, "score", rule.scores[0].width)
    good = ~np.isnan(scores[:, 0])
    if rule.least is not None:
        good &= ~(scores[:, 0] < rule.least)
    scored = np.flatnonzero(good)
    start, end = (ticks_of(rows[name], name)[scored] for name in ("start_ts", "end_ts"))
    match, begins, ends = periods(rule.period, start, end)
    at = scored[match]
    keys, index = sort_keys(rule, scores[at]), int64_array(at)
    columns = {
        "scope_start": int64_array(begins),
        "scope_end": int64_array(ends),
        "per": _flat(rows["per"]).take(index),
        "keys": _lists(keys),
        "distinct_on": _flat(rows["distinct_on"]).take(index),
        "events": _events(rows, names_of(pattern)).take(index),
        "row": index,
    }
    return Part(pa.table(columns), len(names_of(pattern)))


def ranked_rows(pattern: Pattern, rows: pa.Table, lo: int, hi: int) -> pa.Table:
    """The best rows of a match table, as rows of the table of ranked matches.

    Args:
        pattern: with a ranking.
        rows: of the match table, all that can be in the periods.
        lo, hi: only periods that begin in ``[lo, hi)`` µs are wanted.
    """
    rule, names = rule_of(pattern), names_of(pattern)
    part = part_of(pattern, rows)
    begins = numpy_of(part.rows["scope_start"])
    part = Part(part.rows.filter(pa.array((begins >= lo) & (begins < hi))), part.names)
    best = parts.ranked(rule, part)
    schema = ranked_table(pattern.name, pattern.source or "").arrow()
    at = best["row"]
    scores, criteria = (_numbers(rows, name, width) for name, width in
                        (("score", rule.scores[0].width), ("criterion", rule.criteria)))  # fmt: skip
    chosen, of = numpy_of(at), rows.take(at)
    whole = rule.period.kind == "all"
    columns = {
        "scope_kind": pa.array([rule.period.kind] * len(best), pa.string()),
        "scope_start": best["scope_start"].cast(TIMESTAMP),
        "scope_end": pa.nulls(len(best), TIMESTAMP) if whole else best["scope_end"].cast(TIMESTAMP),
        "per": best["per"],
        "rank": best["rank"],
        "score": pa.array(scores[chosen, 0], pa.float64()),
        "scores": _lists(scores[chosen]),
        "criteria": _lists(criteria[chosen]),
        **{name: of[name] for name in ("match_id", "decision_ts", "start_ts", "end_ts")},
        "events": _named(best["events"], names),
    }
    return pa.table([columns[name] for name in schema.names], names=schema.names).cast(schema)


def _numbers(rows: pa.Table, kind: str, width: int) -> np.ndarray:
    """Columns of numbers as a matrix, shape (rows, ``width``), NaN for null."""
    found = np.full((len(rows), width), np.nan)
    for number in range(width):
        found[:, number] = numpy_of(pc.fill_null(_flat(rows[f"{kind}_{number + 1}"]), float("nan")))
    return found


def _lists(values: np.ndarray) -> pa.Array:
    """The rows of a matrix as lists, NaN as null."""
    flat = values.ravel()
    offsets = pa.array(np.arange(len(values) + 1) * values.shape[1], pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(flat, pa.float64(), mask=np.isnan(flat)))


def _events(rows: pa.Table, names: tuple[str, ...]) -> pa.Array:
    """For each row, its events name by name, with what places them among all events."""
    match, number, bound = [], [], []
    for place, name in enumerate(names):
        column = _flat(rows[name])
        if pa.types.is_list(column.type):
            mine, events = numpy_of(pc.list_parent_indices(column)), column.flatten()
        else:
            mine = np.flatnonzero(numpy_of(column.is_valid()))
            events = column.take(int64_array(mine))
        match.append(mine)
        number.append(np.full(len(mine), place))
        bound.append([pc.struct_field(events, field) for field in ("ts", "seq", "event_id")])
    rows_of = np.concatenate(match)
    order = int64_array(np.argsort(rows_of, kind="stable"))
    ts, seq, ids = (pa.concat_arrays([one[at] for one in bound]).take(order) for at in range(3))
    columns = [
        int64_array(np.concatenate(number)).take(order),
        ts.cast(pa.int64()),
        pc.fill_null(seq.cast(pa.int64()), 0),
        ids,
    ]
    sizes = np.bincount(rows_of, minlength=len(rows))
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(columns, fields=list(parts.EVENT)))


def _named(events: pa.ChunkedArray, names: tuple[str, ...]) -> pa.Array:
    """The same events with their names, as in rows of ranked matches."""
    lists = _flat(events)
    flat = lists.flatten()
    columns = [pa.array(names, pa.string()).take(flat.field("name")), flat.field("id"), flat.field("ts")]
    structs = pa.StructArray.from_arrays(
        [columns[0], columns[1], columns[2].cast(TIMESTAMP)], names=["name", "event_id", "ts"]
    )
    sizes = numpy_of(pc.list_value_length(lists))
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32()), structs)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found
