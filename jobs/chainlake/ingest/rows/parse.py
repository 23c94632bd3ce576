"""One landed file to typed rows, quarantine rows and counts, block by block. No Spark.

What becomes of a line depends on the file and not on where its blocks end. An error that nobody foresaw costs the line
that raised it, and where that is every line, the file; never another file.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from chainlake.days import US_PER_DAY
from chainlake.definitions.format import Format
from chainlake.definitions.source import Source
from chainlake.ingest.landing.container import Content, Damaged, NotReadable, gather, open_bytes
from chainlake.ingest.rows.lines import KEPT, BadLine, Block, blocks
from chainlake.ingest.rows.text_columns import HEAD, Texts, choose_format, flat_columns, read_block
from chainlake.ingest.rows.typed import TypedRows, repeat
from chainlake.ingest.rows.zones import Listing, LocalTimes
from chainlake.schemas.table import TIMESTAMP

if TYPE_CHECKING:
    from chainlake.ingest.landing.discovery import Landed

ROW, BAD, COUNTS = 0, 1, 2
#: Content that cannot be looked into at all: nothing but a whole-file row comes of it.
HOPELESS = ("damaged_archive", "no_format", "doubled_path", "link", "not_a_file")
#: Outcome of a file whose bytes are not to be had, or not those that were listed: nothing of it counts.
WAITING = "waiting"
#: A file with more lines than these at which the parser fails is given up.
MOST_FAILED = 100


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


class _GivenUp(Exception):
    """The parser failed at too many lines of a file."""

    def __init__(self, line: BadLine) -> None:
        super().__init__(f"more than {MOST_FAILED} lines, the last of them line {line.number}: {line.value}")


class _Parser:
    def __init__(self, source: Source, task: Task) -> None:
        self.source = source
        self.task = task
        self.schema = parsed_schema(source)
        self.counts = Counts(task.load_id)
        self.days: set[int] = set()
        self.zone = LocalTimes("UTC")
        #: Lines at which the parser failed.
        self.failed: list[BadLine] = []

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
                    self.zone = LocalTimes(form.time.zone, partial(self._listing, form, header))
                    with open_bytes(_path(task), task.member) as stream:
                        for block in _without_header(stream, form):
                            yield from self._block(block, form, header)
                    if task.checksum not in ("", stream.checksum()):
                        waits = "it changed while it was read"
            except (NotReadable, OSError) as error:
                waits = f"{error} (on {platform.node()})"
            except Damaged:
                # Where it was found damaged when it was listed, that has been said.
                waits = "" if task.problem == "damaged" else "it changed while it was read"
            except MemoryError:
                # It says nothing about the file.
                raise
            except Exception as error:
                whole.insert(0, ("parser_error", _words(error)))
        if self.failed and not waits:
            if self.counts.rows_read:
                yield self._bad_lines(self.failed, counted=True)
            elif len(self.failed) <= MOST_FAILED:
                first = self.failed[0]
                whole.insert(0, ("parser_error", f"at each line; line {first.number}: {first.value}"))
        if waits:
            self.counts.outcome, self.counts.reason = WAITING, waits
        elif whole:
            self.counts.outcome, self.counts.reason = whole[0][0], "; ".join(why for _, why in whole)[:KEPT]
            self.counts.whole_file = 1
            # One row per file: the first problem names it, the others stand in the value.
            yield self._bad_lines([BadLine(0, whole[0][0], "; ".join(why for _, why in whole))], counted=False)
        self.counts.days = sorted(self.days)
        self.counts.dst_gap, self.counts.dst_double = self.zone.gap, self.zone.double
        yield self._batch({"_kind": [COUNTS], "load_id": [task.load_id], "_raw": [json.dumps(asdict(self.counts))]}, 1)

    def _head(self) -> bytes:
        with open_bytes(_path(self.task), self.task.member) as stream:
            # If it is cut short, what was read before the damage still tells the format.
            return gather(stream, HEAD)[0]

    def _block(self, block: Block, form: Format, header: list[str]) -> Iterator[pa.RecordBatch]:
        if block.bad:
            yield self._bad_lines(block.bad, counted=True)
        yield from _tolerant(block, partial(self._undone, form, header), self._failed)

    def _undone(self, form: Format, header: list[str], block: Block) -> list[pa.RecordBatch]:
        """The rows of a block; if the parser fails at it, nothing has been noted of it."""
        before = replace(self.counts), set(self.days), self.zone.copy()
        try:
            return list(self._read(block, form, header))
        except Exception:
            self.counts, self.days, self.zone = before
            raise

    def _failed(self, line: BadLine) -> None:
        self.failed.append(line)
        if len(self.failed) > MOST_FAILED:
            raise _GivenUp(line)

    def _listing(self, form: Format, header: list[str]) -> Listing:
        """In which order the file lists its times, by a reading of its own: one block does not tell."""
        listing = Listing(form.time.zone)

        def look(block: Block) -> list[pa.RecordBatch]:
            texts = read_block(block, form, header, self.source.key)
            if len(texts.numbers):
                rows = self._typed(texts, form)
                kinds, keys = (column.fill_null("").dictionary_encode() for column in (rows.kind(), rows.key()))
                wall, local = rows.wall()
                codes = kinds.indices.to_numpy().astype(np.int64) * len(keys.dictionary) + keys.indices.to_numpy()
                found, codes = np.unique(codes[local], return_inverse=True)
                pairs = (divmod(code, len(keys.dictionary)) for code in found.tolist())
                names = [(kinds.dictionary[kind].as_py(), keys.dictionary[key].as_py()) for kind, key in pairs]
                listing.add(wall.micros[local], codes, names)
            return []

        with open_bytes(_path(self.task), self.task.member) as stream:
            for block in _without_header(stream, form):
                # Lines that the parser fails at have no part in it.
                list(_tolerant(block, look, lambda line: None))
        return listing

    def _typed(self, texts: Texts, form: Format) -> TypedRows:
        task = self.task
        columns = dict(flat_columns(texts))
        return TypedRows(self.source, len(texts.numbers), columns, form, task.fields, task.file_date)

    def _read(self, block: Block, form: Format, header: list[str]) -> Iterator[pa.RecordBatch]:
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
                "entry": [line.entry for line in bad],
                "_reason": [line.reason for line in bad],
                "_value": [line.value for line in bad],
                "_raw": [line.text for line in bad],
            },
            n,
        )

    def _rows(self, texts: Texts, form: Format) -> Iterator[pa.RecordBatch]:
        rows = self._typed(texts, form)
        kind, key = rows.kind(), rows.key()
        micros, known = rows.times(self.zone, lambda row: (kind[row].as_py() or "", key[row].as_py() or ""))
        columns = rows.attributes()
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
            kept["load_id"] = repeat(self.task.load_id, n_good)
            kept["file_id"] = repeat(self.task.file_id, n_good)
            yield self._batch(kept, n_good)
        wrong = np.flatnonzero(~good)
        if len(wrong):
            yield self._bad_rows(texts, rows, wrong, micros, known)

    def _bad_rows(
        self, texts: Texts, rows: TypedRows, wrong: np.ndarray, micros: np.ndarray, known: np.ndarray
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

    def _batch(self, values: dict[str, Any], n: int) -> pa.RecordBatch:
        arrays = []
        for column in self.schema:
            value = values.get(column.name)
            if value is None:
                arrays.append(pa.nulls(n, column.type))
            else:
                arrays.append(value if isinstance(value, pa.Array) else pa.array(value, column.type))
        return pa.record_batch(arrays, schema=self.schema)


def _without_header(stream: Content, form: Format) -> Iterator[Block]:
    """The lines of a file that can be rows."""
    before = form.skip_lines + (1 if form.kind == "csv" and form.columns is None else 0)
    for block in blocks(stream, form.encoding):
        first = int(np.searchsorted(block.numbers, before, side="right"))
        bad = [line for line in block.bad if line.number > before]
        yield Block(block.lines[first:], block.numbers[first:], bad)


def _tolerant(
    block: Block, work: Callable[[Block], list[pa.RecordBatch]], failed: Callable[[BadLine], None]
) -> Iterator[pa.RecordBatch]:
    """What ``work`` makes of the good lines of a block, but for those that it fails at, in the order of lines."""
    if not block.lines:
        return
    try:
        found = work(Block(block.lines, block.numbers, []))
    except (NotReadable, OSError, Damaged, MemoryError):
        # None of these comes of a line.
        raise
    except Exception as error:
        if len(block.lines) == 1:
            line = block.lines[0][: 4 * KEPT].decode("utf-8", errors="replace")[:KEPT]
            failed(BadLine(int(block.numbers[0]), "parser_error", line, value=_words(error)))
            return
        half = len(block.lines) // 2
        for part in (slice(None, half), slice(half, None)):
            yield from _tolerant(Block(block.lines[part], block.numbers[part], []), work, failed)
    else:
        yield from found


def _words(error: Exception) -> str:
    """An error as a text that every column can hold."""
    return f"{type(error).__name__}: {error}"[:KEPT].encode("utf-8", errors="replace").decode()


def _path(task: Task) -> Path:
    return Path(task.file)
