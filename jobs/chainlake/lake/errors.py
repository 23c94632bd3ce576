"""Errors that stop work on tables of the lake, whichever of its rooms meets them first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from chainlake.errors import AuditFailed, InfrastructureError, UsageError
from chainlake.words import guess


class UnknownTable(UsageError):
    """There is no table with the given name."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, names: Sequence[str], known: Iterable[str]) -> UnknownTable:
        """For names with their schema, and the names of the tables that could have been meant."""
        error = cls(
            f"there is no table {', '.join(names)}",
            hint=f"{guess(names[0], sorted(known))}'chainlake sql' lists the tables.",
        )
        return error.holding(names=tuple(names))

    @classmethod
    def no_schema(cls, name: str) -> UnknownTable:
        """A name without its schema."""
        error = cls(f"'{name}' names no table", hint="Write it with its schema, such as matches.NAME.")
        return error.holding(names=(name,))


class LockBusy(InfrastructureError):
    """Someone else held a lock for the whole wait: exit code 5, like every error that a retry can fix."""

    @classmethod
    def held(cls, what: str, holder: str) -> LockBusy:
        """For what the lock protects, in words, and who uses it."""
        return cls(
            f"{what} cannot be changed now: in use by {holder}",
            hint="Wait for that process to end, or end it, and run this again.",
        )

    @classmethod
    def held_here(cls, what: str) -> LockBusy:
        """For what another part of this process uses."""
        return cls(f"{what} cannot be changed now: another part of this process used it all the time")


class NoLock(InfrastructureError):
    """What is in the place of a lock's file cannot be locked."""

    @classmethod
    def of(cls, path: Path, why: str) -> NoLock:
        """For the lock's path, and what is wrong there."""
        return cls(f"{path} cannot be used as a lock: {why}", hint="Move it away, and run this again.")

    @classmethod
    def read_only(cls, path: Path) -> NoLock:
        """For the lock's path on a read-only disk."""
        return cls(
            f"{path} cannot be used as a lock: its disk is read-only",
            hint="Verbs that change nothing still work: status, sql, plan, check. Make the disk writable for the rest.",
        )


class LockLost(InfrastructureError):
    """A lock was lost just before a commit under it; nothing was committed."""

    @classmethod
    def of(cls, what: str, holder: str) -> LockLost:
        """For what it protects, in words, and who uses that now."""
        return cls(
            f"the lock on {what} was lost (its lease ran out, or its connection ended); in use now by {holder}; "
            "nothing was committed",
            hint="Run this again.",
        )


class ConcurrentWriter(InfrastructureError):
    """Another writer committed while a change was being made, so the change was dropped."""

    table: str

    @classmethod
    def appending(cls, table: str) -> ConcurrentWriter:
        """To record something in a table."""
        return cls._of(table, "nothing was recorded there")

    @classmethod
    def widening(cls, table: str) -> ConcurrentWriter:
        """To add columns to a table."""
        return cls._of(table, "its new columns were not added")

    @classmethod
    def replacing(cls, table: str, other: str) -> ConcurrentWriter:
        """To put another table in the place of a table."""
        return cls._of(table, f"{other} did not take its place")

    @classmethod
    def _of(cls, table: str, undone: str) -> ConcurrentWriter:
        error = cls(f"another writer has changed {table} in the meantime; {undone}", hint="Run this again.")
        return error.holding(table=table)


class RowRefused(AuditFailed):
    """A row breaks a rule of its table."""

    table: str

    @classmethod
    def null(cls, table: str, column: str) -> RowRefused:
        """There is no value in a column that must have one."""
        return cls.of(table, f"NOT NULL constraint violated for column: {column}.")

    @classmethod
    def check(cls, table: str, name: str, sql: str, values: Mapping[str, object]) -> RowRefused:
        """A condition of the table is not true of a row; ``values``: those that the condition is about."""
        row = " ".join(f"- {column} : {value}" for column, value in values.items())
        return cls.of(table, f"CHECK constraint {name} ({sql}) violated by row with values: {row}")

    @classmethod
    def of(cls, table: str, rule: str) -> RowRefused:
        """For a table, and the rule with what breaks it, in the words of Delta's."""
        return cls(f"a row breaks a rule of {table}: {rule}").holding(table=table)
