"""What ``chainlake check`` finds, and what fixes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from chainlake.days import Days


@dataclass(frozen=True)
class PublishedDay:
    """A day of a pattern or model, to be computed and published again."""

    definition: str
    day: date


@dataclass(frozen=True)
class EventDay:
    """A day of a source, to be resolved again from raw."""

    source: str
    day: date


@dataclass(frozen=True)
class LandedFile:
    """A file, to be read again from landing."""

    source: str
    path: str


@dataclass(frozen=True)
class SurplusRows:
    """Rows to be removed, which ``where`` selects, as SQL.

    They are on a day that nobody has published, repeat keys, or belong to another day; published days are then made
    again.
    """

    schema: str
    name: str
    where: str


@dataclass(frozen=True)
class TableFile:
    """A file, relative to its table, to be set aside; a data file is also taken out of the table."""

    schema: str
    name: str
    file: str


@dataclass(frozen=True)
class WholeTable:
    """A table, to be set aside as a whole; its content is then made again from its inputs."""

    schema: str
    name: str


@dataclass(frozen=True)
class OpsLog:
    """A table of ``ops``, to be rebuilt from the data files that exist."""

    name: str


@dataclass(frozen=True)
class Signature:
    """A table whose commits by others have been looked through, as an empty commit is to record."""

    schema: str
    name: str


@dataclass(frozen=True)
class UnrecordedDay:
    """A day of a pattern or model about which nothing is recorded any more, to be computed as if it never had been."""

    definition: str
    day: date


@dataclass(frozen=True)
class UnrecordedFiles:
    """A source about whose files nothing is recorded any more: all files in landing are to be read as new ones.

    ``days`` are those that were ingested, given if nothing is recorded about them either.
    """

    source: str
    days: Days | None = None


Fix = (
    PublishedDay | EventDay | LandedFile | SurplusRows | TableFile | WholeTable | OpsLog | Signature
    | UnrecordedDay | UnrecordedFiles
)  # fmt: skip
#: What must be fixed before the rows of a table can be compared.
STRUCTURE = (TableFile, WholeTable, OpsLog)


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it was written, or worth knowing.

    Args:
        table: ``schema.name``.
        what: one line.
        damage: whether rows are wrong or cannot be read; if not, it is harmless.
        fixes: what puts it right; empty if nothing here can.
    """

    table: str
    what: str
    damage: bool = True
    fixes: tuple[Fix, ...] = ()

    def __str__(self) -> str:
        return f"{self.table}: {self.what}"
