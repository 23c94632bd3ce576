"""The rows of ``ops.*`` as rooms exchange them: dictionaries whose keys and values mypy checks. ``schemas/ops.py`` says
what each column means, and a test compares the two. A nullable column may be missing from a row that is written; it is
then null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Literal, NotRequired, TypedDict

#: The status of a day's events.
DayStatus = Literal["changing", "open", "complete", "provisional"]
#: The same if a pattern's matches are read in place of events: these may not be published yet.
ReadStatus = DayStatus | Literal["unmatched"]
#: The outcome of a day of a definition.
IntervalStatus = Literal["publishing", "done", "failed", "audit_failed", "retired"]
#: The outcome of a phase.
RunStatus = Literal["ok", "nothing", "failed", "incomplete"]
#: The steps that compute from events.
ComputingStep = Literal["detect", "monitor"]
#: What works on tables of the lake, and records its phases.
StepName = Literal["ingest", ComputingStep, "check", "maintain", "retire"]
#: The phases of steps; one that has no parts has its own name.
PhaseName = Literal[
    "plan", "parse", "resolve", "detect", "ranking", "episodes", "monitor", "audit", "publish",
    "ingest", "check", "maintain", "retire",
]  # fmt: skip
#: The back ends that change tables.
Engine = Literal["files", "spark"]
#: Where the order of a search of a lake's days comes from.
OrderOrigin = Literal["declared", "estimated"]
#: Why a landed file is not read, or not to its end.
FileProblem = Literal[
    "empty", "no_format", "no_row", "damaged", "damaged_archive", "parser_error", "bad_path_date", "bad_path_revision",
    "doubled_path", "link", "not_a_file",
]  # fmt: skip
#: What became of a landed file.
FileOutcome = Literal["ok", "removed", FileProblem]


class _Set(TypedDict):
    """The columns that :func:`chainlake.lake.records.ops.append` sets."""

    seq: NotRequired[int]
    written_at: NotRequired[datetime]
    run_id: NotRequired[str]


class FileRow(_Set):
    """A row of ``ops.files``."""

    source: str
    path: str
    file_id: str
    load_id: str
    size: NotRequired[int | None]
    checksum: NotRequired[str | None]
    path_fields: NotRequired[Mapping[str, str] | Sequence[tuple[str, str]] | None]
    file_date: NotRequired[date | None]
    revision: NotRequired[int | None]
    definition_hash: NotRequired[str | None]
    parser_version: NotRequired[int | None]
    rows_read: NotRequired[int | None]
    rows_raw: NotRequired[int | None]
    rows_quarantined: NotRequired[int | None]
    first_ts: NotRequired[datetime | None]
    last_ts: NotRequired[datetime | None]
    outcome: NotRequired[FileOutcome | None]
    reason: NotRequired[str | None]


class WaitingFileRow(_Set):
    """A row of ``ops.waiting_files``."""

    source: str
    path: str
    waits: bool
    reason: NotRequired[str | None]
    file_date: NotRequired[date | None]


class EventDayRow(_Set):
    """A row of ``ops.event_days``."""

    source: str
    day: date
    status: DayStatus
    rows: NotRequired[int | None]
    duplicates: NotRequired[int | None]
    conflicts: NotRequired[int | None]
    superseded: NotRequired[int | None]
    checksum: NotRequired[str | None]
    events_version: NotRequired[int | None]


class MatchedDayRow(TypedDict):
    """A day of published matches in the form of a day of events; no table has such rows."""

    source: str
    day: date
    status: ReadStatus
    rows: int | None
    checksum: str | None
    events_version: NotRequired[int | None]


class RateRow(_Set):
    """A row of ``ops.rates``."""

    source: str
    day: date
    type: str
    key: str
    events: int
    first_ts: NotRequired[datetime | None]
    last_ts: NotRequired[datetime | None]


class RateOfKey(TypedDict):
    """The part of a row of ``ops.rates`` from which an order is chosen."""

    type: str
    key: str
    events: int


class PublishedDay(TypedDict):
    """The part of a row of ``ops.intervals`` that says which version of a table has a day."""

    day: date
    table_name: str
    status: IntervalStatus


class IntervalRow(_Set):
    """A row of ``ops.intervals``."""

    definition: str
    day: date
    table_name: str
    definition_hash: str
    engine_version: int
    input_fingerprint: str
    status: IntervalStatus
    rows: NotRequired[int | None]
    added: NotRequired[int | None]
    withdrawn: NotRequired[int | None]
    changed: NotRequired[int | None]
    published_version: NotRequired[int | None]
    reason: NotRequired[str | None]
    rows_checksum: NotRequired[str | None]
    state_in: NotRequired[str | None]
    state_out: NotRequired[str | None]


class RunRow(_Set):
    """A row of ``ops.runs``."""

    source: str
    step: StepName
    phase: PhaseName
    definition: str
    day_from: NotRequired[date | None]
    day_to: NotRequired[date | None]
    started: NotRequired[datetime | None]
    ended: NotRequired[datetime | None]
    status: RunStatus
    reason: NotRequired[str | None]
    rows_in: NotRequired[int | None]
    rows_out: NotRequired[int | None]
    code_version: NotRequired[str | None]
    spark_app_id: NotRequired[str | None]
    engine: NotRequired[Engine | None]


class BestCounts(TypedDict):
    """The part of a row of ``ops.plans`` that says how the best matches of a ranked pattern were found."""

    strategy: NotRequired[str | None]
    why_not: NotRequired[str | None]
    partial: NotRequired[int | None]
    bounds: NotRequired[int | None]
    pruned: NotRequired[int | None]
    scored: NotRequired[int | None]


class _Searched(TypedDict):
    """The part of a row of ``ops.plans`` that says how a day was searched and what it cost."""

    definition: str
    day: date
    join_order: NotRequired[Sequence[str] | None]
    how: NotRequired[OrderOrigin | None]
    stated: NotRequired[str | None]
    estimated: NotRequired[str | None]
    evaluations: NotRequired[int | None]
    evaluations_neg: NotRequired[int | None]
    matches: NotRequired[int | None]
    regret: NotRequired[float | None]


class PlanRow(_Set, _Searched, BestCounts):
    """A row of ``ops.plans``."""

    pair_evals: NotRequired[int | None]
    pair_memo_hits: NotRequired[int | None]
    replication: NotRequired[float | None]
    longest_task: NotRequired[float | None]
