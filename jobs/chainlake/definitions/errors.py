"""Errors in a definition file as a whole, or in what it or a command names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from chainlake.errors import ChainlakeError, DefinitionError, UsageError
from chainlake.words import closest, guess, nearest


class UnknownSource(DefinitionError):
    """A definition names a source that has no file."""

    name: str

    @classmethod
    def of(
        cls, name: str, known: Sequence[str], folder: str | Path, *, file: Path | None = None, line: int | None = None
    ) -> UnknownSource:
        """For a name, and where it is written, if that is known."""
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
    """A clause that lists the known names, or says that there are none."""
    return f"{what} {verb} {', '.join(known)}" if known else f"There {verb} none yet"


def _meant(names: Sequence[str], known: Sequence[str]) -> str:
    """The start of a hint, with the known words that are similar to the unknown ones; empty if none is."""
    likely = [meant for name in names if (meant := closest(name, known)) is not None]
    return f"Did you mean {', '.join(likely)}? " if likely else ""


def _sources(name: str, known: Sequence[str], folder: str | Path) -> str:
    return f"{_meant([name], known)}{_are('Sources', known)}; they are files of {folder}."


class SourceBroken(DefinitionError):
    """The file of a source that a definition names is wrong; ``why`` is what is wrong with it."""

    name: str
    why: ChainlakeError

    @classmethod
    def of(cls, name: str, why: ChainlakeError, file: Path, line: int | None) -> SourceBroken:
        """For the source, what is wrong with it, and where the definition names it."""
        return cls(
            f"its source '{name}' cannot be used: {why.summary}",
            file=file,
            line=line,
            key="source",
            hint="Fix the source file first.",
        ).holding(name=name, why=why)

    @classmethod
    def apart(
        cls, failures: Iterable[tuple[str, BaseException]]
    ) -> tuple[list[tuple[str, BaseException]], dict[str, list[str]]]:
        """Failures with each broken source once, however many definitions need it.

        Args:
            failures: pairs of what failed, such as ``pattern/NAME`` or ``source/NAME``, and the error.

        Returns:
            those that are wrong themselves, broken sources among them as ``source/NAME``; and for each of these
            sources, what waits for it.
        """
        own: dict[str, BaseException] = {}
        waiting: dict[str, list[str]] = {}
        for name, error in failures:
            if isinstance(error, cls):
                own.setdefault(f"source/{error.name}", error.why)
                waiting.setdefault(f"source/{error.name}", []).append(name)
            else:
                own[name] = error
        return list(own.items()), waiting

    @staticmethod
    def waiting_lines(waiting: Mapping[str, Sequence[str]]) -> list[str]:
        """A line per broken source with what waits for it, as :meth:`apart` gives them."""
        return [f"waiting for {source}, which is broken: {', '.join(names)}" for source, names in waiting.items()]


class UnreadableDefinition(DefinitionError):
    """A definition is not a readable text of an acceptable size."""

    @classmethod
    def no_file(cls, file: Path) -> UnreadableDefinition:
        """The path is a folder, a pipe or similar."""
        return cls("is not a file", file=file)

    @classmethod
    def refused(cls, file: Path, error: OSError) -> UnreadableDefinition:
        """The operating system refuses to read it."""
        return cls(f"cannot be read: {error.strerror}", file=file)

    @classmethod
    def too_large(cls, file: Path, most: int) -> UnreadableDefinition:
        """It has more than ``most`` bytes."""
        return cls(f"is larger than {most >> 20} MiB, the limit for definitions", file=file)

    @classmethod
    def no_text(cls, file: Path, line: int) -> UnreadableDefinition:
        """One of its lines is not UTF-8."""
        return cls("is not UTF-8 text", file=file, line=line, hint="Save it as UTF-8.")


class NoMapping(DefinitionError):
    """A definition is YAML, but not a mapping of keys."""

    @classmethod
    def of(cls, file: str | None = None) -> NoMapping:
        """For a file, or for text that was passed without one."""
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
        """A source has no definitions of a kind ("pattern", "model") with these names."""
        hint = f"{_meant(names, known)}{_are(f'Its {kind}s', known)}."
        return cls(f"source {source} has no {kind} {', '.join(names)}", hint=hint).holding(names=tuple(names))

    @classmethod
    def of_kind(cls, kind: str, names: Sequence[str], known: Sequence[str]) -> UnknownDefinition:
        """No source has definitions of that kind with these names."""
        hint = f"{_meant(names, known)}{_are(f'The {kind}s', known)}."
        return cls(f"there is no {kind} {', '.join(names)}", hint=hint).holding(names=tuple(names))

    @classmethod
    def of_any(cls, names: Sequence[str], known: Sequence[str]) -> UnknownDefinition:
        """No pattern and no model has these names, which are written like ``pattern/x``."""
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
        """Nothing was ever published under the name."""
        hint = f"{_meant([name], known)}{_are('Published', known, 'were')}."
        return cls(f"nothing was ever published as '{name}'", hint=hint).holding(names=(name,))

    @classmethod
    def two_kinds(cls, name: str, found: Sequence[str]) -> UnknownDefinition:
        """Several definitions have the name."""
        hint = "Write it with its kind, such as pattern/NAME."
        return cls(f"'{name}' is {' and '.join(found)}", hint=hint).holding(names=(name,))


class UnfitAlerts(DefinitionError):
    """The value of ``alerts`` has the wrong form."""

    @classmethod
    def no_map(cls) -> UnfitAlerts:
        """It is not a map."""
        return cls("alerts must be a map", hint="Write alerts: {webhook: $MY_WEBHOOK}.")

    @classmethod
    def unknown(cls, key: str, known: Sequence[str]) -> UnfitAlerts:
        """It has an unknown key."""
        return cls(f"unknown key {key} in alerts", hint=nearest(key, known))

    @classmethod
    def no_address(cls) -> UnfitAlerts:
        """The webhook is neither an address nor a variable."""
        hint = "Write https://… or, since addresses often hold a secret, $NAME of an environment variable."
        return cls("webhook must be an address", hint=hint)

    @classmethod
    def no_switch(cls, key: str) -> UnfitAlerts:
        """A key's value is neither true nor false."""
        return cls(f"{key} must be true or false")

    @classmethod
    def no_range(cls, text: object) -> UnfitAlerts:
        """A muted span has the wrong form or no length."""
        hint = "Write mute: ['22:00-06:00'], in the source's zone."
        return cls(f"mute: {text} is not a time span of a day", hint=hint)


class WrongEntry(DefinitionError):
    """A key of a definition that is unknown or missing, or whose value is of the wrong kind."""

    @classmethod
    def unknown(cls, key: str, known: Sequence[str]) -> WrongEntry:
        """A key is unknown here."""
        return cls(f"unknown key '{key}'", hint=f"{guess(key, known)}Allowed here: {', '.join(known)}.")

    @classmethod
    def cut(cls, before: str, key: str) -> WrongEntry:
        """A key is really the rest of the text of the key before it."""
        hint = "Between { and }, a string that contains a comma takes quotes."
        return cls(f"the string of '{before}' ends at a comma, before '{key}'", hint=hint)

    @classmethod
    def missing(cls, key: str) -> WrongEntry:
        """A required key is missing."""
        return cls(f"'{key}' is missing")

    @classmethod
    def no_value(cls, key: str) -> WrongEntry:
        """A key has no value."""
        return cls(f"'{key}' has no value", hint="Give it one, or leave the key out.")

    @classmethod
    def kind(cls, key: str, expected: str, typed: object, hint: str | None = None) -> WrongEntry:
        """A value is not of the kind ``expected``; ``hint`` says how to write what was probably meant."""
        return cls(f"'{key}' must be {expected}, not {typed!r}", hint=hint)

    @classmethod
    def none_of(cls, value: object, allowed: Sequence[str]) -> WrongEntry:
        """A word is not among those allowed."""
        return cls(f"'{value}' is not allowed", hint=f"One of: {', '.join(allowed)}.")

    @classmethod
    def no_texts(cls, key: str) -> WrongEntry:
        """A value is not a list of strings."""
        return cls(f"'{key}' must be a list of strings")

    @classmethod
    def no_text(cls, key: str) -> WrongEntry:
        """An item in a list of strings is not a string."""
        return cls(f"'{key}' must be a list of strings", hint="Put null or ~ in quotes if it is a string.")

    @classmethod
    def no_maps(cls, key: str) -> WrongEntry:
        """An item in a list of maps is not a map."""
        return cls(f"each item of '{key}' must be a map")
