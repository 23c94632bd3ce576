"""Typed errors: what is wrong, where, and what to do next.

Every error a user can meet is one of these classes. The command line prints ``str(error)`` and exits with
``exit_code`` (docs/semantics.md#exit-codes). A new code is also named in
``operations/backfills/launch.py``, in ``cli/exits.py`` and in the help of ``cli/main.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from chainlake.terminal import one_line, visible


class ChainlakeError(Exception):
    """Base of all errors that carry a place and a hint.

    Args:
        what: one sentence saying what is wrong.
        file: the file it is wrong in.
        line: 1-based line of the file.
        column: 1-based column of the line.
        key: the configuration key, table column or name concerned.
        hint: what to do next, one sentence.
        excerpt: the offending source line; the column is marked under it.
    """

    exit_code = 5

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        column: int | None = None,
        key: str | None = None,
        hint: str | None = None,
        excerpt: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.file = str(file) if file is not None else None
        self.line = line
        self.column = column
        self.key = key
        self.hint = hint
        self.excerpt = excerpt

    def __reduce__(self) -> tuple[Any, ...]:
        own = {name: value for name, value in vars(self).items() if name != "what" and name not in self.details()}
        return _rebuild, (type(self), self.what, self.details()), own

    def holding(self, **fields: Any) -> Self:
        """This error with fields of its class, which it keeps on its way to another process."""
        vars(self).update(fields)
        return self

    def details(self) -> dict[str, Any]:
        """All but ``what``, as keyword arguments."""
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "key": self.key,
            "hint": self.hint,
            "excerpt": self.excerpt,
        }

    @property
    def place(self) -> str:
        """``file:line:column`` as far as known, else an empty string."""
        return ":".join(one_line(str(part)) for part in (self.file, self.line, self.column) if part is not None)

    @property
    def summary(self) -> str:
        """The whole error in one line, as logs and ``ops.runs`` keep it."""
        text = f"{self.place}: {self.what}" if self.place else self.what
        if self.key is not None:
            text += f" (key {self.key})"
        return visible(f"{text.rstrip('.')}. {self.hint}" if self.hint else text)

    def __str__(self) -> str:
        text = f"{self.place}: {self.what}" if self.place else self.what
        if self.key is not None:
            text += f" (key {self.key})"
        if self.excerpt is not None:
            text += f"\n    {self.excerpt}"
            if self.column is not None:
                text += "\n    " + " " * (self.column - 1) + "^"
        if self.hint is not None:
            text += f"\nhint: {self.hint}"
        return visible(text)


def _rebuild(kind: type[ChainlakeError], what: str, details: dict[str, Any]) -> ChainlakeError:
    return kind(what, **details)


class AuditFailed(ChainlakeError):
    """A quality gate failed; none of the days concerned were published."""

    exit_code = 1


class UsageError(ChainlakeError):
    """The command line or a function was called wrongly."""

    exit_code = 2


class DefinitionError(ChainlakeError):
    """A source, pattern or model file is wrong."""

    exit_code = 3


class LimitExceeded(DefinitionError):
    """A configured limit of a pattern was exceeded; nothing was cut off, the pattern failed."""


class InputError(ChainlakeError):
    """Landed files or other input cannot be used."""

    exit_code = 4


class InfrastructureError(ChainlakeError):
    """Java, the network, the disk, a lock or a database is not as needed; trying again can help."""

    exit_code = 5
