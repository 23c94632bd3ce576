"""Resolving with and without Spark gives the rows that the rules name, row by row: on small random deliveries."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from chainlake.definitions.source import Source, load_source
from chainlake.ingest.events.local import in_order, resolve_local
from chainlake.ingest.events.resolve import resolve
from chainlake.ingest.landing.discovery import Landed
from chainlake.ingest.landing.effective import Effective

BASE = """\
key: k
type: {column: kind}
attributes: {v: {type: double}, s: {type: string}}
path: '(?P<date>\\d{8})(_(?P<key>[a-c]))?(_r(?P<revision>\\d+))?'
formats:
  - time: {column: t}
    map: {k: {path: key}}
"""
RULES = {
    "latest": "on_conflict: latest\nreplaces: [file_date, key]\n",
    "all": "on_conflict: quarantine_all\nreplaces: [file_date]\n",
    "overlapping": "identity: multiset\nreplaces: [file_date, key]\n",
    "disjoint": "identity: multiset\ndelivery: disjoint\n",
}
DAY = date(2025, 1, 1)


def source_of(folder: Path, rules: str) -> Source:
    file = folder / "x.yaml"
    file.write_text(BASE + rules)
    return load_source(file)


def delivery(seed: int) -> tuple[list[Landed], list[pa.Table]]:
    """A few files in order, with many rows of one place, equal contents, missing values and both zeros."""
    rng = random.Random(seed)
    files = []
    for number in range(rng.randint(1, 5)):
        day = rng.choice([None, DAY, DAY, DAY + timedelta(days=1)])
        key, revision = rng.choice(["", "a", "b"]), rng.choice([0, 0, 1, 2])
        fields = {"key": key} if key else {}
        files.append(Landed(f"f{number}", "", None, 0, "", f"id{number}", fields, day, revision))
    files = in_order(rng.sample(files, len(files)))
    tables = []
    for _ in files:
        n = rng.randint(0, 12)
        times = [datetime(2025, 1, 1, 0, 0, rng.randint(0, 1), tzinfo=UTC) for _ in range(n)]
        columns = {
            "line": pa.array(rng.sample(range(2, n + 2), n), pa.int64()),
            "entry": pa.array([0] * n, pa.int64()),
            "type": pa.array(rng.choices("TQ", k=n), pa.string()),
            "k": pa.array(rng.choices("ab", k=n), pa.string()),
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "v": pa.array(rng.choices([None, 0.0, -0.0, 1.5], k=n), pa.float64()),
            "s": pa.array(rng.choices([None, "", "x"], weights=[4, 1, 1], k=n), pa.string()),
        }
        tables.append(pa.table(columns))
    return files, tables


def plainly(source: Source, files: list[Landed], tables: list[pa.Table]) -> dict[tuple[str, int], tuple[str, int]]:
    """(file, line) → fate and seq, by docs/semantics.md#identity-of-events."""
    best: dict[tuple, int] = {}
    scoped = [bool(source.replaces) and f.file_date is not None for f in files]

    def scope(file: Landed, key: str | None) -> tuple:
        return (file.file_date, key if "key" in source.replaces else None)

    for file, table, one in zip(files, tables, scoped, strict=True):
        for key in {*table["k"].to_pylist(), file.fields.get("key")} if one else ():
            best[scope(file, key)] = max(file.revision, best.get(scope(file, key), 0))
    places: dict[tuple, list[tuple[tuple, str, int]]] = {}
    found: dict[tuple[str, int], tuple[str, int]] = {}
    for file, table, one in zip(files, tables, scoped, strict=True):
        for row in sorted(table.to_pylist(), key=lambda row: row["line"]):
            if one and file.revision < best[scope(file, row["k"])]:
                found[file.path, row["line"]] = ("superseded", 0)
                continue
            content = (None if row["v"] is None else row["v"] + 0.0, row["s"])
            places.setdefault((row["type"], row["k"], row["ts"]), []).append((content, file.path, row["line"]))
    for rows in places.values():
        seen: set[tuple] = set()
        wins = rows[-1 if source.on_conflict == "latest" else 0][0]
        torn = source.on_conflict == "quarantine_all" and any(content != wins for content, _, _ in rows)
        copies: dict[tuple, int] = {}
        for content, path, line in rows:
            if source.identity == "multiset":
                within = (content, path if source.delivery == "overlapping" else "")
                copies[within] = copies.get(within, 0) + 1
                identity = (content, copies[within])
            else:
                identity = (content,)
                if torn or content != wins:
                    found[path, line] = ("conflict", 0)
                    continue
            found[path, line] = ("duplicate" if identity in seen else "event", len(seen))
            seen.add(identity)
    return found


@pytest.mark.parametrize("rules", RULES)
def test_both_ways_take_the_same_rows(tmp_path: Path, spark, rules: str) -> None:
    source = source_of(tmp_path, RULES[rules])
    # Deliveries of a key of their own, so that Spark resolves all of them at once.
    effective, parts, expected = [], [], {}
    totals = [0, 0, 0]
    for seed in range(40):
        shift = timedelta(days=10 * seed)
        files, tables = delivery(seed)
        found = resolve_local(source, files, [t.append_column("file", pa.array([f.path] * len(t), pa.string()))
                                              for f, t in zip(files, tables, strict=True)])  # fmt: skip
        plain = plainly(source, files, tables)
        expected |= {(seed, *at): fate for at, fate in plain.items()}
        there = {(row["file"], row["line"]) for row in found.events.to_pylist()}
        assert there == {at for at, (fate, _) in plain.items() if fate == "event"}
        for at, number in enumerate((found.duplicates, found.conflicts, found.superseded)):
            totals[at] += number
        for f, table in zip(files, tables, strict=True):
            load = f"{seed}/{f.path}"
            day = f.file_date + shift if f.file_date else None
            effective.append(Effective(load, day, f.revision, load, f.fields.get("key")))
            ts = pa.array([t + shift for t in table["ts"].to_pylist()], pa.timestamp("us", tz="UTC"))
            table = table.set_column(table.column_names.index("ts"), "ts", ts)
            table = table.append_column("load_id", pa.array([load] * len(table), pa.string()))
            table = table.append_column("file_id", pa.array([load] * len(table), pa.string()))
            parts.append(table.append_column("event_date", ts.cast(pa.date32())))
    # One chunk: of a table with an empty chunk Spark reads nothing beyond it.
    raw = spark.createDataFrame(pa.concat_tables(parts).combine_chunks())
    days = [DAY + timedelta(days=10 * seed) for seed in range(40)]
    delivered = raw.where(F.col("event_date").isin(days))
    resolved = resolve(spark, source, lambda: raw, delivered, effective)
    rows = resolved.select("file_id", "line", "_fate", "seq").toArrow().to_pylist()
    fates = {(*row["file_id"].split("/"), row["line"]): (row["_fate"], row["seq"]) for row in rows}
    assert {(int(seed), file, line): (fate, seq or 0) for (seed, file, line), (fate, seq) in fates.items()} == {
        at: (fate, seq if fate == "event" else 0) for at, (fate, seq) in expected.items()
    }
    assert all((seq is None) == (fate != "event") for fate, seq in fates.values())
    counts = [fate for fate, _ in fates.values()]
    assert [counts.count(fate) for fate in ("duplicate", "conflict", "superseded")] == totals
    # None of the rules was left out by chance.
    assert (totals[0] > 0) == (rules != "disjoint")
    assert (totals[1] > 0) == (rules in ("latest", "all"))
    assert (totals[2] > 0) == ("replaces" in RULES[rules])


def test_order_of_files_is_date_revision_path_and_equal_contents_count_once() -> None:
    def file(path: str, content: str, day: date | None, revision: int = 0) -> Landed:
        return Landed(path, "", None, 0, "", content, {}, day, revision)

    late = DAY + timedelta(days=1)
    given = [file("a", "1", late), file("b", "2", DAY, 10), file("c", "3", DAY, 9), file("d", "4", None)]
    given += [file("z", "2", DAY, 10), file("e", "5", DAY, 9)]
    assert [f.path for f in in_order(given)] == ["d", "c", "e", "b", "a"]
