"""What all definition files have in common: how they are read and named, and what is known about a broken one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from chainlake.definitions.errors import BadName, UnreadableDefinition
from chainlake.errors import ChainlakeError, DefinitionError

#: The most bytes of a definition, which every status and every run reads whole.
LARGEST = 1 << 20
#: Valid names of patterns and models.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}\Z")
#: Valid names of sources and of their columns: ASCII, since they become names of tables, DAGs and SQL columns.
WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}\Z")
_TOP_KEY = re.compile(r"^([a-z_]+)\s*:", re.MULTILINE)
#: Keys that only a model has, and keys that only a source has.
_OF_MODELS = frozenset("source start nodes groups response features round window eps value threshold detector".split())
_OF_SOURCES = frozenset("key type zone attributes identity delivery on_conflict path expect formats".split())
_SOURCE_LINE = re.compile(r"^source:\s*['\"]?([A-Za-z_][A-Za-z0-9_]*)", re.MULTILINE)


@dataclass(frozen=True)
class BrokenDefinition:
    """A pattern or model whose file is wrong, or whose table cannot be read.

    Args:
        name: the definition's name.
        file: where it is defined.
        source: the source it names; None if not even that could be read.
        error: what is wrong.
    """

    name: str
    file: Path
    source: str | None
    error: ChainlakeError


def read_definition(path: Path) -> str:
    """The text of a definition.

    Raises:
        DefinitionError: the path is not a file, or the file is too large or not UTF-8.
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
        # A byte order mark, which some editors write, is not part of the text.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableDefinition.no_text(path, data.count(b"\n", 0, error.start) + 1) from None


def check_name(path: Path, what: str, allowed: re.Pattern[str] = NAME) -> None:
    """Make sure that a definition's name (its file name without the extension) can name tables, folders and tasks.

    Args:
        path: the file.
        what: "source", "pattern" or "model".
        allowed: the pattern of valid names.

    Raises:
        DefinitionError: it cannot.
    """
    if not allowed.match(path.stem):
        raise BadName.of(path, what)


def yaml_kind(path: Path) -> str:
    """Whether a YAML file is meant as a "source" or a "model", judged by its folder, or else by its keys."""
    if path.parent.name in ("sources", "models"):
        return path.parent.name.removesuffix("s")
    try:
        keys = set(_TOP_KEY.findall(read_definition(path)))
    except DefinitionError:
        return "source"
    return "model" if len(keys & _OF_MODELS) > len(keys & _OF_SOURCES) else "source"


def source_named(path: Path) -> str | None:
    """The source that a file names, even if the file is wrong, as far as it can be recognised."""
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
