"""Groups of files to parse: a task parses the files of one group and writes their rows to shared files.

Rows go to data files of ``raw`` that are not committed yet, quarantine rows to staged Parquet files; counts and paths
come back. Only a file that is large enough to be worth it gets its own task.
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

#: Groups per core, so that cores finish at about the same time although the cost per byte differs between files.
_PER_CORE = 3
#: The most bytes of a group, about 3 s of parsing: that much is lost with a worker.
_MOST_BYTES = 64 << 20
#: The least bytes of a group, about 0.1 s of parsing, so that starting its task costs little in comparison.
_LEAST_BYTES = 4 << 20
#: How many bytes take as long to parse as it takes to open a file.
_FILE_BYTES = 100_000
#: How many rows of a file wait in memory until the file has been read to its end.
_HELD_ROWS = 250_000


@dataclass(frozen=True)
class GroupWork:
    """What is the same for all groups of a run.

    Args:
        source: the source.
        raw: folder of the raw table.
        staging: existing folder for quarantine rows.
    """

    source: Source
    raw: str
    staging: str

    def __call__(self, tasks: Sequence[Task]) -> GroupReport:
        """Parse the files of one group.

        If a file makes the parser or the writer fail, that is the outcome of this file alone, and the others are
        parsed. No row is written of a load from which nothing counts.

        Raises:
            AuditFailed: the number of rows written is not the number counted.
            OSError: rows cannot be written.
        """
        with archives_stay_open():
            together = self._together(tasks) if len(tasks) > 1 else None
            # Files that are parsed alone cannot take others' rows with them when they fail.
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
        """Parse all files into shared ones; ``None``, with nothing written, if rows would have to be removed again."""
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
        """Parse one file into its own files, writing while it is parsed."""
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
        """The files for rows and quarantine rows; they are removed if ``stack`` exits with an error."""
        return (
            stack.enter_context(DataFiles(self.raw, raw_table(self.source))),
            stack.enter_context(StagedFile(self.staging, "bad", bad_schema(self.source))),
        )


@dataclass(frozen=True)
class GroupReport:
    """The result of a group.

    Args:
        counts: the counts of each file.
        files: data files with the rows, not committed yet.
        bad: Parquet files with the quarantine rows, in the columns of ``bad_schema``.
    """

    counts: tuple[Counts, ...]
    files: tuple[DataFile, ...] = ()
    bad: tuple[str, ...] = ()


def groups_of(tasks: Iterable[Task], parallelism: int) -> list[tuple[Task, ...]]:
    """All ``tasks`` in groups, the largest first: it takes longest, and groups are started in this order.

    Files of one date are neighbours, so that the rows of a day go to few data files.

    Args:
        tasks: the files.
        parallelism: how many groups are parsed at a time.
    """
    ordered = sorted(tasks, key=lambda task: (task.file_date or date.min, task.path))
    # For a member of an archive, only the size of the whole archive is known.
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


#: What a writer raises for rows that cannot be written on any disk.
_REFUSED = (AuditFailed, pa.ArrowException)


class _TakeBack(Exception):
    """Rows have been handed to a writer although nothing of their load counts."""

    def __init__(self, counts: Counts) -> None:
        super().__init__(f"{counts.reason}, with rows of load {counts.load_id} written")
        self.counts = counts


@dataclass(frozen=True)
class _Sink:
    """Where the rows of a file go.

    Args:
        rows, bad: functions that take rows and quarantine rows.
        finish: called once all are passed; it raises what ``rows`` has not raised yet.
    """

    rows: Callable[[pa.Table], None]
    bad: Callable[[pa.Table], None]
    finish: Callable[[], None] = lambda: None


def _parse(source: Source, task: Task, sink: _Sink, held: int) -> Counts:
    """Parse one file into ``sink``; if it has more than ``held`` rows, before it has been read to its end.

    Raises:
        AuditFailed, ArrowException: rows cannot be written.
        _TakeBack: the file turned out to be waiting after some of its rows had been written.
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
    """Writes in a thread, one piece behind the parser; on exit it waits until nothing is being written."""

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
        """Start writing ``rows`` once the previous ones are written; errors of those are raised here."""
        self.finish()
        self._running = self._thread.submit(self._write, rows)

    def finish(self) -> None:
        """Wait until all rows are written; errors are raised here."""
        if self._running is not None:
            running, self._running = self._running, None
            running.result()
