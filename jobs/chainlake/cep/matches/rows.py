"""Matches as rows of the pattern's match table (docs/tables.md)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from chainlake.cep.events.columns import ticks_of
from chainlake.cep.events.event_ids import texts
from chainlake.cep.matches.ids import Group, Single, match_ids
from chainlake.cep.pattern import Pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.schemas.matches import matches_table
from chainlake.schemas.table import TIMESTAMP


def match_rows(pattern: Pattern, events: pa.Table, batch: MatchBatch, schema: pa.Schema | None = None) -> pa.Table:
    """A batch of matches as rows of the match table.

    Args:
        pattern: the pattern that found them.
        events: the table they were found in; a field that it lacks is null.
        batch: the matches.
        schema: of the match table; by default, the pattern's shape with the columns of ``events`` (and no key).

    Returns:
        Columns ``match_id``, ``decision_ts``, ``start_ts``, ``end_ts``, one struct or list of structs per name.
    """
    if schema is None:
        shape = match_shape(pattern, types={field.name: field.type for field in events.schema})
        schema = matches_table(shape).arrow()
    names: list[Single | Group] = [*batch.single.items()]
    names += [(name, offsets, rows) for name, (offsets, rows) in batch.kleene.items()]
    columns: list[pa.Array] = [match_ids(pattern.name, events["event_id"], names)]
    columns += [pa.array(ticks, TIMESTAMP) for ticks in (batch.decision_us, batch.start_us, batch.end_us)]
    own = {name.name for name in pattern.names}
    for field in list(schema)[len(columns) :]:
        assert field.name in own or field.name in batch.measures, f"nothing gives the column {field.name}"
        columns.append(_column(events, batch, field))
    return pa.table(columns, schema)


def _column(events: pa.Table, batch: MatchBatch, field: pa.Field) -> pa.Array:
    if field.name in batch.measures:
        # A whole number beyond 2^53 becomes the double next to it, as in arithmetic.
        return batch.measures[field.name].cast(field.type, safe=False)
    kind = field.type.value_type if pa.types.is_list(field.type) else field.type
    return _bound(events, batch, field) if pa.types.is_struct(kind) else _count(batch, field)


def _count(batch: MatchBatch, field: pa.Field) -> pa.Array:
    """How many events are bound to a name."""
    if field.name in batch.kleene:
        return pa.array(np.diff(batch.kleene[field.name][0]), field.type)
    return pa.array(np.full(batch.n, int(field.name in batch.single)), field.type)


def _bound(events: pa.Table, batch: MatchBatch, field: pa.Field) -> pa.Array:
    repeated = pa.types.is_list(field.type)
    if field.name in batch.single:
        rows = batch.single[field.name]
        offsets = np.arange(batch.n + 1)
    elif field.name in batch.kleene:
        offsets, rows = batch.kleene[field.name]
    else:
        return pa.nulls(batch.n, field.type)
    structs = _structs(events, rows, field.type.value_type if repeated else field.type)
    if not repeated:
        return structs
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=field.type)


def _structs(events: pa.Table, rows: np.ndarray, kind: pa.StructType) -> pa.StructArray:
    index = pa.array(rows)
    fields = [kind.field(i) for i in range(kind.num_fields)]
    columns = []
    for field in fields:
        if field.name == "ts":
            columns.append(pa.array(ticks_of(events["ts"].take(index), "ts"), TIMESTAMP))
        elif field.name == "event_id":
            columns.append(texts(_flat(events["event_id"].take(index))).cast(field.type))
        elif field.name in events.column_names:
            columns.append(_flat(events[field.name].take(index).cast(field.type)))
        else:
            columns.append(pa.nulls(len(rows), field.type))
    return pa.StructArray.from_arrays(columns, fields=fields)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined
