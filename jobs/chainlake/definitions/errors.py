"""What is wrong with a definition file as a whole, or with what it or a command names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chainlake.errors import ChainlakeError, DefinitionError, UsageError
from chainlake.words import closest


class UnknownSource(DefinitionError):
    """A definition names a source that has no file."""

    name: str

    @classmethod
    def of(
        cls, name: str, known: Sequence[str], folder: str | Path, *, file: Path | None = None, line: int | None = None
    ) -> UnknownSource:
        """For a name; ``file`` and ``line`` say where it is written, if that is known."""
        key = None if file is None else "source"
        hint = _sources(name, known, folder)
        return cls(f"there is no source '{name}'", file=file, line=line, key=key, hint=hint).holding(name=name)


class UnknownSourceAsked(UsageError):
    """A command names a source that has no file."""

    name: str

    @classmethod
    def of(cls, name: str, known: Sequence[str], folder: str | Path) -> UnknownSourceAsked:
        """For a name."""
        return cls(f"there is no source '{name}'", hint=_sources(name, known, folder)).holding(name=name)


def _are(what: str, known: Sequence[str], verb: str = "are") -> str:
    """The names that there are, or that there are none."""
    return f"{what} {verb} {', '.join(known)}" if known else f"There {verb} none yet"


def _meant(names: Sequence[str], known: Sequence[str]) -> str:
    """The known words that the unknown ones are like, as the beginning of a hint; empty if none is."""
    likely = [meant for name in names if (meant := closest(name, known)) is not None]
    return f"Did you mean {', '.join(likely)}? " if likely else ""


def _sources(name: str, known: Sequence[str], folder: str | Path) -> str:
    return f"{_meant([name], known)}{_are('Sources', known)}; they are files of {folder}."


class SourceBroken(DefinitionError):
    """The file of a source that a definition names is wrong."""

    name: str

    @classmethod
    def of(cls, name: str, why: ChainlakeError, file: Path, line: int | None) -> SourceBroken:
        """For the source, what is wrong with it, and where the definition names it."""
        return cls(
            f"its source '{name}' cannot be used: {why.summary}",
            file=file,
            line=line,
            key="source",
            hint="Fix the source file first.",
        ).holding(name=name)


class UnreadableDefinition(DefinitionError):
    """A definition is no readable text of a bearable size."""

    @classmethod
    def no_file(cls, file: Path) -> UnreadableDefinition:
        """It is a folder, a pipe or the like."""
        return cls("is not a file", file=file)

    @classmethod
    def refused(cls, file: Path, error: OSError) -> UnreadableDefinition:
        """The operating system does not give it."""
        return cls(f"cannot be read: {error.strerror}", file=file)

    @classmethod
    def too_large(cls, file: Path, most: int) -> UnreadableDefinition:
        """It has more than ``most`` bytes."""
        return cls(f"is larger than {most >> 20} MiB, the limit for definitions", file=file)

    @classmethod
    def no_text(cls, file: Path, line: int) -> UnreadableDefinition:
        """A line of it is not UTF-8."""
        return cls("is not UTF-8 text", file=file, line=line, hint="Save it as UTF-8.")


class NoMapping(DefinitionError):
    """A definition is YAML, and no mapping of keys."""

    @classmethod
    def of(cls, file: str | None = None) -> NoMapping:
        """For a file, or for what was handed over."""
        return cls("must be a YAML map of keys", file=file, line=None if file is None else 1)


class BadName(DefinitionError):
    """The name of a definition's file cannot name tables, folders and tasks."""

    @classmethod
    def of(cls, file: Path, what: str) -> BadName:
        """For a file; ``what``: "source", "pattern" or "model"."""
        more = "" if what == "source" else " and -"
        return cls(
            f"'{file.stem}' cannot be the name of a {what}",
            file=file,
            hint=f"Rename the file: letters a to z, digits and _{more}, at most 100.",
        )


class UnknownDefinition(UsageError):
    """A command names a pattern or model that does not exist."""

    names: tuple[str, ...]

    @classmethod
    def of_source(cls, source: str, kind: str, names: Sequence[str], known: Sequence[str]) -> UnknownDefinition:
        """A source has none of a kind ("pattern", "model") under these names."""
        hint = f"{_meant(names, known)}{_are(f'Its {kind}s', known)}."
        return cls(f"source {source} has no {kind} {', '.join(names)}", hint=hint).holding(names=tuple(names))

    @classmethod
    def of_kind(cls, kind: str, names: Sequence[str], known: Sequence[str]) -> UnknownDefinition:
        """No source has one."""
        hint = f"{_meant(names, known)}{_are(f'The {kind}s', known)}."
        return cls(f"there is no {kind} {', '.join(names)}", hint=hint).holding(names=tuple(names))

    @classmethod
    def of_any(cls, names: Sequence[str], known: Sequence[str]) -> UnknownDefinition:
        """Neither a pattern nor a model has these names, such as ``pattern/x``."""
        listed = ", ".join(f"'{name}'" for name in names)
        hint = f"{_meant(names, known)}There are {', '.join(known) or 'none'}."
        return cls(f"there is no definition {listed}", hint=hint).holding(names=tuple(names))

    @classmethod
    def model(cls, name: str, known: Sequence[str]) -> UnknownDefinition:
        """There is no model of that name."""
        hint = f"{_meant([name], known)}{_are('Models', known)}."
        return cls(f"there is no model {name}", hint=hint).holding(names=(name,))

    @classmethod
    def never_published(cls, name: str, known: Sequence[str]) -> UnknownDefinition:
        """Nothing was ever published under it."""
        hint = f"{_meant([name], known)}{_are('Published', known, 'were')}."
        return cls(f"nothing was ever published as '{name}'", hint=hint).holding(names=(name,))

    @classmethod
    def two_kinds(cls, name: str, found: Sequence[str]) -> UnknownDefinition:
        """It is the name of more than one."""
        hint = "Write it with its kind, such as pattern/NAME."
        return cls(f"'{name}' is {' and '.join(found)}", hint=hint).holding(names=(name,))
