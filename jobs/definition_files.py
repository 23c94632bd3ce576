"""What pattern and model files have in common: the line that names their source, and how a broken one is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from jobs.errors import ChainlakeError

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


def named_source(text: str) -> str | None:
    """The source that a file's text names, read without understanding the rest of it."""
    named = _SOURCE_LINE.search(text)
    return named.group(1) if named else None


def source_line(text: str) -> int | None:
    """The line, from 1, in which a file's text names its source."""
    named = _SOURCE_LINE.search(text)
    return text.count("\n", 0, named.start(1)) + 1 if named else None
