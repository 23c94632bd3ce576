"""Errors that stop a change of a data table; each says what was written (usually nothing) and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from chainlake.errors import InfrastructureError
from chainlake.schemas.table import Table


class Overtaken(InfrastructureError):
    """Another writer has made the version that a commit was meant to make."""

    @classmethod
    def of(cls, table: Table) -> Overtaken:
        """For a commit to ``table``."""
        return cls(
            f"another writer has changed {table.path_name} since this change was taken; nothing was written",
            hint="Run this again.",
        )


class FilesNotVisible(InfrastructureError):
    """This process does not see a file that is to become part of a table as its writer left it."""

    @classmethod
    def of(cls, table: Table, path: str, seen: int | None, wanted: int | None = None) -> FilesNotVisible:
        """For a file, its bytes as this process sees them (``None`` if missing), and as its writer reported them."""
        what = "is not there" if seen is None else f"has {seen} bytes, but its writer reported {wanted}"
        return cls(
            f"for {table.path_name} a task wrote {path}, which {what} for this process; nothing was committed",
            hint="Put CHAINLAKE_HOME on a disk that all machines share under one path, or set CHAINLAKE_LAKE to an "
            "object store (docs/object-store.md).",
        )


class RowsOutside(ValueError):
    """Staged rows do not belong to the part of the table that they are to replace: a bug."""

    @classmethod
    def of(cls, table: Table, count: int, where: object) -> RowsOutside:
        """For ``count`` rows outside ``where``."""
        return cls(f"{count} staged rows of {table.path_name} are outside {where}; nothing was written")


class PartlyMerged(InfrastructureError):
    """A commit did not reach all rows that it was to change: a bug, noticed after the commit has landed."""

    @classmethod
    def of(cls, table: Table, version: int, found: Mapping[str, int], wanted: Mapping[str, int]) -> PartlyMerged:
        """For the number of rows that version ``version`` reached and should have reached, by what was done to them."""
        actual, asked = (", ".join(f"{count} {kind}" for kind, count in one.items()) for one in (found, wanted))
        return cls(
            f"version {version} of {table.path_name} has {actual} rows, but should have {asked}",
            hint="Restate the days of this run, and report this as a bug.",
        )
