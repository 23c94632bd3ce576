"""Many small tasks that write data files: the tables are those of one task, killed or not."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from chainlake.days import day_start_us
from chainlake.definitions.source import Source, load_sources
from chainlake.errors import AuditFailed
from chainlake.ingest.events import resolution, resolve
from chainlake.ingest.events import slices as planning
from chainlake.ingest.events.corrections import Superseded
from chainlake.ingest.events.resolve import ResolveWork
from chainlake.ingest.events.slices import RawSlice, raw_slices
from chainlake.ingest.rows import groups
from chainlake.lake import faults
from chainlake.lake.delta import data_files, tables
from chainlake.lake.delta.data_files import DataFile, DataFiles
from chainlake.lake.records import ops
from chainlake.lake.store.files import FilesLake
from chainlake.lake.upkeep.maintain import maintain_table
from chainlake.lake.upkeep.same import same_tables
from chainlake.paths import Home
from chainlake.run.tasks import LocalTasks
from chainlake.schemas.events import events_table
from chainlake.schemas.raw import raw_table
from tests.ingest.conftest import Lake
from tests.lake.appending import append_files

pytestmark = pytest.mark.slow

DAYS = [date(2025, 1, 1), date(2025, 1, 2), date(2025, 1, 3)]


def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is a group, and a slice holds few rows."""
    monkeypatch.setattr(groups, "_MOST_BYTES", 1)
    monkeypatch.setattr(groups, "_LEAST_BYTES", 1)
    monkeypatch.setattr(planning, "_ROWS_PER_TASK", 90)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many slices each run has had."""
    counts: list[int] = []
    real = resolution.raw_slices

    def counted(*args: Any) -> list[RawSlice]:
        found = real(*args)
        counts.append(len(found))
        return found

    monkeypatch.setattr(resolution, "raw_slices", counted)
    return counts


def bars(seed: int, days: list[date], rows: int = 60) -> str:
    """Bars with repetitions, conflicts and lines that are none."""
    rng = random.Random(seed)
    lines = ["ts,ticker,price,volume"]
    for _ in range(rows):
        time = f"{rng.choice(days)} {rng.randint(9, 11):02d}:00:0{rng.randint(0, 3)}.{rng.choice(['000001', '5'])}"
        lines.append(f"{time},{rng.choice('ABÇ')},{rng.choice([1.5, 0, -1, ''])},{rng.choice([100, 9007199254740992])}")
    return "\n".join(lines) + "\n"


def ticks(seed: int) -> str:
    rng = random.Random(seed)
    rows = [f"{rng.choice([34200000, 34200001, 79200000])},{rng.randint(1, 3)},{rng.choice([5, ''])},00,{kind}\n"
            for kind in rng.choices("TTQX", k=120)]  # fmt: skip
    return "".join(rows)


LANDED = {
    "bars": {
        "bars_20250101.csv": bars(1, DAYS[:1]),
        "bars_20250101_part.csv": bars(2, DAYS[:2]),
        "bars_20250102.csv": bars(3, DAYS[1:2]),
        "bars_20250102_r2.csv": bars(4, DAYS[1:]),
        "bars_20250103.csv": bars(5, DAYS, 200) + "dirt\n",
        "copy/bars_20250103.csv": bars(5, DAYS, 200) + "dirt\n",
    },
    "ticks": {f"{part}20250101_spy_ticks.csv": ticks(seed) for part, seed in (("", 1), ("b_", 2), ("c_", 1))},
}
LATE = {
    "bars": {"bars_20250102_r3.csv": bars(6, DAYS[1:]), "a/bars_20250101.csv": bars(7, DAYS[:1])},
    "ticks": {"late_20250101_spy_ticks.csv": ticks(9)},
}
VOLATILE = {"load_id", "ingested_at", "written_at", "run_id", "seq"}


def everything(home: Home, source: str) -> dict[str, list[str]]:
    """All tables of a source, as texts in an order of their own."""
    found = {}
    for schema in ("raw", "events", "quarantine"):
        found[schema] = tables.arrow(home, schema, source).to_pylist()
    for name in ("event_days", "rates", "files"):
        found[name] = ops.current(home, name, source=source)
    kept = {"seq"} if source == "ticks" else set()
    return {
        name: sorted(str(sorted((k, str(v)) for k, v in row.items() if k not in VOLATILE - kept)) for row in rows)
        for name, rows in found.items()
    }


@pytest.mark.parametrize("source", ["bars", "ticks"])
def test_many_small_tasks_give_the_tables_of_few(lake: Lake, monkeypatch, parts: list[int], source: str) -> None:
    other = lake.other("one task")
    for at in (lake, other):
        for name, content in LANDED[source].items():
            at.land(source, name, content)
    with monkeypatch.context() as patch:
        small(patch)
        lake.ingest(source, "2025-01-01", "2025-01-05")
    other.ingest(source, "2025-01-01", "2025-01-05")
    assert parts[0] > len(DAYS if source == "bars" else DAYS[:1]) and parts[1] == 1
    ours, others = everything(lake.home, source), everything(other.home, source)
    for name, rows in others.items():
        assert ours[name] == rows, name
    fates = Counter()
    for row in lake.days(source).values():
        fates.update({name: row[name] for name in ("rows", "duplicates", "conflicts", "superseded")})
    wanted = ("rows", "duplicates", "conflicts", "superseded") if source == "bars" else ("rows", "duplicates")
    assert all(fates[name] for name in wanted) and others["quarantine"]
    # Into days that hold events already: some are added, of bars others are changed and withdrawn.
    results = []
    for at in (lake, other):
        for name, content in LATE[source].items():
            at.land(source, name, content)
        with monkeypatch.context() as patch:
            if at is lake:
                small(patch)
            result = at.ingest(source, "2025-01-01", "2025-01-05")
        results.append((result["added"], result["changed"], result["withdrawn"]))
    assert results[0] == results[1] and all(results[0]) == (source == "bars") and results[0][0]
    assert everything(lake.home, source) == everything(other.home, source)
    assert same_tables(lake.home, other.home) == []
    assert not leftovers(lake.home, source)
    assert not list(Path(lake.home.staging).rglob("*.parquet"))


def leftovers(home: Home, source: str) -> set[Path]:
    """Files of the newest events that are no part of the table."""
    folder = Path(home.table("events", source))
    delta = DeltaTable(str(folder))
    named = {action["path"] for version in range(delta.version() + 1) for action in commit(folder, version)}
    return {path for path in folder.rglob("*.parquet") if path.relative_to(folder).as_posix() not in named}


def commit(folder: Path, version: int) -> list[dict[str, Any]]:
    text = (folder / f"_delta_log/{version:020}.json").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    return [line[kind] for line in lines for kind in ("add", "cdc") if kind in line]


def test_killed_at_any_write_the_retry_comes_to_the_same_and_what_is_left_goes(
    lake: Lake, monkeypatch, parts: list[int]
) -> None:
    small(monkeypatch)
    clean = lake.other("clean")
    for at in (lake, clean):
        at.land("bars", "bars_20250101.csv", LANDED["bars"]["bars_20250101.csv"])
    clean.ingest("bars", "2025-01-01", "2025-01-02")

    class Killed(BaseException):
        pass

    folders = {schema: Path(lake.home.table(schema, "bars")) for schema in ("raw", "events")}
    for point in ("raw.before", "changing.before", "events.before", "events.after"):

        def kill(here: str, wanted: str = f"ingest.{point}") -> None:
            if here == wanted:
                raise Killed(here)

        with monkeypatch.context() as patch:
            patch.setattr(faults, "reached", kill)
            with pytest.raises(Killed):
                lake.ingest("bars", "2025-01-01", "2025-01-02")
        held = tables.arrow(lake.home, "events", "bars")
        assert bool(len(held)) == (point == "events.after")
    assert lake.days("bars")[DAYS[0]]["status"] == "changing"
    files = list(folders["events"].rglob("*.parquet"))
    assert len(files) > 3 * parts[0] - 1
    lake.ingest("bars", "2025-01-01", "2025-01-02")
    # A commit of the attempt before has changed the version in any case; nothing differs, but the days were changing.
    assert same_tables(lake.home, clean.home) == []
    assert everything(lake.home, "bars")["events"] == everything(clean.home, "bars")["events"]
    for schema, folder in folders.items():
        maintain_table(lake.home, schema, "bars", keep=timedelta(0))
        live = {Path(path) for path in _uris(lake.home, schema)}
        assert set(folder.rglob("part-*.parquet")) == live
    assert same_tables(lake.home, clean.home) == []


def test_a_file_that_goes_before_it_counts_leaves_an_empty_day(lake: Lake, monkeypatch, parts: list[int]) -> None:
    path = lake.land("bars", "bars_20250101.csv", LANDED["bars"]["bars_20250101.csv"])
    with monkeypatch.context() as patch:
        patch.setattr(faults, "reached", lambda here: 1 / (here != "ingest.changing.after"))
        with pytest.raises(ZeroDivisionError):
            lake.ingest("bars", "2025-01-01", "2025-01-02")
    path.unlink()
    assert len(tables.arrow(lake.home, "raw", "bars"))
    lake.ingest("bars", "2025-01-01", "2025-01-02")
    day = lake.days("bars")[DAYS[0]]
    assert (day["status"], day["rows"]) == ("provisional", 0)
    assert not len(tables.arrow(lake.home, "events", "bars"))


def _uris(home: Home, schema: str) -> list[str]:
    return [unquote(uri) for uri in DeltaTable(home.table(schema, "bars")).file_uris()]


def source_of(lake: Lake, name: str = "bars", **changes: str) -> Source:
    path = lake.home.config / "sources" / f"{name}.yaml"
    text = path.read_text()
    for old, new in changes.items():
        text = text.replace(f"{old}:", f"{old}: {new} #")
    path.write_text(text)
    return load_sources(lake.home)[name]


def raw_rows(n: int, seed: int, load: str = "l") -> pa.Table:
    rng = random.Random(seed)
    rows = []
    for line in range(n):
        day = rng.choice(DAYS)
        us = day_start_us(day) + rng.choice([0, 1, 86_399_999_999, rng.randrange(86_400_000_000)])
        ts = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)
        row = {"load_id": load, "line": line, "entry": 0, "file_id": "f", "type": "Bar", "ticker": rng.choice("ABC")}
        rows.append({**row, "ts": ts, "price": 1.0, "volume": line, "event_date": day})
    return pa.Table.from_pylist(rows)


def put(home: Home, source: Source, rows: pa.Table) -> None:
    table = raw_table(source)
    tables.ensure_table(home, table)
    tables.ensure_table(home, events_table(source))
    with DataFiles(home.table("raw", source.name), table) as out:
        out.write(rows)
        files = out.close()
    base = tables.version(home, "raw", source.name)
    assert base is not None
    append_files(home, table, files, app="t", base_version=base, mark="m")


def cut(home: Home, source: Source, days: list[date], version: int = 0) -> list[RawSlice]:
    lake = FilesLake(home)
    held, events = (lake.day_files(*one) for one in (("raw", "bars", days), ("events", "bars", days, version)))
    return raw_slices(source, days, held, events, parallelism=1)


@pytest.mark.parametrize("column", ["ts", "ticker"])
def test_slices_hold_every_row_once(lake: Lake, monkeypatch: pytest.MonkeyPatch, column: str) -> None:
    source = source_of(lake)
    monkeypatch.setattr(data_files, "_ROWS_GATHERED", 20)
    monkeypatch.setattr(data_files, "_ROWS_PER_GROUP", 20)
    for number, load in enumerate(("l", "m", "dead")):
        rows = raw_rows(200, number, load)
        put(lake.home, source, rows.sort_by([(column, "ascending")]))
    whole = tables.arrow(lake.home, "raw", "bars", filters=[("load_id", "in", ["l", "m"])])
    columns = set()
    for size in (7, 70, 10_000):
        for days in (DAYS, DAYS[1:], DAYS[::2]):
            for sampled in (30, 10_000):
                monkeypatch.setattr(planning, "_SAMPLED_ROWS", sampled)
                monkeypatch.setattr(planning, "_ROWS_PER_TASK", size)
                parts = cut(lake.home, source, days)
                found = pa.concat_tables([part.read(source, ["l", "m"]) for part in parts])
                expected = whole.filter(pc.is_in(whole["event_date"], pa.array(days)))
                assert Counter(rows_of(found)) == Counter(rows_of(expected))
                assert pc.all(pc.equal(found["event_date"], found["ts"].cast(pa.date32(), safe=False))).as_py()
                assert size != 70 or sampled == 30 or len(parts) > len(days)
                columns |= {part.column for part in parts}
    assert columns >= {"", column}


def rows_of(table: pa.Table) -> Any:
    return zip(table["load_id"].to_pylist(), table["line"].to_pylist(), strict=True)


def test_a_day_is_cut_by_what_lies_together_in_its_files(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "_ROWS_GATHERED", 20)
    monkeypatch.setattr(data_files, "_ROWS_PER_GROUP", 20)
    monkeypatch.setattr(planning, "_ROWS_PER_TASK", 60)
    rows = raw_rows(900, 1).filter(pc.equal(pc.field("event_date"), pa.scalar(DAYS[0])))
    for column in ("ts", "ticker"):
        home = lake.other(column).home
        source = load_sources(home)["bars"]
        put(home, source, rows.sort_by([(column, "ascending"), ("line", "ascending")]))
        parts = cut(home, source, DAYS[:1])
        assert len(parts) > 2
        assert {part.column for part in parts} == {column}
        # Most row groups are read by one of them.
        assert planning._read_by(parts) < 2 * len(rows)


@pytest.mark.parametrize(
    ("rows", "parallelism", "number"), [(1_820_000, 2, 6), (1_820_000, 64, 5), (1_820_000, 5, 5), (1_820_000, 3, 6)]
)
def test_no_core_waits_for_the_last_slice_of_a_day(rows: int, parallelism: int, number: int) -> None:
    assert planning._parts(rows, 400_000, parallelism) == number


def test_rows_of_one_value_are_one_slice(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of(lake)
    rows = raw_rows(200, 1).filter(pc.equal(pc.field("event_date"), pa.scalar(DAYS[0])))
    same = rows.take(pa.array([0] * 50))
    put(lake.home, source, same)
    monkeypatch.setattr(planning, "_ROWS_PER_TASK", 7)
    assert len(cut(lake.home, source, DAYS[:1])) == 1
    put(lake.home, source, rows)
    found = cut(lake.home, source, DAYS[:1])
    assert len(found) > 1
    assert sum(len(part.read(source, ["l"])) for part in found) == len(rows) + len(same)


def work_of(lake: Lake, source: Source, *loads: str) -> ResolveWork:
    staging = lake.home.root / "staging"
    staging.mkdir(exist_ok=True)
    events = lake.home.table("events", "bars")
    return ResolveWork(source, loads, Superseded(), events, str(staging), datetime.now(UTC))


def test_an_event_that_breaks_a_rule_stops_the_step(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of(lake)
    put(lake.home, source, raw_rows(20, 1))
    monkeypatch.setattr(resolve, "event_ids", lambda source, rows: pa.array(["short"] * len(rows)))
    (part,) = cut(lake.home, source, DAYS)
    rule = "a row breaks a rule of events.bars: CHECK constraint event_id_is_hash .* - event_id : short"
    with pytest.raises(AuditFailed, match=rule):
        LocalTasks().map(work_of(lake, source, "l"), [part])
    assert not list(Path(lake.home.table("events", "bars")).rglob("*.parquet"))


def test_a_task_tells_what_differs_from_the_events_there(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    source, table = source_of(lake), events_table(source_of(lake))
    monkeypatch.setattr(planning, "_ROWS_PER_TASK", 100)
    put(lake.home, source, raw_rows(200, 1, "l"))
    put(lake.home, source, raw_rows(50, 2, "m"))

    def told(loads: list[str], version: int) -> tuple[list[DataFile], Counter[str], int]:
        parts = cut(lake.home, source, DAYS, version)
        assert len(parts) > 1
        files, ops_found, events = [], Counter[str](), 0
        for report in LocalTasks().map(work_of(lake, source, *loads), parts):
            moved = pq.read_table(list(report.moved))["_op"].to_pylist() if report.moved else []
            assert report.n_moved == len(moved)
            ops_found.update(moved)
            files += report.files
            events += sum(counts.rows for counts in report.days.values())
        return files, ops_found, events

    files, moved, first = told(["l"], 0)
    assert not moved and sum(file.rows for file in files) == first > 50
    append_files(lake.home, table, files, app="t", base_version=0, mark="m")
    assert told(["l"], 1) == ([], Counter(), first)
    files, moved, both = told(["l", "m"], 1)
    assert not moved and sum(file.rows for file in files) == both - first > 0
    # Rows that are gone, all of them or some, and rows that another file gives now.
    assert told(["nobody"], 1) == ([], Counter(D=first), 0)
    files, moved, second = told(["m"], 1)
    kept = second - sum(file.rows for file in files)
    assert moved["D"] + kept == first and moved["U"] > 0
