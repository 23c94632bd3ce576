"""The views ``ranked.<pattern>_scopes``: the periods of a ranking, and whether they are final."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from chainlake.catalog.patterns import load_patterns
from chainlake.days import US_PER_DAY, day_of_us
from chainlake.definitions.source import load_sources
from chainlake.lake.delta import tables
from chainlake.lake.records.staleness import status_rows
from chainlake.lake.sql.scan import list_tables
from chainlake.paths import Home
from chainlake.schemas.table import TIMESTAMP

_SCHEMA = pa.schema(
    [
        ("scope_kind", pa.string()), ("scope_start", TIMESTAMP), ("scope_end", TIMESTAMP), ("per", pa.string()),
        ("matches", pa.int64()), ("theta", pa.float64()), ("provisional", pa.bool_()),
    ]
)  # fmt: skip


def scope_views(home: Home) -> dict[tuple[str, str], Callable[[], pa.Table]]:
    """``(schema, name)`` → the function that makes the view's rows."""
    return {
        ("ranked", f"{name}_scopes".lower()): partial(ranked_scopes, home, name) for name in list_tables(home, "ranked")
    }


def ranked_scopes(home: Home, name: str) -> pa.Table:
    """The lists of a ranking that have matches: how many, the score of the last one, and whether they may still change.

    A list is provisional if one of its days is not computed, was computed without all its files, or has to be computed
    again. If the pattern's file is gone or broken, all its lists are provisional.

    Args:
        home: the installation.
        name: the pattern's name.
    """
    rows = tables.arrow(
        home, "ranked", name, columns=["scope_kind", "scope_start", "scope_end", "per", "score", "rank"]
    )
    keys = ["scope_kind", "scope_start", "scope_end", "per"]
    lists = rows.sort_by([(key, "ascending") for key in (*keys, "rank")]).group_by(keys, use_threads=False)
    found = lists.aggregate([("rank", "count"), ("score", "last")])
    final = {
        row.day
        for one in load_patterns(home, load_sources(home), only=name)[0]
        if one.ranking is not None
        for row in status_rows(home, [one.ranking.definition])
        if row.state == "done" and not row.provisional
    }
    days = [day_of_us(us // US_PER_DAY * US_PER_DAY) for us in found["scope_start"].cast(pa.int64()).to_pylist()]
    columns = [*(found[key] for key in keys), found["rank_count"], found["score_last"]]
    return pa.table([*columns, pa.array([day not in final for day in days], pa.bool_())], names=_SCHEMA.names)
