"""The views ``episodes.<pattern>_open``: episodes that are not decided at the end of the last day that is done."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import numpy as np
import pyarrow as pa

from chainlake.catalog.patterns import load_patterns
from chainlake.definitions.source import load_sources
from chainlake.detect.episodes.published import PublishedMatches, episode_rows
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.staleness import judge
from chainlake.lake.sql.scan import list_tables
from chainlake.paths import Home
from chainlake.schemas.episodes import episodes_table

_ONE = timedelta(days=1)


def open_views(home: Home) -> dict[tuple[str, str], Callable[[], pa.Table]]:
    """``(schema, name)`` → the function that makes the view's rows."""
    return {
        ("episodes", f"{name}_open".lower()): partial(open_episodes, home, name)
        for name in list_tables(home, "episodes")
    }


def open_episodes(home: Home, name: str) -> pa.Table:
    """The open episodes of a pattern: the columns of decided ones, and ``day``, at whose end they are open.

    ``decision_ts`` is when each is decided if no further match joins it.

    Args:
        home: the installation.
        name: the pattern's name.
    """
    compiled, _ = load_patterns(home, load_sources(home), only=name)
    empty = episodes_table(name, "").arrow().empty_table()
    for one in compiled:
        if one.episodes is None:
            continue
        (judged,) = judge(home, [one.episodes.definition])
        done = np.flatnonzero(judged.state == "done")
        first = EventDays.load(home, one.definition.source).first
        if not len(done) or first is None:
            break
        day = judged.day(int(done[-1]))
        rows = episode_rows(one.episodes, PublishedMatches(home, one, first).open_at(day + _ONE).spans)
        return rows.append_column("day", pa.array([day] * len(rows), pa.date32()))
    return empty.append_column("day", pa.array([], pa.date32()))
