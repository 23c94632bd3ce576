"""Errors in the files of patterns, models and functions that only an installation can find."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from chainlake.cep.language.errors.front_matter import FrontMatterError, KeyPlace
from chainlake.cep.language.errors.placed import PatternError
from chainlake.cep.language.source_text import At, SourceText
from chainlake.cep.lint.findings import key_hint
from chainlake.cep.ranking.kinds import PERIODS
from chainlake.errors import DefinitionError
from chainlake.words import nearest

_IMPORTS = "Files of the folder import each other as 'from .other import name'."


class UnfitPattern(DefinitionError):
    """A lake cannot have the pattern."""

    @classmethod
    def reserved(cls, file: Path) -> UnfitPattern:
        """Its name is reserved for the view over all patterns."""
        return cls(
            "a pattern cannot be named 'all'", file=file, hint="matches.all is the view over all patterns; rename it."
        )

    @classmethod
    def no_source(cls, file: Path) -> UnfitPattern:
        """It names no source."""
        return cls(
            "the front matter names no source, so no step knows which events to search",
            file=file,
            key="source",
            hint="Add a line 'source: NAME' between the two --- lines.",
        )


class DefinitionWarning(DefinitionError):
    """A definition is valid but may not be what was meant: a warning."""

    @classmethod
    def of(cls, warning: str, file: Path) -> DefinitionWarning:
        """For a warning about a model's file."""
        return cls(warning, file=file)


class UnfitModel(DefinitionError):
    """A model does not fit the events of its source."""

    @classmethod
    def no_column(cls, source: str, name: str, numbers: Sequence[str]) -> UnfitModel:
        """It uses a column that the source does not have or that is not numeric."""
        hint = f"Its numeric columns are {', '.join(numbers)}."
        return cls(f"source {source} has no numeric column '{name}'", hint=hint)

    @classmethod
    def unobserved(cls, where: str, key: str, value: str, known: Collection[str]) -> UnfitModel:
        """It names a key that no event has: a warning."""
        return cls(f"no event {where} has the {key} '{value}'", hint=key_hint(value, known))


class UnfitRankedPattern(PatternError):
    """A ranking that the rows of a lake cannot express, or that would keep all matches forever."""

    @classmethod
    def taken(cls, source: SourceText, at: At, name: str) -> UnfitRankedPattern:
        """A name is already that of a column."""
        what = f"{name} is a column of the match table of a ranked pattern"
        return cls._at(source, at, what, "Choose another name.", key=name)

    @classmethod
    def counted(cls, source: SourceText, at: At, pattern: str, name: str) -> UnfitRankedPattern:
        """Events by which matches are compared are only counted."""
        what = (
            f"{pattern} keeps only the number of events of {name}, but matches with equal scores are compared by their "
            "events"
        )
        hint = f"Leave COUNT({name}) out of output; TOP keeps few matches anyway."
        return cls._at(source, at, what, hint, key="output")

    @classmethod
    def long_period(cls, source: SourceText, at: At, pattern: str, days: int) -> UnfitRankedPattern:
        """All matches of a period are compared, but it is longer than ``days``, the most allowed."""
        what = (
            f"{pattern} keeps every ranked match of a period, since NON OVERLAPPING compares all of them, and its "
            f"period is longer than {days} days"
        )
        short = [word for word, calendar in PERIODS.items() if calendar is not None and calendar.days <= days]
        hint = f"Rank PER {' or '.join(short)}, or take DISTINCT ON."
        return cls._at(source, at, what, hint, key="NON OVERLAPPING")


class UnboundedPattern(PatternError):
    """A pattern does not say how far back a day of a lake has to read."""

    @classmethod
    def events(cls, source: SourceText, at: At) -> UnboundedPattern:
        """Its window is given only in events."""
        what = "a window in EVENTS does not say how far back a day of a lake has to read"
        hint = "State a duration, too: WITHIN 25 EVENTS, 12 h. `chainlake match` and the library need none."
        return cls._at(source, at, what, hint)

    @classmethod
    def events_of_key(cls, source: SourceText, at: At, key: str) -> UnboundedPattern:
        """Its window counts events of a key, but its matches can have several keys."""
        what = f"EVENTS OF KEY counts the events of one {key}, but the events of a match may have different ones"
        return cls._at(source, at, what, f"Equate {key} of all events, or leave out OF KEY.")

    @classmethod
    def window(cls, source: SourceText, at: At, pattern: str) -> UnboundedPattern:
        """It has no window, so that only the library can rank its matches."""
        what = f"{pattern} has no WITHIN, so nothing says how far back a day of a lake has to read"
        return cls._at(source, at, what, "Add WITHIN 12 h. `chainlake match` and the library rank without it.")

    @classmethod
    def stretch(cls, source: SourceText, at: At, pattern: str) -> UnboundedPattern:
        """It has no window, and no limit on the length of stretches."""
        what = f"{pattern} has no WITHIN, so its front matter has to say how long a stretch of events may be"
        hint = (
            "Write 'limits: {longest: 12 h}' between the two --- lines: longer stretches give no match, and are "
            "counted; or add WITHIN."
        )
        return cls._at(source, at, what, hint, key="limits")

    @classmethod
    def gap(cls, source: SourceText, at: At, of: tuple[str, str], steps: int) -> UnboundedPattern:
        """It uses PREV of an event's attribute without a longest gap."""
        value = ".".join(of)
        what = f"PREV({value}) does not say how long ago the earlier event may be"
        return cls._at(source, at, what, f"Write PREV({value}, {steps}, 10 min), or PAUSE after WITHIN.")

    @classmethod
    def start(cls, source: SourceText, at: At, pattern: str) -> UnboundedPattern:
        """It has a start, but its days do not form a chain."""
        what = f"{pattern} uses no events up, so no day depends on where it starts"
        hint = "Leave start out; 'chainlake backfill' says which days are computed."
        return cls._at(source, at, what, hint, key="start")


class NoCode(FrontMatterError):
    """There is no usable code for a function that a pattern declares; :meth:`declared` adds the place."""

    def declared(self, place: KeyPlace) -> FrontMatterError:
        """This error, at the declaration."""
        return self._of(place, self.what, self.hint)

    @classmethod
    def no_file(cls, path: Path, there: Sequence[str]) -> NoCode:
        """The folder has no such file; ``there`` are those that it has."""
        hint = nearest(path.stem, there) or "A function's code must be in this folder."
        return cls(f"there is no file {path}", hint=hint)

    @classmethod
    def link(cls, path: Path) -> NoCode:
        """The file is a link out of the folder."""
        what = f"{path} is a link to {path.resolve()}, outside the folder"
        return cls(what, hint="Copy the file into the folder.")

    @classmethod
    def unreadable(cls, path: Path, error: Exception) -> NoCode:
        """The file cannot be read, or is not text."""
        return cls(f"{path} cannot be read: {error}")

    @classmethod
    def no_python(cls, path: str, error: Exception) -> NoCode:
        """The file cannot be parsed."""
        line = getattr(error, "lineno", None)
        said = str(error) or "it is nested too deep"
        return cls(f"{path} is not valid Python{f' (line {line})' if line else ''}: {said}")

    @classmethod
    def circle(cls, names: Sequence[str]) -> NoCode:
        """Files import each other."""
        return cls(f"{' and '.join(names)} import each other", hint="Put what both need into a third file.")

    @classmethod
    def outside(cls, path: str, line: int) -> NoCode:
        """A file imports from above its folder."""
        return cls(f"{path}, line {line}, imports from outside its folder", hint=_IMPORTS)

    @classmethod
    def no_package(cls, path: str) -> NoCode:
        """A file imports the folder as if it were a package."""
        return cls(f"{path} imports chainlake_functions, which is not a package", hint=_IMPORTS)

    @classmethod
    def undefined(cls, path: str, function: str, defined: Sequence[str]) -> NoCode:
        """The file does not define the function; ``defined`` are those that it does."""
        hint = nearest(function, defined)
        otherwise = "A pattern can call the functions that the file defines with 'def', not those that it imports."
        return cls(f"{path} defines no function {function}", hint=hint or otherwise)

    @classmethod
    def by_name(cls, function: str) -> NoCode:
        """The function has keyword-only arguments, which no pattern can give."""
        what = f"{function} has keyword-only arguments"
        return cls(what, hint="A pattern passes values by position.")
