"""The text a pattern is written in, and errors that point into it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chainlake.errors import DefinitionError

#: A place in a text: 1-based (line, column).
At = tuple[int, int]

NOWHERE: At = (0, 0)


@dataclass(frozen=True)
class SourceText:
    """A pattern's text and the file it came from.

    Args:
        text: the whole text, front matter included.
        file: its file, or None.
    """

    text: str
    file: str | None = None

    def place(self, word: str) -> At:
        """Where a word stands for the first time, in any case; ``NOWHERE`` if it does not."""
        found = re.search(rf"\b{word}\b", self.text, re.IGNORECASE)
        if found is None:
            return NOWHERE
        before = self.text[: found.start()]
        return before.count("\n") + 1, found.start() - before.rfind("\n")

    def error(self, what: str, at: At = NOWHERE, *, hint: str | None = None, key: str | None = None) -> DefinitionError:
        """A DefinitionError at ``at``, with the line it points to."""
        line, column = at
        if line < 1:
            return DefinitionError(what, file=self.file, hint=hint, key=key)
        lines = self.text.split("\n")
        excerpt = _shown(lines[line - 1]) if line <= len(lines) else None
        return DefinitionError(what, file=self.file, line=line, column=column, hint=hint, key=key, excerpt=excerpt)


def _shown(line: str) -> str:
    """A line as a message shows it, each character in its place."""
    return "".join(letter if letter.isprintable() else " " if letter.isspace() else "?" for letter in line.rstrip("\r"))
