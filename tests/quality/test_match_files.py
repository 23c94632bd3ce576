"""Measures and extremes of matches from their files, against plain loops and against Spark, for names of any kind."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chainlake.quality.matches.gate as matches_gate
from chainlake.lake.spark.session import expect_rows
from chainlake.lake.spark.types import frame_of
from chainlake.lake.sql.duck import connected, idle_cores
from chainlake.paths import Home
from chainlake.quality import Audit, MatchFiles, MatchRules, audit_matches
from chainlake.quality.matches.extremes import extremes, extremes_in_files, extremes_of, three_rows
from chainlake.quality.matches.files import aggregated, measured_rows, some_twice, some_unknown
from chainlake.quality.matches.measures import measured_rows as measured_by_spark
from chainlake.quality.matches.sql import bound_column
from chainlake.schemas.matches import FIXED_COLUMNS, MatchName, MatchShape, matches_table
from chainlake.schemas.table import TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FIELDS = (("event_id", pa.string()), ("ts", TIMESTAMP), ("type", pa.string()), ("x", pa.float64()))
T0 = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = 60_000_000
DAYS = [date(1969, 12, 31), date(1970, 1, 1)]


def rules(names: dict[str, bool], *branches: tuple[str, list[str]], waits: bool = False) -> MatchRules:
    """Branches as the names they bind and the pairs they order, all of one letter."""
    orders = ((frozenset(bound), frozenset((p[0], p[1]) for p in pairs)) for bound, pairs in branches)
    return MatchRules("p", 10 * MINUTE, waits, names, tuple(orders))


#: Sequences, conjunctions, branches that lack names, repetitions, a lone name, matches that wait.
SHAPES = {
    "sequence": rules({"a": False, "b": False, "c": False}, ("abc", ["ab", "bc", "ac"])),
    "conjunction": rules({"a": False, "b": False}, ("ab", [])),
    "branches": rules({"a": False, "b": False, "c": False}, ("ab", ["ab"]), ("ac", []), ("abc", ["ab", "ac", "bc"])),
    "repetition": rules({"a": False, "b": True, "c": False}, ("ab", ["ab"]), ("abc", ["ab", "bc", "ac"])),
    "repetitions": rules({"a": True, "b": True}, ("ab", ["ab"])),
    "lone": rules({"a": False}, ("a", []), waits=True),
    "lone repetition": rules({"a": True}, ("a", [])),
}


@dataclass(frozen=True)
class Rows:
    """Rows of a match table, as Spark and as DuckDB have them."""

    plain: list[dict[str, Any]]
    frame: DataFrame
    files: MatchFiles
    events: DataFrame


def time_of(us: int) -> datetime:
    return T0 + timedelta(microseconds=us)


def rows_of(shape: MatchRules, seed: int, count: int = 300) -> list[dict[str, Any]]:
    """Rows of all sorts around midnight: names unbound, arrays empty, fields null, ids twice, times in any order."""
    draw = random.Random(seed)

    def event() -> dict[str, Any] | None:
        ts = draw.choice([None, *(time_of(draw.randrange(-MINUTE, MINUTE)) for _ in range(20))])
        name = draw.choice([None, *(f"e{draw.randrange(40)}" for _ in range(20))])
        return {"event_id": name, "ts": ts, "type": "A", "x": draw.random()}

    def bound(kleene: bool) -> Any:
        if draw.random() < 0.15:
            return None
        return [event() for _ in range(draw.randrange(4))] if kleene else event()

    def maybe(value: Any) -> Any:
        return None if draw.random() < 0.03 else value

    def row(number: int) -> dict[str, Any]:
        times = sorted(draw.randrange(-MINUTE, MINUTE) for _ in range(3))
        named = zip(("start_ts", "end_ts", "decision_ts"), map(time_of, times), strict=True)
        fixed = {"match_id": f"{number:032x}", **dict(named)}
        return {name: maybe(value) for name, value in fixed.items()} | {n: bound(k) for n, k in shape.names.items()}

    return [row(number) for number in range(count)]


def table_of(shape: MatchRules, plain: list[dict[str, Any]]) -> pa.Table:
    names = tuple(MatchName(name, kleene, FIELDS) for name, kleene in shape.names.items())
    table = matches_table(MatchShape("p", 1, "s", names)).arrow()
    return pa.Table.from_pylist(plain, schema=pa.schema([pa.field(f.name, f.type) for f in table]))


@pytest.fixture
def con(home: Home) -> Iterator[duckdb.DuckDBPyConnection]:
    with connected(home, 2) as opened:
        yield opened


def staged(
    spark: SparkSession, con: duckdb.DuckDBPyConnection, folder: Path, shape: MatchRules, plain: list[dict[str, Any]]
) -> Rows:
    """The rows in two files, whose names have wildcards, and the events e0 to e39."""
    expect_rows(spark, len(plain))
    table = table_of(shape, plain)
    half = len(table) // 2
    paths = [folder / f"staged [{part}]*.parquet" for part in (0, 1)]
    for path, part in zip(paths, (table.slice(0, half), table.slice(half)), strict=True):
        pq.write_table(part, path)
    pq.write_table(pa.table({"event_id": [f"e{n}" for n in range(40)]}), folder / "events.parquet")
    files = MatchFiles(con, list(map(str, paths)), [str(folder / "events.parquet")])
    return Rows(plain, frame_of(spark, table), files, spark.read.parquet(str(folder / "events.parquet")))


def measured_plainly(shape: MatchRules, row: dict[str, Any]) -> dict[str, Any]:
    """The measures of a row, one by one, from what they mean."""
    events = {n: (row[n] or []) if kleene else [row[n]] * (row[n] is not None) for n, kleene in shape.names.items()}
    ids = [e["event_id"] for found in events.values() for e in found]

    def us(time: datetime | None) -> int | None:
        return None if time is None else (time - T0) // timedelta(microseconds=1)

    def minus(left: int | None, right: int | None) -> int | None:
        return None if left is None or right is None else left - right

    def end(which: Any, names: Any) -> int | None:
        return which((t for n in names for e in events[n] if (t := us(e["ts"])) is not None), default=None)

    def gap(bound: frozenset[str], order: frozenset[tuple[str, str]]) -> int | None:
        if any(bool(events[n]) != (n in bound) for n in shape.names):
            return None
        between = [minus(end(min, later), end(max, earlier)) for earlier, later in order]
        return min((g for g in between if g is not None), default=None) if order else shape.window_us + 1

    fits = any(all(bool(events[n]) == (n in bound) for n in shape.names) for bound, _ in shape.branches)
    gaps = [g for branch in shape.branches if (g := gap(*branch)) is not None]
    start, stop, decision = (us(row[name]) for name in ("start_ts", "end_ts", "decision_ts"))
    decided = (None if start is None else start + shape.window_us) if shape.waits else stop
    return {
        **{name: row[name] for name in FIXED_COLUMNS},
        **{bound_column(name): len(found) for name, found in events.items()},
        "decision_day": None if row["decision_ts"] is None else str(row["decision_ts"].date()),
        "span_us": minus(stop, start),
        "start_off_us": minus(start, end(min, events)),
        "end_off_us": minus(stop, end(max, events)),
        "decision_off_us": minus(decision, decided),
        "null_event_ids": ids.count(None),
        "repeated_events": len(ids) - len(set(ids)),
        "names_fit": fits,
        "order_gap_us": max(gaps, default=None),
        "copies": 1,
    }


def by_id(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Rows whose columns may come in any order, and whose UTC has several names, to be compared."""

    def plain(value: Any) -> str:
        return value.isoformat() if isinstance(value, datetime) else str(value)

    return sorted((str(r["match_id"]), str(sorted((name, plain(value)) for name, value in r.items()))) for r in rows)


def test_measures_of_every_shape_are_what_they_mean(
    spark: SparkSession, con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """By Spark and by DuckDB alike; the extremes that either takes are those of the rows."""
    for number, (name, shape) in enumerate(SHAPES.items()):
        folder = tmp_path / name
        folder.mkdir()
        rows = staged(spark, con, folder, shape, rows_of(shape, number))
        wanted = by_id([measured_plainly(shape, row) for row in rows.plain])
        columns = rows.frame.columns
        found = con.sql(measured_rows(shape, columns, rows.files)).to_arrow_table().drop_columns("unknown_event")
        assert by_id(found.to_pylist()) == wanted, name
        measured = measured_by_spark(shape, rows.frame.coalesce(1), copies="1").drop("event_ids")
        assert by_id(measured.toArrow().to_pylist()) == wanted, name
        frames = (
            extremes_of(measured.selectExpr("*", "cast(null AS string) unknown_event")),
            three_rows(*aggregated(shape, columns, rows.files)),
        )
        by_spark, by_files = (frame.sort_values(list(frame.columns)).reset_index(drop=True) for frame in frames)
        assert len(by_files) == 3 * 3  # two days and rows without one
        pd.testing.assert_frame_equal(by_files[by_spark.columns], by_spark, check_dtype=False)


def test_what_is_there_twice_or_unknown_is_seen_wherever_it_stands(
    spark: SparkSession, con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    shape = SHAPES["repetition"]
    good = [row for row in rows_of(shape, 1) if row["match_id"] and row["decision_ts"]]
    rows = staged(spark, con, tmp_path, shape, good)
    assert not some_twice(rows.files) and not some_unknown(shape, rows.files)
    assert extremes_in_files(shape, rows.frame.columns, rows.files) is not None
    for name, bad in {
        "twice": good[7],
        "single": {**good[7], "match_id": "x", "c": {"event_id": "e40", "ts": T0, "type": "A", "x": 1.0}},
        "array": {**good[7], "match_id": "x", "b": [{"event_id": "e1", "ts": T0}, {"event_id": "e40", "ts": T0}]},
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        more = staged(spark, con, folder, shape, [*good, bad])
        assert (some_twice(more.files), some_unknown(shape, more.files)) == (name == "twice", name != "twice")
        assert extremes_in_files(shape, more.frame.columns, more.files) is None
        assert extremes(shape, more.frame, more.events) is None
    nothing = MatchFiles(con, rows.files.staged, [])
    assert some_unknown(shape, nothing)


def test_good_rows_pass_without_spark_and_a_bad_one_is_named(
    spark: SparkSession, con: duckdb.DuckDBPyConnection, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = SHAPES["sequence"]

    def match(number: int, start: int) -> dict[str, Any]:
        a, b, c = ({"event_id": f"e{3 * number + i}", "ts": time_of(start + i * MINUTE)} for i in range(3))
        ends = {"start_ts": a["ts"], "end_ts": c["ts"], "decision_ts": c["ts"]}
        return {"match_id": f"{number:032x}", **ends, "a": a, "b": b, "c": c}

    audit = Audit(home)
    good = [match(number, (number - 6) * MINUTE) for number in range(10)]
    rows = staged(spark, con, tmp_path, shape, good)
    with monkeypatch.context() as patched:
        patched.setattr(matches_gate, "measures", lambda *_: pytest.fail("all rows were measured"))
        patched.setattr(matches_gate, "extremes", lambda *_: pytest.fail("Spark looked for the extremes"))
        outcome = audit_matches(audit, shape, rows.frame, DAYS, rows.events, small=0, files=rows.files)
        assert outcome == dict.fromkeys(DAYS)
    bad = [*good[:8], {**good[8], "a": {**good[8]["a"], "event_id": "e99"}}, good[9]]
    (tmp_path / "bad").mkdir()
    rows = staged(spark, con, tmp_path / "bad", shape, bad)
    outcome = audit_matches(audit, shape, rows.frame, DAYS, rows.events, small=0, files=rows.files)
    assert outcome[DAYS[0]] is None
    assert f"match_id={8:032x}" in str(outcome[DAYS[1]]) and "unknown_event=e99" in str(outcome[DAYS[1]])


def test_as_many_cores_as_spark_has_here(spark: SparkSession) -> None:
    assert idle_cores(spark) == spark.sparkContext.defaultParallelism
