"""Damages of rows, and of tables by others who write to the lake."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
from deltalake import write_deltalake

from chainlake.paths import Home
from tests.check.damage import damage, folder, opened

# Rows


@damage("matches.rise", "published")
def matches_deleted(home: Home) -> None:
    ids = sorted(opened(home, "matches.rise").to_pyarrow_table()["match_id"].to_pylist())[:16]
    opened(home, "matches.rise").delete("match_id IN ({})".format(", ".join(f"'{one}'" for one in ids)))


@damage("matches.rise", "other values")
def matches_changed(home: Home) -> None:
    rows = opened(home, "matches.rise").to_pyarrow_table()
    start = rows["start_ts"].to_pylist()
    start[0] = start[0].replace(second=59)
    changed = rows.set_column(rows.column_names.index("start_ts"), rows.schema.field("start_ts"), pa.array(start))
    write_deltalake(folder(home, "matches.rise").as_posix(), changed.cast(rows.schema), mode="overwrite")


@damage("matches.many", "never published")
def matches_of_another_year_appended(home: Home) -> None:
    rows = opened(home, "matches.many").to_pyarrow_table().slice(0, 3)
    late = [datetime(2031, 1, 1, 12, tzinfo=UTC)] * 3
    stamp = rows.schema.field("decision_ts")
    write_deltalake(
        folder(home, "matches.many").as_posix(),
        rows.set_column(rows.column_names.index("decision_ts"), stamp, pa.array(late, stamp.type)),
        mode="append",
    )


@damage("matches.many", "published")
def matches_appended_twice(home: Home) -> None:
    rows = opened(home, "matches.many").to_pyarrow_table().slice(0, 5)
    write_deltalake(folder(home, "matches.many").as_posix(), rows, mode="append")


@damage("matches.rise", "published", rare=True)
def matches_restored_to_an_old_version(home: Home) -> None:
    opened(home, "matches.rise").restore(2)


@damage("events.lab", "ingested", rare=True)
def events_deleted(home: Home) -> None:
    opened(home, "events.lab").delete("sensor = 'k2' AND event_date = '2025-03-02'")


@damage("events.lab", "other values")
def events_updated(home: Home) -> None:
    opened(home, "events.lab").update({"x": "x + 1"}, predicate="event_date = '2025-03-03' AND sensor = 'k1'")


@damage("events.lab", "never ingested", rare=True)
def events_of_another_year_appended(home: Home) -> None:
    rows = opened(home, "events.lab").to_pyarrow_table().slice(0, 2)
    day = pa.array([datetime(2031, 1, 1).date()] * 2, pa.date32())
    stamp = rows.schema.field("ts")
    rows = rows.set_column(rows.column_names.index("event_date"), rows.schema.field("event_date"), day)
    late = pa.array([datetime(2031, 1, 1, 3, tzinfo=UTC)] * 2, stamp.type)
    rows = rows.set_column(rows.column_names.index("ts"), stamp, late)
    write_deltalake(folder(home, "events.lab").as_posix(), rows, mode="append", partition_by=["event_date"])


@damage("raw.lab", "ingested", rare=True)
def raw_rows_deleted(home: Home) -> None:
    opened(home, "raw.lab").delete("line = 3 AND event_date = '2025-03-02'")


@damage("raw.lab", "other values")
def raw_rows_updated(home: Home) -> None:
    opened(home, "raw.lab").update({"y": "y * 2"}, predicate="event_date = '2025-03-04'")


@damage("quarantine.lab", "set aside")
def quarantine_rows_deleted(home: Home) -> None:
    opened(home, "quarantine.lab").delete("stage = 'parse'")


@damage("quarantine.lab", "conflict", rare=True)
def quarantined_conflicts_deleted(home: Home) -> None:
    opened(home, "quarantine.lab").delete("stage = 'resolve'")


@damage("quarantine.lab", "somebody else", rare=True)
def quarantine_rows_updated(home: Home) -> None:
    opened(home, "quarantine.lab").update({"reason": "'other'"}, predicate="stage = 'parse'")


@damage("models.changes", "published", rare=True)
def changes_deleted(home: Home) -> None:
    opened(home, "models.changes").delete("event_date = '2025-03-03'")


@damage("models.changes", "of x' OR model <> '", rare=True)
def changes_appended_of_a_model_whose_name_is_a_condition(home: Home) -> None:
    rows = opened(home, "models.changes").to_pyarrow_table().slice(0, 1)
    at = rows.schema.get_field_index("model")
    odd = rows.set_column(at, rows.schema.field("model"), pa.array(["x' OR model <> '"]))
    write_deltalake(folder(home, "models.changes").as_posix(), odd, mode="append")


@damage("models.metrics", "other values", rare=True)
def metrics_updated(home: Home) -> None:
    opened(home, "models.metrics").update({"rounds": "rounds + 1"}, predicate="day = '2025-03-02'")


@damage("models.state", "other values")
def state_updated(home: Home) -> None:
    opened(home, "models.state").update({"state": "'{}'"}, predicate="day = '2025-03-03'")


# Notes


@damage("matches.rise", "published", rare=True)
def recorded_rows_changed(home: Home) -> None:
    predicate = "definition = 'pattern/rise' AND day = '2025-03-02' AND status = 'done'"
    opened(home, "ops.intervals").update({"rows": "rows + 5"}, predicate=predicate)


@damage("ops.intervals", "somebody else")
def notes_deleted(home: Home) -> None:
    opened(home, "ops.intervals").delete("definition = 'pattern/rise' AND day = '2025-03-02'")


@damage("ops.event_days", "gaps", rare=True)
def notes_of_days_lost_in_the_middle(home: Home) -> None:
    opened(home, "ops.event_days").delete("status = 'changing'")


@damage("ops.files", "somebody else", rare=True)
def recorded_files_changed(home: Home) -> None:
    opened(home, "ops.files").update({"rows_raw": "rows_raw - 1"}, predicate="path = 'lab_20250302.csv'")


@damage("ops.rates", "somebody else", rare=True)
def recorded_rates_changed(home: Home) -> None:
    opened(home, "ops.rates").update({"events": "events + 1"}, predicate="day = '2025-03-03'")


# Others at work


@damage("matches.many", "changed no row", harmless=True, rare=True)
def foreign_optimize(home: Home) -> None:
    opened(home, "matches.many").optimize.compact()


@damage("events.lab", "changed no row", harmless=True)
def foreign_optimize_and_vacuum(home: Home) -> None:
    opened(home, "events.lab").optimize.z_order(["sensor"])
    opened(home, "events.lab").vacuum(0, dry_run=False, enforce_retention_duration=False)


@damage("raw.lab", "changed its columns, types or partitions")
def raw_repartitioned(home: Home) -> None:
    _written_over(home, "raw.lab", opened(home, "raw.lab").to_pyarrow_table(), ["sensor"])


@damage("events.lab", "changed its columns, types or partitions", rare=True)
def type_of_a_column_of_events_changed(home: Home) -> None:
    rows = opened(home, "events.lab").to_pyarrow_table()
    texts = pa.array([None if x is None else str(x) for x in rows["x"].to_pylist()], pa.string())
    rows = rows.set_column(rows.column_names.index("x"), "x", texts)
    _written_over(home, "events.lab", rows, ["event_date"])


@damage("matches.many", "changed its columns, types or partitions", rare=True)
def column_of_matches_dropped(home: Home) -> None:
    _written_over(home, "matches.many", opened(home, "matches.many").to_pyarrow_table().drop_columns(["start_ts"]), [])


@damage("events.lab", "changed its columns, types or partitions", rare=True)
def column_of_events_added(home: Home) -> None:
    none = pa.table({"theirs": pa.array([], pa.int64())})
    write_deltalake(folder(home, "events.lab").as_posix(), none, mode="append", schema_mode="merge")


def _written_over(home: Home, table: str, rows: pa.Table, partitions: list[str]) -> None:
    """By somebody who cares for the rows alone; our checks of a row would refuse it."""
    delta = opened(home, table)
    for name in delta.metadata().configuration:
        if name.startswith("delta.constraints."):
            delta.alter.drop_constraint(name.removeprefix("delta.constraints."))
    place = folder(home, table).as_posix()
    write_deltalake(place, rows, mode="overwrite", schema_mode="overwrite", partition_by=partitions or None)


@damage("matches.rise", "compared", harmless=True)
def foreign_delete_that_was_taken_back(home: Home) -> None:
    before = opened(home, "matches.rise").version()
    opened(home, "matches.rise").delete("start_ts IS NOT NULL")
    opened(home, "matches.rise").restore(before)
