"""The port through which steps read and change data tables: files read here and committed by delta-rs, or Spark.

A change is taken from a version of the table and committed as the next one, or not at all. It is a value made of
Parquet files, so its size does not matter, and nothing is computed between taking it and committing it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date
from typing import Protocol

import pyarrow as pa

from chainlake.lake.delta.data_files import DataFile
from chainlake.lake.delta.sums.checksums import Checksum, Place
from chainlake.lake.delta.where import Where
from chainlake.lake.locks import WAIT_SECONDS
from chainlake.schemas.table import Table


@dataclass(frozen=True)
class Staged:
    """Rows that were computed and are to stand in a table.

    Args:
        paths: Parquet files with the table's columns, in a place that every process reaches.
        rows: rows in memory, beside those of the files.
        within: only these rows; others in the same files were staged for something else.
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
        owner_column: whose rows they are, where a table has those of several; counted apart.
    """

    where: Where
    day_column: str | None = None
    owner_column: str | None = None


@dataclass(frozen=True)
class DayFile:
    """A Parquet file with rows of one day.

    Args:
        day: the UTC day.
        path: where it lies.
        rows: how many.
        size: bytes.
    """

    day: date
    path: str
    rows: int
    size: int


@dataclass(frozen=True)
class DayFiles:
    """The files of some days of a table at one version.

    Args:
        schema: the table's columns but the one of the day; a file that lacks one holds nulls there.
        files: in no order; a day without rows has none.
    """

    schema: pa.Schema
    files: tuple[DayFile, ...]

    @property
    def paths(self) -> list[str]:
        """Of all files."""
        return [file.path for file in self.files]


@dataclass(frozen=True)
class Change:
    """A difference that has not been committed.

    Args:
        table: the table.
        base_version: its version that the difference was taken from.
        staged: Parquet files of rows to insert.
        files: data files of rows to insert; they lie where :meth:`Lake.task_folder` says.
        moved: Parquet files of rows to update and delete: the table's columns, ``_op`` (``U`` or ``D``), and in
            ``_was_<column>`` what the published row has in each column of ``bounds``.
        bounds: columns by which the files of rows that move are found.
        scratch: folder that goes with the commit.
        added: rows to insert.
        changed: rows to update.
        withdrawn: rows to delete.
        rows: (owner, day) → rows staged; the owner is empty where the whole table is one writer's.
        ops: (owner, day, ``I``/``U``/``D``) → rows.
        sums: (owner, day) → checksum of the rows staged, which are those published once this is committed.
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
        purpose: names the writer among those of the table, constant over attempts.
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
        """``files`` or ``spark``, as ``ops.runs`` says it."""

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
        """Few rows of a table, to this process.

        Args:
            schema: schema of the table, which must exist.
            name: its name under the schema.
            columns: only these; all if not given.
            where: only these rows.
            version: at this version, or now.
        """

    def day_files(self, schema: str, name: str, days: Collection[date], version: int | None = None) -> DayFiles:
        """The rows of whole days of a table that is partitioned by ``event_date``, in files that every task can read.

        Args:
            schema: schema of the table, which must exist.
            name: its name under the schema.
            days: the UTC days.
            version: at this version, or now.
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
            OtherColumns: the stored table has other columns than ``table``.
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

        Nothing is committed where nothing differs, unless ``turn`` forces it. What the change was made of is removed,
        whether it lands or not.

        Raises:
            AuditFailed: a row breaks a rule of the table; the message names rule and row.
            Overtaken: another writer has changed the table since the change was taken.
            FilesUnseen: what it is made of is not what this process sees.
            LockLost: a lock that this process took is no longer its own.
            OtherColumns: the stored table has other columns.
        """

    def lock(self, purpose: str, *, wait_s: float = WAIT_SECONDS) -> AbstractContextManager[None]:
        """Hold a lock as long as a commit made under it can land.

        Args:
            purpose: ``source-<name>`` or ``table-<schema>.<name>``.
            wait_s: give up after so many seconds.

        Raises:
            LockBusy: somebody else held it all the time; the message says who.
        """
