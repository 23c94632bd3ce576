"""Merges spans of matches of one key that overlap or are at most a pause apart.

A *span* is one match, or several that are merged already; both have the same columns, so that open spans of
earlier days and the matches of a day are merged alike. The order of merging does not change the result.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.values.arrow import int64_array, numpy_of
from chainlake.schemas.episodes import MOST_IDS

_MEMBER = pa.struct([pa.field("start", pa.int64()), pa.field("match_id", pa.string())])


def span_schema(key: pa.DataType, severity: pa.DataType) -> pa.Schema:
    """The columns of spans.

    Args:
        key: type of what the matches have in common.
        severity: type of the number by which they are put in order.

    Returns:
        ``key``; ``start``, ``end`` in ticks; ``matches``, how many; ``severity``, ``top_start`` and ``top_match`` of
        the top match; ``members``, start and id of the first 100 by (start, id).
    """
    return pa.schema(
        [
            ("key", key), ("start", pa.int64()), ("end", pa.int64()), ("matches", pa.int64()), ("severity", severity),
            ("top_start", pa.int64()), ("top_match", pa.string()), ("members", pa.list_(_MEMBER)),
        ]
    )  # fmt: skip


def of_matches(key: pa.Array, start: np.ndarray, end: np.ndarray, severity: pa.Array, ids: pa.Array) -> pa.Table:
    """One span per match.

    Args:
        key: strings, numbers or booleans; in doubles, NaN is null and -0.0 is 0.0. Null counts as one key, too.
        start, end: in ticks.
        severity: numbers; NaN is null.
        ids: the ids of the matches.
    """
    members = pa.StructArray.from_arrays([int64_array(start), ids], fields=list(_MEMBER))
    offsets = pa.array(np.arange(len(ids) + 1), pa.int32())
    ones = pa.array(np.ones(len(ids), np.int64))
    key, severity = _plain(key), _plain(severity)
    columns = [key, int64_array(start), int64_array(end), ones, severity, int64_array(start), ids]
    schema = span_schema(key.type, severity.type)
    return pa.table([*columns, pa.ListArray.from_arrays(offsets, members, type=schema.field("members").type)], schema)


def _plain(values: pa.Array) -> pa.Array:
    """The values; in doubles, NaN becomes null and -0.0 becomes 0.0."""
    if not pa.types.is_floating(values.type):
        return values
    known = pc.fill_null(pc.invert(pc.is_nan(values)), False)
    return pc.if_else(known, pc.add(values, 0.0), pa.scalar(None, values.type))


def merged(spans: pa.Table, pause: int) -> pa.Table:
    """Merge spans.

    Args:
        spans: in any order.
        pause: spans of one key that are at most this far apart become one, in ticks.

    Returns:
        spans in the order of (key, start), a missing key last; no two of one key are that close.
    """
    rows = spans.combine_chunks()
    if not len(rows):
        return rows
    codes = _codes(rows["key"])
    start, end = (numpy_of(rows[name]) for name in ("start", "end"))
    order = np.lexsort((start, codes))
    group = np.empty(len(rows), np.int64)
    first, group[order] = _groups(codes[order], start[order], end[order], pause)
    number = len(first)
    latest = np.full(number, np.iinfo(np.int64).min)
    np.maximum.at(latest, group, end)
    matches = np.zeros(number, np.int64)
    np.add.at(matches, group, numpy_of(rows["matches"]))
    tops = int64_array(_tops(rows, group))
    return pa.table(
        [
            rows["key"].take(int64_array(order[first])),
            int64_array(start[order[first]]),
            int64_array(latest),
            int64_array(matches),
            *(rows[name].take(tops) for name in ("severity", "top_start", "top_match")),
            _members(rows, group, number),
        ],
        spans.schema,
    )


def _codes(keys: pa.ChunkedArray) -> np.ndarray:
    """A number per key, in the order of the keys; the largest stands for a missing key."""
    known = pc.unique(keys).drop_null()
    known = known.take(pc.sort_indices(known))
    found: np.ndarray = pc.fill_null(pc.index_in(keys, value_set=known), len(known)).to_numpy().astype(np.int64)
    return found


def _groups(codes: np.ndarray, start: np.ndarray, end: np.ndarray, pause: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each group of sorted spans begins, and the number of each span's group."""
    n = len(codes)
    ends = np.unique(end)
    # The latest end so far of the same key: codes of keys ascend, so an earlier key's ends never count.
    latest = np.maximum.accumulate(codes * n + np.searchsorted(ends, end)) - codes * n
    begins = np.ones(n, bool)
    begins[1:] = (codes[1:] != codes[:-1]) | (start[1:] - pause > ends[latest[:-1]])
    return np.flatnonzero(begins), np.cumsum(begins) - 1


def _tops(rows: pa.Table, group: np.ndarray) -> np.ndarray:
    """For each group, the row of its top match: the most severe one, then the earliest, then the smallest id."""
    keys = pa.table(
        {"group": int64_array(group), **{name: rows[name] for name in ("severity", "top_start", "top_match")}}
    )
    by = [("group", "ascending"), ("severity", "descending"), ("top_start", "ascending"), ("top_match", "ascending")]
    # Missing severities come last.
    order = numpy_of(pc.sort_indices(keys, by)).astype(np.int64)
    found: np.ndarray = order[np.flatnonzero(np.diff(group[order], prepend=-1))]
    return found


def _members(rows: pa.Table, group: np.ndarray, number: int) -> pa.Array:
    """For each group, the first members among those of all its rows."""
    members = rows["members"].combine_chunks()
    sizes = pc.list_value_length(members).to_numpy()
    of = np.repeat(group, sizes)
    flat = members.flatten()
    keys = pa.table({"group": int64_array(of), "start": flat.field("start"), "id": flat.field("match_id")})
    order = numpy_of(pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])).astype(np.int64)
    begins = np.searchsorted(of[order], np.arange(number + 1))
    kept = np.arange(len(order)) - np.repeat(begins[:-1], np.diff(begins)) < MOST_IDS
    offsets = np.concatenate([[0], np.cumsum(np.minimum(np.diff(begins), MOST_IDS))])
    found = flat.take(int64_array(order[kept]))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), found, type=members.type)
