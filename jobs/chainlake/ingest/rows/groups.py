"""Files to parse in groups: a task parses the files of one, and writes what they hold to files that its rows share.

Rows become data files of ``raw`` that are not committed yet, quarantine rows become staged Parquet files; back come
counts and paths. A file costs a task's start only if it is large enough to be worth one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from types import TracebackType

import pyarrow as pa

from chainlake.definitions.source import Source
from chainlake.errors import AuditFailed
from chainlake.ingest.errors import RowsMiscounted
from chainlake.ingest.landing.container import archives_stay_open
from chainlake.ingest.rows.parse import given_up, parse_file
from chainlake.ingest.rows.parsed import WAITING, Counts, RawRows, Task, bad_schema
from chainlake.ingest.staged import StagedFile, staged
from chainlake.lake.delta.data_files import DataFile, DataFiles
from chainlake.schemas.raw import raw_table

#: Groups per core, so that cores end at about the same time although files differ in what their bytes cost.
_PER_CORE = 3
#: Bytes of a group at most, about 3 s of parsing: what is lost with a worker.
_MOST_BYTES = 64 << 20
#: Bytes of a group at least, about 0.1 s of parsing, so that starting its task costs little beside it.
_LEAST_BYTES = 4 << 20
#: Bytes that take as long to parse as it takes to open a file.
_FILE_BYTES = 100_000
#: Rows of one file that wait in memory until the file has been read to its end.
_HELD_ROWS = 250_000


@dataclass(frozen=True)
class GroupWork:
    """What is the same for all groups of a run.

    Args:
        source: the source.
        raw: folder of the raw table.
        staging: folder for quarantine rows, which exists.
    """

    source: Source
    raw: str
    staging: str

    def __call__(self, tasks: Sequence[Task]) -> GroupReport:
        """Parse the files of one group.

        Whatever a file does to the parser or to the writer is the outcome of this file, and the others are parsed. Of a
        load of which nothing counts no row is written.

        Raises:
            AuditFailed: other rows were written than are counted.
            OSError: rows cannot be written.
        """
        with archives_stay_open():
            together = self._together(tasks) if len(tasks) > 1 else None
            # A file that is a group of its own takes no rows of others with it.
            reports = [together] if together is not None else [self._alone(task) for task in tasks]
        whole = GroupReport(
            tuple(counts for one in reports for counts in one.counts),
            tuple(file for one in reports for file in one.files),
            tuple(path for one in reports for path in one.bad),
        )
        written = sum(file.rows for file in whole.files)
        counted = sum(counts.rows_raw for counts in whole.counts if counts.outcome != WAITING)
        if written != counted:
            raise RowsMiscounted.of(raw_table(self.source).path_name, written, counted, tasks[0].path)
        return whole

    def _together(self, tasks: Sequence[Task]) -> GroupReport | None:
        """The files in files of all; ``None``, and nothing written, if rows of one would have to be taken out again."""
        with ExitStack() as stack:
            files, bad = self._files(stack)
            try:
                counts = tuple(_parse(self.source, task, _Sink(files.write, bad.write), _HELD_ROWS) for task in tasks)
                return GroupReport(counts, tuple(files.close()), bad.close())
            except (_TakeBack, *_REFUSED):
                files.abandon()
                bad.abandon()
                return None

    def _alone(self, task: Task) -> GroupReport:
        """A file in files of its own, written while it is parsed."""
        with ExitStack() as stack:
            files, bad = self._files(stack)
            why: Exception | None = None
            try:
                with _Behind(files.write) as behind:
                    counts = _parse(self.source, task, _Sink(behind.write, bad.write, behind.finish), 0)
                return GroupReport((counts,), tuple(files.close()), bad.close())
            except _TakeBack as waits:
                counts = waits.counts
            except _REFUSED as error:
                why = error
            files.abandon()
            bad.abandon()
        if why is None:
            return GroupReport((counts,))
        row, counts = given_up(self.source, task, why)
        return GroupReport((counts,), (), staged(self.staging, "bad", pa.Table.from_batches([row.batch])))

    def _files(self, stack: ExitStack) -> tuple[DataFiles, StagedFile]:
        """Where rows and quarantine rows go; they are removed if ``stack`` is left by an error."""
        return (
            stack.enter_context(DataFiles(self.raw, raw_table(self.source))),
            stack.enter_context(StagedFile(self.staging, "bad", bad_schema(self.source))),
        )


@dataclass(frozen=True)
class GroupReport:
    """What came of a group.

    Args:
        counts: of each file.
        files: data files with the rows, not committed yet.
        bad: Parquet files with the quarantine rows, in the columns of ``bad_schema``.
    """

    counts: tuple[Counts, ...]
    files: tuple[DataFile, ...] = ()
    bad: tuple[str, ...] = ()


def groups_of(tasks: Iterable[Task], parallelism: int) -> list[tuple[Task, ...]]:
    """All ``tasks`` in groups, the largest group first: it takes longest, and groups are begun in this order.

    Files of one date are neighbours, so that the rows of a day come into few data files.

    Args:
        tasks: the files.
        parallelism: how many groups are parsed at a time.
    """
    ordered = sorted(tasks, key=lambda task: (task.file_date or date.min, task.path))
    # Of a member of an archive only the size of the whole is known.
    members = Counter(task.file for task in ordered)
    weights = [task.size // members[task.file] + _FILE_BYTES for task in ordered]
    most = max(_LEAST_BYTES, min(_MOST_BYTES, sum(weights) // max(1, _PER_CORE * parallelism)))
    groups: list[_Group] = []
    for task, weight in zip(ordered, weights, strict=True):
        if not groups or groups[-1].weight + weight > most:
            groups.append(_Group())
        groups[-1].add(task, weight)
    return [tuple(group.tasks) for group in sorted(groups, key=lambda group: -group.weight)]


@dataclass
class _Group:
    tasks: list[Task] = field(default_factory=list)
    weight: int = 0

    def add(self, task: Task, weight: int) -> None:
        self.tasks.append(task)
        self.weight += weight


#: What a writer raises at rows that cannot be written, whatever the disk is like.
_REFUSED = (AuditFailed, pa.ArrowException)


class _TakeBack(Exception):
    """Rows of a load of which nothing counts have been handed to a writer."""

    def __init__(self, counts: Counts) -> None:
        super().__init__(f"{counts.reason}, with rows of load {counts.load_id} written")
        self.counts = counts


@dataclass(frozen=True)
class _Sink:
    """Where the rows of a file go.

    Args:
        rows, bad: take rows, and quarantine rows.
        finish: is called once all are handed over; it raises what ``rows`` has not raised yet.
    """

    rows: Callable[[pa.Table], None]
    bad: Callable[[pa.Table], None]
    finish: Callable[[], None] = lambda: None


def _parse(source: Source, task: Task, sink: _Sink, held: int) -> Counts:
    """One file into ``sink``, from more than ``held`` rows on before it has been read to its end.

    Raises:
        AuditFailed, ArrowException: rows cannot be written.
        _TakeBack: the file turned out to be waiting, and rows of it have been written.
    """
    rows: list[pa.RecordBatch] = []
    wrong: list[pa.RecordBatch] = []
    begun = False

    def put() -> None:
        if rows:
            sink.rows(pa.Table.from_batches(rows))
        if wrong:
            sink.bad(pa.Table.from_batches(wrong))
        rows.clear()
        wrong.clear()

    for piece in parse_file(source, task):
        if isinstance(piece, Counts):
            if piece.outcome != WAITING:
                put()
                sink.finish()
            elif begun:
                raise _TakeBack(piece)
            return piece
        (rows if isinstance(piece, RawRows) else wrong).append(piece.batch)
        if sum(map(len, rows)) + sum(map(len, wrong)) > held:
            begun = True
            put()
    raise AssertionError(f"parsing {task.path} ended without counts")


class _Behind:
    """Writes one piece behind whoever parses them; at its end nothing is written any more."""

    def __init__(self, write: Callable[[pa.Table], None]) -> None:
        self._write = write
        self._thread = ThreadPoolExecutor(1)
        self._running: Future[None] | None = None

    def __enter__(self) -> _Behind:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()

    def write(self, rows: pa.Table) -> None:
        """Begin to write ``rows`` when those before are written; their errors are raised here."""
        self.finish()
        self._running = self._thread.submit(self._write, rows)

    def finish(self) -> None:
        """Wait until all rows are written; errors are raised here."""
        if self._running is not None:
            running, self._running = self._running, None
            running.result()
