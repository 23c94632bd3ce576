"""Resolving gives the rows that the rules name, row by row: on small random deliveries, by hand and by tasks."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from chainlake.definitions.source import Source, load_source
from chainlake.ingest.events.local import in_order, resolve_local
from chainlake.ingest.events.resolution import Resolution
from chainlake.ingest.landing.discovery import Landed
from chainlake.ingest.landing.effective import Effective
from chainlake.lake.delta import tables
from chainlake.lake.delta.data_files import DataFiles
from chainlake.lake.store.files import FilesLake
from chainlake.paths import Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from chainlake.schemas.events import events_table
from chainlake.schemas.raw import raw_table
from chainlake.schemas.table import TIMESTAMP
from tests.lake.appending import append_files

pytestmark = pytest.mark.slow

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
    parts = []
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
        parts.append(pa.table(columns))
    return files, parts


def plainly(source: Source, files: list[Landed], parts: list[pa.Table]) -> dict[tuple[str, int], tuple[str, int]]:
    """(file, line) → fate and seq, by docs/semantics.md#identity-of-events."""
    best: dict[tuple, int] = {}
    scoped = [bool(source.replaces) and f.file_date is not None for f in files]

    def scope(file: Landed, key: str | None) -> tuple:
        return (file.file_date, key if "key" in source.replaces else None)

    for file, table, one in zip(files, parts, scoped, strict=True):
        for key in {*table["k"].to_pylist(), file.fields.get("key")} if one else ():
            best[scope(file, key)] = max(file.revision, best.get(scope(file, key), 0))
    places: dict[tuple, list[tuple[tuple, str, int]]] = {}
    found: dict[tuple[str, int], tuple[str, int]] = {}
    for file, table, one in zip(files, parts, scoped, strict=True):
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
def test_rows_have_the_fates_that_the_rules_name(tmp_path: Path, rules: str) -> None:
    source = source_of(tmp_path, RULES[rules])
    totals = [0, 0, 0]
    for seed in range(25):
        files, parts = delivery(seed)
        found = resolve_local(source, files, [t.append_column("file", pa.array([f.path] * len(t), pa.string()))
                                              for f, t in zip(files, parts, strict=True)])  # fmt: skip
        plain = plainly(source, files, parts)
        there = {(row["file"], row["line"]) for row in found.events.to_pylist()}
        assert there == {at for at, (fate, _) in plain.items() if fate == "event"}
        for at, number in enumerate((found.duplicates, found.conflicts, found.superseded)):
            totals[at] += number
        fates = [fate for fate, _ in plain.values()]
        assert [found.duplicates, found.conflicts, found.superseded] == [
            fates.count(fate) for fate in ("duplicate", "conflict", "superseded")
        ]
    # None of the rules was left out by chance.
    assert (totals[0] > 0) == (rules != "disjoint")
    assert (totals[1] > 0) == (rules in ("latest", "all"))
    assert (totals[2] > 0) == ("replaces" in RULES[rules])


@pytest.mark.parametrize("rules", RULES)
def test_tasks_write_the_events_that_the_rules_name(tmp_path: Path, rules: str) -> None:
    """Many deliveries at once, each with days of its own, cut into small slices."""
    source = source_of(tmp_path, RULES[rules])
    home = Home(tmp_path, str(tmp_path / "lake"), tmp_path, tmp_path)
    raw = raw_table(source)
    for table in (raw, events_table(source)):
        tables.ensure_table(home, table)
    effective, expected = [], {}
    with DataFiles(home.table("raw", source.name), raw) as out:
        for seed in range(40):
            shift = timedelta(days=10 * seed)
            files, parts = delivery(seed)
            expected |= {(f"{seed}/{path}", line): fate for (path, line), fate in plainly(source, files, parts).items()}
            for f, part in zip(files, parts, strict=True):
                load = f"{seed}/{f.path}"
                day = f.file_date + shift if f.file_date else None
                spans = (DAY + shift, DAY + shift) if len(part) else (None, None)
                effective.append(Effective(load, day, f.revision, load, f.fields.get("key"), True, *spans))
                ts = pa.array([t + shift for t in part["ts"].to_pylist()], TIMESTAMP)
                part = part.set_column(part.column_names.index("ts"), "ts", ts)
                for name in ("load_id", "file_id"):
                    part = part.append_column(name, pa.array([load] * len(part), pa.string()))
                out.write(part.append_column("event_date", ts.cast(pa.date32())))
        append_files(home, raw, out.close(), app="t", base_version=0, mark="m")
    staging = tmp_path / "staging"
    staging.mkdir()
    days = [DAY + timedelta(days=10 * seed) for seed in range(40)]
    found = Resolution(source, Ports(LocalTasks(), FilesLake(home)), str(staging)).of(effective, days)
    fates = [fate for fate, _ in expected.values()]
    counts = {name: sum(day[name] for day in found.counted.values()) for name in ("rows", "duplicates", "conflicts")}
    counts["superseded"] = sum(day["superseded"] for day in found.counted.values())
    assert list(counts.values()) == [fates.count(one) for one in ("event", "duplicate", "conflict", "superseded")]
    assert all(day["rows_raw"] == sum(day[name] for name in counts) for day in found.counted.values())
    append_files(home, events_table(source), found.change.files, app="t", base_version=0, mark="m")
    events = tables.arrow(home, "events", source.name).to_pylist()
    assert {(row["file_id"], row["line"]): ("event", row["seq"]) for row in events} == {
        at: (fate, seq) for at, (fate, seq) in expected.items() if fate == "event"
    }


def test_order_of_files_is_date_revision_path_and_equal_contents_count_once() -> None:
    def file(path: str, content: str, day: date | None, revision: int = 0) -> Landed:
        return Landed(path, "", None, 0, "", content, {}, day, revision)

    late = DAY + timedelta(days=1)
    given = [file("a", "1", late), file("b", "2", DAY, 10), file("c", "3", DAY, 9), file("d", "4", None)]
    given += [file("z", "2", DAY, 10), file("e", "5", DAY, 9)]
    assert [f.path for f in in_order(given)] == ["d", "c", "e", "b", "a"]
