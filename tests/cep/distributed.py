"""What a task does between a table of events and the search of its slices, in plain Python: filter by slice, batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from chainlake.cep.matches.day_limit import DayLimit
from chainlake.cep.pattern import Pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.statistics import Statistics
from chainlake.detect.division.cut import Slice
from chainlake.detect.feed import KeyShare, by_time
from chainlake.detect.matcher import Matcher
from chainlake.errors import ChainlakeError
from chainlake.schemas.matches import matches_table


def distributed(
    pattern: Pattern,
    events: pa.Table,
    slices: Sequence[Slice],
    *,
    batch_rows: int,
    piece_rows: int,
    orders: Sequence[Sequence[str]] | None = None,
    keys: int = 1,
) -> tuple[list[str], list[ChainlakeError]]:
    """Matches as sorted texts, duplicates kept, and the errors; a task per slice, or share of its keys.

    Args:
        keys: shares that the keys of a keyed pattern are cut into.
    """
    schema = matches_table(match_shape(pattern, types={f.name: f.type for f in events.schema})).arrow()
    matcher = Matcher(pattern, schema, orders, piece_rows)
    shares = [KeyShare(n, keys) for n in range(keys)] if pattern.partition_key is not None and keys > 1 else [None]
    rows = by_time(events)
    found: list[str] = []
    errors: list[ChainlakeError] = []
    for one in slices:
        for share in shares:
            slice_search = matcher.slice_search(one.own, Statistics(), DayLimit(pattern), share)
            try:
                for begin in range(0, len(rows), batch_rows):
                    found += texts(pattern, slice_search.add(rows.slice(begin, batch_rows)))
                found += texts(pattern, slice_search.finish())
            except ChainlakeError as error:
                errors.append(error)
    return sorted(found), errors


def texts(pattern: Pattern, tables: Any) -> list[str]:
    """Rows of a match table as texts."""
    return [json.dumps(bound(pattern, row), sort_keys=True) for table in tables for row in table.to_pylist()]


def bound(pattern: Pattern, row: dict[str, Any]) -> dict[str, Any]:
    """A row of a match table as a mapping from names to ids, with all ids as texts."""
    found = {}
    for name in pattern.names:
        value = row[name.name]
        if value is not None:
            found[name.name] = [e["event_id"] for e in value] if name.kleene else value["event_id"]
    return found
