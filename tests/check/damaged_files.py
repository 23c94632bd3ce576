"""Damages of files: tables, data files and logs that are gone or hold other bytes."""

from __future__ import annotations

import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq

from chainlake.paths import Home
from tests.check.damage import damage, flip, folder, largest, log_entry, opened

# Tables and files that are gone


@damage("matches.many", "gone", rare=True)
def match_table_dropped(home: Home) -> None:
    shutil.rmtree(folder(home, "matches.many"))


@damage("matches.many", "should be a folder, but is a file")
def match_table_became_a_file(home: Home) -> None:
    shutil.rmtree(folder(home, "matches.many"))
    folder(home, "matches.many").write_text("a note")


@damage("events.lab", "should be a folder, but is a file")
def events_table_became_a_file(home: Home) -> None:
    shutil.rmtree(folder(home, "events.lab"))
    folder(home, "events.lab").write_text("a note")


@damage("events.lab", "gone")
def events_table_dropped(home: Home) -> None:
    shutil.rmtree(folder(home, "events.lab"))


@damage("events.lab", "of other days")
def log_moves_events_to_another_day(home: Home) -> None:
    """Their files stay, with their times and ids; by what the log says they are of the next day."""
    for entry in (folder(home, "events.lab") / "_delta_log").glob("*.json"):
        entry.write_text(entry.read_text().replace('"event_date":"2025-03-02"', '"event_date":"2025-03-03"'))


@damage("events.lab", "its columns are not those", rare=True)
def events_table_replaced_by_another_one(home: Home) -> None:
    shutil.rmtree(folder(home, "events.lab"))
    shutil.copytree(folder(home, "raw.lab"), folder(home, "events.lab"))


@damage("raw.lab", "gone")
def raw_table_dropped(home: Home) -> None:
    shutil.rmtree(folder(home, "raw.lab"))


@damage("quarantine.lab", "set aside", rare=True)
def quarantine_table_dropped(home: Home) -> None:
    shutil.rmtree(folder(home, "quarantine.lab"))


@damage("models.metrics", "gone")
def metrics_table_dropped(home: Home) -> None:
    shutil.rmtree(folder(home, "models.metrics"))


@damage("matches.rise", "missing")
def data_file_of_matches_deleted(home: Home) -> None:
    largest(home, "matches.rise").unlink()


@damage("raw.lab", "missing", rare=True)
def data_file_of_raw_deleted(home: Home) -> None:
    largest(home, "raw.lab").unlink()


@damage("ops.intervals", "missing", rare=True)
def data_file_of_notes_deleted(home: Home) -> None:
    largest(home, "ops.intervals").unlink()


# Bytes


@damage("events.lab", "cannot be read")
def page_of_events_flipped(home: Home) -> None:
    path = largest(home, "events.lab")
    chunk = pq.read_metadata(path).row_group(0).column(0)
    flip(path, chunk.data_page_offset + chunk.total_compressed_size // 2)


@damage("matches.many", "cannot be read", rare=True)
def footer_of_matches_flipped(home: Home) -> None:
    path = largest(home, "matches.many")
    flip(path, path.stat().st_size - 8, 8)


@damage("raw.lab", "bytes", rare=True)
def data_file_of_raw_truncated(home: Home) -> None:
    os.truncate(largest(home, "raw.lab"), 300)


@damage("events.lab", "other values")
def data_file_of_events_replaced_by_one_of_equal_size(home: Home) -> None:
    path = largest(home, "events.lab")
    rows = pq.read_table(path, partitioning=None)
    size = path.stat().st_size
    first, *others = rows["x"].to_pylist()
    changed = rows.set_column(rows.column_names.index("x"), rows.schema.field("x"), pa.array([first + 1, *others]))
    pq.write_table(changed, path, compression="snappy", store_schema=False)
    content = path.read_bytes()
    if len(content) < size:
        pq.write_table(changed.replace_schema_metadata({"pad": "x" * (size - len(content))}), path, store_schema=True)
    # Whatever its size came out as, the log says so.
    for entry in sorted((folder(home, "events.lab") / "_delta_log").glob("*.json")):
        lines = [json.loads(line) for line in entry.read_text().splitlines()]
        for line in lines:
            if "add" in line and line["add"]["path"].endswith(path.name):
                line["add"]["size"] = path.stat().st_size
        entry.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


# Logs


@damage("matches.rise", "cannot be read")
def last_log_entry_truncated(home: Home) -> None:
    os.truncate(log_entry(home, "matches.rise", opened(home, "matches.rise").version()), 60)


@damage("events.lab", "empty", rare=True)
def last_log_entry_emptied(home: Home) -> None:
    os.truncate(log_entry(home, "events.lab", opened(home, "events.lab").version()), 0)


@damage("matches.many", "missing")
def log_entry_removed_from_the_middle(home: Home) -> None:
    log_entry(home, "matches.many", 2).unlink()


@damage("events.lab", "cannot be read", rare=True)
def log_entry_truncated_in_the_middle(home: Home) -> None:
    os.truncate(log_entry(home, "events.lab", 2), 40)


@damage("matches.rise", "published")
def last_log_entry_removed(home: Home) -> None:
    log_entry(home, "matches.rise", opened(home, "matches.rise").version()).unlink()


@damage("ops.intervals", "cannot be read", rare=True)
def log_entry_of_notes_truncated(home: Home) -> None:
    os.truncate(log_entry(home, "ops.intervals", 5), 30)


@damage("ops.runs", "cannot be read")
def log_entry_of_runs_truncated(home: Home) -> None:
    os.truncate(log_entry(home, "ops.runs", 3), 30)


@damage("raw.lab", "checkpoint", rare=True)
def checkpoint_truncated(home: Home) -> None:
    opened(home, "raw.lab").create_checkpoint()
    (path,) = (folder(home, "raw.lab") / "_delta_log").glob("*.checkpoint.parquet")
    os.truncate(path, 100)


@damage("models.changes", "_last_checkpoint")
def hint_is_garbage(home: Home) -> None:
    opened(home, "models.changes").create_checkpoint()
    hint = folder(home, "models.changes") / "_delta_log" / "_last_checkpoint"
    hint.write_text('{"version": 77, "size": 1}')
