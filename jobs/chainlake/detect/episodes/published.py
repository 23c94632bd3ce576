"""The published matches of a pattern as spans, and which of them are open at the start of a day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.catalog.episodes import CompiledEpisodes
from chainlake.catalog.patterns import CompiledPattern
from chainlake.cep.episodes.days import episodes_of_day
from chainlake.cep.episodes.sources import columns_of, of_rows, rule_of
from chainlake.cep.events.columns import ticks_of
from chainlake.cep.values.arrow import numpy_of
from chainlake.days import US_PER_DAY, Days, day_of_us, day_start_us
from chainlake.lake.delta import tables
from chainlake.paths import Home


@dataclass(frozen=True)
class Open:
    """What is open at the start of a day.

    Args:
        spans: the open spans.
        since: the tick from which on the matches in them, and all that could join them, are decided.
    """

    spans: pa.Table
    since: int


class PublishedMatches:
    """The published matches of a pattern with episodes.

    Args:
        home: the installation.
        compiled: the pattern.
        first: the first day with events; before it no match is decided.
    """

    def __init__(self, home: Home, compiled: CompiledPattern, first: date) -> None:
        assert compiled.episodes is not None
        self._home, self._compiled, self._first = home, compiled, day_start_us(first)
        self.episodes: CompiledEpisodes = compiled.episodes

    def of(self, lo: int, hi: int) -> pa.Table:
        """The matches that are decided in ``[lo, hi)``, as spans."""
        return of_rows(self._compiled.pattern, self._rows(lo, hi))

    def by_day(self, days: Days) -> dict[date, pa.Table]:
        """The matches of each day, as spans."""
        rows = self._rows(*days.micros())
        numbers = ticks_of(rows["decision_ts"], "decision_ts") // US_PER_DAY
        pattern = self._compiled.pattern
        found = {day: of_rows(pattern, rows.slice(0, 0)) for day in days}
        for number in np.unique(numbers).tolist():
            found[day_of_us(number * US_PER_DAY)] = of_rows(pattern, rows.filter(pa.array(numbers == number)))
        return found

    def open_at(self, day: date) -> Open:
        """What is open at the start of a day, reading back until nothing earlier could belong to it."""
        timing, end = self.episodes.timing, day_start_us(day)
        reach = timing.late + timing.pause
        while True:
            since = max(min(self._first, end), end - reach)
            # What is decided at the day's start or later is open.
            open_ = episodes_of_day(timing, None, [self.of(since, end)], end).open
            begun = pc.min(open_["start"]).as_py()
            if since <= self._first or begun is None or begun - timing.pause > since:
                return Open(open_, since)
            reach *= 2

    def _rows(self, lo: int, hi: int) -> pa.Table:
        table, columns = self._compiled.table, columns_of(rule_of(self._compiled.pattern))
        columns = ["decision_ts", *columns]
        if lo >= hi or not tables.exists(self._home, table.schema, table.name):
            return pa.schema([table.arrow().field(name) for name in columns]).empty_table()
        return tables.arrow(self._home, table.schema, table.name, columns=columns, filters=tables.decided_in(lo, hi))


def episode_rows(episodes: CompiledEpisodes, decided: pa.Table) -> pa.Table:
    """Decided spans as rows of the table of episodes."""
    members = decided["members"].combine_chunks()
    offsets, ids = members.offsets, members.values.field("match_id")
    first = ids.take(offsets.slice(0, len(decided)))
    late = pa.scalar(episodes.timing.late, pa.int64())
    schema = episodes.table.arrow()
    stamp = schema.field("start_ts").type
    columns = {
        "key": pc.cast(decided["key"], pa.string()),
        "start_ts": decided["start"].cast(stamp),
        "end_ts": decided["end"].cast(stamp),
        "decision_ts": pc.add(decided["end"], late).cast(stamp),
        "matches": decided["matches"],
        "first_match": first,
        "top_match": decided["top_match"],
        "severity": decided["severity"].cast(pa.float64(), safe=False),
        "match_ids": pa.ListArray.from_arrays(offsets, ids),
    }
    return pa.table([columns[name] for name in schema.names], names=schema.names).cast(schema)


def number_of(spans: pa.Table) -> int:
    """How many matches are in some spans."""
    return int(numpy_of(spans["matches"]).sum())
