"""Slices: whole days, balanced by what the work really is, and no day or tick left out or done twice."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep import SearchOptions, Statistics, compile_pattern, find
from chainlake.cep.search.hindsight import sample_of
from chainlake.days import Days
from chainlake.detect.counts.spark_counts import SampleCounts
from chainlake.detect.tasks.slices import Estimate, Layout, lay_out, runs, whole

DAY = Days(date(2024, 1, 1), date(2024, 1, 2))
KEYLESS = "PATTERN SEQ(A a, B b) WHERE a.x < b.x {more} WITHIN {window}"
KEYED = KEYLESS.replace("{more}", "AND a.k = b.k")


def events(seed: int, n: int, *, burst: float = 0.0, width: int = 60_000_000, hot: float = 0.0) -> pa.Table:
    """n events of a day; a share of them in one stretch of ``width`` µs, a share of them of the key ``hot``."""
    rng = np.random.default_rng(seed)
    lo, hi = DAY.micros()
    ts = rng.integers(lo, hi, n)
    ts = np.where(rng.random(n) < burst, lo + 40_000_000_000 + rng.integers(0, width, n), ts)
    keys = np.where(rng.random(n) < hot, "hot", [f"k{i}" for i in rng.integers(0, 40, n)])
    return pa.table(
        {
            "event_id": [f"e{i:06}" for i in range(n)],
            "type": np.where(rng.random(n) < 0.3, "A", "B"),
            "ts": pa.array(ts, pa.timestamp("us", tz="UTC")),
            "k": keys,
            "x": rng.random(n),
        }
    ).sort_by([("ts", "ascending"), ("event_id", "ascending")])


def laid_out(text: str, table: pa.Table, parallelism: int = 2, not_cut: float = 0.0):  # type: ignore[no-untyped-def]
    """The pattern and its layout on the events."""
    pattern = compile_pattern(text, columns={f.name: f.type for f in table.schema if f.name != "event_id"})
    sample = sample_of(pattern, table)
    orders = tuple(model.best() for model in sample.models)
    counts = SampleCounts(sample, None if pattern.partition_key is None else table[pattern.partition_key])
    estimate = Estimate(pattern, sample.models, orders, ({},) * len(orders))
    return pattern, lay_out(runs(pattern, list(DAY)), estimate, counts, parallelism, not_cut=not_cut), orders


def evaluations(pattern, layout: Layout, table: pa.Table, orders: tuple) -> dict[int, int]:  # type: ignore[no-untyped-def]
    """What each slice really costs."""
    found = {}
    for one in layout.slices:
        rows = table
        if layout.hot:
            key = next((key for key, cut in layout.hot.items() if one in cut), None)
            keys = np.array(table["k"].to_pylist())
            rows = table.filter(pa.array(keys == key if key is not None else ~np.isin(keys, list(layout.hot))))
        statistics = Statistics()
        if pattern.partition_key is None or layout.hot and one not in layout.base:
            for _ in find(pattern, rows, own=one.own, statistics=statistics, options=SearchOptions(orders)):
                pass
        found[one.number] = statistics.evaluations + len(rows.filter(_inside(rows, one.read)))
    return found


def _inside(table: pa.Table, span: tuple[int, int]) -> pa.Array:
    ts = table["ts"].cast(pa.int64()).to_numpy()
    return pa.array((ts >= span[0]) & (ts < span[1]))


def test_runs_are_stretches_of_days_without_a_gap() -> None:
    pattern = compile_pattern(KEYLESS.format(more="", window="1 h"))
    days = [date(2024, 1, d) for d in (5, 1, 2, 3)]
    found = runs(pattern, days)
    assert [one.own for one in found] == [
        Days(date(2024, 1, 1), date(2024, 1, 4)).micros(),
        Days(date(2024, 1, 5), date(2024, 1, 6)).micros(),
    ]
    assert [one.read[0] - one.own[0] for one in found] == [-3_600_000_000] * 2
    assert whole(found).slices == found


@pytest.mark.parametrize(
    ("burst", "width", "window"),
    [(0.0, 1, "5 min"), (0.4, 60_000_000, "5 min"), (0.4, 1_000_000, "10 s"), (0.2, 3_000_000_000, "2 h")],
)
@pytest.mark.parametrize("more", ["", "AND c.x < a.x"])
def test_no_slice_is_much_more_than_its_share(burst: float, width: int, window: str, more: str) -> None:
    table = events(1, 6_000, burst=burst, width=width)
    text = KEYLESS.format(more=more, window=window)
    if more:
        text = text.replace("SEQ(A a, B b)", "SEQ(A a, B b, NOT(B c))")
    pattern, layout, orders = laid_out(text, table)
    cut = sorted(one.own for one in layout.slices)
    assert cut[0][0] == DAY.micros()[0] and cut[-1][1] == DAY.micros()[1]
    assert all(before[1] == after[0] for before, after in zip(cut, cut[1:], strict=False))
    costs = evaluations(pattern, layout, table, orders)
    assert max(costs.values()) <= 0.17 * sum(costs.values()), costs


def test_a_burst_within_one_time_stamp_is_not_cut_and_ends() -> None:
    table = events(1, 4_000, burst=0.5, width=1)
    _, layout, _ = laid_out(KEYLESS.format(more="", window="1 s"), table)
    assert 1 < len(layout.slices) <= 12


def test_small_work_is_not_cut() -> None:
    table = events(1, 2_000)
    for text in (KEYLESS, KEYED):
        pattern, layout, _ = laid_out(text.format(more="", window="5 min"), table, not_cut=1e9)
        assert len(layout.slices) == 1 and layout.hot == {} and layout.partitions == 1


def test_a_hot_key_has_slices_of_its_own_and_the_partitions_are_balanced() -> None:
    table = events(1, 6_000, burst=0.2, hot=0.5)
    pattern, layout, orders = laid_out(KEYED.format(window="10 min"), table)
    assert pattern.partition_key == "k" and list(layout.hot) == ["hot"]
    assert len(layout.base) == 1 and len(layout.hot["hot"]) >= 6
    assert [one.number for one in layout.slices] == list(range(len(layout.slices)))
    costs = evaluations(pattern, layout, table, orders)
    hot = [costs[one.number] for one in layout.hot["hot"]]
    assert max(hot) <= 0.17 * sum(hot)
    loads = np.zeros(layout.partitions)
    for number, place in layout.place.items():
        loads[place] += costs[number]
    assert layout.partitions >= 4 and loads.max() < 0.4 * loads.sum()


def test_keys_alike_are_not_hot() -> None:
    pattern, layout, _ = laid_out(KEYED.format(window="10 min"), events(1, 4_000))
    assert layout.hot == {} and len(layout.base) == 1 and layout.partitions >= 4
