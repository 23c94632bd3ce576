"""Neighbours of a key are searched in blocks of keys, without events of other types: against plain loops."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.events.order import by_number
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.definitions.derived import Series

Event = dict[str, Any]


def drawn(seed: int) -> list[Event]:
    """Events of four types and no type, of some keys and no key, many of one key at one time."""
    rng = random.Random(seed)
    every: list[list[int | None]] = [[7], [-3, 0, None, 900], [*range(6), None]]
    keys = rng.choice(every)
    return [
        {
            "event_id": f"e{number:03}",
            "type": rng.choice(["A", "B", "A", "B", "C", "D", None]),
            "ts": rng.randrange(20),
            "seq": rng.randrange(2),
            "k": rng.choice(keys),
            "x": rng.randrange(4),
        }
        for number in rng.sample(range(200), rng.randrange(1, 70))
    ]


def table(events: list[Event], key: pa.DataType, kind: str) -> pa.Table:
    columns = {name: [event[name] for event in events] for name in events[0]}
    types = pa.array(columns["type"], pa.string())
    ids = pa.array(columns["event_id"])
    whole = {name: pa.array(columns[name], pa.int64()) for name in ("ts", "seq", "x")}
    keys = pa.array(columns["k"], pa.int64()).cast(key)
    found = pa.table(
        {"event_id": ids, "type": types.dictionary_encode() if kind == "codes" else types, "k": keys, **whole}
    )
    return pa.concat_tables([found.slice(0, 3), found.slice(3)]) if kind == "chunks" else found


def pairs(events: list[Event], condition: str) -> set[tuple[str, str]]:
    """The A right before a B among the events of these two types of each key."""
    found = set()
    for key in {event["k"] for event in events} - {None}:
        mine = sorted(
            (event for event in events if event["k"] == key), key=lambda one: (one["ts"], one["seq"], one["event_id"])
        )
        place = {event["event_id"]: number for number, event in enumerate(mine)}
        stream = [event for event in mine if event["type"] in ("A", "B")]
        before: dict[str, dict[str, Event]] = {"A": {}, "B": {}}
        last: dict[str, Event] = {}
        for event in stream:
            if event["type"] in last:
                before[event["type"]][event["event_id"]] = last[event["type"]]
            last[event["type"]] = event
        for a, b in zip(stream, stream[1:], strict=False):
            if (a["type"], b["type"]) != ("A", "B"):
                continue
            earlier = before["B"].get(b["event_id"])
            if {
                "": True,
                "b.x > PREV(b.x)": earlier is not None and b["x"] > earlier["x"],
                "2 EVENTS": place[b["event_id"]] - place[a["event_id"]] <= 2,
                "a.type != b.id": True,
            }[condition]:
                found.add((a["event_id"], b["event_id"]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["", "b.x > PREV(b.x)", "2 EVENTS", "a.type != b.id"])
@pytest.mark.parametrize("kind", ["texts", "codes", "chunks"])
def test_events_of_other_types_change_nothing(condition: str, kind: str) -> None:
    where = f" WHERE {condition}" if "." in condition else ""
    window = " WITHIN 100, 2 EVENTS OF KEY" if "EVENTS" in condition else " WITHIN 100"
    pattern = compile_pattern(
        f"PATTERN SEQ STRICT OF KEY (A a, B b){where}{window}", strict_units=False, series=Series("k")
    )
    some = 0
    for seed in range(25):
        events = drawn(seed)
        wanted = pairs(events, condition)
        rows = table(events, random.Random(seed).choice([pa.int64(), pa.string(), pa.float64()]), kind)
        for block_rows in (1, 1 << 17):
            found = [
                (events[a]["event_id"], events[b]["event_id"])
                for batch in find(pattern, rows, options=SearchOptions(block_rows=block_rows))
                for a, b in zip(batch.single["a"], batch.single["b"], strict=True)
            ]
            assert sorted(found) == sorted(wanted), seed
        some += len(wanted)
    assert some > 10


@pytest.mark.parametrize("kind", ["texts", "codes"])
def test_sets_of_one_type_are_those_of_a_plain_loop(kind: str) -> None:
    pattern = compile_pattern(
        "PATTERN SEQ STRICT OF KEY (A+ a) PAUSE 2 MAXIMAL", strict_units=False, series=Series("k")
    )
    for seed in range(25):
        events = drawn(seed)
        wanted = []
        for key in {event["k"] for event in events} - {None}:
            mine = [event for event in events if event["k"] == key and event["type"] == "A"]
            mine.sort(key=lambda one: (one["ts"], one["seq"], one["event_id"]))
            runs: list[list[Event]] = []
            for event in mine:
                if runs and event["ts"] - runs[-1][-1]["ts"] <= 2:
                    runs[-1].append(event)
                else:
                    runs.append([event])
            wanted += [sorted(one["event_id"] for one in run) for run in runs]
        found = []
        for batch in find(pattern, table(events, pa.int64(), kind), options=SearchOptions(block_rows=2)):
            offsets, rows = batch.kleene["a"]
            found += [sorted(events[row]["event_id"] for row in one) for one in np.split(rows, offsets[1:-1])]
        assert sorted(found) == sorted(wanted), seed


@pytest.mark.parametrize("most", [1, 255, 256, 65_535, 65_536, 5_000_000])
def test_an_order_by_number_is_a_stable_one(most: int) -> None:
    draw = np.random.default_rng(most)
    numbers = draw.integers(0, most + 1, 3_000)
    for kind in (np.min_scalar_type(most), np.int64):
        assert np.array_equal(by_number(numbers.astype(kind)), np.argsort(numbers, kind="stable"))
    assert not len(by_number(numbers[:0]))


def test_types_that_a_condition_mentions_are_there_for_names_of_any_type() -> None:
    query = "PATTERN SEQ STRICT OF KEY (* a, * b) WHERE a.type = 'A' AND b.type = 'B' WITHIN 100"
    pattern = compile_pattern(query, strict_units=False, series=Series("k"))
    for seed in range(15):
        events, wanted = drawn(seed), []
        for key in {event["k"] for event in events} - {None}:
            mine = [event for event in events if event["k"] == key]
            mine.sort(key=lambda one: (one["ts"], one["seq"], one["event_id"]))
            wanted += [
                (a["event_id"], b["event_id"])
                for a, b in zip(mine, mine[1:], strict=False)
                if (a["type"], b["type"]) == ("A", "B")
            ]
        found = [
            (events[a]["event_id"], events[b]["event_id"])
            for batch in find(pattern, table(events, pa.int64(), "texts"), options=SearchOptions(block_rows=2))
            for a, b in zip(batch.single["a"], batch.single["b"], strict=True)
        ]
        assert sorted(found) == sorted(wanted), seed
