"""What a file is parsed to: rows, quarantine rows and counts; and what a worker needs to know of the file."""

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

#: Outcome of a file whose bytes are not to be had, or not those that were listed: nothing of it counts.
WAITING: Literal["waiting"] = "waiting"
ParseOutcome = FileOutcome | Literal["waiting"]


@dataclass(frozen=True)
class Task:
    """One file to parse; everything a worker needs to know of it.

    ``problem`` is the code and ``detail`` the words for what was found wrong with it when it was listed;
    ``checksum`` is that of the content then, empty if it was not listed; ``size`` is in bytes, as it landed.
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


#: What parsing a file yields piece by piece; its ``Counts`` are the last piece.
Piece = RawRows | BadRows | Counts


@dataclass(frozen=True)
class WholeFile:
    """All that one file gives: ``rows`` in the columns of ``raw_schema``, ``bad`` in those of ``bad_schema``."""

    rows: pa.Table
    bad: pa.Table
    counts: Counts


def raw_schema(source: Source) -> pa.Schema:
    """The columns of ``raw.<source>``, null or not."""
    return pa.schema([pa.field(f.name, f.type) for f in raw_table(source).arrow()])


def bad_schema(source: Source) -> pa.Schema:
    """The columns of ``quarantine.<source>`` that come of a row, and before them the load that it is of."""
    own = [pa.field(c.name, c.type) for c in quarantine_table(source).columns if not c.volatile]
    return pa.schema([pa.field("load_id", pa.string()), *own])
