"""Large runs: tasks that read the events from their files find what Spark's reader and the plain kernel find."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake

import chainlake.detect.cut as in_files
import chainlake.detect.order as order_choice
import chainlake.detect.run as detect_run
import chainlake.detect.staged as staged_rows
from chainlake.cep import SearchOptions, Statistics, compile_pattern, find
from chainlake.cep.library import as_dicts
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.hindsight import sample_of
from chainlake.days import US_PER_DAY, Days
from chainlake.detect.counts.file_counts import FileCounts, draw_all, survey_all
from chainlake.detect.counts.spark_counts import SampleCounts
from chainlake.detect.counts.survey import Ask, Draw, survey_day
from chainlake.detect.staged import folder_of_matches, read_staged, write_reports
from chainlake.detect.step import detect
from chainlake.detect.tasks.by_files import Search, stage_matches
from chainlake.detect.tasks.by_shuffle import count_reports, detect_matches
from chainlake.detect.tasks.kept_days import KeptDays, Read
from chainlake.detect.tasks.slices import Slice, runs, whole, within
from chainlake.errors import LimitExceeded
from chainlake.lake.delta import tables
from chainlake.lake.delta.event_files import EventFiles, event_files
from chainlake.lake.delta.reader import UnreadableTable
from chainlake.paths import Home
from chainlake.schemas.matches import matches_table
from chainlake.schemas.table import TIMESTAMP
from tests.cep.distributed import bound
from tests.steps.conftest import DAY
from tests.steps.test_detect import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from chainlake.cep import Pattern

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
    """A table of events, three files a day, the oldest without the column z; and the events as Spark must see them."""
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
    found = event_files(lake[0], "odd", DAYS, 2)
    assert found is not None and {len(paths) for paths in found.paths.values()} == {3}
    return found


def compiled(name: str, table: pa.Table) -> Pattern:
    columns = {f.name: f.type for f in table.schema if f.name not in ("event_id", "event_date")}
    return compile_pattern(f"PATTERN {PATTERNS[name]}", name=name.replace(" ", "_"), columns=columns)


def known(pattern: Pattern, table: pa.Table) -> pa.Table:
    """The events that a keyed pattern is chosen by."""
    key = pattern.partition_key
    return table if key is None else table.filter(pc.is_valid(table[key]))


def texts(pattern: Pattern, found: pa.Table) -> list[str]:
    """Matches as sorted texts."""
    return sorted(json.dumps(bound(pattern, row), sort_keys=True) for row in found.to_pylist())


def staged(
    spark: SparkSession, files: EventFiles, pattern: Pattern, slices: tuple[Slice, ...], orders: Any, path: Path
) -> tuple[list[str], dict[str, int]]:
    """What the tasks leave, as Spark reads it."""
    table = matches_table(match_shape(pattern, key="k"))
    search = Search(pattern, table, [[one] for one in slices], orders, folder_of_matches(str(path)))
    (outcome,) = stage_matches(spark, files, [search])
    write_reports(outcome.reports, str(path), table)
    assert len(list(path.iterdir())) == 2  # nothing is left of the attempts
    found = read_staged(spark, str(path), table)
    assert found.rows is not None and found.frame.count() == len(found.rows)
    return texts(pattern, found.rows), found.counts


@pytest.mark.parametrize("name", PATTERNS)
def test_the_files_give_what_spark_and_the_kernel_give(
    spark: SparkSession, lake: tuple[Home, pa.Table], files: EventFiles, tmp_path: Path, name: str
) -> None:
    """With one slice the evaluations are those of one run; with any number of slices the matches are."""
    home, every = lake
    pattern = compiled(name, every)
    orders = tuple(model.best() for model in sample_of(pattern, known(pattern, every)).models)
    base, own, statistics = runs(pattern, list(DAYS)), DAYS.micros(), Statistics()
    ids = every["event_id"].to_pylist()
    wanted = sorted(
        json.dumps(m, sort_keys=True)
        for batch in find(pattern, every, own=own, statistics=statistics, options=SearchOptions(orders))
        for m in as_dicts(pattern, batch, ids)
    )
    assert len(wanted) > 20
    one = staged(spark, files, pattern, base, orders, tmp_path / "one")
    assert one[0] == wanted
    if pattern.partition_key is None:
        assert one[1]["evaluations"] == statistics.evaluations
        assert one[1]["evaluations_neg"] == statistics.evaluations_neg
    elif name in ("keyed", "hostile keys"):
        frame = tables.read(spark, home, "events", "odd", 2)
        table = matches_table(match_shape(pattern, key="k"))
        by_spark = detect_matches(frame, pattern, table, whole(base), orders).toArrow()
        reports = pc.drop_null(by_spark["#report"]).to_pylist()
        assert one == (texts(pattern, by_spark.filter(pc.is_null(by_spark["#report"]))), count_reports(reports))
    rng = np.random.default_rng(len(name))
    bounds = sorted({*own, *rng.integers(*own, rng.integers(1, 8)).tolist(), own[0] + US_PER_DAY})
    spans = list(zip(bounds[:-1], bounds[1:], strict=True))
    cut = tuple(Slice(i, span, pattern.read_range(*span)) for i, span in enumerate(spans))
    assert staged(spark, files, pattern, cut, orders, tmp_path / "many")[0] == wanted


def test_one_scan_gives_each_pattern_what_it_finds_by_itself(
    spark: SparkSession, lake: tuple[Home, pa.Table], files: EventFiles, tmp_path: Path
) -> None:
    """Whatever part of the days a pattern wants; and a task reads the file of a day once, for all of them."""
    every, rng = lake[1], np.random.default_rng(8)
    lo, hi = DAYS.micros()
    bounds = list(itertools.pairwise([lo, *sorted(rng.integers(lo, hi, 3).tolist()), hi]))
    wanted = [list(DAYS), list(DAYS)[1:], [DAYS.start, list(DAYS)[2]]]
    reads = tmp_path / "reads"
    reads.mkdir()

    class Counted(EventFiles):
        """Leaves a file for each read of a day."""

        def read(self, day: date, *rest: Any) -> pa.Table:
            (reads / f"{os.getpid()}-{time.time_ns()}").write_text(str(day))
            return super().read(day, *rest)

    searches, cuts = [], []
    for number, name in enumerate(PATTERNS):
        pattern = compiled(name, every)
        base = runs(pattern, wanted[number % 3])
        orders = tuple(model.best() for model in sample_of(pattern, known(pattern, every)).models)
        cut = within(base, pattern, bounds)
        own = [one.own for slices in cut for one in slices]
        assert [one.number for slices in cut for one in slices] == list(range(len(own)))
        assert sum(end - begin for begin, end in own) == sum(one.own[1] - one.own[0] for one in base)
        cuts.append(cut)
        path = folder_of_matches(str(tmp_path / str(number)))
        searches.append(Search(pattern, matches_table(match_shape(pattern, key="k")), cut, orders, path))
    assert any(not slices for cut in cuts for slices in cut) and any(len(slices) > 1 for cut in cuts for slices in cut)
    outcomes = stage_matches(spark, Counted(files.schema, files.paths, files.rows), searches)
    read = Counter(one.read_text() for one in reads.iterdir())
    parts = [[one.read for slices in part for one in slices] for part in zip(*cuts, strict=True)]
    assert read == Counter(str(day) for part in parts for day in {d for span in part for d in files.within(*span)})
    for number, (search, outcome) in enumerate(zip(searches, outcomes, strict=True)):
        assert outcome.failure is None
        write_reports(outcome.reports, str(tmp_path / str(number)), search.table)
        found = read_staged(spark, str(tmp_path / str(number)), search.table).rows
        assert found is not None
        ids = every["event_id"].to_pylist()
        alone = [
            json.dumps(m, sort_keys=True)
            for one in runs(search.pattern, wanted[number % 3])
            for batch in find(search.pattern, every, orders=search.orders, own=one.own)
            for m in as_dicts(search.pattern, batch, ids)
        ]
        assert texts(search.pattern, found) == sorted(alone) != []


def test_days_that_are_kept_give_what_their_files_give(files: EventFiles) -> None:
    """Each is read once, unless too much would be kept, and forgotten when nobody needs it any more."""
    days, columns = [d for d in DAYS], ["event_id", "type", "ts", "k", "x", "z"]
    lo, hi = DAYS.micros()
    rng = np.random.default_rng(3)
    for most, once in ((10_000, True), (310, False), (0, False)):
        opened: list[date] = []

        class Counted(EventFiles):
            """Notes each read."""

            def read(self, day: date, *rest: Any, opened: list[date] = opened) -> pa.Table:
                opened.append(day)
                return super().read(day, *rest)

        asked = []
        for _ in range(12):
            begin, end = sorted(rng.integers(lo, hi, 2).tolist()) if rng.random() < 0.7 else (lo, hi)
            some = [*rng.permutation(columns[3:])[: rng.integers(0, 4)].tolist(), "ts", "event_id", "type"]
            asked.append(Read(some, rng.choice(list("ABCDE"), 2, replace=False).tolist(), begin, end))
        kept = KeptDays(Counted(files.schema, files.paths, files.rows), asked, most)
        for one in asked:
            for day in kept.within(one.lo, one.hi):
                found = kept.read(day, one.columns, one.types, one.lo, one.hi)
                wanted = files.read(day, one.columns, one.types, one.lo, one.hi)
                assert found.schema == wanted.schema and found["type"].type == wanted["type"].type
                by_id = [rows.sort_by("event_id").to_pylist() for rows in (found, wanted)]
                assert repr(by_id[0]) == repr(by_id[1])
                held = [of.kept for of in kept._days.values() if of.kept is not None]
                assert kept._rows == sum(map(len, held)) <= most
        assert not held and {day for day in opened} == set(days)
        assert (len(opened) == 3) is once


def test_counts_are_those_of_rows_in_memory_for_all_patterns_of_one_pass(
    spark: SparkSession, lake: tuple[Home, pa.Table], files: EventFiles
) -> None:
    patterns = [compiled(name, lake[1]) for name in ("sequence", "keyed", "by type")]
    length = 7_200_000_000
    asks = [Ask(p, (p.read_range(*DAYS.micros()),), length) for p in patterns]
    broken = replace(asks[0], length="wrong")  # type: ignore[arg-type]
    found = survey_all(spark, files, [asks[0], broken, *asks[1:]])
    assert isinstance(found.pop(1), Exception)
    draws: list[Draw] = []
    wanted_rows: list[pa.Table] = []
    for ask, survey in zip(asks, found, strict=True):
        assert not isinstance(survey, Exception)
        counts = FileCounts(spark, files, ask, survey)
        ordered = lake[1].sort_by([("ts", "ascending"), ("event_id", "ascending")])
        key = None if ask.pattern.partition_key is None else ordered[ask.pattern.partition_key]
        sample = sample_of(ask.pattern, ordered)
        plain = SampleCounts(sample, key)
        middle = DAYS.micros()[0] + US_PER_DAY
        cells = [(middle - 3_600_000_000, middle), (middle, middle + 70_000_000)]
        some = [] if key is None else [("A" if ask.pattern.partition_key == "type" else "k1", cells, 7)]
        for of, asked, parts in ((None, [ask.span], 4_096), (None, cells, 7), *some):
            assert np.array_equal(counts.by_cell(asked, parts, of), plain.by_cell(asked, parts, of))
        times = [one.ts for those in sample.candidates for one in those.values()]
        numbers, per_stretch = counts.stretches(length)
        assert per_stretch.tolist() == [[int(np.sum(ts // length == n)) for n in numbers] for ts in times]
        assert per_stretch.sum() == sum(map(len, times)) > 0
        chosen = numbers[3:5].tolist()
        rows_of = counts.drawn(length, chosen, [1] * len(times), ["event_id", "type", "ts", "x"])
        inside = np.isin(ordered["ts"].cast(pa.int64()).to_numpy() // length, chosen)
        ids = set(ordered.filter(pa.array(inside))["event_id"].to_pylist())
        assert set(rows_of["event_id"].to_pylist()) <= ids
        flagged = [pc.sum(rows_of[f"_is{i}"]).as_py() for i in range(len(times))]
        assert flagged == per_stretch[:, 3:5].sum(axis=1).tolist()
        draws.append(Draw(ask, tuple(chosen), (1,) * len(times), ("event_id", "type", "ts", "x")))
        wanted_rows.append(rows_of)
        thin = counts.drawn(length, chosen, [2] * len(times), ["event_id", "ts"])
        assert 0 < len(thin) < len(rows_of)
        width = survey_day(files, DAYS.start, [ask])[0].cells.shape[1]  # type: ignore[union-attr]
        assert width < survey.cells.shape[1] / 2 == 2_048
    nothing = replace(draws[0], stretches=())
    *drawn, none, error = draw_all(spark, files, [*draws, nothing, replace(draws[0], thinning=("wrong",))])
    assert isinstance(error, Exception) and not isinstance(none, Exception) and len(none) == 0
    assert none.schema.names == wanted_rows[0].schema.names
    for rows_of, one in zip(wanted_rows, drawn, strict=True):
        assert not isinstance(one, Exception) and one.schema == rows_of.schema
        assert one.sort_by("event_id").equals(rows_of.sort_by("event_id"))


@pytest.mark.parametrize("whole_rows", [0, 20_000])
def test_a_large_run_of_the_step_goes_by_files_and_publishes_the_same(
    stock_home: Home, add_pattern: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch, whole_rows: int
) -> None:
    """Counted in the files and with large outputs, or looked at whole; one of several patterns exceeds its limit."""
    text = "---\nsource: stock\n{}---\nPATTERN SEQ(Bar a, Bar b) WHERE a.ticker = b.ticker AND b.close > a.close * {}\n"
    add_pattern("small", text.format("", 1.004) + "WITHIN 3 min\n")
    detect(stock_home, "stock", DAY, run_id="kept")
    add_pattern("large", text.format("", 1.004) + "WITHIN 3 min\n")
    add_pattern("greedy", text.format("limits: {matches_per_day: 3}\n", 1.0) + "WITHIN 3 min\n")
    add_pattern("three", "three_pushes")
    monkeypatch.setattr(detect_run, "KEPT_ROWS", 0)
    for module, name, value in [
        (order_choice, "WHOLE", whole_rows), (in_files, "WHOLE", whole_rows),
        (in_files, "READ_TWICE", 100.0), (detect_run, "detect_matches", None),
    ]:  # fmt: skip
        monkeypatch.setattr(module, name, value)
    for module in (detect_run, staged_rows) if not whole_rows else ():
        monkeypatch.setattr(module, "SMALL_ROWS", 0)
    with pytest.raises(LimitExceeded, match="more than 3"):
        detect(stock_home, "stock", DAY, run_id="files")

    def found(name: str) -> list[tuple[str, str]]:
        return sorted((row["a"]["event_id"], row["b"]["event_id"]) for row in rows(stock_home, name))

    assert found("large") == found("small") != []
    assert rows(stock_home, "three") and not tables.exists(stock_home, "matches", "greedy")


def test_days_that_a_task_could_not_hold_are_left_to_spark(
    stock_home: Home, add_pattern: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so are windows for which files would be read too often; what is counted in files has no counts per key."""
    text = "---\nsource: stock\n---\nPATTERN SEQ(Bar a, Bar b) WHERE a.ticker = b.ticker AND b.close > a.close * 1.004"
    add_pattern("kept", text + " WITHIN 3 min\n")
    detect(stock_home, "stock", DAY, run_id="kept")
    monkeypatch.setattr(detect_run, "KEPT_ROWS", 0)
    for module in (order_choice, in_files):
        monkeypatch.setattr(module, "WHOLE", 0)
    surveys = []
    counted = in_files.survey_all
    monkeypatch.setattr(in_files, "survey_all", lambda *given: surveys.append(given) or counted(*given))
    monkeypatch.setattr(detect_run, "stage_matches", None)
    for name, limits in (("days", {"MOST_ROWS": 1}), ("windows", {"READ_TWICE": 0.0, "PER_READ": 1e12})):
        add_pattern(name, text + " WITHIN 3 min\n")
        with monkeypatch.context() as patch:
            for limit, value in limits.items():
                patch.setattr(in_files, limit, value)
            detect(stock_home, "stock", DAY, run_id=name)
        ids = [{(r["a"]["event_id"], r["b"]["event_id"]) for r in rows(stock_home, one)} for one in (name, "kept")]
        assert ids[0] == ids[1] != set()
        assert len(surveys) == (name == "windows")


def test_what_only_spark_can_read_is_left_to_spark(lake: tuple[Home, pa.Table]) -> None:
    """A lake behind a URI. A table whose files alone do not tell its rows is refused."""
    home, every = lake
    assert event_files(replace(home, lake="s3://somewhere/lake"), "odd", DAYS, 0) is None
    write_deltalake(
        home.table("events", "vectors"), every, partition_by=["event_date"],
        configuration={"delta.enableDeletionVectors": "true"},
    )  # fmt: skip
    with pytest.raises(UnreadableTable, match="events.vectors uses the Delta feature 'deletionVectors'"):
        event_files(home, "vectors", DAYS, 0)


def test_only_the_days_and_times_asked_for_are_read(files: EventFiles, lake: tuple[Home, pa.Table]) -> None:
    lo = DAYS.micros()[0] + US_PER_DAY + 3_600_000_000
    assert files.within(lo, lo + US_PER_DAY) == [date(2024, 1, 2), date(2024, 1, 3)]
    read = files.read(date(2024, 1, 2), ["event_id", "type", "ts", "z"], ["A", "C"], lo, lo + 7_200_000_000)
    ts = lake[1]["ts"].cast(pa.int64()).to_numpy()
    inside = (ts >= lo) & (ts < lo + 7_200_000_000) & np.isin(lake[1]["type"].to_pylist(), ["A", "C"])
    wanted = lake[1].filter(pa.array(inside))
    assert sorted(read["event_id"].to_pylist()) == sorted(wanted["event_id"].to_pylist()) != []
    assert read["z"].null_count == wanted["z"].null_count > 0
