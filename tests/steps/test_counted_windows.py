"""Windows in events by tasks that read days in pieces: the matches are those among all events at once."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest

from chainlake.cep.matches.day_limit import DayLimit
from chainlake.cep.matches.rows import match_rows
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.find import find
from chainlake.cep.search.statistics import Statistics
from chainlake.days import Days
from chainlake.definitions.derived import Series
from chainlake.detect.division.cut import slice_of
from chainlake.detect.feed import Feed
from chainlake.detect.matcher import Matcher, needed
from chainlake.schemas.matches import matches_table
from tests.steps.consuming import Row, events_of
from tests.steps.history import day
from tests.steps.test_chained_walk import SCHEMA, Events

DAYS = 4
QUERIES = (
    "SEQ(A a, B b) WITHIN 4 EVENTS, 20 h",
    "AND(A a, C c) WITHIN GAP 3 EVENTS, 30 h",
    "SEQ(A a, B b) WHERE a.sensor = b.sensor WITHIN 3 EVENTS OF KEY, 26 h",
    "SEQ(A a, NOT(C c), B b) WITHIN 6 EVENTS, 20 h",
    "SEQ(A a, B b) WHERE b.x > PREV(b.x, 1, 9 h) WITHIN 5 EVENTS, 20 h",
    "SEQ(A a, B+ b) WITHIN 5 EVENTS, 16 h",
)


def compiled(query: str) -> Pattern:
    columns = {f.name: f.type for f in SCHEMA if f.name != "event_id"}
    return compile_pattern(f"PATTERN {query}", name="p", columns=columns, series=Series("sensor"))


@pytest.mark.few(1)
@pytest.mark.parametrize("query", QUERIES)
def test_numbers_of_events_go_on_from_piece_to_piece(query: str) -> None:
    pattern = compiled(query)
    table = matches_table(match_shape(pattern, key="sensor"))
    found_some = 0
    for seed in range(6):
        rng = random.Random(f"{query} {seed}")
        contents: dict[int, list[Row]] = {n: events_of(rng, n, 9) for n in range(DAYS)}
        events = Events(contents)
        every = pa.Table.from_pylist([row for rows in contents.values() for row in rows], schema=SCHEMA)
        expected = [
            rows for batch in find(pattern, every) for rows in match_rows(pattern, every, batch)["match_id"].to_pylist()
        ]
        found = []
        for n in range(DAYS):
            one = slice_of(pattern, Days.one(day(n)).micros())
            feed = replace(Feed.of(events, "sensor", [pattern], needed(pattern, table)), chunk_rows=2)
            slice_search = Matcher(pattern, table.arrow(), None, 2).slice_search(
                one.own, Statistics(), DayLimit(pattern)
            )
            for chunk in feed.chunks([one.read]):
                found += [rows for part in slice_search.add(chunk) for rows in part["match_id"].to_pylist()]
            found += [rows for part in slice_search.finish() for rows in part["match_id"].to_pylist()]
        assert sorted(found) == sorted(expected), seed
        found_some += len(found)
    assert found_some > 5
