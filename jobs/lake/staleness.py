"""What is done, missing, stale or failed: from ``ops`` alone, no JVM (design §4 "Fingerprint", "To do").

Ten years of a hundred patterns are 365,000 (definition, day) pairs, so the logs are read once and pairs are judged
column by column; fingerprints are shared by all patterns that read the same number of days.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np

from jobs.days import US_PER_DAY, Days, day_of_us
from jobs.lake import ops
from jobs.lake.definitions import Definition
from jobs.lake.event_days import COMPUTABLE, EventDays
from jobs.paths import Home

#: States that ask for a computation, if the day's events are complete or provisional.
TO_DO = ("missing", "stale", "failed")

_COLUMNS = (
    "table_name", "definition_hash", "engine_version", "input_fingerprint", "status", "rows", "published_version",
    "reason",
)  # fmt: skip


@dataclass(frozen=True)
class ToDo:
    """A day of a definition to compute: ``state`` is ``missing``, ``stale`` or ``failed``, ``why`` one line."""

    definition: str
    day: date
    state: str
    why: str


@dataclass(frozen=True)
class StatusRow:
    """A day of a definition.

    Args:
        definition: ``pattern/NAME`` or ``model/NAME``.
        day: UTC day.
        state: ``done``, ``missing``, ``stale``, ``failed``, ``audit_failed``, ``waiting`` or ``retired``.
        why: one line, empty for ``done``.
        provisional: files of the day that are expected had not all come when it was last ingested.
        ready: the day's events are complete or provisional, so that it can be computed.
        rows: published rows of the day, ``None`` if never published.
        version: version of the table that holds them.
    """

    definition: str
    day: date
    state: str
    why: str
    provisional: bool
    ready: bool
    rows: int | None
    version: int | None


def fingerprint(definition: Definition, day: date, event_days: EventDays) -> str:
    """Hash of the input of ``day``: it changes if and only if a checksum in the day's read range does.

    A model carries state, so its fingerprint is chained: hash of yesterday's, today's checksum and the config.

    Args:
        definition: the pattern or model.
        day: UTC day.
        event_days: the source's days, pinned if a computation follows.
    """
    if definition.start is not None:
        return _chained(definition, day, event_days)
    lo, hi = definition.read_range(day)
    key = (day_of_us(lo), day_of_us(hi - 1))
    known = event_days.memo.get(key)
    if known is None:
        known = event_days.memo[key] = _digest(event_days.checksums(lo, hi))
    return known


def to_do(
    home: Home, definitions: Sequence[Definition], days: Days | None = None, *, asked: Days | None = None
) -> list[ToDo]:
    """The days to compute, by definition and day.

    Args:
        home: the installation.
        definitions: patterns and models.
        days: only these days; all if not given.
        asked: days that were asked for: they are to do even where the source has no events.
    """
    return [
        ToDo(row.definition, row.day, row.state, row.why)
        for row in _judge(home, definitions, days, asked)
        if row.ready and row.state in TO_DO
    ]


def status_rows(home: Home, definitions: Sequence[Definition], days: Days | None = None) -> list[StatusRow]:
    """Every definition and day that is done, to do or waiting, by definition and day."""
    return list(_judge(home, definitions, days, None))


def _digest(parts: list[str]) -> str:
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _chained(definition: Definition, day: date, event_days: EventDays) -> str:
    start = definition.start
    assert start is not None
    if day < start:
        return _digest(["before the start", definition.definition_hash])
    chain = event_days.memo.setdefault((start, definition.definition_hash), [])
    while len(chain) <= (day - start).days:
        before = chain[-1] if chain else ""
        today = start + timedelta(days=len(chain))
        chain.append(_digest([before, event_days.checksum(today), definition.definition_hash]))
    return chain[(day - start).days]


class _Intervals:
    """Current rows of ``ops.intervals``, in columns, found by definition."""

    def __init__(self, home: Home, definitions: Sequence[Definition]) -> None:
        names = sorted({definition.name for definition in definitions})
        table = ops.current_table(
            home, "intervals", columns=["definition", "day", *_COLUMNS], filters=[("definition", "in", names)]
        )
        encoded = table["definition"].combine_chunks().dictionary_encode()
        codes = encoded.indices.to_numpy()
        self._span = {
            name: (int(np.searchsorted(codes, code)), int(np.searchsorted(codes, code, side="right")))
            for code, name in enumerate(encoded.dictionary.to_pylist())
        }
        self.day = table["day"].cast("int32").to_numpy()
        self.columns = {name: table[name].to_numpy(zero_copy_only=False) for name in _COLUMNS}

    def of(self, name: str) -> slice:
        return slice(*self._span.get(name, (0, 0)))


def _judge(
    home: Home, definitions: Sequence[Definition], days: Days | None, asked: Days | None
) -> Iterator[StatusRow]:
    if not definitions:
        return
    intervals = _Intervals(home, definitions)
    sources = {definition.source for definition in definitions}
    events = {source: EventDays.load(home, source) for source in sources}
    for definition in sorted(definitions, key=lambda d: d.name):
        yield from _judge_one(definition, events[definition.source], intervals, days, asked)


def _judge_one(
    definition: Definition, events: EventDays, intervals: _Intervals, days: Days | None, asked: Days | None
) -> Iterator[StatusRow]:
    part = intervals.of(definition.name)
    rows = dict(zip(intervals.day[part].tolist(), range(part.start, part.stop), strict=True))
    columns = intervals.columns
    for number in sorted(_wanted(definition, events, days, asked).union(_within(rows, days))):
        day = date.fromordinal(_EPOCH + number)
        status = events.status(day)
        ready = status in COMPUTABLE
        at = rows.get(number)
        if at is None:
            state, why = ("missing", "never computed") if ready else ("waiting", _waiting(status))
            yield StatusRow(definition.name, day, state, why, status == "provisional", ready, None, None)
            continue
        record = {name: column[at] for name, column in columns.items()}
        state, why = _compare(definition, record, fingerprint(definition, day, events))
        yield StatusRow(
            definition.name,
            day,
            state,
            why if ready or state == "done" else f"{why}; {_waiting(status)}",
            status == "provisional",
            ready,
            _whole(record["rows"]),
            _whole(record["published_version"]),
        )


_EPOCH = date(1970, 1, 1).toordinal()


def _wanted(definition: Definition, events: EventDays, days: Days | None, asked: Days | None) -> set[int]:
    """Days that should have a row: from the first event day to the last plus W, and those asked for."""
    numbers: set[int] = set()
    if events.first is not None and events.last is not None:
        lo = events.first.toordinal() - _EPOCH
        hi = events.last.toordinal() - _EPOCH + 1 + -(-definition.window_us // US_PER_DAY)
        if days is not None:
            lo, hi = max(lo, days.start.toordinal() - _EPOCH), min(hi, days.end.toordinal() - _EPOCH)
        numbers.update(range(lo, hi))
    if asked is not None:
        numbers.update(_within(range(asked.start.toordinal() - _EPOCH, asked.end.toordinal() - _EPOCH), days))
    return numbers


def _within(numbers: Any, days: Days | None) -> Iterator[int]:
    if days is None:
        return iter(numbers)
    lo, hi = days.start.toordinal() - _EPOCH, days.end.toordinal() - _EPOCH
    return (number for number in numbers if lo <= number < hi)


def _compare(definition: Definition, record: dict[str, Any], now: str) -> tuple[str, str]:
    """State and reason of a day that has a row."""
    if record["status"] == "retired":
        return "retired", record["reason"] or "retired"
    moved = [
        text
        for text, differs in (
            ("its events changed", record["input_fingerprint"] != now),
            ("its definition changed", record["definition_hash"] != definition.definition_hash),
            ("the engine changed", record["engine_version"] != definition.engine_version),
            (
                f"migrating from {record['table_name']} to {definition.table_name}",
                record["table_name"] != definition.table_name,
            ),
        )
        if differs
    ]
    if record["status"] == "failed":
        return "failed", record["reason"] or "failed"
    if moved:
        return "stale", ", ".join(moved)
    if record["status"] == "done":
        return "done", ""
    if record["status"] == "audit_failed":
        return "audit_failed", record["reason"] or "audit failed"
    return "stale", "publishing was interrupted"


def _waiting(status: str | None) -> str:
    if status is None:
        return "no ingest has passed this day yet"
    return "its events are being changed" if status == "changing" else "expected files are missing"


def _whole(value: Any) -> int | None:
    return None if value is None or value != value else int(value)
