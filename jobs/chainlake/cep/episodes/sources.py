"""Matches as spans: from a search, or from rows of the match table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.compiling.episodes import SEVERITY, EpisodeRule
from chainlake.cep.episodes.merge import of_matches
from chainlake.cep.events.errors import UnfitColumn
from chainlake.cep.matches.ids import Group, Single, match_ids
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.cep.values.arrow import int64_array, numpy_of

#: Attributes that have another name in the structs of bound events.
_FIELDS = {"id": "event_id"}


def rule_of(pattern: Pattern) -> EpisodeRule:
    """The episode rule of a pattern that has one."""
    rule = pattern.extras.episodes
    assert rule is not None, "asked of patterns with EPISODES only"
    return rule


def of_batch(pattern: Pattern, events: pa.Table, batch: MatchBatch) -> pa.Table:
    """The matches of a search as spans.

    Args:
        pattern: with EPISODES.
        events: the table in which they were found.
        batch: the matches.

    Raises:
        InputError: key or severity is of a kind that it cannot be.
    """
    rule = rule_of(pattern)
    names: list[Single | Group] = [*batch.single.items()]
    names += [(name, offsets, rows) for name, (offsets, rows) in batch.kleene.items()]
    ids = match_ids(pattern.name, events["event_id"], names)
    key = _of_events(rule, events, batch) if rule.names else batch.measures[rule.attr]
    severity = batch.measures[SEVERITY] if rule.severe else pa.nulls(batch.n, pa.float64())
    return of_matches(_as_key(rule, key), batch.start_us, batch.end_us, _as_severity(severity), ids)


def _of_events(rule: EpisodeRule, events: pa.Table, batch: MatchBatch) -> pa.Array:
    name = rule.names[batch.branch]
    rows = batch.single.get(name)
    if rows is None:
        offsets, members = batch.kleene[name]
        rows = members[offsets[:-1]]
    column = _FIELDS.get(rule.attr, rule.attr)
    if column not in events.column_names:
        return pa.nulls(batch.n, pa.string())
    return _flat(events[column].take(int64_array(rows)))


def of_rows(pattern: Pattern, rows: pa.Table) -> pa.Table:
    """Rows of the match table as spans.

    Args:
        pattern: with EPISODES.
        rows: with ``match_id``, ``start_ts``, ``end_ts`` and :func:`columns_of`.
    """
    rule = rule_of(pattern)
    if not rule.names:
        key = _flat(rows[rule.attr])
    else:
        field = _FIELDS.get(rule.attr, rule.attr)
        parts = [_value(_flat(rows[name]), field) for name in dict.fromkeys(rule.names)]
        key = pc.coalesce(*parts)
    severity = _flat(rows[SEVERITY]) if rule.severe else pa.nulls(len(rows), pa.float64())
    start, end = (numpy_of(rows[name].cast(pa.int64())) for name in ("start_ts", "end_ts"))
    return of_matches(_as_key(rule, key), start, end, _as_severity(severity), _flat(rows["match_id"]))


def columns_of(rule: EpisodeRule) -> list[str]:
    """The columns of the match table that episodes are made from."""
    own = [*dict.fromkeys(rule.names)] if rule.names else [rule.attr]
    return ["match_id", "start_ts", "end_ts", *dict.fromkeys([*own, *([SEVERITY] if rule.severe else [])])]


def _value(events: pa.Array, field: str) -> pa.Array:
    """A field of each match's event, or of the first event of its set; null where nothing is bound."""
    if pa.types.is_list(events.type):
        sizes = pc.fill_null(pc.list_value_length(events), 0)
        first = numpy_of(events.offsets)[:-1]
        places = pc.if_else(pc.greater(sizes, 0), int64_array(first.astype(np.int64)), pa.scalar(None, pa.int64()))
        events = events.values.take(places)
    return pc.struct_field(events, field)


def _flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _as_key(rule: EpisodeRule, key: pa.Array) -> pa.Array:
    """The key as strings, whole numbers, doubles or booleans."""
    kind = key.type.value_type if pa.types.is_dictionary(key.type) else key.type
    if pa.types.is_null(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return key.cast(pa.string())
    if pa.types.is_boolean(kind):
        return key
    if pa.types.is_integer(kind):
        return key.cast(pa.int64())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return key.cast(pa.float64())
    raise UnfitColumn.episode_key(rule.written, rule.attr, kind)


def _as_severity(severity: pa.Array) -> pa.Array:
    """The severity as whole numbers or doubles."""
    if pa.types.is_integer(severity.type):
        return severity.cast(pa.int64())
    if pa.types.is_floating(severity.type) or pa.types.is_null(severity.type):
        return severity.cast(pa.float64())
    raise UnfitColumn.severity(SEVERITY, severity.type)
