"""The results of parsing a file: rows, quarantine rows and counts; and what a worker needs to know about the file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from chainlake.definitions.source import Source
from chainlake.schemas.ops_rows import FileOutcome, FileProblem
from chainlake.schemas.quarantine import quarantine_table
from chainlake.schemas.raw import raw_table

if TYPE_CHECKING:
    from chainlake.ingest.landing.discovery import Landed

#: Outcome of a file whose bytes cannot be read or are not those that were listed: none of it counts.
WAITING: Literal["waiting"] = "waiting"
ParseOutcome = FileOutcome | Literal["waiting"]


@dataclass(frozen=True)
class Task:
    """One file to parse: everything that a worker needs to know about it.

    ``problem`` (a code) and ``detail`` (words) say what was found wrong when the file was listed. ``checksum`` is the
    checksum of its content at that time, empty if it was not listed. ``size`` is in bytes, as landed.
    """

    path: str
    file: str
    member: str | None
    file_id: str
    load_id: str
    fields: dict[str, str]
    file_date: date | None
    problem: FileProblem | Literal[""]
    checksum: str = ""
    detail: str = ""
    size: int = 0

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
            size=landed.size,
        )


@dataclass(frozen=True)
class Counts:
    """What was in one file.

    ``whole_file`` counts its quarantine row with line 0, which is not a row of the file. ``days`` are the UTC days (as
    days since 1970) of its rows. ``outcome`` is the one for ``ops.files``, or ``WAITING``, and then no row of this load
    counts; ``reason`` says why it is not ``ok``.
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
    days: tuple[int, ...] = ()
    outcome: ParseOutcome = "ok"
    reason: str = ""


@dataclass(frozen=True)
class RawRows:
    """Rows of a file, in the columns of ``raw_schema``."""

    batch: pa.RecordBatch


@dataclass(frozen=True)
class BadRows:
    """Quarantine rows of a file, in the columns of ``bad_schema``."""

    batch: pa.RecordBatch


#: What parsing a file yields, piece by piece; its ``Counts`` are the last piece.
Piece = RawRows | BadRows | Counts


@dataclass(frozen=True)
class WholeFile:
    """The result of one file: ``rows`` in the columns of ``raw_schema``, ``bad`` in those of ``bad_schema``."""

    rows: pa.Table
    bad: pa.Table
    counts: Counts


def raw_schema(source: Source) -> pa.Schema:
    """The columns of ``raw.<source>``, all nullable."""
    return pa.schema([pa.field(f.name, f.type) for f in raw_table(source).arrow()])


def bad_schema(source: Source) -> pa.Schema:
    """The row's load, then the columns of ``quarantine.<source>`` that depend on the row."""
    own = [pa.field(c.name, c.type) for c in quarantine_table(source).columns if not c.volatile]
    return pa.schema([pa.field("load_id", pa.string()), *own])
