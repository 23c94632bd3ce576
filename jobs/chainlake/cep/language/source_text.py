"""The text of a pattern, and places in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: A place in a text: 1-based (line, column).
At = tuple[int, int]

NOWHERE: At = (0, 0)
#: A front matter with its two lines of ---.
_FRONT = re.compile(r"\s*---[ \t]*\n.*?^---[ \t]*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class SourceText:
    """A pattern's text and the file that it came from.

    Args:
        text: the whole text, including the front matter.
        file: its file, or None.
    """

    text: str
    file: str | None = None

    def place(self, *words: str) -> At:
        """Where one of these words, in any case, first occurs in the query; ``NOWHERE`` if none does.

        The front matter, comments, texts and quoted names do not count.
        """
        front = _FRONT.match(self.text)
        parts = re.compile(rf"#[^\n]*|'[^'\n]*'|\"[^\"\n]*\"|\b(?P<word>{'|'.join(words)})\b", re.IGNORECASE)
        for found in parts.finditer(self.text, front.end() if front else 0):
            if found["word"]:
                before = self.text[: found.start()]
                return before.count("\n") + 1, found.start() - before.rfind("\n")
        return NOWHERE

    def excerpt(self, line: int) -> str | None:
        """A line, counted from 1, as errors show it; None after the last one."""
        lines = self.text.split("\n")
        return _shown(lines[line - 1]) if line <= len(lines) else None


def _shown(line: str) -> str:
    """A line as messages show it, with every character in its place."""
    return "".join(letter if letter.isprintable() else " " if letter.isspace() else "?" for letter in line.rstrip("\r"))
