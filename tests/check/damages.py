"""Damages of every kind that can befall a lake, each done to a copy of ``tests.check.lakes``."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from chainlake.paths import Home


@dataclass(frozen=True)
class Damage:
    """One damage.

    Args:
        name: short.
        table: that the check must name.
        act: does it.
        says: words that a finding of the table must hold.
        harmless, rare: nothing of it is damage; done by ``make damage-proof`` alone.
    """

    name: str
    table: str
    act: Callable[[Home], None]
    says: str = ""
    harmless: bool = False
    rare: bool = False


ALL: list[Damage] = []


def damage(
    table: str, says: str = "", *, harmless: bool = False, rare: bool = False
) -> Callable[[Callable[[Home], None]], None]:
    """Register a function as a damage."""

    def register(act: Callable[[Home], None]) -> None:
        ALL.append(Damage(act.__name__, table, act, says, harmless, rare))

    return register


def _delta(home: Home, table: str) -> DeltaTable:
    return DeltaTable(_folder(home, table).as_posix())


def _folder(home: Home, table: str) -> Path:
    schema, _, name = table.partition(".")
    return Path(home.table(schema, name))


def _data_file(home: Home, table: str) -> Path:
    """The largest data file of a table's version."""
    delta = _delta(home, table)
    paths = [_folder(home, table) / path for path in delta.get_add_actions(flatten=True).column("path").to_pylist()]
    return max(paths, key=lambda path: (path.stat().st_size, path.name))


def _entry(home: Home, table: str, version: int) -> Path:
    return _folder(home, table) / "_delta_log" / f"{version:020}.json"


def _flip(path: Path, at: int, count: int = 4) -> None:
    content = bytearray(path.read_bytes())
    for place in range(at, at + count):
        content[place] ^= 0xFF
    path.write_bytes(content)


# Rows


@damage("matches.rise", "published")
def matches_deleted(home: Home) -> None:
    ids = sorted(_delta(home, "matches.rise").to_pyarrow_table()["match_id"].to_pylist())[:16]
    _delta(home, "matches.rise").delete("match_id IN ({})".format(", ".join(f"'{one}'" for one in ids)))


@damage("matches.rise", "other values")
def matches_changed(home: Home) -> None:
    rows = _delta(home, "matches.rise").to_pyarrow_table()
    start = rows["start_ts"].to_pylist()
    start[0] = start[0].replace(second=59)
    changed = rows.set_column(rows.column_names.index("start_ts"), rows.schema.field("start_ts"), pa.array(start))
    write_deltalake(_folder(home, "matches.rise").as_posix(), changed.cast(rows.schema), mode="overwrite")


@damage("matches.many", "never published")
def matches_of_another_year_appended(home: Home) -> None:
    rows = _delta(home, "matches.many").to_pyarrow_table().slice(0, 3)
    late = [datetime(2031, 1, 1, 12, tzinfo=UTC)] * 3
    stamp = rows.schema.field("decision_ts")
    write_deltalake(
        _folder(home, "matches.many").as_posix(),
        rows.set_column(rows.column_names.index("decision_ts"), stamp, pa.array(late, stamp.type)),
        mode="append",
    )


@damage("matches.many", "published")
def matches_appended_twice(home: Home) -> None:
    rows = _delta(home, "matches.many").to_pyarrow_table().slice(0, 5)
    write_deltalake(_folder(home, "matches.many").as_posix(), rows, mode="append")


@damage("matches.rise", "published", rare=True)
def matches_restored_to_an_old_version(home: Home) -> None:
    _delta(home, "matches.rise").restore(2)


@damage("events.lab", "ingested", rare=True)
def events_deleted(home: Home) -> None:
    _delta(home, "events.lab").delete("sensor = 'k2' AND event_date = '2025-03-02'")


@damage("events.lab", "other values")
def events_updated(home: Home) -> None:
    _delta(home, "events.lab").update({"x": "x + 1"}, predicate="event_date = '2025-03-03' AND sensor = 'k1'")


@damage("events.lab", "never ingested", rare=True)
def events_of_another_year_appended(home: Home) -> None:
    rows = _delta(home, "events.lab").to_pyarrow_table().slice(0, 2)
    day = pa.array([datetime(2031, 1, 1).date()] * 2, pa.date32())
    stamp = rows.schema.field("ts")
    rows = rows.set_column(rows.column_names.index("event_date"), rows.schema.field("event_date"), day)
    late = pa.array([datetime(2031, 1, 1, 3, tzinfo=UTC)] * 2, stamp.type)
    rows = rows.set_column(rows.column_names.index("ts"), stamp, late)
    write_deltalake(_folder(home, "events.lab").as_posix(), rows, mode="append", partition_by=["event_date"])


@damage("raw.lab", "ingested", rare=True)
def raw_rows_deleted(home: Home) -> None:
    _delta(home, "raw.lab").delete("line = 3 AND event_date = '2025-03-02'")


@damage("raw.lab", "other values")
def raw_rows_updated(home: Home) -> None:
    _delta(home, "raw.lab").update({"y": "y * 2"}, predicate="event_date = '2025-03-04'")


@damage("quarantine.lab", "set aside")
def quarantine_rows_deleted(home: Home) -> None:
    _delta(home, "quarantine.lab").delete("stage = 'parse'")


@damage("quarantine.lab", "conflict", rare=True)
def quarantined_conflicts_deleted(home: Home) -> None:
    _delta(home, "quarantine.lab").delete("stage = 'resolve'")


@damage("quarantine.lab", "somebody else", rare=True)
def quarantine_rows_updated(home: Home) -> None:
    _delta(home, "quarantine.lab").update({"reason": "'other'"}, predicate="stage = 'parse'")


@damage("models.changes", "published", rare=True)
def changes_deleted(home: Home) -> None:
    _delta(home, "models.changes").delete("event_date = '2025-03-03'")


@damage("models.metrics", "other values", rare=True)
def metrics_updated(home: Home) -> None:
    _delta(home, "models.metrics").update({"rounds": "rounds + 1"}, predicate="day = '2025-03-02'")


@damage("models.state", "other values")
def state_updated(home: Home) -> None:
    _delta(home, "models.state").update({"state": "'{}'"}, predicate="day = '2025-03-03'")


# Notes


@damage("matches.rise", "published", rare=True)
def noted_rows_changed(home: Home) -> None:
    predicate = "definition = 'pattern/rise' AND day = '2025-03-02' AND status = 'done'"
    _delta(home, "ops.intervals").update({"rows": "rows + 5"}, predicate=predicate)


@damage("ops.intervals", "somebody else")
def notes_deleted(home: Home) -> None:
    _delta(home, "ops.intervals").delete("definition = 'pattern/rise' AND day = '2025-03-02'")


@damage("ops.event_days", "gaps", rare=True)
def notes_of_days_lost_in_the_middle(home: Home) -> None:
    _delta(home, "ops.event_days").delete("status = 'changing'")


@damage("ops.files", "somebody else", rare=True)
def noted_files_changed(home: Home) -> None:
    _delta(home, "ops.files").update({"rows_raw": "rows_raw - 1"}, predicate="path = 'lab_20250302.csv'")


@damage("ops.rates", "somebody else", rare=True)
def noted_rates_changed(home: Home) -> None:
    _delta(home, "ops.rates").update({"events": "events + 1"}, predicate="day = '2025-03-03'")


# Tables and files that are gone


@damage("matches.many", "gone", rare=True)
def match_table_dropped(home: Home) -> None:
    shutil.rmtree(_folder(home, "matches.many"))


@damage("matches.many", "should be a folder, and is a file")
def match_table_became_a_file(home: Home) -> None:
    shutil.rmtree(_folder(home, "matches.many"))
    _folder(home, "matches.many").write_text("a note")


@damage("events.lab", "should be a folder, and is a file")
def events_table_became_a_file(home: Home) -> None:
    shutil.rmtree(_folder(home, "events.lab"))
    _folder(home, "events.lab").write_text("a note")


@damage("events.lab", "gone")
def events_table_dropped(home: Home) -> None:
    shutil.rmtree(_folder(home, "events.lab"))


@damage("raw.lab", "gone")
def raw_table_dropped(home: Home) -> None:
    shutil.rmtree(_folder(home, "raw.lab"))


@damage("quarantine.lab", "set aside", rare=True)
def quarantine_table_dropped(home: Home) -> None:
    shutil.rmtree(_folder(home, "quarantine.lab"))


@damage("models.metrics", "gone")
def metrics_table_dropped(home: Home) -> None:
    shutil.rmtree(_folder(home, "models.metrics"))


@damage("matches.rise", "missing")
def data_file_of_matches_deleted(home: Home) -> None:
    _data_file(home, "matches.rise").unlink()


@damage("raw.lab", "missing", rare=True)
def data_file_of_raw_deleted(home: Home) -> None:
    _data_file(home, "raw.lab").unlink()


@damage("ops.intervals", "missing", rare=True)
def data_file_of_notes_deleted(home: Home) -> None:
    _data_file(home, "ops.intervals").unlink()


# Bytes


@damage("events.lab", "cannot be read")
def page_of_events_flipped(home: Home) -> None:
    path = _data_file(home, "events.lab")
    chunk = pq.read_metadata(path).row_group(0).column(0)
    _flip(path, chunk.data_page_offset + chunk.total_compressed_size // 2)


@damage("matches.many", "cannot be read", rare=True)
def footer_of_matches_flipped(home: Home) -> None:
    path = _data_file(home, "matches.many")
    _flip(path, path.stat().st_size - 8, 8)


@damage("raw.lab", "bytes", rare=True)
def data_file_of_raw_truncated(home: Home) -> None:
    os.truncate(_data_file(home, "raw.lab"), 300)


@damage("events.lab", "other values")
def data_file_of_events_replaced_by_one_of_equal_size(home: Home) -> None:
    path = _data_file(home, "events.lab")
    rows = pq.read_table(path, partitioning=None)
    size = path.stat().st_size
    first, *others = rows["x"].to_pylist()
    changed = rows.set_column(rows.column_names.index("x"), rows.schema.field("x"), pa.array([first + 1, *others]))
    pq.write_table(changed, path, compression="snappy", store_schema=False)
    content = path.read_bytes()
    if len(content) < size:
        pq.write_table(changed.replace_schema_metadata({"pad": "x" * (size - len(content))}), path, store_schema=True)
    # Whatever its size came out as, the log says so.
    for entry in sorted((_folder(home, "events.lab") / "_delta_log").glob("*.json")):
        lines = [json.loads(line) for line in entry.read_text().splitlines()]
        for line in lines:
            if "add" in line and line["add"]["path"].endswith(path.name):
                line["add"]["size"] = path.stat().st_size
        entry.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


# Logs


@damage("matches.rise", "cannot be read")
def last_log_entry_truncated(home: Home) -> None:
    os.truncate(_entry(home, "matches.rise", _delta(home, "matches.rise").version()), 60)


@damage("events.lab", "empty", rare=True)
def last_log_entry_emptied(home: Home) -> None:
    os.truncate(_entry(home, "events.lab", _delta(home, "events.lab").version()), 0)


@damage("matches.many", "missing")
def log_entry_removed_from_the_middle(home: Home) -> None:
    _entry(home, "matches.many", 2).unlink()


@damage("events.lab", "cannot be read", rare=True)
def log_entry_truncated_in_the_middle(home: Home) -> None:
    os.truncate(_entry(home, "events.lab", 2), 40)


@damage("matches.rise", "published")
def last_log_entry_removed(home: Home) -> None:
    _entry(home, "matches.rise", _delta(home, "matches.rise").version()).unlink()


@damage("ops.intervals", "cannot be read", rare=True)
def log_entry_of_notes_truncated(home: Home) -> None:
    os.truncate(_entry(home, "ops.intervals", 5), 30)


@damage("ops.runs", "cannot be read")
def log_entry_of_runs_truncated(home: Home) -> None:
    os.truncate(_entry(home, "ops.runs", 3), 30)


@damage("raw.lab", "checkpoint", rare=True)
def checkpoint_truncated(home: Home) -> None:
    _delta(home, "raw.lab").create_checkpoint()
    (path,) = (_folder(home, "raw.lab") / "_delta_log").glob("*.checkpoint.parquet")
    os.truncate(path, 100)


@damage("models.changes", "_last_checkpoint")
def hint_is_garbage(home: Home) -> None:
    _delta(home, "models.changes").create_checkpoint()
    hint = _folder(home, "models.changes") / "_delta_log" / "_last_checkpoint"
    hint.write_text('{"version": 77, "size": 1}')


# Others at work


@damage("matches.many", "changed no row", harmless=True, rare=True)
def foreign_optimize(home: Home) -> None:
    _delta(home, "matches.many").optimize.compact()


@damage("events.lab", "changed no row", harmless=True)
def foreign_optimize_and_vacuum(home: Home) -> None:
    _delta(home, "events.lab").optimize.z_order(["sensor"])
    _delta(home, "events.lab").vacuum(0, dry_run=False, enforce_retention_duration=False)


@damage("raw.lab", "changed its columns, types or partitions")
def raw_repartitioned(home: Home) -> None:
    _written_over(home, "raw.lab", _delta(home, "raw.lab").to_pyarrow_table(), ["sensor"])


@damage("events.lab", "changed its columns, types or partitions", rare=True)
def type_of_a_column_of_events_changed(home: Home) -> None:
    rows = _delta(home, "events.lab").to_pyarrow_table()
    texts = pa.array([None if x is None else str(x) for x in rows["x"].to_pylist()], pa.string())
    rows = rows.set_column(rows.column_names.index("x"), "x", texts)
    _written_over(home, "events.lab", rows, ["event_date"])


@damage("matches.many", "changed its columns, types or partitions", rare=True)
def column_of_matches_dropped(home: Home) -> None:
    _written_over(home, "matches.many", _delta(home, "matches.many").to_pyarrow_table().drop_columns(["start_ts"]), [])


@damage("events.lab", "changed its columns, types or partitions", rare=True)
def column_of_events_added(home: Home) -> None:
    none = pa.table({"theirs": pa.array([], pa.int64())})
    write_deltalake(_folder(home, "events.lab").as_posix(), none, mode="append", schema_mode="merge")


def _written_over(home: Home, table: str, rows: pa.Table, partitions: list[str]) -> None:
    """By somebody who cares for the rows alone; our checks of a row would refuse it."""
    delta = _delta(home, table)
    for name in delta.metadata().configuration:
        if name.startswith("delta.constraints."):
            delta.alter.drop_constraint(name.removeprefix("delta.constraints."))
    folder = _folder(home, table).as_posix()
    write_deltalake(folder, rows, mode="overwrite", schema_mode="overwrite", partition_by=partitions or None)


@damage("matches.rise", "compared", harmless=True)
def foreign_delete_that_was_taken_back(home: Home) -> None:
    before = _delta(home, "matches.rise").version()
    _delta(home, "matches.rise").delete("start_ts IS NOT NULL")
    _delta(home, "matches.rise").restore(before)
