"""What all definition files have in common: how they are read and named, and how a broken one is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from chainlake.definitions.errors import BadName, UnreadableDefinition
from chainlake.errors import ChainlakeError, DefinitionError

#: Bytes of a definition at most. It is read whole, by every status and every run.
LARGEST = 1 << 20
#: Names of patterns and models.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}\Z")
#: Names of sources and of their columns: ASCII, since they become names of tables, DAGs and columns of SQL.
WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}\Z")
_TOP_KEY = re.compile(r"^([a-z_]+)\s*:", re.MULTILINE)
#: Keys that only a model has, and only a source.
_OF_MODELS = frozenset("source start nodes groups response features round window eps value threshold detector".split())
_OF_SOURCES = frozenset("key type zone attributes identity delivery on_conflict path expect formats".split())
_SOURCE_LINE = re.compile(r"^source:\s*['\"]?([A-Za-z_][A-Za-z0-9_]*)", re.MULTILINE)


@dataclass(frozen=True)
class BrokenDefinition:
    """A pattern or model file that is wrong, or whose table cannot be read.

    Args:
        name: of the definition.
        file: where it is defined.
        source: the source it names, None if not even that could be read.
        error: what is wrong.
    """

    name: str
    file: Path
    source: str | None
    error: ChainlakeError


def read_definition(path: Path) -> str:
    """The text of a definition.

    Raises:
        DefinitionError: it is no file, too large, or not UTF-8.
    """
    try:
        if path.exists() and not path.is_file():
            raise UnreadableDefinition.no_file(path)
        with path.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        raise UnreadableDefinition.refused(path, error) from None
    if len(data) > LARGEST:
        raise UnreadableDefinition.too_large(path, LARGEST)
    try:
        # A mark of the byte order, which some editors write, is no part of the text.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableDefinition.no_text(path, data.count(b"\n", 0, error.start) + 1) from None


def check_name(path: Path, what: str, allowed: re.Pattern[str] = NAME) -> None:
    """See to it that a definition's name, its file's without the ending, can name tables, folders and tasks.

    Args:
        path: the file.
        what: "source", "pattern" or "model".
        allowed: what a name is.

    Raises:
        DefinitionError: it cannot.
    """
    if not allowed.match(path.stem):
        raise BadName.of(path, what)


def yaml_kind(path: Path) -> str:
    """Whether a YAML file is meant as a "source" or as a "model": by its folder, else by the keys that it has."""
    if path.parent.name in ("sources", "models"):
        return path.parent.name.removesuffix("s")
    try:
        keys = set(_TOP_KEY.findall(read_definition(path)))
    except DefinitionError:
        return "source"
    return "model" if len(keys & _OF_MODELS) > len(keys & _OF_SOURCES) else "source"


def source_named(path: Path) -> str | None:
    """The source that a file names, as far as it can be recognised when the file is wrong."""
    try:
        return named_source(read_definition(path))
    except DefinitionError:
        return None


def named_source(text: str) -> str | None:
    """The source that a file's text names, read without understanding the rest of it."""
    named = _SOURCE_LINE.search(text)
    return named.group(1) if named else None


def source_line(text: str) -> int | None:
    """The line, from 1, in which a file's text names its source."""
    named = _SOURCE_LINE.search(text)
    return text.count("\n", 0, named.start(1)) + 1 if named else None
