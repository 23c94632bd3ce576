"""A new version of a match table lies beside the old one and takes its place in one commit, whatever dies meanwhile."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from chainlake.errors import UsageError
from chainlake.lake import faults
from chainlake.lake.commits.changes import changes
from chainlake.lake.commits.places import DivergedVersions, NotMoved, take_places, with_later_versions
from chainlake.lake.commits.publish import MatchOutput, Published, PublishingRun, publish_matches
from chainlake.lake.commits.publishable import DaysNow
from chainlake.lake.delta import tables
from chainlake.lake.locks import file_lock
from chainlake.lake.records import ops
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.defined.registered import later_versions, next_version, registered_table
from chainlake.lake.sql.query import SqlConnection
from chainlake.lake.sql.scan import list_tables
from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.port import Staged
from chainlake.operations.maintain import maintain
from chainlake.operations.retire import retire
from chainlake.paths import Home
from chainlake.schemas.matches import MatchName, MatchShape, matches_table
from chainlake.schemas.table import Table
from tests.check.published import published_damage
from tests.lake.appending import append_arrow
from tests.lake.test_publish import D1, D2, D3, FIELDS, TABLE, match

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

OTHER = (*FIELDS, ("price", pa.float64()))
#: ``a`` is an array now, and ``b`` one event with one attribute more.
V2 = matches_table(MatchShape("p", 2, "s", (MatchName("a", True, OTHER), MatchName("b", False, OTHER))))


def new_match(number: int, day: date) -> dict[str, Any]:
    row = match(number, day)
    event = {**row["a"], "price": 2.5}
    return {**row, "a": [event, event], "b": event}


def put(home: Home, table: Table, rows: list[dict[str, Any]], days: list[date]) -> None:
    """Publish rows and note their days as done."""
    tables.ensure_table(home, table)
    base = tables.version(home, table.schema, table.name)
    assert base is not None
    appended = pa.Table.from_pylist(rows, schema=table.arrow())
    append_arrow(home, table, appended, app=f"table-{table.path_name}", base_version=base, mark="m")
    ops.append(home, "intervals", [
        interval(table, day, base + 1, rows=sum(row["decision_ts"].date() == day for row in rows)) for day in days
    ], "r")  # fmt: skip


def interval(table: Table, day: date, version: int, status: str = "done", rows: int = 1) -> dict[str, Any]:
    return {"definition": "pattern/p", "day": day, "table_name": table.path_name, "definition_hash": table.name,
            "engine_version": 1, "input_fingerprint": "f", "status": status, "rows": rows, "added": 1,
            "published_version": version}  # fmt: skip


def shown(home: Home, columns: str = "match_id") -> list[Any]:
    rows = SqlConnection(home).query(f"SELECT {columns} FROM matches.p ORDER BY match_id").fetchall()
    return [int(row[0], 16) if columns == "match_id" else row[0] for row in rows]


def current(home: Home) -> list[tuple[Any, ...]]:
    names = ("day", "table_name", "status", "rows", "published_version")
    return [tuple(row[name] for name in names) for row in ops.current(home, "intervals")]


def nested(home: Home, number: int = 2) -> Path:
    """Where an older release put a version."""
    return Path(home.lake, "matches", "p", f"v{number}")


@pytest.fixture
def edited(home: Home) -> Home:
    """Days one and two are done in the old table, day one in the new one."""
    put(home, TABLE, [match(1, D1), match(2, D2)], [D1, D2])
    put(home, V2, [new_match(1, D1), new_match(5, D1)], [D1])
    return home


@pytest.fixture
def complete(edited: Home) -> Home:
    """All days of the old table are done in the new one, in which day two has another match."""
    put(edited, V2, [new_match(7, D2)], [D2])
    return edited


def test_no_table_lies_inside_another(complete: Home) -> None:
    put(complete, replace(V2, name="p/v3"), [new_match(1, D1)], [])
    logs = [path.parent for path in Path(complete.lake).rglob("_delta_log")]
    assert len(logs) == 4
    assert not [one for one in logs for other in logs if one != other and one.is_relative_to(other)]


def test_a_clean_up_by_others_leaves_the_other_versions_alone(complete: Home) -> None:
    at = DeltaTable(complete.table("matches", "p"))
    assert at.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True) == []
    assert len(tables.arrow(complete, "matches", "p/v2")) == 3
    take_places(complete, ["p"], "r")
    DeltaTable(complete.table("matches", "p")).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert shown(complete) == [1, 5, 7]


def test_a_half_filled_version_stays_beside(edited: Home) -> None:
    assert take_places(edited, ["p"], "r") == ([], {})
    assert shown(edited) == [1, 2] and later_versions(edited, "p") == [2]
    assert tables.version(edited, "matches", "p") == 1


def test_the_new_version_takes_the_place_in_one_commit(complete: Home) -> None:
    path, table_id = complete.table("matches", "p"), DeltaTable(complete.table("matches", "p")).metadata().id
    assert take_places(complete, ["p"], "r") == (["p"], {})
    at = DeltaTable(path)
    assert at.version() == 2 and at.metadata().id == table_id
    assert pa.schema(at.schema().to_arrow()).equals(V2.arrow(), check_metadata=False)
    comments = {field.name: field.metadata.get("comment") for field in at.schema().fields}
    assert comments["match_id"] == V2.columns[0].comment
    kept = at.metadata().configuration
    assert kept["delta.enableChangeDataFeed"] == "true" and "delta.constraints.match_id_is_hash" in kept
    assert shown(complete) == [1, 5, 7] and shown(complete, "b.price") == [2.5] * 3
    assert current(complete) == [(D1, "matches.p", "done", 2, 2), (D2, "matches.p", "done", 1, 2)]
    assert list_tables(complete, "matches") == ["p"] and registered_table(complete, "p") == "p"
    assert not Path(complete.lake, "matches-next", "p").exists()
    assert take_places(complete, ["p"], "r") == ([], {}) and DeltaTable(path).version() == 2
    # A late commit of an attempt at the old columns has a turn that is past.
    assert at.transaction_version("table-matches.p") == 2


class Killed(Exception):
    """Stands for the end of the process."""


def die(monkeypatch: pytest.MonkeyPatch, point: str, act: Callable[[], object]) -> None:
    def end(status: int) -> None:
        raise Killed(status)

    with monkeypatch.context() as patch:
        patch.setattr(faults.os, "_exit", end)
        faults._counts.clear()
        patch.setenv("CHAINLAKE_FAULT", point)
        with pytest.raises(Killed):
            act()


POINTS = [f"place.{name}.{when}" for name in ("commit", "notes", "drop") for when in ("before", "after")]


@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere_a_reader_sees_all_rows_and_the_next_step_ends_it(
    complete: Home, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    die(monkeypatch, point, lambda: take_places(complete, ["p"], "r"))
    assert shown(complete) == [1, 5, 7] and not published_damage(complete)
    take_places(complete, with_later_versions(complete), "r")
    assert shown(complete) == [1, 5, 7]
    assert current(complete) == [(D1, "matches.p", "done", 2, 2), (D2, "matches.p", "done", 1, 2)]
    assert list_tables(complete, "matches") == ["p"] and tables.version(complete, "matches", "p") == 2
    assert len(ops.current_table(complete, "intervals", as_log=True)) == 6


def test_killed_while_the_old_folder_is_removed(complete: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(path: str, *rest: Any, **more: Any) -> None:
        next(Path(path).rglob("*.json")).unlink()
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(shutil, "rmtree", half)
        take_places(complete, ["p"], "r")
    assert shown(complete) == [1, 5, 7] and list_tables(complete, "matches") == ["p"]
    put(complete, replace(V2, name=f"p/v{next_version(complete, 'p')}"), [new_match(1, D1)], [D1, D2])
    assert shown(complete) == [1]
    take_places(complete, ["p"], "r")
    assert not list(Path(complete.lake, "matches-next").iterdir())


@pytest.mark.parametrize("point", ["", "place.move.before", "place.move.after"])
@pytest.mark.parametrize("all_done", [False, True])
def test_lakes_of_older_releases_are_moved(
    edited: Home, monkeypatch: pytest.MonkeyPatch, point: str, all_done: bool
) -> None:
    if all_done:
        put(edited, V2, [new_match(7, D2)], [D2])
    os.rename(edited.table("matches", "p/v2"), nested(edited))
    rows = [1, 5, 7] if all_done else [1, 2]
    assert shown(edited) == rows
    assert SqlConnection(edited).query('SELECT count(*) FROM matches."p/v2"').fetchone() == (3 if all_done else 2,)
    if point:
        die(monkeypatch, point, lambda: maintain(edited, run_id="r"))
        assert shown(edited) == rows
    maintain(edited, run_id="r")
    assert shown(edited) == rows and not nested(edited).exists()
    assert later_versions(edited, "p") == ([] if all_done else [2])
    assert {table for _, table, *_ in current(edited)} == ({"matches.p"} if all_done else {"matches.p", V2.path_name})


def test_a_version_in_two_places_is_said(edited: Home) -> None:
    shutil.copytree(edited.table("matches", "p/v2"), nested(edited))
    taken, stuck = take_places(edited, ["p"], "r")
    assert taken == [] and isinstance(stuck["p"], DivergedVersions) and "exists in two places" in str(stuck["p"])
    # The other tables are maintained all the same.
    with pytest.raises(DivergedVersions):
        maintain(edited, run_id="m")
    assert [row["phase"] for row in ops.current(edited, "runs") if row["rows_out"]] == ["maintain"]


def test_a_version_that_cannot_be_moved_is_said(edited: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pattern's folder may be a link to another disk, from which no rename leads back."""
    os.rename(edited.table("matches", "p/v2"), nested(edited))

    def elsewhere(origin: str, target: str) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link", origin, None, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", elsewhere)
        taken, stuck = take_places(edited, ["p"], "r")
    assert taken == [] and isinstance(stuck["p"], NotMoved) and "Invalid cross-device link" in str(stuck["p"])
    assert shown(edited) == [1, 2]
    assert take_places(edited, ["p"], "r") == (["p"], {}) and shown(edited) == [1, 2]


def test_a_table_in_use_keeps_the_others_from_nothing(complete: Home) -> None:
    with file_lock(complete, "table-matches.p"):
        taken, stuck = take_places(complete, ["p"], "r", wait_s=0.1)
    assert taken == [] and "another part of this process used it" in str(stuck["p"])
    assert shown(complete) == [1, 5, 7]


def test_the_change_feed_goes_on_after_the_commit(edited: Home) -> None:
    complete = edited
    assert [int(row["match_id"], 16) for row in changes(edited, "matches.p", 0).rows.to_pylist()] == [1, 2]
    put(complete, V2, [new_match(7, D2)], [D2])
    take_places(complete, ["p"], "r")
    stamp = DeltaTable(complete.table("matches", "p")).history(1)[0]["timestamp"]
    assert changes(complete, "matches.p", 2).rows.num_rows == 0
    put(complete, replace(V2, name="p"), [new_match(9, D3)], [D3])
    feed = changes(complete, "matches.p", 2)
    assert [(row["change"], int(row["match_id"], 16)) for row in feed.rows.to_pylist()] == [("added", 9)]
    for since in (0, 1, datetime.fromtimestamp(stamp / 1000 - 10, UTC)):
        with pytest.raises(UsageError, match="kept from version 3 .* other columns at version 2") as raised:
            changes(complete, "matches.p", since)
        assert raised.value.hint is not None and "--since-version 2" in raised.value.hint


def test_a_name_that_is_gone_does_not_come_back(complete: Home) -> None:
    assert next_version(complete, "p") == 3
    take_places(complete, ["p"], "r")
    assert next_version(complete, "p") == 3


def test_a_day_that_was_being_published_is_published_again_in_the_place(complete: Home) -> None:
    ops.append(complete, "intervals", [interval(V2, D3, 3, "publishing")], "r")
    take_places(complete, ["p"], "r")
    assert current(complete)[-1] == (D3, "matches.p", "publishing", 1, 2)


def test_a_retired_pattern_loses_all_versions(edited: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home = replace(edited, config=edited.root / "config")
    Path(home.table("matches", "p"), "mine.txt").write_text("precious")
    dropped = retire(home, "p", drop=True, run_id="r")["dropped"]
    assert dropped == ["matches.p/v2", "matches.p (left: mine.txt, which Delta did not write)"]
    assert list_tables(home, "matches") == []
    assert [path.name for path in Path(home.table("matches", "p")).rglob("*")] == ["mine.txt"]


@pytest.mark.on_spark()
def test_spark_reads_the_table_in_its_place_and_what_changes_in_it_then(spark: SparkSession, edited: Home) -> None:
    path = edited.table("matches", "p")
    before = spark.read.format("delta").load(path)
    assert sorted(int(row.match_id, 16) for row in before.collect()) == [1, 2]
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    rows = pa.Table.from_pylist([new_match(7, D2)], schema=V2.arrow())
    wide = Definition("pattern/p", "s", "v2", 1, V2.path_name, 0, lambda day: (0, 1))

    def publish(table: Table, found: pa.Table, day: date) -> Published:
        definition, prints = replace(wide, table_name=table.path_name), {day: "f"}
        run = PublishingRun(edited, FilesLake(edited), "r")
        output = MatchOutput(definition, table, Staged(rows=found), prints, {day: None})
        return publish_matches(run, output, lambda: DaysNow(prints, lambda day: True))

    assert publish(V2, rows, D2).days_done == [D2]
    # The days are all there: the publication of the last one gave the place its new columns.
    assert list_tables(edited, "matches") == ["p"]
    after = spark.read.format("delta").load(path)
    assert sorted(int(row.match_id, 16) for row in after.where("b.price = 2.5").collect()) == [1, 5, 7]
    assert after.schema["b"].dataType.names == [name for name, _ in OTHER]
    turn = tables.version(edited, "matches", "p")
    assert turn is not None
    row = new_match(7, D2)
    other = pa.Table.from_pylist([{**row, "b": {**row["b"], "price": 9.0}}], schema=V2.arrow())
    assert publish(replace(V2, name="p"), other, D2).changed == 1
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", turn + 1).load(path)
    found = [(row._change_type, int(row.match_id, 16), row.b.price) for row in feed.collect()]
    assert sorted(found) == [("update_postimage", 7, 9.0), ("update_preimage", 7, 2.5)]
