"""``ops.*``: append-only logs of what was read, computed from what, and published as which version.

The current row of a key is the one with the highest ``seq``. These are plain tables written by delta-rs.
"""

from __future__ import annotations

from typing import Any, get_args

import pyarrow as pa

from chainlake.schemas.ops_rows import (
    DayStatus,
    Engine,
    FileProblem,
    IntervalStatus,
    OrderOrigin,
    PhaseName,
    RunStatus,
    StepName,
)
from chainlake.schemas.table import TIMESTAMP, Column, Table

_TAIL = (
    Column("seq", pa.int64(), "Number of the row within its key, from 1; the highest is current.", False, True),
    Column("written_at", TIMESTAMP, "When the row was written.", False, True),
    Column("run_id", pa.string(), "Run that wrote it.", False, True),
)


def _log(name: str, comment: str, key: tuple[str, ...], *columns: Column) -> Table:
    return Table(schema="ops", name=name, comment=comment, columns=(*columns, *_TAIL), key=key)


def _one_of(words: Any) -> str:
    """The words of a closed set, such as `'a, b or c'`."""
    *some, last = get_args(words)
    return f"{', '.join(some)} or {last}"


FILES = _log(
    "files",
    "Landed files: current content of each path, and the load that holds its rows.",
    ("source", "path"),
    Column("source", pa.string(), "Name of the source.", False),
    Column("path", pa.string(), "Path under landing/<source>/, with '!member' for a member of an archive.", False),
    Column("file_id", pa.string(), "Checksum of content and path fields.", False),
    Column("load_id", pa.string(), "The parse whose raw rows count.", False),
    Column("size", pa.int64(), "Size of the landed file, in bytes."),
    Column("checksum", pa.string(), "Checksum of the decompressed content."),
    Column("path_fields", pa.map_(pa.string(), pa.string()), "Fields taken from the path."),
    Column("file_date", pa.date32(), "Date that the path names, in the source's file_date_zone."),
    Column("revision", pa.int64(), "Revision that the path names, 0 if none."),
    Column("definition_hash", pa.string(), "Hash of the source definition it was parsed with."),
    Column("parser_version", pa.int64(), "Version of the parser it was parsed with."),
    Column("rows_read", pa.int64(), "Rows in the file."),
    Column("rows_raw", pa.int64(), "Rows that went to raw."),
    Column("rows_quarantined", pa.int64(), "Rows that went to quarantine when parsed."),
    Column("first_ts", TIMESTAMP, "Earliest event time in the file."),
    Column("last_ts", TIMESTAMP, "Latest event time in the file."),
    Column(
        "outcome",
        pa.string(),
        "ok: read to its end; removed: unread and gone from landing; otherwise why it is not read, or not to its end: "
        f"{_one_of(FileProblem)}. Null: read before outcomes were noted.",
    ),
    Column("reason", pa.string(), "What is wrong with a file that is not read to its end, in one line."),
)

WAITING_FILES = _log(
    "waiting_files",
    "Landed files that an ingest left for a later one: unreadable for now, still growing, or dated in the future.",
    ("source", "path"),
    Column("source", pa.string(), "Name of the source.", False),
    Column("path", pa.string(), "Path under landing/<source>/, with '!member' for a member of an archive.", False),
    Column("waits", pa.bool_(), "Whether it still waits; false once it was read or is gone.", False),
    Column("reason", pa.string(), "What it waits for, one line."),
    Column("file_date", pa.date32(), "Date that the path names, in the source's file_date_zone."),
)

EVENT_DAYS = _log(
    "event_days",
    "State of each day of a source: whether it can be computed on, and a checksum of its events.",
    ("source", "day"),
    Column("source", pa.string(), "Name of the source.", False),
    Column("day", pa.date32(), "UTC day.", False),
    Column("status", pa.string(), f"{_one_of(DayStatus)}.", False),
    Column("rows", pa.int64(), "Events of the day."),
    Column("duplicates", pa.int64(), "Raw rows that repeat an event."),
    Column("conflicts", pa.int64(), "Raw rows that contradict an event and were not used."),
    Column("superseded", pa.int64(), "Raw rows replaced by a higher revision."),
    Column("checksum", pa.string(), "Count and xor of row hashes over the non-volatile columns; null while changing."),
    Column("events_version", pa.int64(), "Version of the events table that holds the day."),
)

RATES = _log(
    "rates",
    "Events per source, day, type and key: the rates from which evaluation orders are chosen.",
    ("source", "day", "type", "key"),
    Column("source", pa.string(), "Name of the source.", False),
    Column("day", pa.date32(), "UTC day.", False),
    Column("type", pa.string(), "Event type.", False),
    Column("key", pa.string(), "Key of the series.", False),
    Column("events", pa.int64(), "Events of the day; 0 when the key left the day.", False),
    Column("first_ts", TIMESTAMP, "Earliest event."),
    Column("last_ts", TIMESTAMP, "Latest event."),
)

INTERVALS = _log(
    "intervals",
    "Per definition and day: from what it was computed and how it was published.",
    ("definition", "day"),
    Column("definition", pa.string(), "pattern/NAME, episodes/NAME, ranked/NAME or model/NAME.", False),
    Column("day", pa.date32(), "UTC day.", False),
    Column("table_name", pa.string(), "Table that the day was published to.", False),
    Column("definition_hash", pa.string(), "Hash of the definition.", False),
    Column("engine_version", pa.int64(), "Version of the engine.", False),
    Column(
        "input_fingerprint", pa.string(), "Hash of the checksums of the days whose events, or matches, it reads.", False
    ),
    Column("status", pa.string(), f"{_one_of(IntervalStatus)}.", False),
    Column("rows", pa.int64(), "Rows of the day after publishing."),
    Column("added", pa.int64(), "Rows added."),
    Column("withdrawn", pa.int64(), "Rows withdrawn."),
    Column("changed", pa.int64(), "Rows changed."),
    Column("published_version", pa.int64(), "Version of the table that holds them."),
    Column("reason", pa.string(), "Why it failed, one line."),
    Column(
        "rows_checksum",
        pa.string(),
        "Count, xor and sum of the hashes of the day's rows; for a model: changes or alerts, metrics, state.",
    ),
    Column("state_in", pa.string(), "For a chained day: digest of the state that it was computed from."),
    Column(
        "state_out",
        pa.string(),
        "For a chained day: digest of the state at its end, from which the next day continues.",
    ),
)

RUNS = _log(
    "runs",
    "One row per phase of a step.",
    ("run_id", "source", "step", "phase", "definition"),
    Column("source", pa.string(), "Name of the source.", False),
    Column("step", pa.string(), f"{_one_of(StepName)}.", False),
    Column("phase", pa.string(), f"Phase within the step: {_one_of(PhaseName)}.", False),
    Column("definition", pa.string(), "pattern/NAME, episodes/NAME, ranked/NAME or model/NAME, empty if none.", False),
    Column("day_from", pa.date32(), "First day."),
    Column("day_to", pa.date32(), "Day after the last."),
    Column("started", TIMESTAMP, "Start of the phase."),
    Column("ended", TIMESTAMP, "End of the phase."),
    Column("status", pa.string(), f"{_one_of(RunStatus)}: done, except for files that reason names.", False),
    Column("reason", pa.string(), "Why it failed, was incomplete or had nothing to do, one line."),
    Column("rows_in", pa.int64(), "Rows read."),
    Column("rows_out", pa.int64(), "Rows written."),
    Column("code_version", pa.string(), "Version of Chainlake."),
    Column("spark_app_id", pa.string(), "Spark application, empty if none was started."),
    Column(
        "engine", pa.string(), f"{_one_of(Engine)}: the back end that changes the tables; null if nothing was done."
    ),
)

PLANS = _log(
    "plans",
    "Per pattern and day: the evaluation order, how it was chosen, and what it cost.",
    ("definition", "day"),
    Column("definition", pa.string(), "pattern/NAME.", False),
    Column("day", pa.date32(), "UTC day.", False),
    Column("join_order", pa.list_(pa.field("element", pa.string())), "Names in the order they are bound, per branch."),
    Column("how", pa.string(), f"{_one_of(OrderOrigin)}."),
    Column("stated", pa.string(), "Rates from which the order was chosen, JSON."),
    Column("estimated", pa.string(), "Estimated cost per order, JSON."),
    Column("evaluations", pa.int64(), "Edge-condition evaluations E."),
    Column("evaluations_neg", pa.int64(), "Negation tests E_neg."),
    Column("matches", pa.int64(), "Matches found."),
    Column(
        "regret",
        pa.float64(),
        "Evaluations beyond those of the best order in hindsight, as a share, on a sample; null if not sampled.",
    ),
    Column("strategy", pa.string(), "For a ranked pattern: how its best matches were found, A, B or C, or several."),
    Column("why_not", pa.string(), "For a ranked pattern: why others were not allowed, one phrase for each."),
    Column("partial", pa.int64(), "For a ranked pattern: partial matches that were made, as far as they were counted."),
    Column("bounds", pa.int64(), "For a ranked pattern: bounds that were compared with what a list asked for."),
    Column("pruned", pa.int64(), "For a ranked pattern: partial and whole matches that were left out by a bound."),
    Column("scored", pa.int64(), "For a ranked pattern: whole matches that were scored."),
    Column("pair_evals", pa.int64(), "Pairs that functions of pairs were called with."),
    Column("pair_memo_hits", pa.int64(), "Pairs that were asked for again and already known."),
    Column("replication", pa.float64(), "How many tasks read an event, on average."),
    Column("longest_task", pa.float64(), "Duration of the longest task divided by that of the median one."),
)

ALL = {table.name: table for table in (FILES, WAITING_FILES, EVENT_DAYS, RATES, INTERVALS, RUNS, PLANS)}
