"""Errors for figures of an ingest that do not agree and for edits that do not fit the tables; nothing is published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chainlake.errors import AuditFailed, DefinitionError


class RowsMiscounted(AuditFailed):
    """The number of rows written is not the number counted: a bug in the parser or the writer, noticed at once."""

    written: int
    counted: int

    @classmethod
    def of(cls, table: str, written: int, counted: int, path: str) -> RowsMiscounted:
        """For the table, both numbers, and the path of the first of the files that were parsed together."""
        return cls(
            f"{written} rows were written to {table}, but {counted} are counted",
            hint=f"This is a bug in the parser or the writer; the files are {path} and those parsed with it.",
        ).holding(written=written, counted=counted)


class AccountsDiffer(AuditFailed):
    """The rows of a source's files do not add up."""

    source: str

    @classmethod
    def of(cls, source: str, reason: str, docs: Path) -> AccountsDiffer:
        """For a source, the audit's reason, and ``docs``, the audit's page."""
        return cls(
            f"the accounting of source {source} does not add up: {reason}",
            hint=f"Nothing was written to ops.files; the days stay 'changing'. Data Docs: {docs}",
        ).holding(source=source)


class UnfitEdit(DefinitionError):
    """A source's definition was edited so that its existing tables cannot take its rows."""

    @classmethod
    def of(cls, source: str, misfits: Sequence[str]) -> UnfitEdit:
        """For the source, and a string per column that says how the two differ."""
        return cls(
            f"an edit does not fit the tables that source {source} has: {'; '.join(misfits)}; nothing was written",
            hint=(
                "Undo the edit and, if need be, add an attribute with another name; or define a source with another "
                "name, which gets its own tables while these stay."
            ),
        )
