"""What some matches of a ranked pattern contribute to its best ones: rows that can be compared with those of others."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.event_ids import texts
from chainlake.cep.matches.rows import match_rows
from chainlake.cep.pattern import Pattern
from chainlake.cep.ranking import part as parts
from chainlake.cep.ranking.best import Entries
from chainlake.cep.ranking.part import Part
from chainlake.cep.search.find import best_of
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.ranked import Best, lists_of
from chainlake.cep.search.statistics import Statistics
from chainlake.cep.values.arrow import int64_array, numpy_of


def part_of(pattern: Pattern, events: pa.Table, batches: Iterable[MatchBatch]) -> Part:
    """The best of some matches, as ``chainlake.cep.ranking.part`` merges them.

    Args:
        pattern: with a ranking.
        events: the table in which the matches were found.
        batches: all matches of a part, as a search with ``unranked`` finds them.

    Returns:
        the columns of the match table, ``score`` (a list of numbers), ``criteria``, and what compares the rows.

    Raises:
        InputError: a criterion of a product is not from 0 to 1.
    """
    best = Best(pattern, events, trailing=False)
    best.add_all(batches)
    return _part(best)


def best_part(
    pattern: Pattern,
    events: pa.Table,
    *,
    own: tuple[int, int] | None = None,
    backend: str = "auto",
    statistics: Statistics | None = None,
    options: SearchOptions | None = None,
) -> Part:
    """The best of the matches that are decided in ``own``, found in whichever way is the shortest.

    Args:
        as of ``chainlake.cep.search.find.find``; ``statistics.best`` says how they were found.

    Returns:
        as ``part_of``; what is counted of lists is null unless all matches were looked at.

    Raises:
        as ``find``.
    """
    best = best_of(pattern, events, own=own, backend=backend, statistics=statistics, options=options)
    return _part(best)


def _part(best: Best) -> Part:
    counted = [
        {
            "scope_start": one.start, "scope_end": one.end, "per": one.per, "candidates": one.candidates,
            "excluded_null": one.excluded_null, "below_min_score": one.below_min_score,
        }
        for one in best.counts()
    ]  # fmt: skip
    scopes = pa.Table.from_pylist(counted, parts.SCOPES)
    entries = best.keeper.entries()
    if entries is None:
        return Part(parts.ROWS.empty_table(), scopes, len(best.names))
    tables, done = [], 0
    for batch in best.rows(entries.match, entries.group, np.zeros(len(entries), np.int64)):
        tables.append(_rows(best, batch, entries.at(np.arange(done, done + batch.n))))
        done += batch.n
    return Part(pa.concat_tables(tables, promote_options="permissive"), scopes, len(best.names))


def _rows(best: Best, batch: MatchBatch, entries: Entries) -> pa.Table:
    lists, group = best.lists, entries.group
    rows = match_rows(best.pattern, best.events, batch)
    score = batch.measures["score"]
    columns = {
        "scope_start": int64_array(np.array(lists.starts)[group]),
        "scope_end": int64_array(np.array(lists.ends)[group]),
        "per": pa.array([best.per.texts[lists.per[one]] for one in group.tolist()], pa.string()),
        "keys": lists_of(entries.keys),
        "distinct_on": pa.array([best.distinct.texts[one] for one in entries.distinct.tolist()], pa.string()),
        "events": _events(best, batch),
        "score": score if pa.types.is_list(score.type) else lists_of(numpy_of(score)[:, None]),
        "criteria": batch.measures["criteria"],
    }
    return pa.table({**columns, **{name: rows[name] for name in rows.column_names}})


def _events(best: Best, batch: MatchBatch) -> pa.Array:
    """What says where the events of each match stand among all events."""
    names, matches, bound = [], [], []
    for number, name in enumerate(best.names):
        offsets, rows = batch.kleene.get(name, (np.zeros(batch.n + 1, np.int64), np.zeros(0, np.int64)))
        if name in batch.single:
            offsets, rows = np.arange(batch.n + 1), batch.single[name]
        names.append(np.full(len(rows), number))
        matches.append(np.repeat(np.arange(batch.n), np.diff(offsets)))
        bound.append(rows)
    match = np.concatenate(matches)
    order = np.argsort(match, kind="stable")
    rows = np.concatenate(bound)[order]
    taken = best.events["event_id"].take(int64_array(rows))
    ids = texts(taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken)
    seq = int64_array(np.zeros(len(rows)))
    if "seq" in best.events.column_names:
        seq = int64_array(numpy_of(pc.fill_null(best.events["seq"].cast(pa.int64()), 0))[rows])
    columns = [int64_array(np.concatenate(names)[order]), int64_array(best.ts[rows]), seq, _one(ids).cast(pa.string())]
    offsets = pa.array(np.concatenate([[0], np.cumsum(np.bincount(match, minlength=batch.n))]), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(columns, fields=list(parts.EVENT)))


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
