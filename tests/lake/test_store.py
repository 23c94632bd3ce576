"""The lake's port: what a change is, what a commit leaves, what is refused; alike for both back ends."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from chainlake.days import US_PER_DAY, day_start_us
from chainlake.errors import AuditFailed, InfrastructureError
from chainlake.lake.commits.changes import changes
from chainlake.lake.delta import data_files, tables
from chainlake.lake.delta.data_files import DataFiles
from chainlake.lake.delta.sums.checksums import checksums
from chainlake.lake.delta.where import Where
from chainlake.lake.store.errors import Overtaken, RowsOutside
from chainlake.lake.store.event_files import EventFiles
from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.port import Applied, Change, Lake, Part, Staged, Turn
from chainlake.paths import Home
from chainlake.schemas.table import TIMESTAMP, Check, Column, Table
from chainlake.storage.door import storage_of
from chainlake.storage.parquet import parquet_file
from tests.lake.appending import append_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

D1, D2, D3 = date(2025, 10, 1), date(2025, 10, 2), date(2025, 10, 3)
COLUMNS = (
    Column("id", pa.string(), "Which.", False),
    Column("owner", pa.string(), "Whose.", False),
    Column("ts", TIMESTAMP, "When.", False),
    Column("x", pa.float64(), "How much."),
    Column("text", pa.string(), "Words."),
    Column("a", pa.struct([pa.field("event_id", pa.string()), pa.field("f", pa.float64())]), "Nested."),
    Column("b", pa.list_(pa.field("element", pa.struct([pa.field("event_id", pa.string())]))), "Many."),
    Column("event_date", pa.date32(), "Day of ts.", False),
    Column("written_at", TIMESTAMP, "When it was written.", True, True),
)
RULES = (Check("x_not_minus_one", "x <> -1"), Check("event_date_is_day_of_ts", "event_date = to_date(ts)"))


def shaped(**options: Any) -> Table:
    more = {"key": ("id",), "checks": RULES, **options}
    return Table(schema="matches", name="rows", comment="For tests.", columns=COLUMNS, **more)


PLAIN, DAILY = shaped(), shaped(partition_by=("event_date",))
Row = dict[str, Any]


def row(name: str, day: date = D1, us: int = 0, x: float | None = 1.0, owner: str = "o", **more: Any) -> Row:
    ts = datetime(day.year, day.month, day.day, 12, tzinfo=UTC) + timedelta(microseconds=us)
    nested = {"event_id": name, "f": x}
    return {
        "id": name, "owner": owner, "ts": ts, "x": x, "text": "é", "a": nested, "b": [{"event_id": name}],
        "event_date": day, "written_at": None, **more,
    }  # fmt: skip


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=pa.schema([pa.field(f.name, f.type) for f in PLAIN.arrow()]))


def days_where(*days: date) -> Where:
    """Whole days by ``ts``."""
    starts = [datetime(day.year, day.month, day.day, tzinfo=UTC) for day in days]
    return [[("ts", ">=", start), ("ts", "<", start + timedelta(days=1))] for start in starts]


def part_of(*days: date, by: str = "ts", owners: list[str] | None = None) -> Part:
    mine = [] if owners is None else [("owner", "in", owners)]
    where = days_where(*days) if by == "ts" else [[("event_date", "in", list(days))]]
    return Part([[*one, *mine] for one in where], by, None if owners is None else "owner")


@pytest.fixture(params=["files", "objects", pytest.param("spark", marks=pytest.mark.spark)])
def lake(request: pytest.FixtureRequest, home: Home) -> Lake:
    if request.param == "objects":
        if "spark" in request.fixturenames:
            pytest.skip("what Spark reads of files is the same, whoever wrote them")
        # The same installation, its lake in a folder that is read and written as a store is.
        object.__setattr__(home, "lake", f"file://{home.lake}")
    if request.param != "spark":
        return FilesLake(home)
    from chainlake.lake.store.spark import SparkLake

    session = request.getfixturevalue("spark")
    return SparkLake(home, lambda: session)


def put(lake: Lake, rows: list[Row], part: Part, table: Table = PLAIN, force: bool = False) -> Applied:
    return lake.commit(lake.change(table, Staged(rows=table_of(rows)), part), Turn("test", force))


def held(home: Home) -> list[str]:
    """All rows, as text: NaN equals itself there, and -0.0 is not 0.0."""
    return sorted(map(str, tables.arrow(home, "matches", "rows").to_pylist()))


def feed(home: Home, version: int) -> list[tuple[str, str]]:
    rows = pa.table(DeltaTable(home.table("matches", "rows")).load_cdf(version, version))
    return sorted(zip(rows["id"].to_pylist(), rows["_change_type"].to_pylist(), strict=True))


def left_over(home: Home) -> list[Path]:
    """Folders of changes that were made or given up; there should be none."""
    return [*home.temporary.rglob("change-*"), *Path(home.staging).rglob("change-*")]


BEFORE = [
    row("a", x=float("nan")),
    row("b", us=123_456, x=-0.0),
    row("c", D2, x=None, a=None, b=None, text=None),
    row("d", D2, text="q" * 200_000),
    row("e", D3),
]
AFTER = [
    row("a", x=float("nan")),  # equal: NaN is NaN
    row("b", us=123_456, x=0.0),  # equal: both zeros are one number
    row("c", D2, x=None, a={"event_id": None, "f": None}, b=None, text=None),  # a struct of nulls is not null
    row("d", D2, text="q" * 199_999 + "r"),
    row("f", D2, b=[]),
    row("e", D3, b=[{"event_id": "e"}, {"event_id": None}]),
]


@pytest.mark.on_spark("spark-event_date-partitioned")
@pytest.mark.parametrize("table", [PLAIN, DAILY], ids=["plain", "partitioned"])
@pytest.mark.parametrize("by", ["ts", "event_date"])
def test_the_part_becomes_what_is_staged_and_the_feed_shows_just_the_difference(
    lake: Lake, home: Home, table: Table, by: str
) -> None:
    part = part_of(D1, D2, D3, by=by)
    assert put(lake, BEFORE, part, table) == Applied(5, 0, 0, 1)
    assert feed(home, 1) == [(name, "insert") for name in "abcde"]
    assert put(lake, BEFORE, part, table) == Applied(0, 0, 0, None)
    assert put(lake, AFTER[:-1], part, table) == Applied(1, 2, 1, 2)
    assert feed(home, 2) == [
        ("c", "update_postimage"), ("c", "update_preimage"), ("d", "update_postimage"), ("d", "update_preimage"),
        ("e", "delete"), ("f", "insert"),
    ]  # fmt: skip
    wanted = [row("b", us=123_456, x=-0.0) if one["id"] == "b" else one for one in AFTER[:-1]]
    assert held(home) == sorted(map(str, table_of(wanted).to_pylist()))
    assert tables.version(home, "matches", "rows") == 2 == lake.version("matches", "rows")
    assert not left_over(home)


def test_counts_and_checksums_are_per_owner_and_day(lake: Lake, home: Home) -> None:
    mine = part_of(D1, D2, owners=["o", "p"])
    others = [row("z", owner="z"), row("y", D2, owner="y")]
    put(lake, others, part_of(D1, D2, owners=["y", "z"]))
    put(lake, [row("a"), row("b", D2), row("c", owner="p")], mine)
    staged = [row("a", x=2.0), row("d", D2), row("e", owner="p")]
    change = lake.change(PLAIN, Staged(rows=table_of(staged)), mine)
    assert change.rows == {("o", D1): 1, ("o", D2): 1, ("p", D1): 1}
    assert change.ops == {
        ("o", D1, "U"): 1, ("o", D2, "I"): 1, ("o", D2, "D"): 1, ("p", D1, "I"): 1, ("p", D1, "D"): 1
    }  # fmt: skip
    assert change.sums == checksums([table_of(staged)], "ts", "owner", PLAIN.volatile)
    assert lake.commit(change, Turn("test")) == Applied(2, 1, 2, 3)
    assert held(home) == sorted(map(str, table_of([*others, *staged]).to_pylist()))


def test_what_lies_outside_the_part_is_neither_changed_nor_let_in_and_versions_are_read(lake: Lake, home: Home) -> None:
    put(lake, [row("a"), row("b", D2)], part_of(D1, D2))
    assert put(lake, [], part_of(D1)) == Applied(0, 0, 1, 2)
    assert [one["id"] for one in tables.arrow(home, "matches", "rows").to_pylist()] == ["b"]
    assert lake.rows("matches", "rows", columns=["id"]).to_pydict() == {"id": ["b"]}
    assert sorted(lake.rows("matches", "rows", columns=["id"], version=1)["id"].to_pylist()) == ["a", "b"]
    for staged in ([row("c", D2)], [row("c"), row("d", D3)]):
        with pytest.raises(RowsOutside, match="1 staged rows of matches.rows lie outside"):
            put(lake, staged, part_of(D1))
    assert lake.version("matches", "rows") == 2


@pytest.mark.on_spark()
def test_only_the_rows_within_are_taken_of_what_was_staged(lake: Lake, home: Home, tmp_path: Path) -> None:
    rows = table_of([row("a"), row("b", D2), row("c", D3)])
    pq.write_table(rows, tmp_path / "staged.parquet")
    by_files = Staged((str(tmp_path / "staged.parquet"),), within=days_where(D1, D3))
    change = lake.change(PLAIN, by_files, part_of(D1, D3))
    assert (change.added, change.rows) == (2, {("", D1): 1, ("", D3): 1})
    lake.commit(change, Turn("test"))
    both = Staged(by_files.paths, rows.slice(1, 1).replace_schema_metadata(), within=days_where(D1))
    assert lake.change(PLAIN, both, part_of(D1)).empty


def test_files_become_data_files_where_nothing_is_published(
    lake: Lake, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "_ROWS_OF_A_FILE", 1)
    paths = [str(tmp_path / f"{n}.parquet") for n in range(2)]
    for path, some in zip(paths, (BEFORE[:3], BEFORE[3:]), strict=True):
        pq.write_table(table_of(some), path, store_schema=False, write_page_checksum=True)
    for within in (None, days_where(D1, D2, D3)):
        change = lake.change(PLAIN, Staged(tuple(paths), within=within), part_of(D1, D2, D3))
        assert change.sums == checksums([table_of(BEFORE)], "ts", volatile=PLAIN.volatile)
        assert change.ops == {("", D1, "I"): 2, ("", D2, "I"): 2, ("", D3, "I"): 1}
        assert lake.name != "files" or change.staged == tuple(paths)
    assert lake.commit(change, Turn("test")) == Applied(5, 0, 0, 1)
    assert held(home) == sorted(map(str, table_of(BEFORE).to_pylist()))
    assert all(Path(path).exists() for path in paths)
    assert feed(home, 1) == [(name, "insert") for name in "abcde"]


def test_nothing_is_committed_unless_it_is_forced(lake: Lake, home: Home) -> None:
    assert put(lake, [], part_of(D1)) == Applied(0, 0, 0, None)
    assert put(lake, [], part_of(D1), force=True) == Applied(0, 0, 0, 1)
    put(lake, [row("a")], part_of(D1))
    assert put(lake, [row("a")], part_of(D1), force=True) == Applied(0, 0, 0, 3)
    assert DeltaTable(home.table("matches", "rows")).transaction_version("test") == 3
    assert feed(home, 3) == []


def test_changes_that_were_taken_before_another_commit_are_refused(lake: Lake, home: Home) -> None:
    """One that changes nothing, one that appends, one that merges."""
    put(lake, [row("a")], part_of(D1))
    late = [
        lake.change(PLAIN, Staged(rows=table_of(later)), part_of(D1))
        for later in ([row("a")], [row("a"), row("b")], [row("b")])
    ]
    assert [(one.added, one.changed, one.withdrawn) for one in late] == [(0, 0, 0), (1, 0, 0), (1, 0, 1)]
    put(lake, [row("c", D2)], part_of(D2))
    before = held(home)
    for one in late:
        with pytest.raises(Overtaken, match="another writer has changed matches.rows"):
            lake.commit(one, Turn("test", force=True))
    assert lake.version("matches", "rows") == 2 and held(home) == before and len(before) == 2
    assert not left_over(home)


@pytest.mark.on_spark(False)
@pytest.mark.parametrize("answer", [CommitFailedError("exists"), OSError("no answer"), KeyboardInterrupt()], ids=repr)
def test_a_commit_that_landed_keeps_its_files_whatever_was_heard_of_it(
    answer: BaseException, lake: Lake, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store whose answer is lost is asked again and says that the version is there; a signal comes meanwhile."""
    whole = DeltaTable.create_write_transaction

    def unheard(*args: Any, **named: Any) -> None:
        whole(*args, **named)
        raise answer

    with monkeypatch.context() as patch:
        patch.setattr(DeltaTable, "create_write_transaction", unheard)
        if isinstance(answer, CommitFailedError):
            assert put(lake, [row("a")], part_of(D1)) == Applied(1, 0, 0, 1)
        else:
            with pytest.raises(type(answer)):
                put(lake, [row("a")], part_of(D1))
    assert [one["id"] for one in tables.arrow(home, "matches", "rows").to_pylist()] == ["a"]
    assert put(lake, [row("a"), row("b")], part_of(D1)).added == 1


@pytest.mark.on_spark("spark-merge")
@pytest.mark.parametrize("base", [[], [row("b")]], ids=["append", "merge"])
def test_a_broken_rule_is_named_with_its_row(lake: Lake, home: Home, base: list[Row]) -> None:
    put(lake, base, part_of(D1))
    broken = {
        "CHECK constraint x_not_minus_one .* - x : -1.0": row("c", x=-1.0),
        "CHECK constraint event_date_is_day_of_ts": row("c", event_date=D2),
        "NOT NULL .*owner": row("c", owner=None),
    }
    for message, bad in broken.items():
        with pytest.raises(AuditFailed, match=f"a row breaks a rule of matches.rows: .*{message}"):
            put(lake, [row("a"), bad], Part([[]]))
    assert held(home) == sorted(map(str, table_of(base).to_pylist())) and not left_over(home)


@pytest.mark.on_spark()
def test_a_row_may_move_to_another_day_of_the_part(lake: Lake, home: Home) -> None:
    table = shaped(partition_by=("event_date",))
    put(lake, [row("a"), row("b", D3)], part_of(D1, D2, D3), table)
    assert put(lake, [row("a", D3), row("b", D1)], part_of(D1, D2, D3), table) == Applied(0, 2, 0, 2)
    assert held(home) == sorted(map(str, table_of([row("a", D3), row("b", D1)]).to_pylist()))


WHERES: list[tuple[Where, str]] = [
    ([[("text", "not in", ["v"])]], "acd"),  # a null passes "not in" ...
    ([[("text", "in", ["v", None])]], "b"),
    ([[("text", "!=", "v")]], "ad"),  # ... and nothing else
    ([[("x", "<=", 2.0), ("owner", "=", "o")], [("event_date", "in", [D3])]], "abd"),
    ([[("owner", "not in", [])]], "abcd"),
    ([[("owner", "in", [])]], ""),
    ([[]], "abcd"),
    ([], ""),
    ([[("text", "=", 'it\'s \\ "so"')]], "d"),
    ([[("ts", ">", datetime(2025, 10, 2, 11, tzinfo=UTC))]], "d"),
]


EVERYTHING = [
    row("a", x=2.0, text=""), row("b", text="v"), row("c", x=None, text=None, owner="p"),
    row("d", D3, x=3.0, text="it's \\ \"so\""),
]  # fmt: skip


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of these rows, made once."""
    root = tmp_path_factory.mktemp("everything")
    home = replace(Home.from_env(), root=root, lake=str(root / "lake"))
    put(FilesLake(home), EVERYTHING, Part([[]]))
    return Path(home.table("matches", "rows"))


@pytest.mark.on_spark("spark-where0-acd", "spark-where1-b", "spark-where8-d")
@pytest.mark.parametrize(("where", "wanted"), WHERES)
def test_a_part_is_what_its_conditions_say(lake: Lake, home: Home, everything: Path, where: Where, wanted: str) -> None:
    shutil.copytree(everything, home.table("matches", "rows").removeprefix("file://"))
    assert "".join(sorted(lake.rows("matches", "rows", where=where)["id"].to_pylist())) == wanted
    change = lake.change(PLAIN, Staged(rows=table_of([])), Part(where))
    gone = [name for path in change.moved for name in pq.read_table(path, columns=["id"])["id"].to_pylist()]
    assert "".join(sorted(gone)) == wanted and change.withdrawn == len(wanted)
    # A commit does what the change says, whatever the conditions were, and takes ten seconds on Spark.
    if lake.name == "files" or where == [[]]:
        lake.commit(change, Turn("test"))
        assert [one["id"] for one in EVERYTHING if one["id"] not in wanted] == sorted(
            tables.arrow(home, "matches", "rows")["id"].to_pylist()
        )
    with pytest.raises(RowsOutside) if len(wanted) < 4 else _nothing():
        put(lake, EVERYTHING, Part(where))


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


@pytest.mark.on_spark()
def test_files_of_days_hold_the_rows_of_these_days(lake: Lake) -> None:
    put(lake, BEFORE, part_of(D1, D2, D3), DAILY)
    put(lake, [row("g", D2)], part_of(D2), DAILY)
    for version, wanted in ((1, {D1: {"a", "b"}, D2: {"c", "d"}}), (None, {D1: {"a", "b"}, D2: {"g"}})):
        found = lake.day_files("matches", "rows", [D1, D2], version)
        ids: dict[date, set[str]] = {}
        for file in found.files:
            with parquet_file(file.path) as parquet:
                rows = parquet.read()
            assert file.size == storage_of(file.path).size(file.path)
            assert file.rows == len(rows) > 0
            ids.setdefault(file.day, set()).update(rows["id"].to_pylist())
        assert ids == wanted and len(found.paths) == len(found.files)
        assert [f.name for f in found.schema] == [name for name in DAILY.column_names if name != "event_date"]
    assert lake.day_files("matches", "rows", [date(2030, 1, 1)]).files == ()


def by_tasks(lake: Lake, table: Table, rows: list[Row], moved: list[tuple[str, Row]], folder: Path) -> Change:
    with DataFiles(lake.task_folder(table), table) as out:
        out.write(table_of(rows))
        files = out.close()
    changed = table_of([one for _, one in moved]).append_column("_op", pa.array([op for op, _ in moved], pa.string()))
    path = folder / "moved.parquet"
    pq.write_table(changed, path)
    return lake.additions(table, files, [str(path)] if moved else [])


def test_a_change_of_tasks_is_committed_as_it_is(lake: Lake, home: Home, tmp_path: Path) -> None:
    tables.ensure_table(home, DAILY)
    first = by_tasks(lake, DAILY, BEFORE, [], tmp_path)
    assert lake.commit(first, Turn("test")) == Applied(5, 0, 0, 1)
    moved = [("U", row("a", x=3.0)), ("D", row("e", D3))]
    second = by_tasks(lake, DAILY, [row("f", D2)], moved, tmp_path)
    assert lake.commit(second, Turn("test")) == Applied(1, 1, 1, 2)
    assert held(home) == sorted(map(str, table_of([row("a", x=3.0), *BEFORE[1:4], row("f", D2)]).to_pylist()))
    assert feed(home, 2) == [
        ("a", "update_postimage"), ("a", "update_preimage"), ("e", "delete"), ("f", "insert")
    ]  # fmt: skip
    log = DeltaTable(home.table("matches", "rows"))
    listed = storage_of(home.lake).files(home.table("matches", "rows"))
    there = {Path(file.path).name for file in listed if file.path.startswith("event_date=")}
    there = {name for name in there if not name.startswith(".")}  # checksums of Hadoop
    old = {Path(path).name for path in DeltaTable(log.table_uri, version=1).file_uris()}
    assert there == old | {Path(path).name for path in log.file_uris()}
    # What Spark has copied into the table is of no more use.
    assert lake.name == "files" or not list(Path(lake.task_folder(DAILY)).rglob("*.parquet"))


@pytest.mark.on_spark("files")
def test_bounds_of_rewritten_files_hide_no_row(lake: Lake, home: Home, spark: SparkSession) -> None:
    """Spark passes over files by bounds: those of numbers with NaN among them, and of µs, must not be too tight."""
    rows = [row("a", us=999_999, x=2.0), row("b", us=5, x=float("nan")), row("c", x=1.0)]
    put(lake, rows, part_of(D1))
    put(lake, [*rows[:2], row("c", x=1.5)], part_of(D1))
    frame = tables.read(spark, home, "matches", "rows")
    assert frame.where("x > 100").count() == 1
    assert frame.where("a.f > 100").count() == 1
    assert frame.where(f"ts >= timestamp_micros({_us(rows[0])})").count() == 1
    assert frame.where(f"ts > timestamp_micros({_us(rows[0]) - 1})").count() == 1


def test_rows_are_found_in_files_whose_bounds_spark_has_cut(home: Home) -> None:
    """Spark keeps milliseconds of times: the largest of a file can lie above the bound that it tells."""
    tables.ensure_table(home, PLAIN)
    with DataFiles(home.table("matches", "rows"), PLAIN) as out:
        out.write(table_of([row("a"), row("b", us=6_001)]))
        (file,) = out.close()
    told = json.loads(file.stats)
    told["maxValues"]["ts"] = "2025-10-01T12:00:00.006Z"
    append_files(home, PLAIN, [replace(file, stats=json.dumps(told))], app="x", base_version=0, mark="m")
    assert put(FilesLake(home), [row("a"), row("b", us=6_001, x=2.0)], part_of(D1)) == Applied(0, 1, 0, 2)
    exact = Part([[("ts", ">", datetime(2025, 10, 1, 12, 0, 0, 6_000, UTC))]])
    assert put(FilesLake(home), [], exact).withdrawn == 1


def _us(one: Row) -> int:
    return round(one["ts"].timestamp() * 1_000_000)


@pytest.mark.on_spark("files")
def test_the_feed_is_read_alike_by_spark_and_without_it(lake: Lake, home: Home, spark: SparkSession) -> None:
    put(lake, BEFORE, part_of(D1, D2, D3))
    put(lake, AFTER[:-1], part_of(D1, D2, D3))
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
    by_spark = reader.load(home.table("matches", "rows")).drop("_commit_timestamp").toArrow()
    kinds = ["insert", "delete", "update_postimage"]
    plain = pa.table(DeltaTable(home.table("matches", "rows")).load_cdf(1)).drop_columns("_commit_timestamp")

    def told(rows: pa.Table) -> list[str]:
        names = [*PLAIN.column_names, "_change_type", "_commit_version"]
        return sorted(str({name: one[name] for name in names}) for one in rows.to_pylist())

    assert told(by_spark) == told(plain)
    assert sum(one["_change_type"] in kinds for one in by_spark.to_pylist()) == len(
        changes(home, "matches.rows", 0).rows
    )
    assert tables.read(spark, home, "matches", "rows").toArrow().num_rows == 5


def test_tasks_read_events_of_files_that_a_merge_has_written_anew(home: Home) -> None:
    """Arrow finds string views in them, which it does not compare with strings."""
    columns = (*COLUMNS, Column("type", pa.string(), "Which kind.", False))
    table = replace(DAILY, schema="events", columns=columns)
    lake, schema = FilesLake(home), pa.schema([pa.field(f.name, f.type) for f in table.arrow()])

    def put_events(rows: list[Row]) -> Applied:
        staged = Staged(rows=pa.Table.from_pylist(rows, schema=schema))
        return lake.commit(lake.change(table, staged, part_of(D1, by="event_date")), Turn("test"))

    put_events([row("a", type="T"), row("b", us=1, type="U")])
    assert put_events([row("a", x=2.0, type="T"), row("b", us=1, type="U")]) == Applied(0, 1, 0, 2)
    files = EventFiles.of(lake.day_files("events", "rows", [D1]))
    start = day_start_us(D1)
    found = files.read(D1, ["id", "ts", "type", "x"], ["T"], start, start + US_PER_DAY)
    assert found.select(["id", "type", "x"]).to_pylist() == [{"id": "a", "type": "T", "x": 2.0}]
    assert lake.rows("events", "rows", columns=["id"], where=[[("type", "=", "U")]])["id"].to_pylist() == ["b"]


def test_pages_that_we_write_have_checksums(home: Home, tmp_path: Path) -> None:
    """Of what delta-rs writes anew, none: docs/maintenance.md says what that leaves."""
    lake = FilesLake(home)
    put(lake, [row(f"{n}", us=n, x=n + 0.5) for n in range(500)], part_of(D1))
    (path,) = Path(home.table("matches", "rows")).glob("*.parquet")
    footer = pq.read_metadata(path).row_group(0)
    (column,) = (footer.column(n) for n in range(footer.num_columns) if footer.column(n).path_in_schema == "x")
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError, match="CRC"):
        lake.rows("matches", "rows")


def test_a_lock_is_held_once(lake: Lake, home: Home) -> None:
    with lake.lock("table-x"), pytest.raises(InfrastructureError, match="held by another part of this process"):
        with lake.lock("table-x", wait_s=0.1):
            pass
