"""What Spark does between a table of events and the workers, in plain Python: filter by slice, place, sort, batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from chainlake.cep import Pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.detect.tasks.slices import Layout
from chainlake.detect.tasks.worker import REPORT, SLICE, Matcher
from chainlake.schemas.matches import matches_table


def distributed(
    pattern: Pattern,
    events: pa.Table,
    layout: Layout,
    *,
    batch_rows: int,
    piece_rows: int,
    orders: Sequence[Sequence[str]] | None = None,
) -> tuple[list[str], list[dict[str, Any]]]:
    """Matches as sorted texts, duplicates kept, and the reports; one worker per slice (and none shares a key)."""
    schema = matches_table(match_shape(pattern, types={f.name: f.type for f in events.schema})).arrow()
    matcher = Matcher(pattern, schema, {s.number: s.own for s in layout.slices}, orders, piece_rows)
    key = pattern.partition_key
    linked = key is not None and all(len(branch.positive) > 1 for branch in pattern.branches)
    rows = [row for row in events.to_pylist() if not linked or row[key] is not None]
    hot = {name: {one.number for one in cut} for name, cut in layout.hot.items()}
    base = {one.number for one in layout.base}
    found: list[str] = []
    reports: list[dict[str, Any]] = []
    for one in layout.slices:
        mine = [
            {SLICE: one.number, **row}
            for row in rows
            if one.read[0] <= row["ts"] < one.read[1]
            and one.number in (hot.get(row[key], base) if key is not None else base)
        ]
        mine.sort(key=lambda row: ("" if key is None else str(row[key]), row["ts"], row["event_id"]))
        sent = pa.Table.from_pylist(mine, pa.schema([pa.field(SLICE, pa.int32()), *events.schema]))
        for batch in matcher.run(sent.to_batches(max_chunksize=batch_rows)):
            for row in batch.to_pylist():
                report = row.pop(REPORT.names[0])
                if report is None:
                    found.append(json.dumps(bound(pattern, row), sort_keys=True))
                else:
                    reports.append(json.loads(report))
    return sorted(found), reports


def bound(pattern: Pattern, row: dict[str, Any]) -> dict[str, Any]:
    """A row of a match table as a mapping from names to ids, with all ids as texts."""
    found = {}
    for name in pattern.names:
        value = row[name.name]
        if value is not None:
            found[name.name] = [e["event_id"] for e in value] if name.kleene else value["event_id"]
    return found
