"""Files to parse in groups: a task parses the files of one, and writes what they hold to files that its rows share.

Rows become data files of ``raw`` that are not committed yet, quarantine rows become staged Parquet files; back come
counts and paths. A file costs a task's start only if it is large enough to be worth one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from types import TracebackType

import pyarrow as pa

from chainlake.definitions.source import Source
from chainlake.errors import AuditFailed
from chainlake.ingest.landing.container import archives_stay_open
from chainlake.ingest.rows.parse import given_up, parse_file
from chainlake.ingest.rows.parsed import WAITING, Counts, RawRows, Task, bad_schema
from chainlake.ingest.staged import StagedFile
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

        Whatever a file does to the parser or to the writer is the outcome of this file, and the others are parsed.

        Raises:
            OSError: rows cannot be written.
        """
        with (
            DataFiles(self.raw, raw_table(self.source)) as files,
            StagedFile(self.staging, "bad", bad_schema(self.source)) as bad,
        ):
            if len(tasks) == 1:
                return self._alone(tasks[0], files, bad)
            with archives_stay_open():
                counts = tuple(_parse(self.source, task, files.write, bad, _HELD_ROWS) for task in tasks)
            return GroupReport(counts, tuple(files.close()), bad.close())

    def _alone(self, task: Task, files: DataFiles, bad: StagedFile) -> GroupReport:
        """A file that is a group: a large one is written while it is parsed."""
        with _Behind(files.write) as behind:
            counts = _parse(self.source, task, behind.write, bad, 0, behind.finish)
        if counts.outcome == WAITING:
            # Nothing of this load counts, so its rows must not lie in the table for ever.
            files.abandon()
            bad.abandon()
            return GroupReport((counts,))
        return GroupReport((counts,), tuple(files.close()), bad.close())


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


def _parse(
    source: Source,
    task: Task,
    write: Callable[[pa.Table], None],
    bad: StagedFile,
    held: int,
    finish: Callable[[], None] = lambda: None,
) -> Counts:
    """One file: its rows to ``write`` and its quarantine rows to ``bad``, ``held`` of them at its end.

    ``finish`` is called once all are written; it raises what ``write`` has not raised yet.
    """
    rows: list[pa.RecordBatch] = []
    wrong: list[pa.RecordBatch] = []

    def put() -> None:
        if rows:
            write(pa.Table.from_batches(rows))
        if wrong:
            bad.write(pa.Table.from_batches(wrong))
        rows.clear()
        wrong.clear()

    try:
        for piece in parse_file(source, task):
            if isinstance(piece, Counts):
                if piece.outcome != WAITING:
                    put()
                    finish()
                return piece
            (rows if isinstance(piece, RawRows) else wrong).append(piece.batch)
            if sum(map(len, rows)) + sum(map(len, wrong)) > held:
                # Should the file turn out to be waiting, these rows are of a load that does not count.
                put()
    except (AuditFailed, pa.ArrowException) as error:
        # The fence around one file: rows of it that cannot be written do not stop the others.
        row, counts = given_up(source, task, error)
        bad.write(pa.Table.from_batches([row.batch]))
        return counts
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
