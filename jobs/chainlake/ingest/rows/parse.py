"""One landed file to typed rows, quarantine rows and counts, block by block. No Spark.

What becomes of a line depends on the file, not on where its blocks end. An unforeseen error costs only the line that
raised it; if every line raises it, the file; but never another file.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from chainlake.days import US_PER_DAY
from chainlake.definitions.formats.format import Format
from chainlake.definitions.source import Source
from chainlake.ingest.landing.container import Content, Damaged, NotReadable, gather, open_bytes
from chainlake.ingest.rows.choice import HEAD, choose_format
from chainlake.ingest.rows.lines import KEPT, BadLine, Block, blocks
from chainlake.ingest.rows.parsed import (
    WAITING,
    BadRows,
    Counts,
    ParseOutcome,
    Piece,
    RawRows,
    Task,
    WholeFile,
    bad_schema,
    raw_schema,
)
from chainlake.ingest.rows.text_columns import TextBlock, Texts, flat_columns, text_blocks
from chainlake.ingest.rows.typed import TypedRows, repeat
from chainlake.ingest.rows.zones import Listing, LocalTimes
from chainlake.schemas.ops_rows import FileProblem
from chainlake.schemas.table import TIMESTAMP

#: Problems of content that cannot be read at all, which gives nothing but one quarantine row for the whole file.
HOPELESS: tuple[FileProblem, ...] = ("damaged_archive", "no_format", "doubled_path", "link", "not_a_file")
#: Outcome of a file whose rows are all in quarantine, each with its own reason, so that no row stands for the file.
NO_ROW: FileProblem = "no_row"
#: A file is given up if the parser fails at more lines than this.
MOST_FAILED = 100


@dataclass
class _Tally:
    """The counts of a file so far; see ``Counts``."""

    rows_read: int = 0
    rows_raw: int = 0
    rows_quarantined: int = 0
    first_us: int | None = None
    last_us: int | None = None
    days: frozenset[int] = frozenset()


def parse_file(source: Source, task: Task) -> Iterator[Piece]:
    """The rows and quarantine rows of one file in batches, and its ``Counts`` as the last piece.

    Whatever the bytes are, this raises nothing: what cannot be read becomes quarantine rows.
    """
    yield from _Parser(source, task).run()


def read_file(source: Source, task: Task) -> WholeFile:
    """The same all at once, for a file that fits in memory."""
    pieces = list(parse_file(source, task))
    (counts,) = (piece for piece in pieces if isinstance(piece, Counts))
    return WholeFile(
        pa.Table.from_batches([piece.batch for piece in pieces if isinstance(piece, RawRows)], raw_schema(source)),
        pa.Table.from_batches([piece.batch for piece in pieces if isinstance(piece, BadRows)], bad_schema(source)),
        counts,
    )


def given_up(source: Source, task: Task, error: Exception) -> tuple[BadRows, Counts]:
    """The quarantine row and the counts of a file whose rows cannot be written."""
    return _Parser(source, task).give_up(_words(error))


class _GivenUp(Exception):
    """The parser failed at too many lines of a file."""

    def __init__(self, line: BadLine) -> None:
        super().__init__(f"more than {MOST_FAILED} lines, the last of them line {line.number}: {line.value}")


class _Parser:
    def __init__(self, source: Source, task: Task) -> None:
        self.source = source
        self.task = task
        self.raw_schema, self.bad_schema = raw_schema(source), bad_schema(source)
        self.tally = _Tally()
        self.zone = LocalTimes("UTC")
        #: Lines at which the parser failed.
        self.failed: list[BadLine] = []

    def run(self) -> Iterator[Piece]:
        task = self.task
        whole: list[tuple[FileProblem, str]] = [(task.problem, task.detail)] if task.problem else []
        waits = ""
        if task.problem not in HOPELESS:
            try:
                head = self._head()
                choice = choose_format(self.source.formats, task.path, head)
                form, header = choice.form, choice.columns
                if form is None:
                    code: FileProblem = "empty" if choice.is_empty and not head.strip() else "no_format"
                    whole.append((code, choice.why))
                else:
                    self.zone = LocalTimes(form.time.zone, partial(self._listing, form, header))
                    with (
                        open_bytes(task.file, task.member) as stream,
                        closing(self._text_blocks(stream, form, header)) as found,
                    ):
                        for block in found:
                            yield from self._block(block, form, header)
                    if task.checksum not in ("", stream.checksum()):
                        waits = "it changed while it was read"
            except (NotReadable, OSError) as error:
                waits = f"{error} (on {platform.node()})"
            except Damaged:
                # If it was already found damaged when it was listed, ``whole`` says so.
                waits = "" if task.problem == "damaged" else "it changed while it was read"
            except MemoryError:
                # A lack of memory says nothing about the file.
                raise
            except Exception as error:  # a bug in the parser: this file goes to quarantine, others are read
                whole.insert(0, ("parser_error", _words(error)))
        if self.failed and not waits:
            if self.tally.rows_read:
                yield self._bad_lines(self.failed, counted=True)
            elif len(self.failed) <= MOST_FAILED:
                first = self.failed[0]
                whole.insert(0, ("parser_error", f"at each line; line {first.number}: {first.value}"))
        outcome: ParseOutcome = "ok"
        reason = ""
        if waits:
            outcome, reason = WAITING, waits
        elif whole:
            problem, reason = whole[0][0], "; ".join(why for _, why in whole)
            outcome = problem
            # There is one row per file: the first problem is its reason, and its value lists all.
            yield self._bad_lines([BadLine(0, problem, reason)], counted=False)
        elif self.tally.rows_read and not self.tally.rows_raw:
            # The file says nothing about its day: it must not replace other files of the day, and the day stays
            # incomplete.
            outcome, reason = NO_ROW, f"none of its rows can be used; quarantine has {self.tally.rows_read}"
        yield self._counts(outcome, reason[:KEPT])

    def give_up(self, why: str) -> tuple[BadRows, Counts]:
        """The quarantine row and the counts that stand for the whole file."""
        return self._bad_lines([BadLine(0, "parser_error", why)], counted=False), self._counts("parser_error", why)

    def _counts(self, outcome: ParseOutcome, reason: str) -> Counts:
        tally = self.tally
        return Counts(
            load_id=self.task.load_id,
            rows_read=tally.rows_read,
            rows_raw=tally.rows_raw,
            rows_quarantined=tally.rows_quarantined,
            whole_file=int(outcome not in ("ok", NO_ROW, WAITING)),
            first_us=tally.first_us,
            last_us=tally.last_us,
            dst_gap=self.zone.gap,
            dst_double=self.zone.double,
            days=tuple(sorted(tally.days)),
            outcome=outcome,
            reason=reason,
        )

    def _head(self) -> bytes:
        with open_bytes(self.task.file, self.task.member) as stream:
            # If the file is damaged, what was read before the damage still tells the format.
            return gather(stream, HEAD)[0]

    def _text_blocks(self, stream: Content, form: Format, header: list[str]) -> Generator[TextBlock, None, None]:
        return text_blocks(_without_header(stream, form), form, header, self.source.key)

    def _block(self, found: TextBlock, form: Format, header: list[str]) -> Iterator[Piece]:
        if found.block.bad:
            yield self._bad_lines(found.block.bad, counted=True)
        yield from _tolerant(found, partial(self._undone, form, header), self._failed)

    def _undone(self, form: Format, header: list[str], found: TextBlock) -> list[Piece]:
        """The rows of a block; if the parser fails, everything recorded about the block is undone."""
        before = replace(self.tally), self.zone.copy()
        try:
            return list(self._read(found, form, header))
        except Exception:
            self.tally, self.zone = before
            raise

    def _failed(self, line: BadLine) -> None:
        self.failed.append(line)
        if len(self.failed) > MOST_FAILED:
            raise _GivenUp(line)

    def _listing(self, form: Format, header: list[str]) -> Listing:
        """The order in which the file lists its times, found by reading it separately: one block does not tell."""
        listing = Listing(form.time.zone)

        def look(block: TextBlock) -> list[Piece]:
            texts = block.rows(form, header, self.source.key)
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

        with open_bytes(self.task.file, self.task.member) as stream:
            for block in self._text_blocks(stream, form, header):
                # Lines at which the parser fails are ignored here.
                list(_tolerant(block, look, lambda line: None))
        return listing

    def _typed(self, texts: Texts, form: Format) -> TypedRows:
        task = self.task
        columns = dict(flat_columns(texts))
        return TypedRows(self.source, len(texts.numbers), columns, form, task.fields, task.file_date)

    def _read(self, found: TextBlock, form: Format, header: list[str]) -> Iterator[Piece]:
        texts = found.rows(form, header, self.source.key)
        if texts.bad:
            yield self._bad_lines(texts.bad, counted=True)
        if len(texts.numbers):
            yield from self._rows(texts, form)

    def _bad_lines(self, bad: list[BadLine], *, counted: bool) -> BadRows:
        if counted:
            self.tally.rows_read += len(bad)
            self.tally.rows_quarantined += len(bad)
        return self._bad(
            {
                "line": [line.number for line in bad],
                "entry": [line.entry for line in bad],
                "reason": [line.reason for line in bad],
                "value": [line.value for line in bad],
                "raw": [line.text for line in bad],
            },
            len(bad),
        )

    def _rows(self, texts: Texts, form: Format) -> Iterator[Piece]:
        rows = self._typed(texts, form)
        kind, key = rows.kind(), rows.key()
        micros, known = rows.times(self.zone, lambda row: (kind[row].as_py() or "", key[row].as_py() or ""))
        columns = rows.attributes()
        good = rows.reasons == 0
        dates = np.floor_divide(micros, US_PER_DAY).astype(np.int32)
        n_good = int(good.sum())
        tally = self.tally
        tally.rows_read += len(good)
        tally.rows_raw += n_good
        tally.rows_quarantined += len(good) - n_good
        if n_good:
            first, last = int(micros[good].min()), int(micros[good].max())
            tally.first_us = first if tally.first_us is None else min(first, tally.first_us)
            tally.last_us = last if tally.last_us is None else max(last, tally.last_us)
            tally.days |= frozenset(np.unique(dates[good]).tolist())
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
            kept["load_id"] = repeat(self.task.load_id, n_good)
            kept["file_id"] = repeat(self.task.file_id, n_good)
            yield RawRows(_batch(self.raw_schema, kept, n_good))
        wrong = np.flatnonzero(~good)
        if len(wrong):
            yield self._bad_rows(texts, rows, wrong, micros, known)

    def _bad_rows(
        self, texts: Texts, rows: TypedRows, wrong: np.ndarray, micros: np.ndarray, known: np.ndarray
    ) -> BadRows:
        why = [rows.failures[rows.reasons[row] - 1] for row in wrong]
        days = [int(micros[row] // US_PER_DAY) if known[row] else None for row in wrong]
        return self._bad(
            {
                "line": texts.numbers[wrong],
                "entry": texts.entries[wrong],
                "event_date": pa.array(days, pa.int32()).cast(pa.date32()),
                "reason": [reason for reason, _ in why],
                "field": [name for _, name in why],
                "value": [rows.given(name, int(row)) for (_, name), row in zip(why, wrong, strict=True)],
                "raw": [texts.raw_text(int(row)) for row in wrong],
            },
            len(wrong),
        )

    def _bad(self, values: dict[str, Any], n: int) -> BadRows:
        same = {"load_id": self.task.load_id, "file_id": self.task.file_id, "stage": "parse"}
        repeated = {name: repeat(value, n) for name, value in same.items()}
        return BadRows(_batch(self.bad_schema, repeated | values, n))


def _batch(schema: pa.Schema, values: dict[str, Any], n: int) -> pa.RecordBatch:
    """``values`` in the columns of ``schema``; columns without values are null."""
    arrays = []
    for column in schema:
        value = values.get(column.name)
        if value is None:
            arrays.append(pa.nulls(n, column.type))
        else:
            arrays.append(value if isinstance(value, pa.Array) else pa.array(value, column.type))
    return pa.record_batch(arrays, schema=schema)


def _without_header(stream: Content, form: Format) -> Iterator[Block]:
    """The lines of a file that can be rows."""
    before = form.lines_before
    for block in blocks(stream, form.encoding):
        first = int(np.searchsorted(block.numbers, before, side="right"))
        bad = [line for line in block.bad if line.number > before]
        yield Block(block.lines[first:], block.numbers[first:], bad)


def _tolerant(
    found: TextBlock, work: Callable[[TextBlock], list[Piece]], failed: Callable[[BadLine], None]
) -> Iterator[Piece]:
    """What ``work`` makes of the good lines of a block, in order of lines, except those at which it fails."""
    block = found.block
    if not block.lines:
        return
    try:
        pieces = work(TextBlock(Block(block.lines, block.numbers, []), found.texts))
    except (NotReadable, OSError, Damaged, MemoryError):
        # None of these is caused by a line.
        raise
    except Exception as error:  # a bug in the parser at some line, which halving finds
        if len(block.lines) == 1:
            line = block.lines[0][: 4 * KEPT].decode("utf-8", errors="replace")[:KEPT]
            failed(BadLine(int(block.numbers[0]), "parser_error", line, value=_words(error)))
            return
        half = len(block.lines) // 2
        for part in (slice(None, half), slice(half, None)):
            yield from _tolerant(TextBlock(Block(block.lines[part], block.numbers[part], [])), work, failed)
    else:
        yield from pieces


def _words(error: Exception) -> str:
    """An error as text that every column can hold."""
    return f"{type(error).__name__}: {error}"[:KEPT].encode("utf-8", errors="replace").decode()
