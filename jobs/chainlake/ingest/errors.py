"""Figures of an ingest that do not agree; nothing of it is published."""

from __future__ import annotations

from pathlib import Path

from chainlake.errors import AuditFailed


class RowsMiscounted(AuditFailed):
    """Other rows were written than are counted: a mistake of the parser or the writer, noticed at once."""

    written: int
    counted: int

    @classmethod
    def of(cls, table: str, written: int, counted: int, path: str) -> RowsMiscounted:
        """For the table, both numbers, and the first of the files that were parsed together."""
        return cls(
            f"{written} rows were written to {table}, but {counted} are counted",
            hint=f"A mistake of the parser or the writer; the files are {path} and those parsed with it.",
        ).holding(written=written, counted=counted)


class AccountsDiffer(AuditFailed):
    """The rows of a source's files do not add up."""

    source: str

    @classmethod
    def of(cls, source: str, reason: str, docs: Path) -> AccountsDiffer:
        """For a source; ``reason`` is the audit's, and ``docs`` its page."""
        return cls(
            f"the accounting of source {source} does not add up: {reason}",
            hint=f"Nothing was written to ops.files; the days stay 'changing'. Data Docs: {docs}",
        ).holding(source=source)
