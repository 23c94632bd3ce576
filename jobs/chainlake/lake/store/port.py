"""The port through which steps read and change data tables: in this process with delta-rs, or through Spark.

A change is computed against one version of the table and committed as the next version, or not at all. It is a value
made of Parquet files, so its size does not matter, and nothing is computed between making and committing it.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date
from typing import Protocol, Self

import pyarrow as pa

from chainlake.lake.delta.data_files import DataFile
from chainlake.lake.delta.sums.checksums import Checksum, Place
from chainlake.lake.delta.where import Where
from chainlake.lake.locks import WAIT_SECONDS
from chainlake.schemas.table import Table


@dataclass(frozen=True)
class Staged:
    """Rows that were computed and are to be in a table.

    Args:
        paths: Parquet files with the table's columns, in a place that every process can reach.
        rows: rows in memory, in addition to those in the files.
        within: which of the rows to take; others in the same files were staged for something else.
    """

    paths: tuple[str, ...] = ()
    rows: pa.Table | None = None
    within: Where | None = None


@dataclass(frozen=True)
class Part:
    """The published rows that staged ones replace.

    Args:
        where: which rows; every staged row must be one of them.
        day_column: a timestamp whose UTC day owns the row, or a date; changes are counted per day if it is given.
        owner_column: the column that says whose row it is, if the table has several owners; counted separately.
    """

    where: Where
    day_column: str | None = None
    owner_column: str | None = None


@dataclass(frozen=True)
class DayFile:
    """A Parquet file with rows of one day.

    Args:
        day: the UTC day.
        path: where it is.
        rows: number of rows.
        size: size in bytes.
    """

    day: date
    path: str
    rows: int
    size: int


@dataclass(frozen=True)
class DayFiles:
    """The files of some days of a table at one version.

    Args:
        schema: the table's columns except the day; a column that a file lacks is null there.
        files: the files, in no order; a day without rows has none.
    """

    schema: pa.Schema
    files: tuple[DayFile, ...]

    @property
    def paths(self) -> list[str]:
        """The paths of all files."""
        return [file.path for file in self.files]


@dataclass(frozen=True)
class Change:
    """A difference that is not yet committed; as a context, it leaves nothing on the disk, committed or not.

    Args:
        table: the table.
        base_version: the version against which the difference was computed.
        staged: Parquet files of rows to insert.
        files: data files of rows to insert; they are where :meth:`Lake.task_folder` says.
        moved: Parquet files of rows to update and delete: the table's columns, ``_op`` (``U`` or ``D``), and in
            ``_was_<column>`` the published row's value in each column of ``bounds``.
        bounds: columns whose bounds help to find the files of rows that change.
        scratch: folder that is removed by the commit, or where the context ends.
        added: number of rows to insert.
        changed: number of rows to update.
        withdrawn: number of rows to delete.
        rows: (owner, day) → number of staged rows; the owner is empty if the whole table has one writer.
        ops: (owner, day, ``I``/``U``/``D``) → number of rows.
        sums: (owner, day) → checksum of the staged rows, which are the published ones once this is committed.
    """

    table: Table
    base_version: int
    staged: tuple[str, ...] = ()
    files: tuple[DataFile, ...] = ()
    moved: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    scratch: str | None = None
    added: int = 0
    changed: int = 0
    withdrawn: int = 0
    rows: Mapping[Place, int] = field(default_factory=dict)
    ops: Mapping[tuple[str, date, str], int] = field(default_factory=dict)
    sums: Mapping[Place, Checksum] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.drop()

    def drop(self) -> None:
        """Remove the files that were made for this change alone."""
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)

    @property
    def empty(self) -> bool:
        """Whether nothing differs."""
        return not (self.added or self.changed or self.withdrawn)

    def checksum(self, owner: str, day: date) -> str:
        """The checksum of an owner's day, as ``ops.intervals`` keeps it."""
        return str(self.sums.get((owner, day), Checksum()))


@dataclass(frozen=True)
class Turn:
    """Whose commit it is.

    Args:
        purpose: names the writer among those of the table; the same in every attempt.
        force: commit even if nothing differs, so that a dead attempt's late commit is refused.
    """

    purpose: str
    force: bool = False


@dataclass(frozen=True)
class Applied:
    """What a commit did; ``version`` is ``None`` if no version was made."""

    added: int
    changed: int
    withdrawn: int
    version: int | None


class Lake(Protocol):
    """Reads and changes data tables."""

    @property
    def name(self) -> str:
        """``files`` or ``spark``, as recorded in ``ops.runs``."""

    def version(self, schema: str, name: str) -> int | None:
        """The table's current version; ``None`` if there is no table."""

    def rows(
        self,
        schema: str,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        version: int | None = None,
    ) -> pa.Table:
        """A few rows of a table, read into this process.

        Args:
            schema: schema of the table, which must exist.
            name: its name under the schema.
            columns: only these; all if not given.
            where: only these rows.
            version: the version to read; the newest if not given.
        """

    def day_files(self, schema: str, name: str, days: Collection[date], version: int | None = None) -> DayFiles:
        """The rows of whole days of a table that is partitioned by ``event_date``, in files that every task can read.

        Args:
            schema: schema of the table, which must exist.
            name: its name under the schema.
            days: the UTC days.
            version: the version to read; the newest if not given.
        """

    def task_folder(self, table: Table) -> str:
        """The folder in which tasks write data files (``chainlake.lake.delta.data_files``) for :meth:`additions`."""

    def change(self, table: Table, staged: Staged, part: Part) -> Change:
        """What must change so that ``part`` of a table holds the staged rows and no others.

        Args:
            table: the table; made if it does not exist.
            staged: the rows, with unique keys.
            part: the rows that they replace.

        Raises:
            RowsOutside: a staged row is not one of ``part``.
            OtherColumns: the stored table's columns differ from those of ``table``.
        """

    def additions(self, table: Table, files: Iterable[DataFile], moved: Sequence[str] = ()) -> Change:
        """A change that tasks have computed.

        Args:
            table: the table, which must exist.
            files: data files in :meth:`task_folder`, none of whose rows are in the table.
            moved: Parquet files of rows to update and delete, as in :class:`Change`; a row keeps its day.
        """

    def commit(self, change: Change, turn: Turn) -> Applied:
        """Make a change the table's next version; the caller holds the lock of the table, or of its source.

        Nothing is committed if nothing differs, unless ``turn`` forces it. The change's files are removed, whether it
        lands or not.

        Raises:
            AuditFailed: a row breaks a rule of the table; the message names rule and row.
            Overtaken: another writer has changed the table since the change was taken.
            FilesNotVisible: this process does not see the files of the change as they were written.
            LockLost: a lock that this process took is no longer its own.
            OtherColumns: the stored table's columns differ.
        """

    def lock(self, purpose: str, *, wait_s: float = WAIT_SECONDS) -> AbstractContextManager[None]:
        """Hold a lock for as long as a commit made under it can land.

        Args:
            purpose: ``source-<name>`` or ``table-<schema>.<name>``.
            wait_s: give up after this many seconds.

        Raises:
            LockBusy: someone else held it the whole time; the message says who.
        """
