"""Tasks that read the events from their files find what the plain kernel finds, and count what a plain count counts."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import chainlake.detect.division.counts as counts
import chainlake.detect.division.cut as cut
from chainlake.cep.library import as_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.find import find
from chainlake.cep.search.hindsight import sample_of
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from chainlake.days import US_PER_DAY, Days
from chainlake.detect.division.counts import Ask, Counting, Draw
from chainlake.detect.division.curve import CELLS, Curve, count_cells
from chainlake.detect.division.cut import Share, slice_of, spans_of
from chainlake.detect.feed import KeyShare
from chainlake.detect.stage import Found, Search, SearchFailed, stage
from chainlake.errors import LimitExceeded
from chainlake.lake.store.event_files import EventFiles
from chainlake.lake.store.files import FilesLake
from chainlake.paths import Home
from chainlake.run.tasks import LocalTasks
from chainlake.schemas.matches import matches_table
from chainlake.schemas.table import TIMESTAMP
from tests.cep.distributed import bound
from tests.task_cases import rows_of, written

if TYPE_CHECKING:
    from chainlake.cep.pattern import Pattern

pytestmark = pytest.mark.slow

DAYS = Days.parse("2024-01-01", "2024-01-04")
#: ``z`` is a key with nulls, NaN and zeros of both signs, which the first file of each day does not have.
PATTERNS = {
    "sequence": "SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x AND a.x < 0.3 WITHIN 40 min",
    "conjunction": "AND(A a, C c) WHERE a.x < c.x AND c.x > 0.5 WITHIN 30 min",
    "branches": "OR(SEQ(A a, B b) WHERE a.x > 0.8, SEQ(B b, C c) WHERE b.x > 0.9 AND b.z = c.z) WITHIN 1 h",
    "negation": "SEQ(A a, NOT(B n), C c) WHERE n.x > a.x AND a.x > 0.4 WITHIN 50 min",
    "negation at the end": "SEQ(A a, B b, NOT(C n)) WHERE a.x < b.x AND n.x > 0.3 AND b.x > 0.6 WITHIN 1 h",
    "sets": "SEQ(A a, B+ b) WHERE b.x > 0.85 AND AVG(b.x) > 0.9 AND a.x > 0.5 WITHIN 1 h",
    "ids": "SEQ(A a, B b) WHERE a.id < b.id AND b.x < 0.2 WITHIN 20 min",
    "keyed": "SEQ(A a, B b, C c) WHERE a.k = b.k AND b.k = c.k AND a.x < b.x WITHIN 3 h",
    "hostile keys": "SEQ(A a, B b) WHERE a.z = b.z AND b.x > 0.6 WITHIN 6 h",
    "keyed negation": "SEQ(A a, NOT(A n), B b) WHERE a.z = n.z AND n.z = b.z AND n.x > 0.5 WITHIN 4 h",
    "lone": "SEQ(A a, NOT(B n)) WHERE a.z = n.z AND a.x > 0.5 WITHIN 2 h",
    "keyed sets": "SEQ(A a, B+ b) WHERE a.k = b.k AND b.x > 0.8 AND AVG(b.x) > 0.9 WITHIN 3 h",
    "by type": "SEQ(A a, A b) WHERE a.type = b.type AND a.x < 0.1 WITHIN 30 min",
}


def made(seed: int = 5, n: int = 900) -> pa.Table:
    """Events of three days, many of them around midnight, in no order."""
    rng = np.random.default_rng(seed)
    lo, hi = DAYS.micros()
    ts = rng.integers(lo, hi, n)
    near = lo + US_PER_DAY * rng.integers(0, 3, n) + rng.integers(-1_800_000_000, 1_800_000_000, n)
    ts = np.clip(np.where(rng.random(n) < 0.4, near, ts), lo, hi - 1) // 1_000_000 * 1_000_000
    z = rng.choice([0.0, -0.0, 1.0, 2.0, np.nan], n)
    return pa.table(
        {
            "event_id": [f"{i:032x}" for i in rng.permutation(n)],
            "type": rng.choice(["A", "B", "C", "D"], n),
            "k": [f"k{i}" for i in rng.integers(0, 5, n)],
            "ts": pa.array(ts, TIMESTAMP),
            "x": pa.array(rng.random(n), mask=rng.random(n) < 0.05),
            "z": pa.array(z, mask=rng.random(n) < 0.2, from_pandas=False),
            "event_date": pa.array(ts, TIMESTAMP).cast(pa.date32(), safe=False),
        }
    )


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, pa.Table]:
    """A table of events, three files a day, the oldest without the column z; and the events that it holds."""
    root = tmp_path_factory.mktemp("files lake")
    home = replace(Home.from_env(), root=root, lake=str(root / "lake"))
    every = made()
    parts = [every.slice(begin, 300) for begin in (0, 300, 600)]
    write_deltalake(home.table("events", "odd"), parts[0].drop_columns(["z"]), partition_by=["event_date"])
    for part in parts[1:]:
        write_deltalake(home.table("events", "odd"), part, mode="append", schema_mode="merge")
    without = parts[0].set_column(5, "z", pa.nulls(300, pa.float64()))
    return home, pa.concat_tables([without, *parts[1:]])


@pytest.fixture(scope="module")
def files(lake: tuple[Home, pa.Table]) -> EventFiles:
    found = EventFiles.of(FilesLake(lake[0]).day_files("events", "odd", list(DAYS), 2))
    assert {len(paths) for paths in found.paths.values()} == {3}
    return found


def compiled(name: str, table: pa.Table) -> Pattern:
    columns = {f.name: f.type for f in table.schema if f.name not in ("event_id", "event_date")}
    return compile_pattern(f"PATTERN {PATTERNS[name]}", name=name.replace(" ", "_"), columns=columns)


def known(pattern: Pattern, table: pa.Table) -> pa.Table:
    """The events that a keyed pattern is chosen by."""
    key = pattern.partition_key
    if key is None:
        return table
    known = table.filter(pc.is_valid(table[key]))
    return known.filter(pc.invert(pc.is_nan(known[key]))) if pa.types.is_floating(known[key].type) else known


def texts(pattern: Pattern, found: pa.Table) -> list[str]:
    """Matches as sorted texts."""
    return sorted(json.dumps(bound(pattern, row), sort_keys=True) for row in found.to_pylist())


def staged(files: EventFiles, patterns: list[tuple[Pattern, Any]], shares: list[Share], path: Path) -> list[Found]:
    """What the tasks leave of patterns and their orders."""
    searches = [
        Search(pattern, matches_table(match_shape(pattern, key="k")), orders, str(path / str(number)))
        for number, (pattern, orders) in enumerate(patterns)
    ]
    return stage(LocalTasks(), files, "k", searches, shares)


def matches_of(pattern: Pattern, found: Found) -> list[str]:
    """The staged matches as sorted texts; per day there are as many as was told."""
    assert found.failure is None
    rows = rows_of(found.paths, matches_table(match_shape(pattern, key="k")))
    assert Counter(rows["decision_ts"].cast(pa.date32(), safe=False).to_pylist()) == found.per_day
    return texts(pattern, rows)


def by_kernel(pattern: Pattern, every: pa.Table, own: tuple[int, int], orders: Any = None, **how: Any) -> list[str]:
    """What the kernel finds in all events at once."""
    ids = every["event_id"].to_pylist()
    found = find(pattern, every, own=own, options=SearchOptions(orders), **how)
    return sorted(json.dumps(m, sort_keys=True) for batch in found for m in as_dicts(pattern, batch, ids))


def orders_of(pattern: Pattern, every: pa.Table) -> tuple[tuple[str, ...], ...]:
    """The cheapest order of each branch."""
    return tuple(model.best() for model in sample_of(pattern, known(pattern, every)).models)


@pytest.mark.parametrize("name", PATTERNS)
def test_the_tasks_find_what_the_kernel_finds(
    lake: tuple[Home, pa.Table], files: EventFiles, tmp_path: Path, name: str
) -> None:
    """With one slice the evaluations are those of one run; with any number of slices and shares of keys the matches."""
    every, own, statistics = lake[1], DAYS.micros(), Statistics()
    pattern = compiled(name, every)
    orders = orders_of(pattern, every)
    wanted = by_kernel(pattern, every, own, orders=orders, statistics=statistics)
    assert len(wanted) > 20
    (one,) = staged(files, [(pattern, orders)], [Share({0: (slice_of(pattern, own),)})], tmp_path / "one")
    assert matches_of(pattern, one) == wanted
    if pattern.partition_key is None:
        assert (one.evaluations, one.evaluations_neg) == (statistics.evaluations, statistics.evaluations_neg)
    rng = np.random.default_rng(len(name))
    bounds = sorted({*own, *rng.integers(*own, rng.integers(1, 8)).tolist(), own[0] + US_PER_DAY})
    slices = [slice_of(pattern, span) for span in itertools.pairwise(bounds)]
    keys = [None] if pattern.partition_key is None else [KeyShare(n, 3) for n in range(3)]
    shares = [Share({0: (one,)}, share) for one in slices for share in keys]
    (many,) = staged(files, [(pattern, orders)], shares, tmp_path / "many")
    assert matches_of(pattern, many) == wanted
    assert len(many.paths) > 1
    assert len(list((tmp_path / "many" / "0").iterdir())) == len(many.paths)


def test_one_scan_gives_each_pattern_what_it_finds_alone(
    lake: tuple[Home, pa.Table], files: EventFiles, tmp_path: Path
) -> None:
    """Whatever part of the days a pattern wants; and a task reads the file of a day once, for all of them."""
    every, rng = lake[1], np.random.default_rng(8)
    lo, hi = DAYS.micros()
    stretches = list(itertools.pairwise([lo, *sorted(rng.integers(lo, hi, 3).tolist()), hi]))
    middle, end = lo + US_PER_DAY, lo + 2 * US_PER_DAY
    wanted = [[(lo, hi)], [(middle, hi)], [(lo, middle), (end, hi)]]
    patterns = [compiled(name, every) for name in PATTERNS]
    shares = []
    for first, last in stretches:
        own = {
            number: tuple(
                slice_of(pattern, (max(first, a), min(last, b)))
                for a, b in wanted[number % 3]
                if max(first, a) < min(last, b)
            )
            for number, pattern in enumerate(patterns)
        }
        shares.append(Share({number: slices for number, slices in own.items() if slices}))
    assert any(len(slices) > 1 for share in shares for slices in share.slices.values())
    assert any(len(share.slices) < len(patterns) for share in shares)
    opened: list[tuple[int, date]] = []

    class Counted(EventFiles):
        """Notes each read."""

        def read(self, day: date, *rest: Any) -> pa.Table:
            opened.append((0, day))
            return super().read(day, *rest)

    counted = Counted(files.schema, files.paths, files.rows)
    orders = [orders_of(pattern, every) for pattern in patterns]
    found = staged(counted, list(zip(patterns, orders, strict=True)), shares, tmp_path)
    reads = [[one.read for slices in share.slices.values() for one in slices] for share in shares]
    assert len(opened) == sum(len({day for span in spans for day in files.within(*span)}) for spans in reads)
    for number, pattern in enumerate(patterns):
        alone = [text for own in wanted[number % 3] for text in by_kernel(pattern, every, own, orders=orders[number])]
        assert matches_of(pattern, found[number]) == sorted(alone) != []


def test_what_goes_wrong_with_a_pattern_is_its_own(
    lake: tuple[Home, pa.Table], files: EventFiles, tmp_path: Path
) -> None:
    """A limit, and an error that is none of ours."""
    every, own = lake[1], DAYS.micros()
    good, broken = compiled("keyed", every), compiled("sequence", every)
    greedy = compile_pattern(
        f"---\nlimits: {{matches_per_day: 1}}\n---\nPATTERN {PATTERNS['conjunction']}", name="greedy",
        columns={f.name: f.type for f in every.schema if f.name not in ("event_id", "event_date")},
    )  # fmt: skip
    patterns = [(broken, 7), (greedy, None), (good, orders_of(good, every))]
    middle = own[0] + US_PER_DAY
    shares = [
        Share({number: (slice_of(pattern, span),) for number, (pattern, _) in enumerate(patterns)})
        for span in [(own[0], middle), (middle, own[1])]
    ]
    found = staged(files, patterns, shares, tmp_path)
    assert isinstance(found[0].failure, SearchFailed) and "TypeError" in found[0].failure.what
    assert isinstance(found[1].failure, LimitExceeded) and "more than 1 matches" in found[1].failure.what
    assert matches_of(good, found[2]) == by_kernel(good, every, own) != []


@pytest.mark.parametrize("name", ["keyed", "sequence", "negation at the end"])
def test_a_window_of_a_year_is_found_in_whole(
    lake: tuple[Home, pa.Table], files: EventFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As it is cut: in time, and of a keyed pattern by key as well, since no task may hold so many events."""
    every = lake[1].slice(0, 90)
    home = replace(lake[0], lake=str(tmp_path / "lake"))
    write_deltalake(home.table("events", "odd"), every, partition_by=["event_date"])
    found = EventFiles.of(FilesLake(home).day_files("events", "odd", list(DAYS)))
    text = PATTERNS[name].rpartition(" WITHIN ")[0].replace("n.x > 0.3", "n.x > 0.98") + " WITHIN 365 d"
    pattern = compile_pattern(f"PATTERN {text}", name="year", columns={f.name: f.type for f in every.schema})
    days = [DAYS.start + timedelta(days=n) for n in range(365 + 3)]
    own = spans_of(days)[0]
    monkeypatch.setattr(cut, "MOST_ROWS", 40)
    at = np.array([*np.linspace(*DAYS.micros(), 1_000).astype(np.int64), own[1]])
    curve = Curve(at, np.array([*np.linspace(0, 1e9, 1_000), 1.2e9]))
    shares = cut.cut(found, [cut.Wanted(pattern, days, curve)], 5)
    assert len(shares) == (5 * 3 if pattern.partition_key else 5)
    (one,) = staged(found, [(pattern, None)], shares, tmp_path / "out")
    assert matches_of(pattern, one) == by_kernel(pattern, every, own) != []


def test_a_hundred_thousand_keys_and_one_are_the_same_work(tmp_path: Path) -> None:
    """Two events of each key, a minute apart; in one stretch, and cut by time and key."""
    start = DAYS.micros()[0]
    for n, keys in ((100_000, 100_000), (2_000, 1)):
        ts = np.concatenate([start + 1_000 * np.arange(n), start + 60_000_000 + 1_000 * np.arange(n)])
        events = pa.table({
            "event_id": [f"{i:032x}" for i in range(2 * n)],
            "type": ["A"] * n + ["B"] * n,
            "k": [f"k{i % keys}" for i in range(n)] * 2,
            "ts": pa.array(ts, TIMESTAMP),
            "x": np.tile(np.arange(n) % 1_000, 2).astype(float),
        })  # fmt: skip
        kind = {f.name: f.type for f in events.schema if f.name != "event_id"}
        pattern = compile_pattern("PATTERN SEQ(A a, B b) WHERE a.k = b.k AND a.x = b.x WITHIN 60 s", columns=kind)
        folder = tmp_path / str(keys)
        folder.mkdir()
        files = written(events, folder)
        whole = [Share({0: (slice_of(pattern, DAYS.micros()),)})]
        middle = start + 70_000_000
        spans = [(start, middle), (middle, DAYS.micros()[1])]
        many = [Share({0: (slice_of(pattern, own),)}, KeyShare(i, 3)) for own in spans for i in range(3)]
        one, other = (
            staged(files, [(pattern, None)], shares, folder / str(len(shares)))[0] for shares in (whole, many)
        )
        assert one.failure is None and one.per_day == other.per_day
        # With one key, b also meets the a of a thousand earlier that is after it in time.
        assert sum(one.per_day.values()) == (n if keys > 1 else n + 1_000)
        table = matches_table(match_shape(pattern, key="k"))
        assert rows_of(one.paths, table).sort_by("match_id").equals(rows_of(other.paths, table).sort_by("match_id"))


def test_nothing_found_is_no_file(files: EventFiles, lake: tuple[Home, pa.Table], tmp_path: Path) -> None:
    pattern = compiled("sequence", lake[1])
    for number, shares in enumerate([[], [Share({0: (slice_of(pattern, (0, US_PER_DAY)),)})]]):
        (found,) = staged(files, [(pattern, None)], shares, tmp_path / str(number))
        assert matches_of(pattern, found) == [] and found.paths == ()


def test_counts_are_those_of_rows_in_memory(lake: tuple[Home, pa.Table], files: EventFiles) -> None:
    every = lake[1].sort_by([("ts", "ascending"), ("event_id", "ascending")])
    patterns = [compiled(name, lake[1]) for name in ("sequence", "keyed", "hostile keys", "by type")]
    length = 7_200_000_000
    counting = Counting(LocalTasks(), files, "k")
    asks = [Ask(p, (p.read_range(*DAYS.micros()),), length) for p in patterns]
    draws: list[Draw] = []
    flagged: list[list[int]] = []
    for ask, survey in zip(asks, counting.surveys(asks), strict=True):
        sample = sample_of(ask.pattern, known(ask.pattern, every))
        times = [one.ts for those in sample.candidates for one in those.values()]
        middle = DAYS.micros()[0] + US_PER_DAY
        cells = [(middle - 3_600_000_000, middle), (middle, middle + 70_000_000)]
        assert np.array_equal(survey.all_cells, count_cells(times, [ask.span], CELLS))
        assert np.array_equal(counting.cells(ask, cells, 7), count_cells(times, cells, 7))
        wanted = [[int(np.sum(ts // length == n)) for n in survey.numbers] for ts in times]
        assert survey.counts.tolist() == wanted and survey.counts.sum() == sum(map(len, times)) > 0
        chosen = tuple(survey.numbers[3:5].tolist())
        draws.append(Draw(ask, chosen, (1,) * len(times), frozenset(["event_id", "type", "ts", "x", "z", "k"])))
        flagged.append(survey.counts[:, 3:5].sum(axis=1).tolist())
    for draw, rows, wanted in zip(draws, counting.draw(draws), flagged, strict=True):
        found = sample_of(draw.ask.pattern, rows)
        assert [len(one) for those in found.candidates for one in those.values()] == wanted
        (thin,) = counting.draw([Draw(draw.ask, draw.buckets, (2,) * len(wanted), frozenset(["event_id", "ts"]))])
        assert 0 < len(thin) < len(rows) and thin.column_names == ["event_id", "ts"]
        (nothing,) = counting.draw([Draw(draw.ask, (), draw.thinning, draw.columns)])
        assert len(nothing) == 0 and set(nothing.column_names) == draw.columns


def test_days_are_counted_by_many_tasks_alike(
    lake: tuple[Home, pa.Table], files: EventFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By this process or by tasks, a day each or all at once."""
    pattern = compiled("branches", lake[1])
    ask = Ask(pattern, (pattern.read_range(*DAYS.micros()),), 3_600_000_000)
    asked: list[int] = []

    class Many(LocalTasks):
        """Notes how many items there are."""

        def map(self, work: Any, items: Any) -> list[Any]:
            asked.append(len(items))
            return super().map(work, items)

    (here,) = Counting(Many(), files, "k").surveys([ask])
    assert asked == []
    monkeypatch.setattr(counts, "HERE_ROWS", 0)
    (there,) = Counting(Many(), files, "k").surveys([ask])
    assert len(asked) == 1 and 1 < asked[0] <= 3
    for name in ("numbers", "counts", "all_cells"):
        assert np.array_equal(getattr(here, name), getattr(there, name))


def test_texts_of_files_that_were_rewritten_are_texts(lake: tuple[Home, pa.Table], tmp_path: Path) -> None:
    """A merge leaves string views, which Arrow does not compare with strings."""
    home, every = replace(lake[0], lake=str(tmp_path)), lake[1].slice(0, 300)
    path = home.table("events", "odd")
    write_deltalake(path, every, partition_by=["event_date"])
    merge = DeltaTable(path).merge(every, "t.event_id = s.event_id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().execute()
    found = EventFiles.of(FilesLake(home).day_files("events", "odd", list(DAYS)))
    assert {pq.read_schema(path).field("type").type for paths in found.paths.values() for path in paths} == {
        pa.string_view()
    }
    pattern = compiled("keyed", every)
    (one,) = staged(found, [(pattern, None)], [Share({0: (slice_of(pattern, DAYS.micros()),)})], tmp_path / "out")
    assert matches_of(pattern, one) == by_kernel(pattern, every, DAYS.micros()) != []


def test_only_the_days_and_times_asked_for_are_read(files: EventFiles, lake: tuple[Home, pa.Table]) -> None:
    lo = DAYS.micros()[0] + US_PER_DAY + 3_600_000_000
    assert files.within(lo, lo + US_PER_DAY) == [date(2024, 1, 2), date(2024, 1, 3)]
    read = files.read(date(2024, 1, 2), ["event_id", "type", "ts", "z"], ["A", "C"], lo, lo + 7_200_000_000)
    ts = lake[1]["ts"].cast(pa.int64()).to_numpy()
    inside = (ts >= lo) & (ts < lo + 7_200_000_000) & np.isin(lake[1]["type"].to_pylist(), ["A", "C"])
    wanted = lake[1].filter(pa.array(inside))
    assert sorted(read["event_id"].to_pylist()) == sorted(wanted["event_id"].to_pylist()) != []
    assert read["z"].null_count == wanted["z"].null_count > 0
