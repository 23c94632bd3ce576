"""Edits of a source's attributes: a new one fits the tables that there are, anything else is refused before a write."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from chainlake.days import day_start_us
from chainlake.definitions.source import load_sources
from chainlake.errors import DefinitionError, InfrastructureError, InputError
from chainlake.ingest.landing.edits import prepare_tables
from chainlake.lake import faults
from chainlake.lake.commits.changes import changes
from chainlake.lake.delta import tables
from chainlake.lake.delta.data_files import DataFile, DataFiles
from chainlake.lake.sql.query import SqlConnection
from chainlake.lake.store.event_files import EventFiles
from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.port import Part, Staged, Turn
from chainlake.lake.upkeep.maintain import maintain_table
from chainlake.lake.upkeep.same import same_tables
from chainlake.paths import Home
from chainlake.schemas.events import events_table
from chainlake.schemas.matches import MatchName, MatchShape, matches_table
from chainlake.schemas.table import Table
from tests.ingest.conftest import Lake
from tests.lake.appending import append_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

DAYS = [date(2025, 1, 1), date(2025, 1, 2)]
SCHEMAS = ("raw", "events", "quarantine")
EXTRA = ("  volume:", "  extra: {type: double, unit: m, description: New}\n  volume:")
FILES = {
    "bars_20250101.csv": lambda: bars("2025-01-01 10:00:00"),
    "bars_20250102.csv": lambda: bars("2025-01-02 10:00:00", "another"),
    "bars_20250102_b.csv": lambda: bars("2025-01-02 11:00:00"),
}


class Killed(BaseException):
    """Stands for the end of the process."""


def bars(start: str, name: str = "extra") -> str:
    """Bars, one of them twice, one conflict and a line that is none; every other one has a value of ``name``."""
    times = [datetime.fromisoformat(start) + timedelta(seconds=i) for i in range(40)]
    lines = [f"{at},{'ABC'[i % 3]},{i / 2},{i},{i / 4 if i % 2 else ''}" for i, at in enumerate(times)]
    return "\n".join([f"ts,ticker,price,volume,{name}", *lines, lines[0], lines[1].replace(",0.5,", ",9,"), "dirt", ""])


def edit(lake: Lake, old: str, new: str) -> None:
    path = lake.home.config / "sources" / "bars.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.on_spark()
@pytest.mark.parametrize("point", ["columns.before", "columns.after", "raw.before"])
def test_a_new_attribute_is_added_and_filled(session: SparkSession | None, lake: Lake, monkeypatch, point: str) -> None:
    names = list(FILES)
    for name in names[:2]:
        lake.land("bars", name, FILES[name]())
    lake.ingest("bars", "2025-01-01", "2025-01-03")
    before = lake.version("events", "bars")
    edit(lake, *EXTRA)

    def kill(here: str) -> None:
        if here == f"ingest.{point}":
            raise Killed(here)

    with monkeypatch.context() as patch:
        patch.setattr(faults, "reached", kill)
        with pytest.raises(Killed):
            lake.ingest("bars", "2025-01-01", "2025-01-03")
    result = lake.ingest("bars", "2025-01-01", "2025-01-03")
    assert (result["added"], result["changed"], result["withdrawn"]) == (0, 20, 0)
    # Events to add to a day that has a file without the column.
    lake.land("bars", names[2], FILES[names[2]]())
    assert lake.ingest("bars", "2025-01-01", "2025-01-03")["added"] == 40
    fresh = lake.other("fresh")
    for name in names:
        fresh.land("bars", name, FILES[name]())
    fresh.ingest("bars", "2025-01-01", "2025-01-03")

    feed = changes(lake.home, "events.bars", before or 0).rows
    assert sorted(zip(feed["change"].to_pylist(), feed["extra"].is_valid().to_pylist(), strict=True)) == sorted(
        [("changed", True)] * 20 + [("added", True)] * 20 + [("added", False)] * 20
    )
    check(session, lake, fresh)
    maintain_table(lake.home, "events", "bars", keep=timedelta(0))
    check(session, lake, fresh)


def check(session: SparkSession | None, lake: Lake, fresh: Lake) -> None:
    assert same_tables(lake.home, fresh.home) == []
    for schema in ("raw", "events"):
        stored = tables.arrow_schema(lake.home, schema, "bars")
        assert stored.names[-1] == "extra" and stored.field("extra").metadata[b"comment"] == b"New [m]"
    assert [d["checksum"] for d in lake.days("bars").values()] == [d["checksum"] for d in fresh.days("bars").values()]
    query = "SELECT count(*), count(extra), sum(extra), sum(volume) FROM events.bars WHERE event_date = '2025-01-02'"
    wanted = SqlConnection(fresh.home).query(query).fetchall()
    assert wanted[0][:2] == (80, 20)
    assert SqlConnection(lake.home).query(query).fetchall() == wanted
    if session is not None:
        tables.read(session, lake.home, "events", "bars").createOrReplaceTempView("edited")
        assert [tuple(row) for row in session.sql(query.replace("events.bars", "edited")).collect()] == wanted
    files = EventFiles.of(FilesLake(lake.home).day_files("events", "bars", DAYS))
    start = day_start_us(DAYS[1])
    rows = files.read(DAYS[1], ["ts", "type", "extra"], ["Bar"], start, start + 86_400_000_000)
    assert (len(rows), rows["extra"].is_valid().to_pylist().count(True)) == (80, 20)


def test_an_attribute_that_no_file_has_can_be_asked_for(lake: Lake) -> None:
    table, home = events_table(load_sources(lake.home)["bars"]), lake.home
    tables.ensure_table(home, table)
    append_files(home, table, event_in_a_file(home, table), app="a", base_version=0, mark="m")
    edit(lake, *EXTRA)
    prepare_tables(home, load_sources(home)["bars"])
    assert SqlConnection(home).query("SELECT volume, extra, event_date FROM events.bars").fetchall() == [
        (7, None, DAYS[0])
    ]
    version = tables.version(home, "events", "bars")
    prepare_tables(home, load_sources(home)["bars"])
    assert tables.version(home, "events", "bars") == version


REFUSED = {
    "volume (long) has another type": (
        ("volume: {type: long", "volume: {type: double"),
        ("bars.yaml:8:", "attribute 'volume' is of type double here, but of type long in raw.bars and events.bars"),
    ),
    "volume is gone": (
        ("  volume: {type: long, description: Shares}\n", ""),
        ("bars.yaml:5:", "attribute 'volume' is absent here, but of type long in raw.bars and events.bars"),
    ),
    "volume has another name": (
        ("  volume: {type: long", "  shares: {type: long"),
        ("attribute 'volume' is absent here", "(key attributes.volume)"),
    ),
    "the key has another name": (
        ("key: ticker", "key: symbol"),
        (
            "bars.yaml:2:",
            "the key 'symbol' is of type string and never null here, but absent in raw.bars and events.bars",
            "the key 'ticker' is absent here, but of type string and never null in raw.bars and events.bars",
        ),
    ),
}


def test_any_other_edit_is_refused_before_anything_is_written(lake: Lake) -> None:
    lake.land("bars", "bars_20250101.csv", FILES["bars_20250101.csv"]())
    lake.ingest("bars", "2025-01-01", "2025-01-02")
    versions, days = [lake.version(schema, "bars") for schema in SCHEMAS], lake.days("bars")
    lake.land("bars", "bars_20250102.csv", FILES["bars_20250102.csv"]())
    for (old, new), said in REFUSED.values():
        edit(lake, old, new)
        # Beside an attribute that could be added.
        edit(lake, "attributes:\n", "attributes:\n  other: {type: long}\n")
        with pytest.raises(DefinitionError) as error:
            lake.ingest("bars", "2025-01-01", "2025-01-03")
        text = str(error.value)
        assert [part for part in (*said, "Undo the edit", "another name") if part not in text] == [], text
        assert [lake.version(schema, "bars") for schema in SCHEMAS] == versions
        assert lake.days("bars") == days
        edit(lake, "  other: {type: long}\n", "")
        if new:
            edit(lake, new, old)
        else:
            edit(lake, "min: 0}\n", "min: 0}\n" + old)
    assert lake.ingest("bars", "2025-01-01", "2025-01-03")["added"] == 40


def event_in_a_file(home: Home, table: Table) -> list[DataFile]:
    at = datetime(2025, 1, 1, tzinfo=UTC)
    known = {"event_id": "0" * 32, "type": "Bar", "ticker": "A", "ts": at, "seq": 0, "volume": 7, "event_date": DAYS[0]}
    with DataFiles(home.table("events", "bars"), table) as out:
        out.write(pa.Table.from_pylist([known], schema=table.arrow()))
        return out.close()


@pytest.mark.parametrize("old_new", [EXTRA, ("volume: {type: long", "volume: {type: double")])
def test_files_and_rows_with_other_columns_than_the_table_are_refused(lake: Lake, old_new) -> None:
    home, files_lake = lake.home, FilesLake(lake.home)
    tables.ensure_table(home, events_table(load_sources(home)["bars"]))
    edit(lake, *old_new)
    table = events_table(load_sources(home)["bars"])
    files = event_in_a_file(home, table)
    with pytest.raises(InfrastructureError, match=r"columns of events.bars are not .*(extra|volume): stored"):
        files_lake.commit(files_lake.additions(table, files), Turn("a"))
    with pytest.raises(InfrastructureError, match="columns of events.bars are not"):
        files_lake.change(table, Staged(), Part([[]]))
    assert tables.version(home, "events", "bars") == 0


def test_matches_of_another_shape_are_refused_by_the_table_of_the_first(lake: Lake) -> None:
    def shaped(*fields: str) -> Table:
        name = MatchName("a", True, tuple((field, pa.string()) for field in fields))
        return matches_table(MatchShape("p", 1, "bars", (name,)))

    tables.ensure_table(lake.home, shaped("event_id"))
    files_lake = FilesLake(lake.home)
    change = files_lake.additions(shaped("event_id"), [])
    with pytest.raises(InfrastructureError, match=r"columns of matches.p are not .*\(a: stored"):
        files_lake.commit(replace(change, table=shaped("event_id", "more")), Turn("a", force=True))
    assert files_lake.commit(change, Turn("a", force=True)).version == 1


@pytest.mark.on_spark()
@pytest.mark.parametrize(
    ("right", "wrong", "rows", "said"),
    [
        ("volume: {type: long", "volume: {type: timestamp", 43, "bad_time"),
        ("key: ticker", "key: symbol", 0, "no_format"),
    ],
)
def test_tables_without_rows_do_not_keep_a_wrong_first_try(
    session: SparkSession | None, lake: Lake, right: str, wrong: str, rows: int, said: str
) -> None:
    edit(lake, right, wrong)
    home, name = lake.home, "bars_20250101.csv"
    lake.land("bars", name, FILES[name]())
    with contextlib.suppress(InputError):
        assert lake.ingest("bars", "2025-01-01", "2025-01-02")["rows"] == rows
    assert said in {reason for (reason,) in lake.quarantine("bars", "reason")}
    assert tables.is_empty(home, "raw", "bars") and tables.is_empty(home, "events", "bars")
    edit(lake, wrong, right)
    assert lake.ingest("bars", "2025-01-01", "2025-01-02")["added"] == 40
    fresh = lake.other("fresh")
    fresh.land("bars", name, FILES[name]())
    fresh.ingest("bars", "2025-01-01", "2025-01-02")
    assert same_tables(home, fresh.home) == []
    assert tables.arrow_schema(home, "raw", "bars") == tables.arrow_schema(fresh.home, "raw", "bars")
    assert len(changes(home, "events.bars", 0).rows) == 40
    seen = SqlConnection(home).query("SELECT count(*), sum(volume) FROM events.bars").fetchall()[0]
    assert seen == SqlConnection(fresh.home).query("SELECT count(*), sum(volume) FROM events.bars").fetchall()[0]
    if session is not None:
        tables.read(session, home, "events", "bars").createOrReplaceTempView("anew")
        assert tuple(session.sql("SELECT count(*), sum(volume) FROM anew").collect()[0]) == seen
