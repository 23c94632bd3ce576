"""What ``chainlake check`` finds, and what mends it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from chainlake.days import Days


@dataclass(frozen=True)
class PublishedDay:
    """A day of a pattern or model to be computed and published again."""

    definition: str
    day: date


@dataclass(frozen=True)
class EventDay:
    """A day of a source to be resolved again from raw."""

    source: str
    day: date


@dataclass(frozen=True)
class LandedFile:
    """A file to be read again from landing."""

    source: str
    path: str


@dataclass(frozen=True)
class SurplusRows:
    """Rows to be removed: of a day that nobody has published, or of one whose keys repeat or that are of another day,
    which are then made again.

    ``where`` tells them, as SQL.
    """

    schema: str
    name: str
    where: str


@dataclass(frozen=True)
class TableFile:
    """A file of a table, relative to it, to be set aside; a data file is taken out of the table too."""

    schema: str
    name: str
    file: str


@dataclass(frozen=True)
class WholeTable:
    """A table to be set aside as a whole: what it held is made again from what it was made of."""

    schema: str
    name: str


@dataclass(frozen=True)
class OpsLog:
    """A table of ``ops`` to be put together from the data files that are there."""

    name: str


@dataclass(frozen=True)
class Signature:
    """A table whose commits by others have been looked through, which an empty commit says."""

    schema: str
    name: str


@dataclass(frozen=True)
class UnnotedDay:
    """A day of a pattern or model of which nothing is noted any more, to be computed as one that never was."""

    definition: str
    day: date


@dataclass(frozen=True)
class UnnotedFiles:
    """A source of whose files nothing is noted any more: all that lie in landing are read as new ones.

    ``days``: those that were ingested, where nothing is noted of these either.
    """

    source: str
    days: Days | None = None


Mend = (
    PublishedDay | EventDay | LandedFile | SurplusRows | TableFile | WholeTable | OpsLog | Signature
    | UnnotedDay | UnnotedFiles
)  # fmt: skip
#: What must be mended before the rows of a table can be compared.
STRUCTURE = (TableFile, WholeTable, OpsLog)


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it was written.

    Args:
        table: ``schema.name``.
        what: one line.
        damage: rows are wrong or cannot be read; otherwise it is worth knowing and harmless.
        mends: what puts it right, empty if nothing here can.
    """

    table: str
    what: str
    damage: bool = True
    mends: tuple[Mend, ...] = ()

    def __str__(self) -> str:
        return f"{self.table}: {self.what}"
