"""What lint finds when a source's definition is compared with files: one class per kind of finding.

Each points into the file of the definition, whose place (``file``) it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainlake.definitions.formats.mappings import Missing
from chainlake.errors import DefinitionError
from chainlake.words import counted

#: The most characters of a header line that are shown.
_SHOWN = 300
#: The most reasons for quarantine that are reported for a file.
_REASONS = 5


class UnreadFile(DefinitionError):
    """A file is not read, whatever it holds."""

    @classmethod
    def refused(cls, file: str, path: str, why: str) -> UnreadFile:
        """It is nothing that would ever be read, such as a link out of the folder."""
        return cls(f"{path} is not read: {why}", file=file)

    @classmethod
    def failed(cls, file: str, path: str, why: object) -> UnreadFile:
        """The file system does not give it, or its content is damaged."""
        return cls(f"{path} cannot be read: {why}", file=file)

    @classmethod
    def problem(cls, file: str, path: str, problem: str, detail: str) -> UnreadFile:
        """What was found when it was listed, as a code and in words."""
        hint = "Its digits are YYYYMMDD, unless path is {pattern: …, date_format: …}."
        return cls(f"{path}: {problem}: {detail}", file=file, hint=hint if problem == "bad_path_date" else None)


class NoFormat(DefinitionError):
    """No format of the source fits a file."""

    @classmethod
    def by_path(cls, file: str, path: str, globs: Sequence[str]) -> NoFormat:
        """None names its path."""
        return cls(f"{path}: no format's glob fits it", file=file, hint=f"The globs are {', '.join(globs)}.")

    @classmethod
    def no_lines(cls, file: str, path: str, why: str) -> NoFormat:
        """It has no lines to read."""
        return cls(f"{path}: {why}", file=file)

    @classmethod
    def of_format(cls, file: str, path: str, form: str, why: str) -> NoFormat:
        """One of those that name its path does not fit, for a reason that no header shows."""
        return cls(f"{path}: {form}: {why}", file=file)

    @classmethod
    def lacking(cls, file: str, path: str, form: str, missing: Missing, header: Sequence[str]) -> NoFormat:
        """Its header lacks a column, which the definition names where the finding points to."""
        at = missing.needed
        what = f"{path}: {form}: {missing.text}"
        do = "List the columns that a file may lack under 'optional'."
        return cls(what, file=file, line=at.line, column=at.at, hint=f"{_header(header)} {do}")

    @classmethod
    def header(cls, file: str, path: str, form: str, line: int, why: str, header: Sequence[str]) -> NoFormat:
        """Its header, in a line of the file, is another one."""
        do = "Write the names as the file has them, in 'header' and 'map', or correct that line of the file."
        return cls(f"{path}:{line}: {form}: {why}", file=file, hint=f"{_header(header)} {do}")


def _header(header: Sequence[str]) -> str:
    return f"The header has {', '.join(header)[:_SHOWN]}."


@dataclass(frozen=True)
class BadRowsOf:
    """Rows of a file that would go to quarantine for one reason.

    Args:
        reason, field: why, and the column concerned or "".
        count: how many.
        line, text: of the first of them; the text is its value, the whole line, or what is wrong with it.
    """

    reason: str
    field: str
    count: int
    line: int
    text: str

    def __str__(self) -> str:
        of = f" ({self.field})" if self.field else ""
        if self.reason == "columns":
            # Here the text says what is wrong; the code alone would read as if the columns were counted.
            return f"{self.count} with too few or too many cells, such as line {self.line}, which has {self.text}"
        return f"{self.count} {self.reason}{of}, such as line {self.line}: {self.text!r}"


class Quarantined(DefinitionError):
    """Rows of a file would go to quarantine."""

    @classmethod
    def rows(cls, file: str, path: str, bad: Sequence[BadRowsOf], good: int) -> Quarantined:
        """Some of them, or all; ``bad``: most frequent first."""
        number = sum(one.count for one in bad)
        reasons = "; ".join(map(str, bad[:_REASONS]))
        return cls(f"{path}: {counted(number, 'row')} of {number + good} would go to quarantine: {reasons}", file=file)


class NothingRead(DefinitionError):
    """A file is read, but part of it, or all, gives no rows."""

    @classmethod
    def rows(cls, file: str, path: str) -> NothingRead:
        """It holds no rows."""
        return cls(f"{path}: it holds no rows", file=file)

    @classmethod
    def attribute(cls, file: str, path: str, name: str, rows: int) -> NothingRead:
        """No row has a value of an attribute."""
        return cls(f"{path}: attribute {name} has no value in any of {counted(rows, 'row')}", file=file, key=name)

    @classmethod
    def path_fields(cls, file: str, path: str) -> NothingRead:
        """The expression for paths does not fit its path."""
        what = f"{path}: 'path' does not fit it, so it has no date and no revision"
        return cls(what, file=file, key="path")


class NamesNoFile(DefinitionError):
    """A name of ``expect`` is that of no file that has landed."""

    @classmethod
    def of(cls, file: str, glob: str, at: int, landed: int) -> NamesNoFile:
        """The one at a position in the list, for a number of files."""
        what = f"'{glob}' names none of the {counted(landed, 'landed file')}"
        return cls(what, file=file, key=f"expect.{at}")
