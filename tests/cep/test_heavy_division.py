"""Functions of pairs over many tasks: nothing calls them while the work is divided, and the rows are those of one."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainlake.cep.estimate.cost import Model
from chainlake.cep.estimate.selectivity import density
from chainlake.cep.language.declared.function import Code
from chainlake.cep.library import as_dicts
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.find import find
from chainlake.days import Days, day_of_us
from chainlake.detect.division.counts import Counting
from chainlake.detect.division.curve import Estimate, count_cells, work_curve
from chainlake.detect.division.cut import Wanted, cut, pieces_of, slice_of
from chainlake.detect.matcher import Matcher
from chainlake.detect.prepared import prepare
from chainlake.detect.stage import Found, Search, stage
from chainlake.lake.store.event_files import EventFiles
from chainlake.schemas.matches import matches_table
from tests.cep.distributed import bound, distributed
from tests.cep.memory_events import MemoryEvents

DAY = date(2024, 1, 1)
TWO = """---
functions: {alike: {call: 'texts:alike', cost: COST, symmetric: true}}
---
PATTERN SEQ(Story a, Story b) WHERE a.symbol = b.symbol AND a.source != b.source AND alike(a.words, b.words) >= 0.5
WITHIN 10 min
"""


@dataclass(frozen=True)
class Four:
    """Tasks one after another, as if four ran at a time."""

    name: str = field(default="process", init=False)
    parallelism: int = 4

    def map(self, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return [work(item) for item in items]


def forbidden(*columns: np.ndarray) -> np.ndarray:
    raise AssertionError("a function was called while the work is divided")


class Alike:
    """The share of letters that two texts have in common; it notes each pair."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()

    def __call__(self, ones: np.ndarray, others: np.ndarray) -> np.ndarray:
        pairs = list(zip(ones.tolist(), others.tolist(), strict=True))
        self.pairs.update(pairs)
        return np.array([len({*x} & {*y}) / len({*x} | {*y}) for x, y in pairs])


def stories(n: int, hot: float = 0.4) -> pa.Table:
    pick = random.Random(n)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    seconds = sorted(pick.sample(range(86_000), n))
    return pa.table(
        {
            "event_id": [f"e{i:05}" for i in range(n)],
            "type": pa.array(["Story"] * n),
            "ts": pa.array([start + timedelta(seconds=s) for s in seconds], pa.timestamp("us", tz="UTC")),
            "symbol": ["HOT" if pick.random() < hot else f"s{pick.randrange(20)}" for _ in range(n)],
            "source": [pick.choice("pqr") for _ in range(n)],
            "words": ["".join(pick.sample("abcdefgh", 5)) + str(i) for i in range(n)],
        }
    )


def compiled(table: pa.Table, alike: Callable[..., Any], cost: str = "heavy", text: str = TWO) -> Pattern:
    columns = {f.name: f.type for f in table.schema if f.name not in ("event_id",)}
    return compile_pattern(text.replace("COST", cost), columns=columns, params={"alike": Code(alike)})


def work_of(pattern: Pattern) -> Any:
    compiled = SimpleNamespace(pattern=pattern)
    return SimpleNamespace(compiled=compiled, fingerprints={DAY: ""}, read_days=Days.one(DAY), name="pattern/p")


def prepared(table: pa.Table, pattern: Pattern) -> Any:
    counting = Counting(Four(), MemoryEvents(table), "symbol")  # type: ignore[arg-type]
    event_days = SimpleNamespace(events=lambda days: len(table))
    return prepare(counting, [work_of(pattern)], event_days, lambda days: [])  # type: ignore[arg-type]


def staged(table: pa.Table, pattern: Pattern, shares: Sequence[Any], orders: Any, folder: Path) -> tuple[Found, list]:
    types = {f.name: f.type for f in table.schema}
    search = Search(pattern, matches_table(match_shape(pattern, key="symbol", types=types)), orders, str(folder))
    found = stage(Four(), MemoryEvents(table), "symbol", [search], shares)[0]  # type: ignore[arg-type]
    if found.failure is not None:
        raise found.failure
    rows = [row for path in found.paths for row in pq.read_table(path).to_pylist()]
    return found, sorted(json.dumps(bound(pattern, row), sort_keys=True) for row in rows)


def whole(table: pa.Table, pattern: Pattern) -> list[str]:
    ids = table["event_id"].to_pylist()
    found = (one for batch in find(pattern, table) for one in as_dicts(pattern, batch, ids))
    return sorted(json.dumps(one, sort_keys=True) for one in found)


@pytest.mark.parametrize(
    "text",
    [
        TWO.replace("WITHIN", "AND alike(a.words, a.source) >= 0 WITHIN"),
        TWO.replace("Story b)", "NOT(Story n), Story b)").replace("WITHIN", "AND alike(n.words, n.source) > 1 WITHIN"),
    ],
)
def test_a_condition_on_one_event_is_not_called_while_work_is_divided(text: str, tmp_path: Path) -> None:
    table = stories(300)
    divided = prepared(table, compiled(table, forbidden, "100000", text))
    assert len(divided.shares) >= 4
    pattern = compiled(table, Alike(), "100000", text)
    found, rows = staged(table, pattern, divided.shares, divided.patterns[0].plan.orders, tmp_path)
    assert rows == whole(table, compiled(table, Alike(), text=text)) and rows


@pytest.mark.slow
def test_work_is_divided_without_a_call_and_each_pair_is_asked_for_once(tmp_path: Path) -> None:
    table = stories(2_000)
    divided = prepared(table, compiled(table, forbidden, "2000"))
    assert 4 <= len(divided.shares) <= 14
    alike = Alike()
    pattern = compiled(table, alike, "2000")
    found, rows = staged(table, pattern, divided.shares, divided.patterns[0].plan.orders, tmp_path)
    assert rows and rows == whole(table, compiled(table, Alike()))
    half = Counter(tuple(sorted(pair)) for pair in alike.pairs.elements())
    assert found.pair_evals == half.total()
    # A pair that lies in the time before a slice is asked for in two of them at most.
    assert max(half.values()) <= 2 and sum(n > 1 for n in half.values()) < len(half) / 20
    assert found.replication is not None and 1 <= found.replication < 1.15
    assert len(found.seconds) == len(divided.shares) and found.longest_task is not None


def test_cheap_work_is_one_task() -> None:
    table = stories(300)
    assert len(prepared(table, compiled(table, forbidden, "cheap")).shares) == 1
    assert len(prepared(table, compiled(table, forbidden, "300000")).shares) >= 4


HOUR = 3_600_000_000


def even(rng: np.random.Generator, n: int, lo: int, hi: int) -> np.ndarray:
    return rng.integers(lo, hi, n)


def burst(rng: np.random.Generator, n: int, lo: int, hi: int) -> np.ndarray:
    """Half of the events lie in a tenth of the time, where nearly all of the work is."""
    return np.concatenate([rng.integers(lo, hi, n // 2), rng.integers(lo, lo + (hi - lo) // 10, n // 2)])


def market(rng: np.random.Generator, n: int, lo: int, hi: int) -> np.ndarray:
    """Events lie in seven hours of each day."""
    return lo + rng.integers(0, 5, n) * 24 * HOUR + 14 * HOUR + rng.integers(0, 7 * HOUR, n)


@pytest.mark.parametrize(
    "n, times, hot_days",
    [(1_000_000, even, 5), (200_000, burst, 5), (200_000, market, 5), (200_000, even, 1)],
    ids=["even", "burst", "market", "the key on one day"],
)
def test_no_task_holds_much_of_a_hot_key(n: int, times: Callable[..., np.ndarray], hot_days: int) -> None:
    """One symbol has 40 % of the events of five days."""
    rng = np.random.default_rng(4)
    days = Days(DAY, DAY + timedelta(days=5))
    lo, hi = days.micros()
    hot = np.sort(times(rng, 2 * n // 5, lo, lo + (hi - lo) * hot_days // 5))
    ts = np.sort(np.concatenate([hot, times(rng, 3 * n // 5, lo, hi)]))
    columns = {name: pa.string() for name in ("symbol", "source", "words")} | {"type": pa.string()}
    pattern = compile_pattern(
        TWO.replace("COST", "5500"),
        columns={**columns, "ts": pa.timestamp("us", tz="UTC")}, params={"alike": Code(forbidden)},
    )  # fmt: skip
    branch = pattern.branches[0]
    of_name = {name: ts for name in branch.positive}
    # One symbol in two has one event in five with another source.
    model = Model(
        branch, dict.fromkeys(of_name, float(n)), density(of_name, pattern.window_us), {frozenset("ab"): 0.02}
    )
    estimate = Estimate(pattern, [model], [("a", "b")])

    def count(cells: Sequence[tuple[int, int]], parts: int) -> np.ndarray:
        return count_cells(list(of_name.values()), cells, parts)

    span = pattern.read_range(lo, hi)
    total = work_curve(estimate, [(lo, hi)], span, count, 1).total
    pieces = pieces_of(total, n, 4)
    curve = work_curve(estimate, [(lo, hi)], span, count, pieces)
    files = EventFiles(pa.schema([]), {day: [] for day in days}, {day: n // 5 for day in days})
    shares = cut(files, [Wanted(pattern, list(days), curve)], pieces)
    slices = [one for share in shares for one in share.slices[0]]
    rows = [int(np.diff(np.searchsorted(hot, one.read))[0]) for one in slices]
    assert len(slices) >= 8 and sum(rows) >= len(hot)
    assert max(rows) <= 0.15 * len(hot), [round(one / len(hot), 3) for one in rows]


def test_days_are_counted_in_groups_of_as_many_events() -> None:
    """A few events more or less on a day move none to the next group."""
    rng = np.random.default_rng(3)
    days = list(Days(DAY, DAY + timedelta(days=16)))
    files = EventFiles(pa.schema([]), {}, dict(zip(days, rng.integers(62_000, 63_000, 16).tolist(), strict=True)))
    groups = Counting(Four(), files, "symbol")._groups(days, 2)
    rows = [sum(files.rows[day] for day in Days(day_of_us(lo), day_of_us(hi))) for lo, hi in groups]
    assert len(groups) == 8 and max(rows) < 0.13 * sum(files.rows.values())


MORE = "AND alike(b.words, c.words) >= 0.7 AND alike(a.words, c.words) >= 0.5 AND b.symbol = c.symbol WITHIN"
THREE = TWO.replace("Story b)", "Story b, Story c)").replace("WITHIN", MORE).replace("10 min", "40 min")


@pytest.mark.parametrize("text", [TWO, THREE, THREE.replace("SEQ(", "AND("), TWO + "CONTEXT chronicle"])
def test_pieces_and_keys_and_orders_never_show(text: str) -> None:
    table = stories(220)
    wanted = whole(table, compiled(table, Alike(), text=text))
    lo, hi = Days.one(DAY).micros()
    for pieces, keys in ((40, 1), (1000, 1), (40, 3)):
        alike = Alike()
        pattern = compiled(table, alike, text=text)
        policy = pattern.extras.policy is not None
        cuts = [lo, hi] if policy else [lo, lo + 20_000_000_000, lo + 50_000_000_000, hi]
        slices = [slice_of(pattern, own) for own in itertools.pairwise(cuts)]
        order = [[one.name for one in pattern.names][:: -1 if keys == 3 else 1]]
        if policy and pieces == 40:
            continue
        found, errors = distributed(pattern, table, slices, batch_rows=50, piece_rows=pieces, orders=order, keys=keys)
        assert not errors and found == wanted and wanted
        half = Counter(tuple(sorted(pair)) for pair in alike.pairs.elements())
        assert max(half.values()) <= len(slices)


def test_pieces_of_a_slice_ask_for_no_pair_again() -> None:
    table = stories(220)
    alike = Alike()
    pattern = compiled(table, alike, text=THREE)
    one = [slice_of(pattern, Days.one(DAY).micros())]
    distributed(pattern, table, one, batch_rows=20, piece_rows=30, orders=[["a", "b", "c"]])
    assert alike.pairs and max(Counter(tuple(sorted(pair)) for pair in alike.pairs.elements()).values()) == 1


def test_a_search_without_functions_numbers_no_events() -> None:
    table = stories(10)
    pattern = compile_pattern("PATTERN SEQ(Story a, Story b) WITHIN 1 h", columns={"ts": table["ts"].type})
    schema = matches_table(match_shape(pattern, types={f.name: f.type for f in table.schema})).arrow()
    assert not Matcher(pattern, schema, None).called
