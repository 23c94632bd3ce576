"""One landed file to typed rows, quarantine rows and counts, block by block (design §3, "Parsing"). No Spark."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.days import US_PER_DAY, day_start_us
from jobs.ingest import casts
from jobs.ingest.container import Damaged, NotReadable, gather, open_bytes
from jobs.ingest.formats import EPOCHS, Format, Mapping
from jobs.ingest.lines import KEPT, BadLine, Block, blocks
from jobs.ingest.tables import HEAD, Texts, choose_format, flat_columns, read_block
from jobs.ingest.zones import LocalTimes
from jobs.sources import Attribute, Source
from schemas.table import TIMESTAMP

if TYPE_CHECKING:
    from jobs.ingest.discovery import Landed

ROW, BAD, COUNTS = 0, 1, 2
#: Content that cannot be looked into at all: nothing but a whole-file row comes of it.
HOPELESS = ("damaged_archive", "no_format", "doubled_path", "link", "not_a_file")
#: Outcome of a file whose bytes are not to be had, or not those that were listed: nothing of it counts.
WAITING = "waiting"


@dataclass(frozen=True)
class Task:
    """One file to parse; everything a worker needs to know of it.

    ``problem`` is the code and ``detail`` the words for what was found wrong with it when it was listed;
    ``checksum`` is that of the content then, empty if it was not listed.
    """

    path: str
    file: str
    member: str | None
    file_id: str
    load_id: str
    fields: dict[str, str]
    file_date: date | None
    problem: str
    checksum: str = ""
    detail: str = ""

    @classmethod
    def of(cls, landed: Landed, load_id: str) -> Task:
        """The task for a landed file."""
        return cls(
            path=landed.path,
            file=landed.file,
            member=landed.member,
            file_id=landed.file_id,
            load_id=load_id,
            fields=landed.fields,
            file_date=landed.file_date,
            problem=landed.problem,
            checksum=landed.checksum,
            detail=landed.detail,
        )


@dataclass
class Counts:
    """What was in one file.

    ``whole_file`` counts its quarantine row with line 0, which is no row of the file; ``days`` are the UTC days (as
    days since 1970) that its rows fall on. ``outcome`` is that of ``ops.files``, or ``WAITING``, after which no other
    row of this load counts; ``reason`` says why it is not ``ok``.
    """

    load_id: str
    rows_read: int = 0
    rows_raw: int = 0
    rows_quarantined: int = 0
    whole_file: int = 0
    first_us: int | None = None
    last_us: int | None = None
    dst_gap: int = 0
    dst_double: int = 0
    days: list[int] = field(default_factory=list)
    outcome: str = "ok"
    reason: str = ""


def parsed_schema(source: Source) -> pa.Schema:
    """Columns of what ``parse_file`` yields: _kind (ROW, BAD, COUNTS), the raw row, and the quarantine row's part."""
    return pa.schema(
        [
            pa.field("_kind", pa.int32()),
            pa.field("load_id", pa.string()),
            pa.field("line", pa.int64()),
            pa.field("entry", pa.int64()),
            pa.field("file_id", pa.string()),
            pa.field("type", pa.string()),
            pa.field(source.key, pa.string()),
            pa.field("ts", TIMESTAMP),
            *(pa.field(a.name, a.arrow_type) for a in source.attributes),
            pa.field("event_date", pa.date32()),
            # Prefixed: an attribute may be called "reason" or "raw".
            pa.field("_reason", pa.string()),
            pa.field("_field", pa.string()),
            pa.field("_value", pa.string()),
            pa.field("_raw", pa.string()),
        ]
    )


def parse_file(source: Source, task: Task) -> Iterator[pa.RecordBatch]:
    """The rows of one file, its quarantine rows, and as the last row its ``Counts`` as JSON in ``_raw``.

    Whatever the bytes are, this raises nothing: what cannot be read becomes quarantine rows.
    """
    yield from _Parser(source, task).run()


class _Parser:
    def __init__(self, source: Source, task: Task) -> None:
        self.source = source
        self.task = task
        self.schema = parsed_schema(source)
        self.counts = Counts(task.load_id)
        self.days: set[int] = set()
        self.zones: dict[str, LocalTimes] = {}

    def run(self) -> Iterator[pa.RecordBatch]:
        task = self.task
        whole: list[tuple[str, str]] = [(task.problem, task.detail)] if task.problem else []
        waits = ""
        if task.problem not in HOPELESS:
            try:
                head = self._head()
                form, header, why = choose_format(self.source.formats, task.path, head)
                if form is None:
                    reason = "empty" if why == "empty" and not head.strip() else "no_format"
                    whole.append((reason, "it has no header line" if why == "empty" else why))
                else:
                    with open_bytes(_path(task), task.member) as stream:
                        for block in blocks(stream, form.encoding):
                            yield from self._block(block, form, header)
                    if task.checksum not in ("", stream.checksum()):
                        waits = "it changed while it was read"
            except (NotReadable, OSError) as error:
                waits = f"{error} (on {platform.node()})"
            except Damaged:
                # Where it was found damaged when it was listed, that has been said.
                waits = "" if task.problem == "damaged" else "it changed while it was read"
        if waits:
            self.counts.outcome, self.counts.reason = WAITING, waits
        elif whole:
            self.counts.outcome, self.counts.reason = whole[0][0], "; ".join(why for _, why in whole)[:KEPT]
            self.counts.whole_file = 1
            # One row per file: the first problem names it, the others stand in the value.
            yield self._bad_lines([BadLine(0, whole[0][0], "; ".join(why for _, why in whole))], counted=False)
        self.counts.days = sorted(self.days)
        self.counts.dst_gap = sum(z.gap for z in self.zones.values())
        self.counts.dst_double = sum(z.double for z in self.zones.values())
        yield self._batch({"_kind": [COUNTS], "load_id": [task.load_id], "_raw": [json.dumps(asdict(self.counts))]}, 1)

    def _head(self) -> bytes:
        with open_bytes(_path(self.task), self.task.member) as stream:
            # If it is cut short, what was read before the damage still tells the format.
            return gather(stream, HEAD)[0]

    def _block(self, block: Block, form: Format, header: list[str]) -> Iterator[pa.RecordBatch]:
        before = form.skip_lines + (1 if form.kind == "csv" and form.columns is None else 0)
        if len(block.numbers) and block.numbers[0] <= before:
            first = int(np.searchsorted(block.numbers, before, side="right"))
            bad = [line for line in block.bad if line.number > before]
            block = Block(block.lines[first:], block.numbers[first:], bad)
        texts = read_block(block, form, header, self.source.key)
        if texts.bad:
            yield self._bad_lines(texts.bad, counted=True)
        if len(texts.numbers):
            yield from self._rows(texts, form)

    def _bad_lines(self, bad: list[BadLine], *, counted: bool) -> pa.RecordBatch:
        if counted:
            self.counts.rows_read += len(bad)
            self.counts.rows_quarantined += len(bad)
        n = len(bad)
        return self._batch(
            {
                "_kind": [BAD] * n,
                "load_id": [self.task.load_id] * n,
                "file_id": [self.task.file_id] * n,
                "line": [line.number for line in bad],
                "entry": [0] * n,
                "_reason": [line.reason for line in bad],
                "_raw": [line.text for line in bad],
            },
            n,
        )

    def _rows(self, texts: Texts, form: Format) -> Iterator[pa.RecordBatch]:
        rows = _Rows(len(texts.numbers), dict(flat_columns(texts)), form, self.task.fields)
        kind = self._type(rows)
        key = rows.text(self.source.key)
        rows.fail(_null(key), "missing", self.source.key)
        micros, known = self._times(rows, kind, key)
        columns = self._attributes(rows)
        good = rows.reasons == 0
        dates = np.floor_divide(micros, US_PER_DAY).astype(np.int32)
        n_good = int(good.sum())
        self.counts.rows_read += len(good)
        self.counts.rows_raw += n_good
        self.counts.rows_quarantined += len(good) - n_good
        if n_good:
            first, last = int(micros[good].min()), int(micros[good].max())
            counts = self.counts
            counts.first_us = first if counts.first_us is None else min(first, counts.first_us)
            counts.last_us = last if counts.last_us is None else max(last, counts.last_us)
            self.days.update(np.unique(dates[good]).tolist())
            mask = None if n_good == len(good) else pa.array(good)
            values: dict[str, Any] = {
                "line": pa.array(texts.numbers),
                "entry": pa.array(texts.entries),
                "type": kind,
                self.source.key: key,
                "ts": pa.array(micros).cast(TIMESTAMP),
                "event_date": pa.array(dates).cast(pa.date32()),
                **columns,
            }
            kept = values if mask is None else {name: column.filter(mask) for name, column in values.items()}
            kept["_kind"] = pa.array(np.full(n_good, ROW, np.int32))
            kept["load_id"] = _repeat(self.task.load_id, n_good)
            kept["file_id"] = _repeat(self.task.file_id, n_good)
            yield self._batch(kept, n_good)
        wrong = np.flatnonzero(~good)
        if len(wrong):
            yield self._bad_rows(texts, rows, wrong, micros, known)

    def _bad_rows(
        self, texts: Texts, rows: _Rows, wrong: np.ndarray, micros: np.ndarray, known: np.ndarray
    ) -> pa.RecordBatch:
        n = len(wrong)
        why = [rows.failures[rows.reasons[row] - 1] for row in wrong]
        days = [int(micros[row] // US_PER_DAY) if known[row] else None for row in wrong]
        return self._batch(
            {
                "_kind": [BAD] * n,
                "load_id": [self.task.load_id] * n,
                "file_id": [self.task.file_id] * n,
                "line": texts.numbers[wrong],
                "entry": texts.entries[wrong],
                "event_date": pa.array(days, pa.int32()).cast(pa.date32()),
                "_reason": [reason for reason, _ in why],
                "_field": [name for _, name in why],
                "_value": [rows.given(name, int(row)) for (_, name), row in zip(why, wrong, strict=True)],
                "_raw": [texts.raw_text(int(row)) for row in wrong],
            },
            n,
        )

    def _type(self, rows: _Rows) -> pa.Array:
        rule = self.source.type
        if rule.constant is not None:
            return _repeat(rule.constant, rows.n)
        texts = rows.text("type")
        rows.fail(_null(texts), "missing", "type")
        if rule.map is None:
            return texts
        index = pc.index_in(texts, pa.array(list(rule.map), pa.string()))
        kind = pa.array(list(rule.map.values()), pa.string()).take(index)
        rows.fail(_null(kind), "unknown_type", "type")
        return kind

    def _times(self, rows: _Rows, kind: pa.Array, key: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """UTC microseconds of each row (0 where not known), and where they are known."""
        rule = rows.form.time
        texts = rows.time_text()
        day_us = day_start_us(self.task.file_date) if self.task.file_date is not None else None
        wall = casts.times(texts, rule.format, day_us)
        rows.fail(wall.missing, "missing", "ts")
        rows.fail(wall.bad, "bad_time", "ts")
        micros = wall.micros.copy()
        known = ~(wall.bad | wall.missing | wall.beyond)
        local = known & ~wall.is_utc
        if local.any():
            zone = self.zones.setdefault(rule.zone, LocalTimes(rule.zone))
            at = np.flatnonzero(local)
            micros[local] = zone.to_utc(micros[local], lambda row: (kind[at[row]].as_py(), key[at[row]].as_py()))
        outside = known & ((micros < day_start_us(rule.earliest)) | (micros >= day_start_us(rule.latest) + US_PER_DAY))
        # Of numbers it is most often the unit that is wrong: seconds read as milliseconds, or the other way round.
        rows.fail(wall.beyond | outside, "time_range" if rule.format not in EPOCHS else "time_unit", "ts")
        return np.where(outside, 0, micros), known & ~outside

    def _attributes(self, rows: _Rows) -> dict[str, pa.Array]:
        numbers: dict[str, casts.Cast] = {}
        for a in self.source.attributes:
            if a.type in ("double", "long"):
                numbers[a.name] = casts.doubles(rows.cleaned(a.name), rows.form.decimal, rows.form.thousands)
        plain = {name: cast.values for name, cast in numbers.items()}
        return {a.name: self._attribute(a, rows, numbers.get(a.name), plain) for a in self.source.attributes}

    def _attribute(self, a: Attribute, rows: _Rows, number: casts.Cast | None, plain: dict[str, pa.Array]) -> pa.Array:
        rule = rows.form.mapping.get(a.name, _NOTHING)
        if number is not None:
            rows.fail(number.bad, "not_a_number", a.name)
            values = casts.without_sentinels(number.values, rule.sentinels, plain)
            values = casts.convert(values, rule.scale, rule.offset, rule.round)
            if a.type == "long":
                whole = casts.longs(casts.Cast(values, number.bad))
                rows.fail(whole.bad, "not_a_whole_number", a.name)
                values = whole.values
            for bound, outside in ((a.low, pc.less), (a.high, pc.greater)):
                if bound is not None:
                    mask = pc.fill_null(outside(values, bound), False)
                    rows.fail(mask.to_numpy(zero_copy_only=False), "out_of_range", a.name)
        elif a.type == "boolean":
            cast = casts.booleans(rows.cleaned(a.name))
            rows.fail(cast.bad, "not_boolean", a.name)
            values = cast.values
        elif a.type == "timestamp":
            wall = casts.times(rows.cleaned(a.name), "iso")
            rows.fail(wall.bad, "bad_time", a.name)
            utc = np.where(wall.is_utc, wall.micros, LocalTimes(self.source.zone).to_utc(wall.micros))
            values = pa.array(utc, mask=wall.missing | wall.bad).cast(TIMESTAMP)
        else:
            values = rows.cleaned(a.name)
        if a.required:
            rows.fail(_null(values), "missing", a.name)
        return values

    def _batch(self, values: dict[str, Any], n: int) -> pa.RecordBatch:
        arrays = []
        for column in self.schema:
            value = values.get(column.name)
            if value is None:
                arrays.append(pa.nulls(n, column.type))
            else:
                arrays.append(value if isinstance(value, pa.Array) else pa.array(value, column.type))
        return pa.record_batch(arrays, schema=self.schema)


_NOTHING = Mapping()


class _Rows:
    """The text columns of a block under a format's mapping, and the first reason against each row."""

    def __init__(self, n: int, columns: dict[str, pa.Array], form: Format, fields: dict[str, str]) -> None:
        self.n = n
        self.form = form
        self._columns = columns
        self._fields = fields
        #: 0, or 1 + position in ``failures``.
        self.reasons = np.zeros(n, np.int32)
        self.failures: list[tuple[str, str]] = []

    def fail(self, mask: np.ndarray, reason: str, name: str) -> None:
        """Note ``reason`` for the rows of ``mask`` that have none yet."""
        fresh = mask & (self.reasons == 0)
        if fresh.any():
            self.failures.append((reason, name))
            self.reasons[fresh] = len(self.failures)

    def _origin(self, name: str) -> pa.Array:
        rule = self.form.mapping.get(name, _NOTHING)
        if name not in self.form.mapping and name in self._columns:
            return self._columns[name]
        if rule.constant is not None:
            return _repeat(rule.constant, self.n)
        if rule.path is not None:
            value = self._fields.get(rule.path)
            return _repeat(value, self.n) if value is not None else pa.nulls(self.n, pa.string())
        column = self._columns.get(rule.column) if rule.column is not None else None
        return column if column is not None else pa.nulls(self.n, pa.string())

    def text(self, name: str) -> pa.Array:
        """Type or key: only a blank is missing here, since "NA" can be the name of something."""
        texts = casts.clean(self._origin(name), ("",))
        case = self.form.mapping.get(name, _NOTHING).case
        return pc.utf8_upper(texts) if case == "upper" else pc.utf8_lower(texts) if case == "lower" else texts

    def cleaned(self, name: str) -> pa.Array:
        """An attribute's texts, null where the format says that they mean "no value"."""
        texts = casts.clean(self._origin(name), self.form.nulls)
        case = self.form.mapping.get(name, _NOTHING).case
        return pc.utf8_upper(texts) if case == "upper" else pc.utf8_lower(texts) if case == "lower" else texts

    def time_text(self) -> pa.Array:
        """The time's columns, joined by a space; null if any of them is blank."""
        parts = [casts.clean(self._columns[name], self.form.nulls) for name in self.form.time.columns]
        return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, " ")

    def given(self, name: str, row: int) -> str | None:
        """The text that stood for ``name`` in ``row``, cut."""
        value = (self.time_text() if name == "ts" else self._origin(name))[row].as_py()
        return value[:KEPT] if value is not None else None


def _repeat(text: str, n: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), n)


def _null(array: pa.Array) -> np.ndarray:
    return pc.is_null(array).to_numpy(zero_copy_only=False)


def _path(task: Task) -> Path:
    return Path(task.file)
