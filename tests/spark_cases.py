"""Handed pattern cases through Spark: cut into slices, spread over partitions, matched by Python workers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from chainlake.cep.pattern_shape import match_shape
from chainlake.detect.tasks.slices import Layout, Slice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from chainlake.cep import Pattern


def session() -> SparkSession:
    """The session of this process; outside a test run its files lie in the installation's home."""
    from chainlake.lake.spark.session import spark_session
    from chainlake.paths import Home

    return spark_session(Home.from_env(), "cases")


def spark_matches(pattern: Pattern, events: list[dict[str, Any]]) -> list[str]:
    """What detection on Spark finds, as sorted texts.

    Args:
        pattern: compiled with ``strict_units=False``.
        events: of the case.
    """
    from chainlake.cep.library import from_dicts
    from chainlake.detect.tasks.by_shuffle import count_reports, detect_matches
    from chainlake.schemas.matches import matches_table
    from tests.cep.distributed import bound

    table, ids = from_dicts(events)
    if not len(table):
        return []
    given = dict(zip(table["event_id"].to_pylist(), ids, strict=True))
    # A column of nulls is like none, and Spark has no type for it.
    table = table.select([f.name for f in table.schema if not pa.types.is_null(f.type)])
    shape = match_shape(pattern, types={f.name: f.type for f in table.schema})
    found = detect_matches(session().createDataFrame(table), pattern, matches_table(shape), _thirds(pattern, table))
    rows = found.toArrow().to_pylist()
    count_reports(row["#report"] for row in rows if row["#report"] is not None)
    matches = [bound(pattern, row) for row in rows if row["#report"] is None]
    named = [{n: [given[i] for i in v] if isinstance(v, list) else given[v] for n, v in m.items()} for m in matches]
    return sorted(json.dumps(match, sort_keys=True) for match in named)


def _thirds(pattern: Pattern, table: pa.Table) -> Layout:
    """Three slices on two partitions; those of a pattern with a partition key are spread by key."""
    ts = table["ts"].to_pylist()
    lo, hi = min(ts), max(ts) + pattern.window_us + 1
    bounds = [lo, lo + (hi - lo) // 3, lo + (hi - lo) * 2 // 3, hi]
    owned = [(a, b) for a, b in zip(bounds, bounds[1:], strict=False) if a < b]
    slices = tuple(Slice(i, own, pattern.read_range(*own)) for i, own in enumerate(owned))
    place = {} if pattern.partition_key else {one.number: one.number % 2 for one in slices}
    return Layout(slices, {}, 2, place)
