"""Shares of tasks: balanced by what the work really is, and no day or tick left out or done twice."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.hindsight import sample_of
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from chainlake.days import Days
from chainlake.detect.division.curve import Count, Curve, Estimate, count_cells, work_curve
from chainlake.detect.division.cut import (
    NOT_CUT,
    PIECES,
    Share,
    Slice,
    Wanted,
    cut,
    held_rows,
    pieces_of,
    slice_of,
    spans_of,
)
from chainlake.detect.feed import merged
from chainlake.lake.store.event_files import EventFiles

DAYS = Days(date(2024, 1, 1), date(2024, 1, 2))
KEYLESS = "PATTERN SEQ(A a, B b) WHERE a.x < b.x {more} WITHIN {window}"


def events(seed: int, n: int, *, burst: float = 0.0, width: int = 60_000_000, hot: float = 0.0) -> pa.Table:
    """n events of a day; a share of them in one stretch of ``width`` µs, a share of them of the key ``hot``."""
    rng = np.random.default_rng(seed)
    lo, hi = DAYS.micros()
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


def prepared(text: str, table: pa.Table) -> tuple[Pattern, tuple[tuple[str, ...], ...], Curve, Count]:
    """The pattern, its orders, where its work lies at first sight, and how its events are counted."""
    pattern = compile_pattern(text, columns={f.name: f.type for f in table.schema if f.name != "event_id"})
    sample = sample_of(pattern, table)
    orders = tuple(model.best() for model in sample.models)
    times = [one.ts for those in sample.candidates for one in those.values()]

    def count(cells: Sequence[tuple[int, int]], parts: int) -> np.ndarray:
        return count_cells(times, cells, parts)

    return pattern, orders, curve_of(pattern, sample.models, orders, count, 1), count


def curve_of(pattern: Pattern, models: Any, orders: Any, count: Count, pieces: int) -> Curve:
    """Where the work of a day lies."""
    own = DAYS.micros()
    return work_curve(Estimate(pattern, models, orders), [own], pattern.read_range(*own), count, pieces)


def slices_of(text: str, table: pa.Table, pieces: int) -> tuple[Pattern, list[Slice], tuple[tuple[str, ...], ...]]:
    """The pattern, and its day cut into about so many pieces."""
    pattern, orders, _, count = prepared(text, table)
    curve = curve_of(pattern, sample_of(pattern, table).models, orders, count, pieces)
    return pattern, [slice_of(pattern, own) for own in curve.cut(DAYS.micros(), pieces)], orders


def evaluations(pattern: Pattern, slices: Sequence[Slice], table: pa.Table, orders: Any) -> list[int]:
    """What each slice really costs."""
    found = []
    for one in slices:
        statistics = Statistics()
        for _ in find(pattern, table, own=one.own, statistics=statistics, options=SearchOptions(orders)):
            pass
        found.append(statistics.evaluations + len(table.filter(_inside(table, one.read))))
    return found


def _inside(table: pa.Table, span: tuple[int, int]) -> pa.Array:
    ts = table["ts"].cast(pa.int64()).to_numpy()
    return pa.array((ts >= span[0]) & (ts < span[1]))


def test_spans_are_runs_of_days_without_a_gap() -> None:
    pattern = compile_pattern(KEYLESS.format(more="", window="1 h"))
    days = [date(2024, 1, d) for d in (5, 1, 2, 3)]
    found = spans_of(days)
    assert found == [
        Days(date(2024, 1, 1), date(2024, 1, 4)).micros(),
        Days(date(2024, 1, 5), date(2024, 1, 6)).micros(),
    ]
    assert [own[0] - slice_of(pattern, own).read[0] for own in found] == [3_600_000_000] * 2


@pytest.mark.few(2)
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
    pattern, slices, orders = slices_of(text, table, PIECES)
    cut_at = [one.own for one in slices]
    assert cut_at[0][0] == DAYS.micros()[0] and cut_at[-1][1] == DAYS.micros()[1]
    assert all(before[1] == after[0] for before, after in itertools.pairwise(cut_at))
    costs = evaluations(pattern, slices, table, orders)
    assert max(costs) <= 0.17 * sum(costs), costs


def test_a_burst_within_one_time_stamp_is_not_cut_and_ends() -> None:
    table = events(1, 4_000, burst=0.5, width=1)
    _, slices, _ = slices_of(KEYLESS.format(more="", window="1 s"), table, PIECES)
    assert 1 < len(slices) <= 12


def test_small_work_is_one_task_and_large_work_many() -> None:
    assert pieces_of(NOT_CUT, 10**9, 64) == 1
    assert pieces_of(NOT_CUT + 1, 1_000, 2) == PIECES
    assert pieces_of(1e9, 1_000, 64) == 128
    assert pieces_of(1e9, 10**9, 2) == 500


def files_of(rows: int, days: int) -> EventFiles:
    """Files of so many days from 2024-01-01 on, with so many rows each."""
    every = [DAYS.start + timedelta(days=n) for n in range(days)]
    return EventFiles(pa.schema([]), dict.fromkeys(every, ("f",)), dict.fromkeys(every, rows))


def wanted(window: str, days: int, work: float, key: str = "") -> Wanted:
    """A pattern on so many days, whose work is spread evenly."""
    more = "AND a.k = b.k" if key else ""
    pattern = compile_pattern(KEYLESS.format(more=more, window=window))
    every = [DAYS.start + timedelta(days=n) for n in range(days)]
    lo, hi = spans_of(every)[0]
    at = np.linspace(lo, hi, 1_000).astype(np.int64)
    return Wanted(pattern, every, Curve(at, np.linspace(0, work, 1_000)))


def owned(shares: Sequence[Share], number: int) -> list[tuple[int, int]]:
    """What the shares own of a pattern, in one share of its keys."""
    first = [share for share in shares if share.keys is None or share.keys.number == 0]
    return sorted(one.own for share in first for one in share.slices.get(number, ()))


def assert_whole(shares: Sequence[Share], number: int, one: Wanted) -> None:
    """The slices own each wanted time once, and no other."""
    assert merged(owned(shares, number)) == one.spans
    assert sum(hi - lo for lo, hi in owned(shares, number)) == sum(hi - lo for lo, hi in one.spans)


def test_one_scan_serves_all_patterns() -> None:
    every = [wanted("5 min", 10, 1e9), wanted("1 h", 10, 1e9), wanted("20 min", 10, 1e9, "k")]
    shares = cut(files_of(100_000, 10), every, 8)
    assert len(shares) == 8 and all(set(share.slices) == {0, 1, 2} and share.keys is None for share in shares)
    for number, one in enumerate(every):
        assert_whole(shares, number, one)


def test_a_window_of_a_year_is_cut_into_few_ranges() -> None:
    """Unless there is so much work that reading the year many times is little beside it."""
    light, heavy = wanted("365 d", 30, 395e5), wanted("365 d", 30, 1e12)
    files = files_of(10_000, 30)
    assert 1 <= len(cut(files, [light], 64)) <= 16 < 64 == len(cut(files, [heavy], 64))
    assert_whole(cut(files, [light], 64), 0, light)


def test_windows_that_no_task_can_hold_are_cut_by_key_as_well() -> None:
    keyed, plain, short = wanted("30 d", 30, 1e9, "k"), wanted("30 d", 30, 1e9), wanted("1 h", 30, 1e9)
    files = files_of(500_000, 30)
    assert held_rows(files, keyed) == pytest.approx(15_000_000)
    assert held_rows(files, short) == pytest.approx(500_000 / 24)
    shares = cut(files, [keyed, plain, short], 8)
    by_key = [share for share in shares if 0 in share.slices]
    assert {(share.keys.number, share.keys.of) for share in by_key if share.keys} == {(n, 5) for n in range(5)}
    assert all(set(share.slices) == {0} for share in by_key)
    for number, one in enumerate([keyed, plain, short]):
        assert_whole(shares, number, one)
    rest = [share for share in shares if 0 not in share.slices]
    assert all(share.keys is None for share in rest) and not any(len(share.slices) == 2 for share in rest)


def test_days_with_gaps_are_few_tasks() -> None:
    one = wanted("1 h", 60, 1e9)
    some = Wanted(one.pattern, one.days[::3], one.curve)
    shares = cut(files_of(1_000, 60), [some], 4)
    assert len(shares) == 4
    assert_whole(shares, 0, some)


def test_days_without_events_are_shared_out_too() -> None:
    """Nobody reads anything, and they are published empty."""
    nothing = wanted("1 h", 3, 0.0)
    shares = cut(files_of(0, 0), [nothing], 1)
    assert len(shares) == 1
    assert_whole(shares, 0, nothing)
    assert held_rows(files_of(0, 0), nothing) == 0.0
