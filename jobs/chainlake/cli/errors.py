"""What can be wrong with the arguments of a command, or with a file that they name."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from datetime import date, timedelta
from pathlib import Path

from chainlake.days import Days
from chainlake.errors import DefinitionError, InfrastructureError, InputError, UsageError
from chainlake.words import guess

#: How a grid of values is written.
_GRID = "Write fall=0.001..0.01:5 for five values, or fall=0.001,0.002."


class UnknownVerb(UsageError):
    """The first word of a command is not a verb."""

    verb: str

    @classmethod
    def of(cls, verb: str, known: Collection[str]) -> UnknownVerb:
        """For the word, and the verbs that there are."""
        return cls(f"there is no verb '{verb}'", hint=f"{guess(verb, known)}Verbs are {', '.join(known)}.").holding(
            verb=verb
        )


class MissingPackage(InfrastructureError):
    """A verb needs a package that this Python does not have."""

    package: str

    @classmethod
    def of(cls, error: ModuleNotFoundError) -> MissingPackage:
        """For what could not be imported."""
        package = str(error.name).partition(".")[0]
        return cls(
            f"the package {package} is not installed for {sys.executable}",
            hint="Use .venv/bin/chainlake, which 'make setup' makes; outside of a checkout: "
            "pip install 'chainlake[lake,pictures]'.",
        ).holding(package=package)


class OptionsClash(UsageError):
    """Options that do not go together, or that need another one."""

    @classmethod
    def one_day_only(cls) -> OptionsClash:
        """FROM is given, but TO is not."""
        return cls("FROM needs TO", hint="Give both days or none; one day is 2025-10-01 2025-10-02.")

    @classmethod
    def name_without_file(cls) -> OptionsClash:
        """A name is given for a source that is not guessed."""
        return cls("--name needs --from", hint="Give the CSV file from which the source is guessed.")

    @classmethod
    def quick_repair(cls) -> OptionsClash:
        """A repair was asked to read no rows."""
        return cls("--repair must read the rows, but --quick does not", hint="Give one of them.")

    @classmethod
    def source_and_columns(cls) -> OptionsClash:
        """Both a source and names of columns are given."""
        return cls(
            "--source already names the columns",
            hint="Leave out --id, --type, --ts, --key, --ts-unit, --type-of and --missing.",
        )

    @classmethod
    def columns_without_files(cls) -> OptionsClash:
        """Names of columns are given, but no files."""
        options = "--source, --id, --type, --ts, --key, --ts-unit, --type-of and --missing"
        return cls(f"{options} are for files", hint="Give files with --simulate.")

    @classmethod
    def first_without_files(cls) -> OptionsClash:
        """A number of events is given, but no files."""
        return cls("--first is for --simulate", hint="Give files with --simulate.")

    @classmethod
    def days_and_files(cls) -> OptionsClash:
        """Near misses on days and a simulation on files are asked for together."""
        return cls("--near-misses searches the days of a source, --simulate files", hint="Give one of them.")

    @classmethod
    def format_of_matches(cls) -> OptionsClash:
        """A format is given for output that has only one."""
        return cls("--format is for matches", hint="Leave it out with --episodes and --near-misses.")

    @classmethod
    def zone_without_times(cls) -> OptionsClash:
        """Local times are asked for in output that has none."""
        hint = "Give --format table, csv, json or vertical, or --near-misses."
        return cls("--zone is for output with local times", hint=hint)

    @classmethod
    def source_file_without_ticks(cls) -> OptionsClash:
        """A source's file is asked for, but the shipped sources already read the output."""
        return cls("--write-source needs --ticks; the other files are read by the shipped sources")

    @classmethod
    def moments_without_curve(cls, model: str) -> OptionsClash:
        """Curves at chosen times are asked for, but the model has no curve."""
        return cls(f"{model} is not a curve along one column", hint="Leave --at out.")


class BadOption(UsageError):
    """The value of an option is not one that it can have."""

    option: str

    @classmethod
    def _of(cls, option: str, what: str, hint: str | None = None) -> BadOption:
        return cls(what, hint=hint).holding(option=option)

    @classmethod
    def no_column(cls, option: str) -> BadOption:
        """The name of a column is empty."""
        return cls._of(option, f"{option} needs the name of a column")

    @classmethod
    def too_few(cls, option: str) -> BadOption:
        """A number below 1."""
        return cls._of(option, f"{option} must be at least 1")

    @classmethod
    def too_short(cls, option: str) -> BadOption:
        """Files less than an hour old would be removed."""
        what = f"{option} must be at least an hour"
        return cls._of(option, what, "Readers and running jobs need the files they began with.")

    @classmethod
    def not_one_of(cls, option: str, part: str, error: Exception) -> BadOption:
        """One of several values is wrong; ``error`` ends the sentence "is not …"."""
        return cls._of(option, f"{option}: '{part}' is not {error}", "Separate values by commas.")

    @classmethod
    def no_time(cls, option: str, text: str) -> BadOption:
        """The value is not a time."""
        return cls._of(option, f"{option}: '{text}' is not a time", "Write times as 2025-10-02T21:30 (UTC).")

    @classmethod
    def outside(cls, option: str, text: str, days: Days) -> BadOption:
        """The time is on none of the days."""
        return cls._of(option, f"{option}: {text} is not in {days}")

    @classmethod
    def no_grid(cls, option: str, text: str) -> BadOption:
        """Values of a parameter that are not written as a grid."""
        return cls._of(option, f"{option}: '{text}' is not a grid", _GRID)

    @classmethod
    def wide_grid(cls, option: str, most: int) -> BadOption:
        """Grids that together have more settings than are tried."""
        return cls._of(option, f"{option}: there are more than {most:,} settings", _GRID)

    @classmethod
    def no_duration(cls, option: str, text: str) -> BadOption:
        """It is no length of time."""
        return cls._of(option, f"{option}: '{text}' is not a duration", "E.g. 15 min.")

    @classmethod
    def parameter(cls, option: str, name: str, known: Sequence[str]) -> BadOption:
        """The pattern does not have this parameter."""
        listed = f"Its parameters are {', '.join(known) or 'none: add params to the front matter'}."
        return cls._of(option, f"{option}: the pattern has no parameter {name}", f"{guess(name, known)}{listed}")

    @classmethod
    def group(cls, model: str, asked: str | None, groups: Sequence[str]) -> BadOption:
        """The model has no such group, or has several and none is given."""
        what = "which group?" if asked is None else f"{model} has no group {asked}"
        return cls._of("--group", what, f"Give --group; groups are {', '.join(groups)}.")


class Unprintable(UsageError):
    """Output for programs, which must stay as it is, contains a character that its encoding does not have."""

    @classmethod
    def of(cls, error: UnicodeEncodeError) -> Unprintable:
        """For the character that the output's encoding refused."""
        sign = error.object[error.start]
        return cls(
            f"the output's encoding, {error.encoding}, has no {ascii(sign)}",
            hint="Set PYTHONIOENCODING=utf-8, or print JSON, which escapes it.",
        )


class BadTarget(UsageError):
    """Output cannot be written where an option says."""

    @classmethod
    def no_folder(cls, option: str, path: Path) -> BadTarget:
        """The path is not a folder."""
        return cls(f"{option} must name a folder", file=path)

    @classmethod
    def no_file(cls, option: str, path: Path) -> BadTarget:
        """The path is not a file."""
        return cls(f"{option} must name a file", file=path)

    @classmethod
    def no_source_file(cls, option: str, path: Path) -> BadTarget:
        """The path is not one for a source's file."""
        return cls(f"{option} must name a .yaml file in a folder", file=path)

    @classmethod
    def taken(cls, option: str, path: Path) -> BadTarget:
        """Another file is there."""
        return cls(f"{option} does not replace another file", file=path)

    @classmethod
    def result(cls, path: Path) -> BadTarget:
        """The folder for a result is missing, or a folder is where the file should be."""
        return cls("the result cannot be written there", file=path, hint="Name a file in a folder.")

    @classmethod
    def refused(cls, what: str, path: Path, error: OSError) -> BadTarget:
        """The operating system refuses the write; ``what`` is "the file" or similar."""
        return cls(f"{what} cannot be written: {error.strerror}", file=path)


class NotGenerated(InfrastructureError):
    """Generated files cannot be written."""

    @classmethod
    def of(cls, path: str | Path, error: OSError) -> NotGenerated:
        """For a place, and what the operating system says."""
        return cls(f"{path} cannot be written: {error.strerror or error}")


class NothingGiven(UsageError):
    """A string that a verb works on is empty."""

    @classmethod
    def pattern(cls) -> NothingGiven:
        """The pattern is empty."""
        return cls("the pattern is empty", hint="Give a file or a query in quotes.")

    @classmethod
    def statement(cls) -> NothingGiven:
        """The statement is empty."""
        return cls("the statement is empty", hint="Leave it out to list the tables.")


class UnreadablePattern(UsageError):
    """The file of a pattern does not exist, or cannot be read."""

    @classmethod
    def of(cls, given: str, error: OSError) -> UnreadablePattern:
        """For what was given, and what the operating system says."""
        return cls(
            f"the pattern cannot be read: {error.strerror}", file=given, hint="Give a file or a query in quotes."
        )


class PatternNoText(DefinitionError):
    """A pattern's file is not UTF-8 text."""

    @classmethod
    def of(cls, file: Path, error: UnicodeDecodeError) -> PatternNoText:
        """For the file, at the first line that is not UTF-8."""
        line = error.object[: error.start].count(b"\n") + 1
        return cls("the pattern is not UTF-8 text", file=file, line=line, hint="Save the file as UTF-8.")


class NoFile(UsageError):
    """A path that should be checked is not a file."""

    @classmethod
    def of(cls, path: Path) -> NoFile:
        """For a path that is a folder or does not exist."""
        return cls("this is not a file" if os.path.exists(path) else "there is no such file", file=path)


class UnfitFiles(InputError):
    """Files of events lack something that a verb needs."""

    @classmethod
    def no_key(cls, column: str) -> UnfitFiles:
        """The key column is missing."""
        return cls(f"the events have no column {column}", key="--key")

    @classmethod
    def no_type(cls, types: Sequence[str]) -> UnfitFiles:
        """The pattern distinguishes types, but the events have none."""
        return cls(
            f"the events have no type, but the pattern asks for {', '.join(types)}",
            key="type",
            hint="Name the column with --type.",
        )

    @classmethod
    def not_now(cls, file: Path, error: Exception) -> UnfitFiles:
        """A file cannot be read at the moment."""
        return cls(f"the file cannot be read for now: {error}", file=file, hint="Try again.")

    @classmethod
    def of_source(cls, file: str, code: str, why: str, source: str, source_file: str) -> UnfitFiles:
        """A file is none of a source; ``why`` says in words what ``code`` stands for."""
        return cls(
            f"the file cannot be read as {source}: {code}: {why}",
            file=file,
            hint=f"{source_file} says which files and columns the source has.",
        )


class NotIngested(UsageError):
    """Events that should be searched are not in the lake."""

    @classmethod
    def source(cls, name: str, days: Days) -> NotIngested:
        """No event of a source has been ingested; ``days`` are those asked for."""
        hint = f"Run 'chainlake ingest {name} {days.start} {days.end}'."
        return cls(f"no events of {name} have been ingested yet", hint=hint)

    @classmethod
    def no_source(cls) -> NotIngested:
        """The pattern does not name its source."""
        return cls("the pattern names no source, so there are no days to search", key="source")


class EndsInFuture(UsageError):
    """Days that should be ingested have not begun."""

    @classmethod
    def of(cls, end: str, today: date) -> EndsInFuture:
        """For the day that was given as the end."""
        return cls(
            f"the interval ends in the future, at {end}",
            hint=f"TO is excluded: to include today's files, write {today + timedelta(days=1)}.",
        )


class IsPattern(UsageError):
    """A verb for models was given a pattern."""

    @classmethod
    def of(cls, pattern: str, files: Sequence[Path]) -> IsPattern:
        """For the pattern as it was given, and the files that it was to be run over."""
        more = " …" if len(files) > 1 else ""
        hint = (
            f"Run 'chainlake match {pattern} {files[0]}{more} --near-misses' to see what nearly matches, or without "
            "--near-misses for the matches; add --source NAME to read files as they land for a source."
        )
        return cls(f"'{pattern}' is a pattern, and try runs models", hint=hint)


class NoRounds(InputError):
    """A model has nothing to draw on some days."""

    @classmethod
    def none_yet(cls, model: str, days: Days, first: date) -> NoRounds:
        """The model's days begin later, with ``first``."""
        return cls(f"{model} has no rounds on {days}: its days begin with {first}", hint="Take later days.")

    @classmethod
    def none_complete(cls, model: str, days: Days) -> NoRounds:
        """No round on these days has values of all nodes."""
        return cls(f"{model} has no complete round on {days}", hint="Use more days, or check the events.")

    @classmethod
    def no_events(cls, model: str) -> NoRounds:
        """The files hold no events of the model's source."""
        return cls(f"the files hold no events that {model} could run over")

    @classmethod
    def before(cls, option: str) -> NoRounds:
        """No window was full yet at a time that was asked for."""
        return cls(f"there is no model yet at a time that {option} names", hint="Take a later one.")


class DrawnElsewhere(UsageError):
    """A picture was asked for of something that the report's pages draw."""

    @classmethod
    def pattern(cls, name: str) -> DrawnElsewhere:
        """For a pattern."""
        hint = "'report' draws its matches, the best ones of a ranking first: its page names them all."
        return cls(f"{name} is a pattern, and a picture is of a model", hint=hint)
