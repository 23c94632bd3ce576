"""Detection on Spark: slices, partitions, row order and file layout never show; counts are those of plain counting."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from chainlake.cep import SearchOptions, Statistics, compile_pattern, find
from chainlake.cep.events.history import add_histories
from chainlake.cep.library import as_dicts
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.hindsight import sample_of
from chainlake.days import US_PER_DAY
from chainlake.definitions.derived import History
from chainlake.detect.counts.spark_counts import SampleCounts, SparkCounts
from chainlake.detect.tasks.by_shuffle import candidates, count_reports, detect_matches, report_of
from chainlake.detect.tasks.histories import with_histories
from chainlake.detect.tasks.slices import Estimate, Layout, lay_out, runs, whole
from chainlake.schemas.matches import matches_table
from tests.cep.distributed import bound
from tests.cep.test_slices import DAY, events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PATTERNS = {
    "keyed": "PATTERN SEQ(A a, B b, NOT(A n)) WHERE a.k = b.k AND a.k = n.k AND n.x > 0.8 AND a.x < 0.4 WITHIN 30 min",
    "keyless": "PATTERN OR(AND(A a, B b) WHERE a.x < b.x AND a.x > 0.9, SEQ(A a, B b) WHERE a.x > 0.95) WITHIN 9 min",
    "lone": "PATTERN OR(A a WHERE a.x > 0.9, SEQ(A a, B b) WHERE a.k = b.k AND a.x > 0.8 AND b.x > 0.8) WITHIN 20 min",
    "rejected": "PATTERN SEQ(A a, NOT(B n)) WHERE a.k = n.k AND a.x > 0.8 WITHIN 9 min",
    "linked": "PATTERN SEQ(A a, NOT(A n), B b) WHERE a.k = n.k AND n.k = b.k AND a.x > 0.9 WITHIN 9 min",
    "missing": "PATTERN SEQ(A a, NOT(B n), B b) WHERE a.k IS NULL AND n.k IS NULL AND n.x > 0.5 WITHIN 9 min",
    "sets": "PATTERN SEQ(A a, B+ b) WHERE a.k = b.k AND b.x > 0.8 AND AVG(b.x) > 0.9 AND a.x > 0.5 WITHIN 40 min",
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Some hundred events, some without a key."""
    found = events(3, 700, burst=0.2, hot=0.4)
    keys = pa.array([None if i % 50 == 0 else key for i, key in enumerate(found["k"].to_pylist())])
    return found.set_column(found.column_names.index("k"), "k", keys)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table).persist()


def compiled(name: str, table: pa.Table):  # type: ignore[no-untyped-def]
    columns = {f.name: f.type for f in table.schema if f.name != "event_id"}
    return compile_pattern(PATTERNS[name], name=name, columns=columns)


def detected(frame: DataFrame, pattern, layout: Layout, orders):  # type: ignore[no-untyped-def]
    """Matches as sorted texts, and the evaluations."""
    found = detect_matches(frame, pattern, matches_table(match_shape(pattern, key="k")), layout, orders)
    rows = found.toArrow().to_pylist()
    reports = [row["#report"] for row in rows if row["#report"] is not None]
    matches = [json.dumps(bound(pattern, row), sort_keys=True) for row in rows if row["#report"] is None]
    return sorted(matches), count_reports(reports)["evaluations"]


@pytest.mark.parametrize("name", PATTERNS)
def test_neither_slices_nor_layout_show(spark: SparkSession, frame: DataFrame, table: pa.Table, name: str) -> None:
    pattern = compiled(name, table)
    known = table if pattern.partition_key is None else table.filter(pc.is_valid(table["k"]))
    sample = sample_of(pattern, known)
    orders = tuple(model.best() for model in sample.models)
    statistics, own = Statistics(), DAY.micros()
    ids = table["event_id"].to_pylist()
    wanted = sorted(
        json.dumps(m, sort_keys=True)
        for batch in find(pattern, table, own=own, statistics=statistics, options=SearchOptions(orders))
        for m in as_dicts(pattern, batch, ids)
    )
    assert len(wanted) > 20
    base = runs(pattern, list(DAY))
    one = detected(frame, pattern, whole(base), orders)
    assert one[0] == wanted
    if pattern.partition_key is None:
        assert one[1] == statistics.evaluations
    estimate = Estimate(pattern, sample.models, orders, ({},) * len(orders))
    counts = SampleCounts(sample, None if pattern.partition_key is None else known["k"])
    many = lay_out(base, estimate, counts, 3, not_cut=0.0)
    assert len(many.slices) >= 4 and many.partitions > 2
    shuffled = spark.createDataFrame(table.take(pa.array(np.random.default_rng(5).permutation(len(table)))))
    assert detected(shuffled.repartition(5), pattern, many, orders)[0] == wanted


@pytest.mark.parametrize(("name", "numbers"), [("keyless", (1, 2, 7)), ("keyed", (1, 7))])
def test_the_number_of_partitions_never_shows(
    frame: DataFrame, table: pa.Table, name: str, numbers: tuple[int, ...]
) -> None:
    pattern = compiled(name, table)
    known = table if pattern.partition_key is None else table.filter(pc.is_valid(table["k"]))
    sample = sample_of(pattern, known)
    orders = tuple(model.best() for model in sample.models)
    estimate = Estimate(pattern, sample.models, orders, ({},) * len(orders))
    counts = SampleCounts(sample, None if pattern.partition_key is None else known["k"])
    layout = lay_out(runs(pattern, list(DAY)), estimate, counts, 2, not_cut=0.0)
    found = []
    for number in numbers:
        place = {slice_number: at % number for at, slice_number in enumerate(sorted(layout.place))}
        found.append(detected(frame, pattern, replace(layout, partitions=number, place=place), orders))
    assert len(found[0][0]) > 20 and found == found[:1] * len(numbers)


def test_spark_counts_what_a_plain_count_counts(frame: DataFrame, table: pa.Table) -> None:
    """In the cells of time, all or of one key, and by key; the clauses of these names are such that SQL can test."""
    text = "PATTERN SEQ(A a, B b) WHERE a.k = b.k AND a.x < 0.4 WITHIN 1 h"
    pattern = compile_pattern(text, columns={f.name: f.type for f in table.schema if f.name != "event_id"})
    known = table.filter(pc.is_valid(table["k"]))
    own = DAY.micros()
    spark_counts = SparkCounts(candidates(frame, pattern, own), pattern)
    plain = SampleCounts(sample_of(pattern, known), known["k"])
    middle = own[0] + 40_000_000_000
    cells = [(own[0], middle), (middle, middle + 70_000_000), (middle + 80_000_000, middle + 80_000_003)]
    for key in (None, "hot"):
        assert np.array_equal(spark_counts.by_cell(cells, 7, key), plain.by_cell(cells, 7, key))
    keys, counts = spark_counts.by_key()
    wanted = dict(zip(*(part for part in (plain.by_key()[0], plain.by_key()[1].T.tolist())), strict=True))
    assert keys[0] == "hot" and dict(zip(keys, counts.T.tolist(), strict=True)) == {
        key: row for key, row in wanted.items() if sum(row)
    }


def test_histories_reach_back_over_midnight(spark: SparkSession, table: pa.Table) -> None:
    """The second half of a day from what its histories can reach is as from the whole; keys that are null have none."""
    one = History("last", "x", 3, 1_800_000_000)
    table = table.append_column("seq", pa.array([0] * len(table), pa.int64()))
    every = add_histories(table, ["k"], [one])
    border = DAY.micros()[0] + US_PER_DAY // 2
    shift = US_PER_DAY // 2  # so that the border is a midnight
    ts = table["ts"].cast(pa.int64()).to_numpy()
    moved = table.set_column(table.column_names.index("ts"), "ts", pa.array(ts + shift).cast(table["ts"].type))
    read = moved.filter(pa.array(ts >= border - one.reach_us))
    found = with_histories(spark.createDataFrame(read).repartition(3), "k", [one]).toArrow()
    assert sorted(found["event_id"].to_pylist()) == sorted(read["event_id"].to_pylist())
    got = dict(zip(found["event_id"].to_pylist(), found["last"].to_pylist(), strict=True))
    wanted = dict(zip(every["event_id"].to_pylist(), every["last"].to_pylist(), strict=True))
    own = table["event_id"].filter(pa.array(ts >= border)).to_pylist()
    assert {i: got[i] for i in own} == {i: wanted[i] for i in own}
    alone = add_histories(table.filter(pa.array(ts >= border)), ["k"], [one])
    assert alone["last"].to_pylist() != [wanted[i] for i in own] and None in [wanted[i] for i in own]


def test_zeros_of_either_sign_are_one_key_and_nan_is_none(spark: SparkSession) -> None:
    rows = [("e1", "A", 1, 0.0), ("e2", "B", 2, -0.0), ("e3", "A", 3, float("nan")), ("e4", "B", 4, float("nan"))]
    table = pa.table(
        {
            "event_id": [row[0] for row in rows],
            "type": [row[1] for row in rows],
            "ts": pa.array([DAY.micros()[0] + row[2] for row in rows], pa.timestamp("us", tz="UTC")),
            "z": [row[3] for row in rows],
        }
    )
    pattern = compile_pattern(
        "PATTERN SEQ(A a, B b) WHERE a.z = b.z WITHIN 1 h", columns={"type": pa.string(), "z": pa.float64()}
    )
    base = runs(pattern, list(DAY))
    spread = Layout(base, {}, 3, {})
    found = detect_matches(spark.createDataFrame(table), pattern, matches_table(match_shape(pattern)), spread)
    matches = found.where(report_of(found).isNull()).collect()
    assert [(row["a"]["event_id"], row["b"]["event_id"]) for row in matches] == [("e1", "e2")]
