"""Matches that were found in parts (such as day by day), and the best of all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.ranking.best import Entries, best, padded
from chainlake.cep.ranking.lists import Lists, Values
from chainlake.cep.ranking.rule import Rule
from chainlake.cep.values.arrow import int64_array, numpy_of

#: An event of a match: the number of its name, and what places it among all events.
EVENT = pa.struct([("name", pa.int64()), ("ts", pa.int64()), ("seq", pa.int64()), ("id", pa.string())])
#: The columns of ``Part.rows`` by which rows are ranked.
ROWS = pa.schema([
    ("scope_start", pa.int64()), ("scope_end", pa.int64()), ("per", pa.string()), ("keys", pa.list_(pa.float64())),
    ("distinct_on", pa.string()), ("events", pa.list_(EVENT)),
])  # fmt: skip


@dataclass(frozen=True)
class Part:
    """Matches in the lists in which they compete.

    Args:
        rows: the columns ``ROWS``, and any others that each match has.
        names: how many names the pattern has.
    """

    rows: pa.Table
    names: int


def kept(rule: Rule, part: Part) -> pa.Table:
    """The rows of a part that can be among the best, whatever other parts there are.

    The rows left are the same in whatever order and groups parts are put together.
    """
    rows, _ = best(_entries(rule, part), rule, final=False)
    return part.rows.take(int64_array(np.sort(rows)))


def ranked(rule: Rule, part: Part) -> pa.Table:
    """The best rows of a part that holds all matches, with their ``rank``, sorted by list and rank."""
    chosen, rank = best(_entries(rule, part), rule, final=True)
    rows = part.rows.take(int64_array(chosen)).append_column("rank", int64_array(rank))
    return rows.sort_by([("scope_start", "ascending"), ("per", "ascending"), ("rank", "ascending")])


def _entries(rule: Rule, part: Part) -> Entries:
    rows = part.rows.combine_chunks()
    n = len(rows)
    column = {name: _array(rows[name]) for name in ROWS.names}
    per, distinct = (Values().codes([column[name]], n) for name in ("per", "distinct_on"))
    groups = Lists().numbers(numpy_of(column["scope_start"]), numpy_of(column["scope_end"]), per)
    keys = numpy_of(column["keys"].flatten()).reshape(n, rule.scores[0].width)
    return Entries(np.arange(n), groups, keys, _order(column["events"], part.names), distinct)


def _order(events: pa.ListArray, names: int) -> tuple[np.ndarray, ...]:
    """The places of the events of each name among all events of the rows."""
    flat, row = events.flatten(), numpy_of(pc.list_parent_indices(events))
    keys = pa.table({name: flat.field(name) for name in ("ts", "seq", "id")})
    order = numpy_of(pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])).astype(np.int64)
    ordered = keys.take(int64_array(order))
    begins = np.zeros(len(order), bool)
    for column in ordered.columns:
        begins[1:] |= numpy_of(pc.not_equal(column.slice(1), column.slice(0, max(len(order) - 1, 0))))
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(begins)
    name = numpy_of(flat.field("name"))
    return tuple(padded(row[name == one], place[name == one], len(events)) for one in range(names))


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
