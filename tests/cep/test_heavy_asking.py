"""Pairs that several tasks of a run need: each is evaluated by one of them, and rows are those of one search."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainlake.cep.heavy.asking import AT, ONE, OTHER, VALUE, Asked, Asks, Given, answered
from chainlake.cep.heavy.errors import FunctionFailed
from chainlake.cep.heavy.memo import Memo
from chainlake.cep.heavy.shape import Shape
from chainlake.cep.language.declared.function import Code, Heavy
from chainlake.cep.library import from_dicts, match
from chainlake.cep.matches.consumed import Consumed
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.days import Days
from chainlake.detect import answers
from chainlake.detect.chained.walk import Leg, walk
from chainlake.detect.division.cut import Share, slice_of
from chainlake.detect.stage import Found, Search, stage
from chainlake.paths import Home
from chainlake.run.tasks import SparkTasks
from chainlake.schemas.matches import matches_table
from tests.cep.context_cases import events_of, text_of
from tests.cep.distributed import bound
from tests.cep.memory_events import MemoryEvents
from tests.cep.test_heavy import CODES, canonical, drawn
from tests.cep.test_heavy import compiled as compiled_drawn
from tests.cep.test_heavy_division import (
    DAY,
    THREE,
    TWO,
    Alike,
    Four,
    compiled,
    forbidden,
    prepared,
    staged,
    stories,
    whole,
)
from tests.cep.test_heavy_queries import CALLS, CASES
from tests.cep.test_heavy_queries import CODES as CONTENT
from tests.cep.test_heavy_queries import FRONT as CONTENT_FRONT
from tests.task_cases import staged as rows_staged
from tests.task_cases import written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Where a pair can lie in what two tasks read, whichever of them own its matches.
SHAPES = {
    "three in order": THREE.replace("40 min", "1 h"),
    "two in any order": TWO.replace("SEQ(", "AND("),
    "three in any order": THREE.replace("SEQ(", "AND(").replace("40 min", "10 min"),
    "one event": TWO.replace("WITHIN", "AND alike(a.words, a.source) >= 0 WITHIN"),
    "a negated name": TWO.replace("Story b)", "NOT(Story n), Story b)").replace(
        "WITHIN", "AND a.symbol = n.symbol AND alike(n.words, a.words) > 0.9 WITHIN"
    ),
    "a trailing one": TWO.replace("Story b)", "Story b, NOT(Story n))").replace(
        "WITHIN", "AND a.symbol = n.symbol AND alike(n.words, b.words) > 0.5 WITHIN"
    ),
    "collected events": TWO.replace("Story b)", "COLLECT(Story n), Story b)").replace(
        "WITHIN", "AND a.symbol = n.symbol AND alike(n.words, a.words) > 0.5 WITHIN"
    ),
    "a window of hours": THREE.replace("40 min", "8 h"),
    "a measure": TWO.replace("Story b)", "Story b, Story c)").replace("0.5", "0.7")
    + "MEASURES alike(a.words, b.words) AS far\n",
}


@pytest.mark.few(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_each_pair_is_evaluated_once_in_a_run_and_only_if_one_task_would_need_it(shape: str, tmp_path: Path) -> None:
    table = stories(150 if shape == "a window of hours" else 300)
    divided = prepared(table, compiled(table, forbidden, "300000", SHAPES[shape]))
    alike, alone = Alike(), Alike()
    pattern = compiled(table, alike, "300000", SHAPES[shape])
    orders = divided.patterns[0].plan.orders
    found, rows = staged(table, pattern, divided.shares, orders, tmp_path)
    assert len(divided.shares) >= 4
    wanted = [json.loads(one) for one in whole(table, compiled(table, alone, text=SHAPES[shape]))]
    assert rows == canonical([{k: v for k, v in one.items() if k != "far"} for one in wanted]) and rows
    asked, needed = (Counter(tuple(sorted(pair)) for pair in one.pairs.elements()) for one in (alike, alone))
    assert max(asked.values()) == 1 and found.pair_evals == asked.total()
    if "order" in shape:
        # A test of negated names stops at the first that is found, which one task knows sooner.
        assert asked.keys() == needed.keys()
    assert {path.name[:4] for path in tmp_path.iterdir()} == {"part"}


def run_of(
    pattern: Pattern, table: pa.Table, cuts: Sequence[int], folder: Path, **types: pa.DataType
) -> tuple[Found, list[dict[str, Any]]]:
    kinds = {f.name: f.type for f in table.schema}
    search = Search(pattern, matches_table(match_shape(pattern, types=kinds)), None, str(folder))
    shares = [Share({0: (slice_of(pattern, own),)}) for own in pairwise(cuts)]
    (found,) = stage(Four(), MemoryEvents(table), "k", [search], shares)  # type: ignore[arg-type]
    return found, [row for path in found.paths for row in pq.read_table(path).to_pylist()]


def of_seconds(events: Sequence[dict[str, Any]]) -> pa.Table:
    """The events of a library's example as a source has them, a tick for a second."""
    table, ids = from_dicts(events)
    ts = table["ts"].cast(pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    table = table.set_column(table.column_names.index("ts"), "ts", ts)
    return table.set_column(table.column_names.index("event_id"), "event_id", pa.array([str(one) for one in ids]))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 240, 60))
def test_random_patterns_over_tasks_that_ask_find_what_cheap_conditions_find(first: int, tmp_path: Path) -> None:
    with_matches = 0
    for seed in range(first, first + 60):
        text, plain, events = drawn(seed)
        pattern = compiled_drawn(text)
        if pattern.extras.policy is not None:
            continue
        pick = random.Random(seed)
        names = {one.name for one in pattern.names}
        wanted = [{name: value for name, value in one.items() if name in names} for one in match(plain, events)]
        cuts = [-100, *sorted(pick.sample(range(16), 3)), 200]
        found, rows = run_of(pattern, of_seconds(events), cuts, tmp_path / str(seed))
        assert found.failure is None
        texts = [{n: [str(x) for x in v] if isinstance(v, list) else str(v) for n, v in one.items()} for one in wanted]
        assert canonical([bound(pattern, row) for row in rows]) == canonical(texts), (seed, text)
        with_matches += bool(wanted)
    assert with_matches > 10


FAILS = """---
functions: {near: {call: 'n:near', symmetric: true}}
---
PATTERN AND(A a, A b, A c) WHERE near(a.x, b.x) <= 3 AND near(b.x, c.x) <= 3 WITHIN 4
"""


def points(n: int) -> pa.Table:
    return of_seconds([{"id": i, "type": "A", "ts": i, "attrs": {"x": float(i % 7), "k": "u"}} for i in range(n)])


def test_a_function_that_fails_stops_its_own_pattern_alone(tmp_path: Path) -> None:
    def near(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        if ((one == 2) & (other == 5)).any():
            raise ZeroDivisionError("no")
        return np.abs(one - other)

    table = points(30)
    kinds = {f.name: f.type for f in table.schema}
    searches, wanted = [], []
    for name, code in (("bad", near), ("good", CODES["near"])):
        pattern = compile_pattern(FAILS, name=name, params={"near": Code(code)}, strict_units=False)
        shape = matches_table(match_shape(pattern, types=kinds))
        searches.append(Search(pattern, shape, None, str(tmp_path / name)))
        wanted.append(pattern)
    cuts = list(pairwise([0, 10, 20, 30]))
    shares = [Share({n: (slice_of(pattern, own),) for n, pattern in enumerate(wanted)}) for own in cuts]
    bad, good = stage(Four(), MemoryEvents(table), "k", searches, shares)  # type: ignore[arg-type]
    assert isinstance(bad.failure, FunctionFailed)
    assert "bad: near(2.0, 5.0) raised ZeroDivisionError: no" in str(bad.failure)
    _, alone = run_of(wanted[1], table, [0, 30], tmp_path / "alone")
    rows = [row for path in good.paths for row in pq.read_table(path).to_pylist()]
    assert good.failure is None and len(rows) == len(alone) > 0


@dataclass(frozen=True)
class Noting:
    """A function that notes its pairs in a file, whatever process calls it."""

    path: str

    def __call__(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("".join(f"{a} {b}\n" for a, b in zip(one.tolist(), other.tolist(), strict=True)))
        return np.abs(one - other)


def test_spark_evaluates_each_pair_in_one_task(spark: SparkSession, tmp_path: Path) -> None:
    table = points(40).drop_columns(["x"]).append_column("x", pa.array([i + 0.5 for i in range(40)]))
    recorded = tmp_path / "pairs"
    pattern = compile_pattern(FAILS, params={"near": Code(Noting(str(recorded)))}, strict_units=False)
    files = written(table, tmp_path)
    shares = [Share({0: (slice_of(pattern, own),)}) for own in pairwise([0, 10, 20, 40])]
    rows = rows_staged(pattern, files, tmp_path, shares, SparkTasks(Home.from_env(), "tests")).to_pylist()
    pairs = Counter(tuple(sorted(map(float, line.split()))) for line in recorded.read_text().splitlines())
    # All that are at most three apart, and those four apart that the window allows.
    wanted = {(i + 0.5, i + n + 0.5) for n in (1, 2, 3, 4) for i in range(40 - n)}
    assert pairs == Counter(wanted)
    _, alone = run_of(
        compile_pattern(FAILS, params={"near": Code(CODES["near"])}, strict_units=False),
        table,
        [0, 40],
        tmp_path / "one",
    )
    assert (
        canonical([bound(pattern, row) for row in rows]) == canonical([bound(pattern, row) for row in alone]) and rows
    )


@dataclass(frozen=True)
class Told(Four):
    """Tasks that note how many they were given at a time."""

    given: list[int] = field(default_factory=list)

    def map(self, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        self.given.append(len(items))
        return super().map(work, items)


@pytest.mark.parametrize(
    "tail", ["CONTEXT chronicle", "CONTEXT cumulative", "SELECT last CONSUME a", "CONTEXT continuous"]
)
def test_a_chain_of_days_goes_on_in_one_task_and_all_tasks_evaluate_its_pairs(tail: str, tmp_path: Path) -> None:
    text = THREE.replace("SEQ(", "AND(").replace("40 min", "1 h") + tail
    table, days = stories(150), Days.one(DAY)
    came = []
    for parallelism in (1, 4):
        alike, tasks = Alike(), Told(parallelism=parallelism)
        pattern = compiled(table, alike, "300000", text)
        shape = matches_table(match_shape(pattern, key="symbol", types={f.name: f.type for f in table.schema}))
        folder = tmp_path / str(parallelism)
        folder.mkdir()
        leg = Leg(Search(pattern, shape, None, str(folder)), days, DAY, Consumed.none())
        (walked,) = walk(tasks, MemoryEvents(table), "symbol", [leg])  # type: ignore[arg-type]
        assert walked.found.failure is None
        rows = [row for path in walked.found.paths for row in pq.read_table(path).to_pylist()]
        came.append(([bound(pattern, row) for row in rows], walked.links))
        asked = Counter(tuple(sorted(pair)) for pair in alike.pairs.elements())
        assert max(asked.values()) == 1 and walked.found.pair_evals == asked.total()
        assert (max(tasks.given) > 4) == (parallelism > 1)
        assert {path.name[:4] for path in folder.iterdir()} == {"part"}
    assert came[0] == came[1] and came[0][0]


@pytest.mark.few(2)
@pytest.mark.parametrize("number", CALLS)
def test_the_five_queries_of_splitters_over_tasks_that_ask(number: str, tmp_path: Path) -> None:
    case = CASES[number]
    query = {**case["query"], "where": [CALLS[number].get(one, one) for one in case["query"]["where"]]}
    codes = {name: Code(code) for name, code in CONTENT.items()}
    pattern = compile_pattern(CONTENT_FRONT + text_of(query), params=codes, strict_units=False)
    table = of_seconds(events_of(case))
    kinds = {f.name: f.type for f in table.schema}
    search = Search(pattern, matches_table(match_shape(pattern, types=kinds)), None, str(tmp_path / "out"))
    policy, days = pattern.extras.policy, Days(date(1969, 12, 31), date(1970, 1, 3))
    if policy is not None and policy.consumes:
        (tmp_path / "out").mkdir()
        leg = Leg(search, days, days.start, Consumed.none())
        (walked,) = walk(Four(), MemoryEvents(table), "k", [leg])  # type: ignore[arg-type]
        found = walked.found
    else:
        ts = sorted(table["ts"].cast(pa.int64()).to_pylist())
        cuts = sorted({ts[0], ts[len(ts) // 3], ts[2 * len(ts) // 3], ts[-1] + pattern.window_us + 1})
        found, _ = run_of(pattern, table, cuts, tmp_path / "out")
    assert found.failure is None and found.pair_evals
    rows = [row for path in found.paths for row in pq.read_table(path).to_pylist()]
    wanted = [{name: str(value) for name, value in fired["match"].items()} for fired in case["expect"]["fired"]]
    assert canonical([bound(pattern, row) for row in rows]) == canonical(wanted)


def test_a_limit_is_not_reached_by_what_is_not_known_yet(tmp_path: Path) -> None:
    """Without the function, no negated event is known to reject a match, so there would be too many."""
    text = """---
functions: {near: {call: 'n:near', symmetric: true}}
limits: {matches_per_day: 3}
---
PATTERN SEQ(A a, NOT(A n), A b) WHERE b.x = a.x AND near(a.x, n.x) >= 0 WITHIN 8
"""
    pattern = compile_pattern(text, params={"near": Code(CODES["near"])}, strict_units=False)
    found, rows = run_of(pattern, points(40), [0, 10, 20, 40], tmp_path)
    assert found.failure is None and not rows and found.pair_evals > 0


def test_a_dear_function_of_three_events_is_called_by_who_searches_once_pairs_are_known(tmp_path: Path) -> None:
    text = FAILS.replace("{near:", "{spread: {call: 'n:spread'}, near:").replace(
        "WITHIN", "AND spread(a.x, b.x, c.x) < 3 WITHIN"
    )
    seen: Counter[tuple[float, ...]] = Counter()

    def near(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        seen.update(zip(one.tolist(), other.tolist(), strict=True))
        return np.abs(one - other)

    table = points(40)
    table = table.set_column(table.column_names.index("x"), "x", pa.array([i + 0.5 for i in range(40)]))
    pattern = compile_pattern(text, params={"near": Code(near), "spread": Code(CODES["spread"])}, strict_units=False)
    found, rows = run_of(pattern, table, [0, 10, 20, 40], tmp_path / "three")
    assert max(seen.values()) == 1 and found.pair_evals > len(seen)
    _, alone = run_of(pattern, table, [0, 40], tmp_path / "one")
    assert (
        canonical([bound(pattern, row) for row in rows]) == canonical([bound(pattern, row) for row in alone]) and rows
    )


@pytest.mark.parametrize("most", [1, 30])
def test_a_task_that_can_remember_no_more_pairs_calls_functions_itself(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern = compile_pattern(FAILS, params={"near": Code(CODES["near"])}, strict_units=False)
    wanted = run_of(pattern, points(40), [0, 40], tmp_path / "one")[1]
    monkeypatch.setattr(answers, "MOST_PAIRS", most)
    _, rows = run_of(pattern, points(40), [0, 10, 20, 40], tmp_path / "three")
    assert (
        canonical([bound(pattern, row) for row in rows]) == canonical([bound(pattern, row) for row in wanted]) and rows
    )


def heavy(call: Callable[..., Any], **keys: Any) -> Heavy:
    return Heavy("f", Code(call), 1000.0, **keys)


def test_a_function_gets_the_columns_that_were_asked_with_each_pair_once() -> None:
    ts = pa.array([30, 10, 20], pa.timestamp("us", tz="UTC"))
    events = pa.table({"event_id": ["z", "ä", "m"], "ts": ts})
    lists = np.empty(3, object)
    lists[:] = [np.array([1.0, 2.0]), np.array([3.0]), np.array([])]
    columns = [
        np.array([1.5, np.nan, -np.inf]),
        np.array([1, 2, 3]),
        np.array([True, False, True]),
        np.array(["é", "", "\U0001f600"], object),
        np.array([1, 2, 3], "M8[us]"),
        np.array([1, 2, 3], "m8[us]"),
        lists,
    ]
    taken: list[Asked] = []
    asks = Asks(taken.append, most=3)
    ends = [np.array([0, 1, 2]), np.array([1, 2, 0])]
    asks.ask(Shape(("a", "b"), "f: 1", False), np.array([5, 6, 7]), events, ends, lambda at: [c[at] for c in columns])
    asks.ask(Shape(("a", "b"), "f: 1", False), np.array([6, 8]), events, ends, lambda at: [c[at] for c in columns])
    assert (asks.count, asks.open, asks.complete) == (3, True, False)
    got: list[np.ndarray] = []

    def call(*given: np.ndarray) -> np.ndarray:
        got.extend(given)
        return given[1] * 2.0

    found = answered(heavy(call), pa.concat_tables([taken[0].pairs, taken[0].pairs]))
    assert found.select([ONE, OTHER, AT, VALUE]).to_pylist() == [
        {ONE: "z", OTHER: "ä", AT: 10, VALUE: 2.0},
        {ONE: "ä", OTHER: "m", AT: 10, VALUE: 4.0},
        {ONE: "m", OTHER: "z", AT: 20, VALUE: 6.0},
    ]
    assert [one.dtype for one in got] == [one.dtype for one in columns]
    order = np.argsort(got[1])
    for one, other in zip(got[:-1], columns[:-1], strict=True):
        np.testing.assert_array_equal(one[order], other)
    assert [one.tolist() for one in got[-1][order]] == [[1.0, 2.0], [3.0], []]


def test_a_pair_is_known_once_both_events_have_come_whatever_their_order() -> None:
    table = pa.table({ONE: ["a", "a"], OTHER: ["b", "c"], AT: [0, 0], VALUE: [1.0, 2.0]})
    given, memo = Given.of([("f: 1", True, table), ("g: 1", False, table)]), Memo()
    given.numbered(pa.chunked_array([["b", "x"]]), np.array([0, 1]))
    given.give(memo)
    assert len(given) == 4 and not len(memo.table("f: 1"))
    given.numbered(pa.chunked_array([["a"], ["y"]]), np.array([2, 3]))
    given.give(memo)
    into = np.zeros(1)
    assert len(given) == 2
    assert memo.table("f: 1").find(np.array([0 << 32 | 2]), into)[0] and into[0] == 1.0
    assert memo.table("g: 1").find(np.array([2 << 32 | 0]), into)[0]
    given.numbered(pa.chunked_array([["c"]]), np.array([4]))
    given.give(memo)
    assert not len(given) and memo.table("f: 1").find(np.array([2 << 32 | 4]), into)[0] and into[0] == 2.0
