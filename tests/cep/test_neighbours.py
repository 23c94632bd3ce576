"""SEQ STRICT, MAXIMAL and OUTERMOST against their definition (``tests.cep.neighbours``), whole and in cuts of time."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.library import as_dicts, from_dicts, match
from chainlake.cep.matches.day_limit import DayLimit
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.find import find
from chainlake.cep.search.largest.contained import contained
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from chainlake.definitions.derived import Series
from chainlake.detect.matcher import Matcher
from chainlake.errors import DefinitionError, LimitExceeded
from chainlake.schemas.matches import matches_table
from tests.cep.neighbours import Draw, Event, Query, matches

FILE = Path(__file__).parent.parent / "cases" / "neighbour-cases.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_worked_case(case: dict[str, Any]) -> None:
    key = {"key": case["key"]} if "key" in case else {}
    assert texts(match(case["pattern"], case["events"], **key)) == texts(case["expected"])


def dicts(events: list[Event]) -> list[dict[str, Any]]:
    return [
        {"id": e["id"], "type": e["type"], "ts": e["ts"], "seq": e["seq"], "attrs": {"x": e["x"], "k": e["k"]}}
        for e in events
    ]


def texts(found: Any) -> list[str]:
    """Matches in one spelling; the order within a set does not count here."""
    plain = ({name: sorted(v) if isinstance(v, list) else v for name, v in one.items()} for one in found)
    return sorted(json.dumps(one, sort_keys=True) for one in plain)


def wanted(pattern: Pattern, query: Query, events: list[Event]) -> list[str]:
    repeated = {name.name for name in pattern.names if name.kleene}
    return texts(
        {n: [e["id"] for e in those] if n in repeated else those[0]["id"] for n, those in one.items()}
        for one in matches(query, events)
    )


def few_and_many(few: int, many: int, *kinds: tuple[int, bool]) -> list[Any]:
    """The first draws of each kind for every run, and the others for runs that may take their time."""
    return [(first, few, loose) for first, loose in kinds] + [
        pytest.param(first + few, many - few, loose, marks=pytest.mark.slow) for first, loose in kinds
    ]


def drawn(first: int, number: int, loose: bool) -> Iterator[tuple[Draw, Query, Pattern]]:
    for seed in range(first, first + number):
        draw = Draw(random.Random(seed), loose)
        query = draw.query()
        try:
            pattern = compile_pattern(query.text(), strict_units=False, series=Series("k"))
        except DefinitionError as error:
            assert "MAXIMAL cannot" in str(error) or "OUTERMOST cannot" in str(error), query.text()
            continue
        yield draw, query, pattern


def found_in(pattern: Pattern, events: list[Event], **options: Any) -> list[dict[str, Any]]:
    table, ids = from_dicts(dicts(events))
    return [one for batch in find(pattern, table, **options) for one in as_dicts(pattern, batch, ids)]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("first", "number", "loose"), few_and_many(20, 90, (0, False), (10_000, False), (50_000, True))
)
def test_every_stretch_and_every_split(first: int, number: int, loose: bool) -> None:
    total = 0
    for draw, query, pattern in drawn(first, number, loose):
        for _ in range(3):
            events = draw.events()
            draw.random.shuffle(events)
            expected = wanted(pattern, query, events)
            total += len(expected)
            assert texts(found_in(pattern, events)) == expected, (query.text(), events)
            small = SearchOptions(block_rows=3)
            assert texts(found_in(pattern, events, options=small)) == expected, (query.text(), events)
    assert total > number // 2


@pytest.mark.few(1)
@pytest.mark.parametrize(("first", "number", "loose"), few_and_many(30, 130, (20_000, False), (60_000, True)))
def test_cuts_of_time_that_know_nothing_of_what_comes_later(first: int, number: int, loose: bool) -> None:
    waited = 0
    for draw, query, pattern in drawn(first, number, loose):
        events = draw.events()
        expected = wanted(pattern, query, events)
        times = [event["ts"] for event in events]
        span = range(min(times) - 1, max(times) + (query.within or 0) + (query.pause or 0) + 2)
        cuts = sorted(draw.random.choices(span, k=draw.random.randrange(1, 4)))
        union, long = [], 0
        for own in itertools.pairwise([span[0] - 1, *cuts, span[-1] + 1]):
            low, high = pattern.read_range(*own)
            table, ids = from_dicts(dicts([event for event in events if low <= event["ts"] < high]))
            statistics = Statistics()
            for batch in find(pattern, table, own=own, statistics=statistics):
                union += as_dicts(pattern, batch, ids)
                assert ((own[0] <= batch.decision_us) & (batch.decision_us < own[1])).all()
                assert (batch.end_us <= batch.decision_us).all()
                waited += int((batch.end_us < own[0]).sum())
            long += statistics.long_stretches
        assert texts(union) == expected, (query.text(), events, cuts)
        whole = Statistics()
        list(find(pattern, from_dicts(dicts(events))[0], statistics=whole))
        assert whole.long_stretches == long, (query.text(), events, cuts)
    assert waited > 1 or number < 50  # a larger match could still come after the last event of these


@pytest.mark.slow
def test_the_limit_of_compared_events_only_cuts_the_work() -> None:
    cut = 0
    for draw, query, pattern in drawn(70_000, 60, loose=True):
        if not query.keep or query.longest is not None:
            continue
        events = draw.events()
        expected = wanted(pattern, query, events)
        body = query.text(lines="limits: {compared_events: 24}\n")
        limited = compile_pattern(body, strict_units=False, series=Series("k"))
        try:
            assert texts(found_in(limited, events)) == expected, (body, events)
        except LimitExceeded as error:
            assert error.key == "compared_events"
            cut += 1
    assert cut < 8


@pytest.mark.parametrize("name", ["x", "y"])
def test_ids_of_one_time_are_listed_in_their_order_and_follow_seq(name: str) -> None:
    events = [
        {"id": "b", "type": "E", "ts": 1, "seq": 1, "attrs": {}},
        {"id": "a", "type": "E", "ts": 1, "seq": 2, "attrs": {}},
        {"id": "c", "type": "E", "ts": 2, "attrs": {}},
    ]
    found = list(match(f"PATTERN SEQ STRICT (E+ {name}, E z) WITHIN 9", events))
    # b comes first in the stream, and a first in the list.
    assert texts(found) == texts([{name: ["b"], "z": "a"}, {name: ["a", "b"], "z": "c"}, {name: ["a"], "z": "c"}])
    assert ["a", "b"] in [one[name] for one in found]


# ---- sessions, a million neighbours, limits


SESSION = "---\nlimits: {{longest: {longest}}}\n---\nPATTERN SEQ STRICT OF KEY (Ev+ e) PAUSE 30 min MAXIMAL"
MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE


def clicks(minutes: list[tuple[str, int]]) -> pa.Table:
    return pa.table(
        {
            "event_id": [f"{n:03}" for n in range(len(minutes))],
            "type": ["Ev"] * len(minutes),
            "ts": pa.array([at * MINUTE for _, at in minutes], pa.timestamp("us", tz="UTC")),
            "k": [key for key, _ in minutes],
        }
    )


def sessions(
    text: str, table: pa.Table, own: tuple[int, int] | None = None
) -> tuple[list[tuple[int, ...]], Statistics]:
    pattern = compile_pattern(text, series=Series("k"))
    if own is not None:
        low, high = pattern.read_range(*own)
        ts = table["ts"].cast(pa.int64()).to_numpy()
        keep = np.flatnonzero((ts >= low) & (ts < high))
        rows, table = keep, table.take(pa.array(keep))
    else:
        rows = np.arange(len(table))
    statistics = Statistics()
    found = []
    for batch in find(pattern, table, own=own, statistics=statistics):
        offsets, flat = batch.kleene["e"]
        found += [tuple(rows[flat[a:b]].tolist()) for a, b in itertools.pairwise(offsets.tolist())]
    return sorted(found), statistics


def test_a_session_over_midnight_is_one_and_belongs_to_the_day_of_its_pause() -> None:
    table = clicks([("u", 1_400), ("v", 1_420), ("u", 1_425), ("u", 1_450), ("v", 1_500), ("u", 1_490)])
    text = SESSION.format(longest="12 h")
    whole, _ = sessions(text, table)
    assert whole == [(0, 2, 3), (1,), (4,), (5,)]
    days = [sessions(text, table, (day * DAY, (day + 1) * DAY))[0] for day in range(3)]
    # The one of v that ends at 23:40 is decided at 00:10, since an event at midnight would have been part of it.
    assert days == [[], [(0, 2, 3), (1,), (4,), (5,)], []]


def test_stretches_over_the_limit_give_no_match_and_are_counted() -> None:
    table = clicks([("u", 10 * n) for n in range(20)] + [("v", 100), ("v", 120)])
    found, statistics = sessions(SESSION.format(longest="2 h"), table)
    assert (found, statistics.long_stretches) == ([(20, 21)], 1)
    halves = [sessions(SESSION.format(longest="2 h"), table, own) for own in ((0, 150 * MINUTE), (150 * MINUTE, DAY))]
    assert [one for part, _ in halves for one in part] == [(20, 21)]
    assert sum(statistics.long_stretches for _, statistics in halves) == 1
    assert sessions(SESSION.format(longest="4 h"), table)[1].long_stretches == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("mentioned", ["", "WHERE a.id != 'x' "])
@pytest.mark.parametrize("seq", [None, [2, 1, 0, 0]])
def test_events_of_one_time_follow_one_another_by_seq_and_id(seq: list[int] | None, mentioned: str) -> None:
    table = pa.table(
        {
            "event_id": ["b1", "a0", "n", "b0"],
            "type": ["B", "A", "A", "B"],
            "ts": [1, 1, 2, 0],
            "k": list("pp") + [None, "q"],
        }
    )
    table = table if seq is None else table.append_column("seq", pa.array(seq))
    text = f"PATTERN SEQ STRICT OF KEY (A a, B b) {mentioned}WITHIN 1"
    for rows in itertools.permutations(range(4)):
        pattern = compile_pattern(text, strict_units=False, series=Series("k"))
        found = [(rows[b.single["a"][0]], rows[b.single["b"][0]]) for b in find(pattern, table.take(pa.array(rows)))]
        assert found == [(1, 0)], rows


def test_a_million_neighbours_are_one_match() -> None:
    n = 1_000_000
    codes = pa.array(np.zeros(n, np.int32))
    table = pa.table(
        {
            "event_id": pa.array(np.arange(n)).cast(pa.string()),
            "type": pa.DictionaryArray.from_arrays(codes, pa.array(["Ev"])),
            "ts": pa.array(np.arange(n) * 1_000_000, pa.timestamp("us", tz="UTC")),
            "k": pa.DictionaryArray.from_arrays(codes, pa.array(["u"])),
        }
    )
    pattern = compile_pattern("PATTERN SEQ STRICT OF KEY (Ev+ e) PAUSE 30 min MAXIMAL", series=Series("k"))
    (batch,) = find(pattern, table)
    assert batch.n == 1 and len(batch.kleene["e"][1]) == n


@pytest.mark.few(1)
@pytest.mark.parametrize("keep", ["", "MAXIMAL", "OUTERMOST"])
def test_keys_whose_times_do_not_fit_together(keep: str) -> None:
    """Three thousand keys over a span of 2^50 ticks: their moved times would need more than 62 bits."""
    far = 1 << 50
    events = [
        {"id": f"{key:04}{n}", "type": "E" if n < 3 else "N", "ts": ts, "attrs": {"k": key}}
        for key in range(3_000)
        for n, ts in enumerate((key, key + 2, far + key, key + 1 if key % 2 else far))
    ]
    text = f"PATTERN SEQ STRICT OF KEY (E a, NOT(N n), E+ b) PAUSE 5 {keep}"
    found = list(match(text, events, key="k"))
    # N stands between the two of each odd key.
    expected = [{"a": f"{key:04}0", "b": [f"{key:04}1"]} for key in range(0, 3_000, 2)]
    assert texts(found) == texts(expected)


@pytest.mark.parametrize("keep", ["MAXIMAL", "OUTERMOST"])
def test_a_longer_run_may_be_rejected_where_a_shorter_one_is_not(keep: str) -> None:
    text = f"PATTERN SEQ STRICT (E+ e, NOT(N n), C c) WHERE n.x < MAX(e.x) WITHIN 9 {keep}"
    events = [
        {"id": f"{type_}{ts}", "type": type_, "ts": ts, "attrs": {"x": x}}
        for ts, (type_, x) in enumerate([("E", 5), ("E", 1), ("E", 2), ("N", 3), ("C", 0)])
    ]
    assert texts(match(text, events)) == texts([{"e": ["E1", "E2"], "c": "C4"}])


@pytest.mark.parametrize("keep", ["", "MAXIMAL", "OUTERMOST"])
@pytest.mark.parametrize("strict", ["", " STRICT"])
def test_an_empty_set_is_another_match_than_none(strict: str, keep: str) -> None:
    text = f"PATTERN OR(SEQ{strict} (A a, B b), SEQ{strict} (A a, COLLECT?(C c), B b)) WITHIN 6 {keep}"
    events = [{"id": one, "type": one, "ts": ts, "attrs": {}} for ts, one in enumerate("AB")]
    assert texts(match(text, events)) == texts([{"a": "A", "b": "B"}, {"a": "A", "b": "B", "c": []}])


def test_too_many_matches_end_with_the_limit_of_a_day() -> None:
    events = [{"id": n, "type": "E", "ts": n, "attrs": {}} for n in range(60)]
    text = "---\nlimits: {matches_per_day: 1000}\n---\nPATTERN SEQ STRICT (E+ e) WITHIN 100"
    with pytest.raises(LimitExceeded, match="more than 1000 matches") as error:
        list(match(text, events))
    assert error.value.key == "matches_per_day"
    assert len(list(match(text + " MAXIMAL", events))) == 1


def test_memory_for_comparisons_has_a_limit() -> None:
    events = [{"id": n, "type": "E", "ts": n % 7, "attrs": {"x": 1}} for n in range(14)]
    text = "---\nlimits: {compared_events: 1000}\n---\nPATTERN SEQ(E+ e) WITHIN 8 MAXIMAL"
    with pytest.raises(LimitExceeded, match="compare matches of more than 1000 events") as error:
        list(match(text, events))
    assert error.value.key == "compared_events"


def test_neighbours_of_a_key_need_a_key() -> None:
    with pytest.raises(DefinitionError, match="OF KEY needs a key"):
        list(match("PATTERN SEQ STRICT OF KEY (E+ e) PAUSE 3", [{"id": 1, "type": "E", "ts": 1, "attrs": {}}]))


def test_a_window_and_a_longest_stretch_exclude_one_another() -> None:
    with pytest.raises(DefinitionError, match="longest applies only to patterns without WITHIN"):
        compile_pattern("---\nlimits: {longest: 1 h}\n---\nPATTERN SEQ STRICT (E+ e) WITHIN 5 min PAUSE 1 min")
    with pytest.raises(DefinitionError, match="longest applies to stretches of neighbours"):
        compile_pattern("---\nlimits: {longest: 1 h}\n---\nPATTERN SEQ(E a, E b) RANK BY MAX(b.x) TOP 1 PER ALL")
    with pytest.raises(DefinitionError, match="longest must be a duration above 0, not 5"):
        compile_pattern("---\nlimits: {longest: 5}\n---\nPATTERN SEQ STRICT (E+ e) PAUSE 1 min")


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SEQ STRICT OF KEY (A+ a) WITHIN 5 min", "k"),
        ("SEQ STRICT (A a, B b) WHERE a.k = b.k WITHIN 5 min", None),
        ("OR(SEQ STRICT OF KEY (A+ a), SEQ(A a, B b) WHERE a.k = b.k) WITHIN 5 min", "k"),
        ("OR(SEQ STRICT OF KEY (A+ a), SEQ(A a, B b)) WITHIN 5 min", None),
        ("OR(SEQ STRICT OF KEY (A+ a), SEQ STRICT (A a, B b) WHERE a.k = b.k) WITHIN 5 min", None),
    ],
)
def test_what_neighbours_can_be_divided_by(query: str, key: str | None) -> None:
    assert compile_pattern(f"PATTERN {query}", series=Series("k")).partition_key == key


@pytest.mark.parametrize(
    ("query", "decision", "late", "back"),
    [
        ("SEQ STRICT (A+ a) WITHIN 5 min", "end", 0, 5),
        ("SEQ STRICT (A+ a) WITHIN 5 min MAXIMAL", "start+W", 5, 10),
        ("SEQ STRICT (A+ a) WITHIN 5 min PAUSE 2 min MAXIMAL", "pause", 2, 10),
        ("SEQ STRICT (A+ a, NOT(B b)) WITHIN 5 min PAUSE 2 min MAXIMAL", "start+W", 5, 10),
        ("SEQ(A a, B? b, C c) WITHIN 5 min PAUSE 2 min MAXIMAL", "start+W", 5, 10),
        ("SEQ STRICT (A+ a) PAUSE 2 min OUTERMOST", "pause", 2, 60 + 4),
        ("SEQ STRICT (A+ a) PAUSE 2 min", "end", 0, 60 + 4),
    ],
)
def test_when_matches_are_decided_and_what_is_read(query: str, decision: str, late: int, back: int) -> None:
    front = "" if "WITHIN" in query else "---\nlimits: {longest: 1 h}\n---\n"
    pattern = compile_pattern(f"{front}PATTERN {query}")
    assert (pattern.decision, pattern.late_us // MINUTE) == (decision, late)
    assert pattern.read_range(0, DAY) == (-back * MINUTE, DAY)


def test_contained_sets() -> None:
    draw = random.Random(4)
    for _ in range(300):
        sets = [draw.sample(range(7), draw.randrange(1, 6)) for _ in range(draw.randrange(1, 12))]
        offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])])
        found = contained(offsets, np.array([x for one in sets for x in one])).tolist()
        assert found == [any(set(one) < set(other) for other in sets) for one in sets], sets


# ---- piece by piece, as a task has them


@pytest.mark.slow
def test_hunts_find_the_same_in_small_pieces() -> None:
    for draw, query, _ in drawn(80_000, 60, loose=True):
        text = query.text(" s", "source: s\n")
        types = {"x": pa.float64(), "k": pa.string(), "seq": pa.int64()}
        pattern = compile_pattern(text, columns={**types, "ts": pa.timestamp("us", tz="UTC")}, series=Series("k"))
        events = draw.events()
        expected = wanted(pattern, query, events)
        table = matches_table(match_shape(pattern, key="k", types=types)).arrow()
        rows = sorted(events, key=lambda e: e["ts"])
        feed = pa.table(
            {
                "event_id": [e["id"] for e in rows],
                "type": [e["type"] for e in rows],
                "ts": pa.array([e["ts"] * 1_000_000 for e in rows], pa.timestamp("us", tz="UTC")),
                "x": pa.array([e["x"] for e in rows], pa.float64()),
                "k": [e["k"] for e in rows],
                "seq": pa.array([e["seq"] for e in rows], pa.int64()),
            }
        )
        slice_search = Matcher(pattern, table, None, 3).slice_search(
            (-1_000_000, 60_000_000), Statistics(), DayLimit(pattern)
        )
        parts = [part for at in range(0, len(feed), 2) for part in slice_search.add(feed.slice(at, 2))]
        found = [row for part in (*parts, *slice_search.finish()) for row in part.to_pylist()]
        names = [name.name for name in pattern.names]
        bound = (
            {n: [e["event_id"] for e in row[n]] if isinstance(row[n], list) else row[n]["event_id"]
             for n in names if row[n]}
            for row in found
        )  # fmt: skip
        assert texts(bound) == expected, (text, events)
