"""What is wrong with files of events, or with what options say about their columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from chainlake.errors import InputError, UsageError
from chainlake.words import counted

#: What is wrong with a number that no double can represent.
INEXACT = "is too large a number to be kept exactly"
VANISHED = "is too small a number to tell from 0"
#: The most characters of a string in a message.
_SHOWN = 40
_LINES = 'Each line is one object, such as {"id": 1, "type": "A", "ts": 0}.'
_OPTION = "--type-of"
_FORMS = "Forms are those of Python's strptime: date:%Y%m%d, date:%d.%m.%Y, date:%m/%d/%Y %H:%M."


class Place(NamedTuple):
    """A place in a file.

    Args:
        file: the file, with the number of the row if it has no lines.
        line: 1-based, or None.
    """

    file: str | Path
    line: int | None = None


class CellProblem(NamedTuple):
    """What an error says about a cell.

    Args:
        text: what is written in it.
        what: what is wrong with it.
        place: where it is.
        name: its column.
    """

    text: str
    what: str
    place: Place
    name: str


def shown(text: str) -> str:
    """A string from a file, which may be anything, made fit for a message."""
    cut = text[:_SHOWN] + ("…" if len(text) > _SHOWN else "")
    return "".join(letter if letter.isprintable() else "?" for letter in cut)


class UnfitFile(InputError):
    """A file cannot be read as events."""

    @classmethod
    def folder(cls, file: Path) -> UnfitFile:
        """The file is a folder."""
        return cls("this is a folder", file=file, hint="Name the files in it.")

    @classmethod
    def special(cls, file: Path) -> UnfitFile:
        """The file is a pipe, a device or similar."""
        hint = "Write what comes through a pipe to a file first."
        return cls("this is not a regular file", file=file, hint=hint)

    @classmethod
    def missing(cls, file: Path) -> UnfitFile:
        """There is no such file."""
        return cls("there is no such file", file=file)

    @classmethod
    def denied(cls, file: Path) -> UnfitFile:
        """The file's permissions do not allow reading it."""
        return cls("the file cannot be read: permission denied", file=file)

    @classmethod
    def no_parquet(cls, file: Path) -> UnfitFile:
        """The file is called Parquet, but is not, or is damaged."""
        return cls("the file is not a Parquet file, or a damaged one", file=file)

    @classmethod
    def damaged(cls, file: Path) -> UnfitFile:
        """The file ends early, or cannot be unpacked."""
        return cls("the file is cut off or damaged", file=file)

    @classmethod
    def no_rows(cls, file: Path, error: Exception | None = None) -> UnfitFile:
        """The file cannot be split into rows and cells; ``error`` says why, if that is known."""
        return cls("the file is not delimited text" + ("" if error is None else f": {error}"), file=file)

    @classmethod
    def misfit(cls, file: Path) -> UnfitFile:
        """The file does not fit the others."""
        return cls("the files do not fit together", file=file)


class UnknownSuffix(UsageError):
    """The name of a file does not say what it holds."""

    @classmethod
    def of(cls, file: Path, suffix: str, known: Sequence[str]) -> UnknownSuffix:
        """For a file and its suffix, which may be empty."""
        what = f"'{suffix}' does not say" if suffix else "the file's name does not say"
        hint = f"Suffixes are {', '.join(known)}, with or without .gz."
        return cls(f"{what} what the file holds" if suffix else f"{what} what it holds", file=file, hint=hint)


class UnfitLine(InputError):
    """A line of a file cannot be read."""

    @classmethod
    def no_text(cls, file: Path, line: int) -> UnfitLine:
        """The line is not UTF-8 text."""
        hint = "Save the file as UTF-8; with --source NAME the source says the encoding."
        return cls("this line is not UTF-8 text", file=file, line=line, hint=hint)

    @classmethod
    def half_character(cls, file: Path, line: int, key: str | None) -> UnfitLine:
        """The line has half of a surrogate pair; ``key``: the attribute that holds it, if that is known."""
        what = "this line holds half of a surrogate pair, which is not a character"
        return cls(what, file=file, line=line, key=key, hint="Decode the text it came from.")

    @classmethod
    def cells(cls, file: Path, line: int, number: int, header: int, separated: str) -> UnfitLine:
        """The row does not have as many cells as the header; ``separated``: "tabs" or "commas"."""
        what = f"this row has {number} cells, but the header has {header}"
        return cls(what, file=file, line=line, hint=f"Cells are separated by {separated}.")

    @classmethod
    def carriage_return(cls, file: Path, line: int) -> UnfitLine:
        """There is a carriage return where other readers do not end a line."""
        hint = "Lines end with a line feed, with or without a carriage return before it."
        return cls("there is a carriage return inside this line", file=file, line=line, hint=hint)

    @classmethod
    def open_quote(cls, file: Path, line: int) -> UnfitLine:
        """Other readers would end a cell elsewhere."""
        what = "a cell of this line begins with a quote and does not end with one"
        hint = "Double a quote inside a quoted cell; a cell cannot continue on the next line."
        return cls(what, file=file, line=line, hint=hint)

    @classmethod
    def no_json(cls, file: Path, line: int, error: ValueError) -> UnfitLine:
        """The line is not JSON."""
        return cls(f"this line is not JSON: {str(error).split(':')[0]}", file=file, line=line, hint=_LINES)

    @classmethod
    def too_deep(cls, file: Path, line: int) -> UnfitLine:
        """Lists are nested more deeply than Python reads."""
        return cls("this line is nested too deep", file=file, line=line)

    @classmethod
    def no_object(cls, file: Path, line: int, kind: str) -> UnfitLine:
        """The line is JSON, but not an object."""
        return cls(f"this line holds {kind}, not an object", file=file, line=line, hint=_LINES)

    @classmethod
    def twice(cls, file: Path, line: int, name: str) -> UnfitLine:
        """A key occurs more than once."""
        return cls(f"{shown(name)} occurs twice in this object", file=file, line=line, key=name)

    @classmethod
    def twice_in_attrs(cls, file: Path, line: int, name: str) -> UnfitLine:
        """A key occurs in ``attrs`` too."""
        return cls(f"{shown(name)} occurs both in attrs and outside it", file=file, line=line, key=name)

    @classmethod
    def two_kinds(cls, file: Path, line: int, name: str, kinds: tuple[str, str]) -> UnfitLine:
        """An attribute is of one kind here and of another in earlier lines; ``kinds``: both, in this order."""
        return cls(f"{name} is {kinds[0]} here, but {kinds[1]} before", file=file, line=line, key=name)


class UnfitCell(InputError):
    """A cell does not hold what its column must hold."""

    @classmethod
    def of(cls, problem: CellProblem, hint: str | None = None) -> UnfitCell:
        """For a cell."""
        file, line = problem.place
        return cls(f"'{shown(problem.text)}' {problem.what}", file=file, line=line, key=problem.name, hint=hint)

    @classmethod
    def too_large(cls, problem: CellProblem) -> UnfitCell:
        """A number in JSON cannot be kept exactly."""
        return cls.of(problem, f"{_OPTION} {problem.name}=text keeps it as it is written.")

    @classmethod
    def no_number(cls, problem: CellProblem) -> UnfitCell:
        """A cell is not a number, in a column that is declared to hold numbers."""
        hint = f"--missing TEXT names the text that means a missing value; {_OPTION} {problem.name}=text keeps text."
        return cls.of(problem, hint)

    @classmethod
    def in_order(cls, problem: CellProblem) -> UnfitCell:
        """A cell makes its column strings, which a pattern compares by order."""
        name = problem.name
        return cls.of(
            problem,
            f"{name} holds text, which is sorted letter by letter ('10' before '9'); "
            f"{_OPTION} {name}=text confirms that, {_OPTION} {name}=number reads numbers.",
        )

    @classmethod
    def unlike(cls, problem: CellProblem, one: str, other: str) -> UnfitCell:
        """A cell makes its column strings, two of which would be equal as numbers."""
        name = problem.name
        hint = f"{name} holds text, so '{shown(one)}' and '{shown(other)}' differ; "
        return cls.of(problem, f"{hint}{_OPTION} {name}=text confirms that.")


class UnfitTime(InputError):
    """The time of an event cannot be read as it is written."""

    @classmethod
    def _at(cls, place: Place, name: str, what: str, hint: str | None = None) -> UnfitTime:
        return cls(what, file=place.file, line=place.line, key=name, hint=hint)

    @classmethod
    def calendar(cls, place: Place, name: str, value: int, form: str, unit: str, *, seconds: bool) -> UnfitTime:
        """A number reads as a date, not as a count of ``unit``; ``seconds``: whether it may count seconds."""
        what = f"{name} is {value} here, which reads as a calendar date and not as a count of {unit}"
        ways = "; --ts-unit s says that the numbers count seconds" if seconds else ""
        return cls._at(place, name, what, f"{_OPTION} {name}=date:{form} reads such dates{ways}.")

    @classmethod
    def outside(cls, place: Place, name: str, value: float, unit: str, fits: Sequence[str]) -> UnfitTime:
        """A number counts a time that cannot be meant; ``fits``: units with which it could be."""
        what = f"{name} is {value} here, which is outside the years 1900 to 2199 if it counts {unit}"
        return cls._at(place, name, what, f"Name what it counts: --ts-unit {' or '.join(fits)}." if fits else None)

    @classmethod
    def mixed(cls, place: Place, name: str, text: str) -> UnfitTime:
        """A time is a number and others are strings."""
        what = f"'{shown(text)}' is a number here, but other times of the column are ISO 8601 text"
        return cls._at(place, name, what, "Write all times of a column in one form.")

    @classmethod
    def no_time(cls, place: Place, name: str, text: str) -> UnfitTime:
        """A string is not a time."""
        return cls._at(
            place,
            name,
            f"'{shown(text)}' cannot be read as a time",
            "Times are ISO 8601 text, such as 2025-01-01T09:30:00+01:00, or whole seconds; "
            f"{_OPTION} {name}=date:FORM reads others, such as date:%d.%m.%Y.",
        )

    @classmethod
    def contradicts(cls, place: Place, name: str, text: str, part: str, date: datetime) -> UnfitTime:
        """A part of the text, such as a weekday, does not belong to its date; ``part``: the directive."""
        right = date.strftime(f"%{part}")
        what = f"'{shown(text)}' contradicts itself: %{part} of {date:%Y-%m-%d} is {right}"
        return cls._at(place, name, what)

    @classmethod
    def other_form(cls, place: Place, name: str, text: str, form: str) -> UnfitTime:
        """A string does not have the stated form."""
        return cls._at(place, name, f"'{shown(text)}' is not a date of the form {form}")

    @classmethod
    def without_zone(cls, place: Place, name: str, text: str) -> UnfitTime:
        """A time names no zone although others do; this is a note and stops nothing."""
        said = f"'{shown(text)}' names no time zone, but other times do: times without one are taken as UTC"
        return cls._at(place, name, said)


class UnfitColumn(InputError):
    """A column of a file cannot be used as it must be."""

    @classmethod
    def duplicate(cls, file: Path, name: str, line: int | None = None) -> UnfitColumn:
        """Two columns have one name."""
        return cls(f"duplicate column {name}", file=file, line=line, key=name)

    @classmethod
    def absent(cls, file: Path, name: str, names: Sequence[str]) -> UnfitColumn:
        """There is no such column; ``names``: the columns of the file."""
        hint = (
            f"Columns are {', '.join(names)}; name them with --id, --type and --ts, or give --source NAME to read "
            "files as they land."
        )
        return cls(f"there is no column {name}", file=file, key=name, hint=hint)

    @classmethod
    def other_kind(cls, file: Path, name: str, holds: str, other: Path, there: str) -> UnfitColumn:
        """Two files have values of different kinds."""
        return cls(f"{name} holds {holds}, but {there} in {other}", file=file, key=name)

    @classmethod
    def unreadable(cls, file: Path, name: str, holds: str, kind: str) -> UnfitColumn:
        """The column has typed values that are not of the declared kind."""
        return cls(f"{name} holds {holds} values, which cannot be read as {kind}", file=file, key=name)

    @classmethod
    def no_single(cls, place: Place, name: str, kind: str) -> UnfitColumn:
        """The id, type or time of an event is a list, an object or bytes."""
        hint = "Ids and types are text or numbers, and a time is one value; --id, --type and --ts name other columns."
        return cls(f"{name} is {kind} here", file=place.file, line=place.line, key=name, hint=hint)

    @classmethod
    def incomplete(cls, place: Place, name: str, missing: int) -> UnfitColumn:
        """Some events have no value; ``missing``: how many; ``place``: the first of them."""
        others = f" and in {counted(missing - 1, 'other row')}" if missing > 1 else ""
        return cls(f"{name} is missing here{others}", file=place.file, line=place.line, key=name)

    @classmethod
    def no_count(cls, file: Path, name: str, holds: str) -> UnfitColumn:
        """Times are declared to be counts, but are not."""
        return cls(f"{name} holds {holds}, not numbers", file=file, key=name, hint="Leave out --ts-unit.")

    @classmethod
    def no_times(cls, file: Path, name: str, holds: str) -> UnfitColumn:
        """The column cannot hold the times."""
        hint = "Times are ISO 8601 text, timestamps, or whole seconds; --ts-unit takes other counts."
        return cls(f"{name} holds {holds}, not times", file=file, key=name, hint=hint)


class WrongTypeOf(UsageError):
    """What ``--type-of`` says about a column cannot be."""

    @classmethod
    def equals_sign(cls, kind: str) -> WrongTypeOf:
        """The form of dates could not be determined from the column's name."""
        return cls(f"the form of dates '{kind}' contains '='", key=_OPTION)

    @classmethod
    def unclear(cls, option: str, kinds: str) -> WrongTypeOf:
        """The option is not of the form COLUMN=KIND."""
        hint = f"Write COLUMN=KIND; kinds are {kinds}, such as date:%Y%m%d."
        return cls(f"'{option}' does not say what a column holds", key=_OPTION, hint=hint)

    @classmethod
    def two_kinds(cls, name: str, one: str, other: str) -> WrongTypeOf:
        """Two options give a column different kinds."""
        return cls(f"{name} is declared both as {one} and as {other}", key=_OPTION)

    @classmethod
    def no_year(cls, form: str) -> WrongTypeOf:
        """A form of dates has no year."""
        return cls(f"the form of dates '{form}' names no year", key=_OPTION, hint=_FORMS)

    @classmethod
    def no_form(cls, form: str, what: str, hint: str | None) -> WrongTypeOf:
        """No date can be read by a form."""
        return cls(f"the form of dates '{form}' {what}", key=_OPTION, hint=hint)

    @classmethod
    def text_expected(cls, name: str, what: str) -> WrongTypeOf:
        """The column of ids or types (``what``) is declared not to be text."""
        return cls(f"{name} is the {what} of the events, which is text", key=_OPTION)

    @classmethod
    def time_expected(cls, name: str, kind: str) -> WrongTypeOf:
        """The column of times is declared to be something else."""
        return cls(f"{name} is the time of the events, not {kind}", key=_OPTION)

    @classmethod
    def dates_and_counts(cls, name: str) -> WrongTypeOf:
        """Another option says that the column holds counts."""
        return cls(f"{_OPTION} says that {name} holds dates, --ts-unit that it counts", hint="Leave out one of them.")
