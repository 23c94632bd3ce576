"""The lake's port: what a change is, what a commit leaves, what is refused; alike for both back ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from deltalake.table import TableMerger

from chainlake.errors import AuditFailed, InfrastructureError
from chainlake.lake.delta import data_files, tables
from chainlake.lake.delta.data_files import DataFiles
from chainlake.lake.delta.sums.checksums import checksums
from chainlake.lake.store.errors import Overtaken, RowsOutside
from chainlake.lake.store.port import Applied, Change, Lake, Part, Staged, Turn
from chainlake.paths import Home
from chainlake.schemas.table import Table, described
from chainlake.storage.errors import StoreFailed
from chainlake.storage.resolve import storage_of
from tests.lake.stored import (
    AFTER,
    BEFORE,
    D1,
    D2,
    D3,
    DAILY,
    PLAIN,
    Row,
    days_where,
    feed,
    held,
    left_over,
    part_of,
    put,
    row,
    shaped,
    table_of,
)

pytestmark = pytest.mark.slow


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


@pytest.mark.on_spark()
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


def _reworded(kind: pa.DataType) -> pa.DataType:
    """The same type, with comments on the fields inside it."""
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_reworded(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([described(one.name, _reworded(one.type), "In other words.") for one in kind])
    return kind


@pytest.mark.on_spark()
def test_a_table_whose_columns_were_described_in_other_words_is_published_to(lake: Lake, home: Home) -> None:
    """A release may reword every comment; the lake was made by the one before."""
    put(lake, [row("a"), row("b", D2)], part_of(D1, D2))
    columns = tuple(
        replace(one, comment=f"{one.comment} In other words.", type=_reworded(one.type)) for one in PLAIN.columns
    )
    reworded = replace(PLAIN, comment="In other words.", columns=columns)
    assert put(lake, [row("a", x=2.0), row("c", D2)], part_of(D1, D2), reworded) == Applied(1, 1, 1, 2)
    assert held(home) == sorted(map(str, table_of([row("a", x=2.0), row("c", D2)]).to_pylist()))
    assert put(lake, [row("d", D3)], part_of(D3), reworded) == Applied(1, 0, 0, 3)


@pytest.mark.on_spark()
def test_fields_inside_a_column_keep_their_comments_whichever_back_end_publishes(lake: Lake, home: Home) -> None:
    commented = replace(PLAIN, columns=tuple(replace(one, type=_reworded(one.type)) for one in PLAIN.columns))
    put(lake, [row("a")], part_of(D1), commented)
    put(lake, [row("a", x=2.0)], part_of(D1), commented)
    types = {field.name: field.type for field in DeltaTable(home.table("matches", "rows")).schema().fields}
    inside = [*types["a"].fields, *types["b"].element_type.fields]
    assert [field.metadata for field in inside] == [{"comment": "In other words."}] * 3


@pytest.mark.on_spark()
def test_what_lies_outside_the_part_is_neither_changed_nor_let_in_and_versions_are_read(lake: Lake, home: Home) -> None:
    put(lake, [row("a"), row("b", D2)], part_of(D1, D2))
    assert put(lake, [], part_of(D1)) == Applied(0, 0, 1, 2)
    assert [one["id"] for one in tables.arrow(home, "matches", "rows").to_pylist()] == ["b"]
    assert lake.rows("matches", "rows", columns=["id"]).to_pydict() == {"id": ["b"]}
    assert sorted(lake.rows("matches", "rows", columns=["id"], version=1)["id"].to_pylist()) == ["a", "b"]
    for staged in ([row("c", D2)], [row("c"), row("d", D3)]):
        with pytest.raises(RowsOutside, match="1 staged rows of matches.rows are outside"):
            put(lake, staged, part_of(D1))
    assert lake.version("matches", "rows") == 2 and not left_over(home)


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


@pytest.mark.on_spark()
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


@pytest.mark.on_spark()
def test_nothing_is_committed_unless_it_is_forced(lake: Lake, home: Home) -> None:
    assert put(lake, [], part_of(D1)) == Applied(0, 0, 0, None)
    assert put(lake, [], part_of(D1), force=True) == Applied(0, 0, 0, 1)
    put(lake, [row("a")], part_of(D1))
    assert put(lake, [row("a")], part_of(D1), force=True) == Applied(0, 0, 0, 3)
    assert DeltaTable(home.table("matches", "rows")).transaction_version("test") == 3
    assert feed(home, 3) == []


@pytest.mark.on_spark()
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
def test_a_commit_that_landed_keeps_its_files_even_if_the_answer_is_lost(
    answer: BaseException, lake: Lake, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store whose answer is lost is asked again and says that the version is there; a signal comes meanwhile."""
    whole = DeltaTable.create_write_transaction

    def answer_lost(*args: Any, **named: Any) -> None:
        whole(*args, **named)
        raise answer

    with monkeypatch.context() as patch:
        patch.setattr(DeltaTable, "create_write_transaction", answer_lost)
        if isinstance(answer, CommitFailedError):
            assert put(lake, [row("a")], part_of(D1)) == Applied(1, 0, 0, 1)
        else:
            with pytest.raises(type(answer)):
                put(lake, [row("a")], part_of(D1))
    assert [one["id"] for one in tables.arrow(home, "matches", "rows").to_pylist()] == ["a"]
    assert put(lake, [row("a"), row("b")], part_of(D1)).added == 1


@pytest.mark.on_spark(False)
@pytest.mark.parametrize("later", [[row("a"), row("b")], [row("b")]], ids=["append", "merge"])
def test_a_store_that_refuses_a_commit_is_not_told_as_another_writer(
    later: list[Row], lake: Lake, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some answers of a store, such as a conflict with the rules of a bucket, come as if the version were there."""
    put(lake, [row("a")], part_of(D1))
    before = held(home)

    def refused(*args: Any, **named: Any) -> None:
        raise CommitFailedError("Failed to commit transaction: 0")

    with monkeypatch.context() as patch:
        patch.setattr(DeltaTable, "create_write_transaction", refused)
        patch.setattr(TableMerger, "execute", refused)
        with pytest.raises(StoreFailed, match=r"refuses the commit of version 2 of .*rows/ as if that version existed"):
            put(lake, later, part_of(D1))
    assert held(home) == before
    put(lake, later, part_of(D1))
    assert held(home) == sorted(map(str, table_of(later).to_pylist()))


@pytest.mark.on_spark()
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


def by_tasks(lake: Lake, table: Table, rows: list[Row], moved: list[tuple[str, Row]], folder: Path) -> Change:
    with DataFiles(lake.task_folder(table), table) as out:
        out.write(table_of(rows))
        files = out.close()
    changed = table_of([one for _, one in moved]).append_column("_op", pa.array([op for op, _ in moved], pa.string()))
    path = folder / "moved.parquet"
    pq.write_table(changed, path)
    return lake.additions(table, files, [str(path)] if moved else [])


@pytest.mark.on_spark()
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


def test_a_lock_is_held_once(lake: Lake, home: Home) -> None:
    with lake.lock("table-x"), pytest.raises(InfrastructureError, match="another part of this process used it"):
        with lake.lock("table-x", wait_s=0.1):
            pass
