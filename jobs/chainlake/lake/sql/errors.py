"""Errors that say why a statement has no result."""

from __future__ import annotations

from collections.abc import Sequence

from chainlake.errors import InfrastructureError, UsageError
from chainlake.words import guess


class OnlyReads(UsageError):
    """A statement does something other than read."""

    kind: str

    @classmethod
    def of(cls, kind: str, safe: bool) -> OnlyReads:
        """For a kind of statement; ``safe`` means ``--safe``, with which fewer kinds are possible."""
        if safe:
            hint = "Use SELECT, FROM, DESCRIBE, SUMMARIZE or SHOW ALL TABLES."
            return cls(f"with --safe only tables can be read: {kind} is not possible", hint=hint).holding(kind=kind)
        hint = "Use SELECT, FROM, DESCRIBE, SUMMARIZE, SHOW ALL TABLES, EXPLAIN, or COPY (SELECT …) TO 'file'."
        return cls(f"this only reads: {kind} is not possible", hint=hint).holding(kind=kind)


class NotInTheLake(UsageError):
    """A statement names a schema, table, column or field that does not exist."""

    name: str

    @classmethod
    def empty(cls, lake: str, name: str) -> NotInTheLake:
        """The lake has no table at all."""
        return cls(
            f"the lake at {lake} is empty: there is no table {name} yet",
            hint="`make run` fills it with the shipped data; `chainlake ingest SOURCE FROM TO` with yours.",
        ).holding(name=name)

    @classmethod
    def without_tables(cls, lake: str, schemas: Sequence[str]) -> NotInTheLake:
        """The lake has no table in any of these schemas."""
        said = " or ".join(schemas)
        return cls(
            f"the lake at {lake} has no table in {said} yet",
            hint="`chainlake ingest`, `detect` and `monitor` make tables.",
        ).holding(name=said)

    @classmethod
    def needs_schema(cls, name: str, full: Sequence[str]) -> NotInTheLake:
        """Tables of that name exist, but it was written without a schema."""
        return cls(f"table {name} needs its schema", hint=f"Write {' or '.join(full)}.").holding(name=name)

    @classmethod
    def listed(cls, kind: str, name: str, known: Sequence[str]) -> NotInTheLake:
        """No table or schema of that name exists; the message lists those that do."""
        return cls(f"there is no {kind} {name}", hint=f"{guess(name, known)}There are {', '.join(known)}.").holding(
            name=name
        )

    @classmethod
    def inside(cls, kind: str, name: str, columns: str) -> NotInTheLake:
        """No table of the statement has that column or field; ``columns`` says what they have, if there are any."""
        return cls(f"there is no {kind} {name}", hint=columns or None).holding(name=name)

    @classmethod
    def of_many(cls, name: str, field: str) -> NotInTheLake:
        """A statement asks for a field of something that is not a single event."""
        return cls(
            f"{name} has no field {field}: it is not a single event",
            hint=f"If it is an array of events, write {name}[1].{field} or unnest({name}).",
        ).holding(name=field)


class StatementRefused(UsageError):
    """DuckDB does not accept a statement."""

    @classmethod
    def of(cls, first: str, mark: str | None) -> StatementRefused:
        """For the first line of DuckDB's message and, if it gives one, the statement's line with the place marked."""
        return cls(first if mark is None else f"{first}\n{mark}")

    @classmethod
    def several(cls, number: int) -> StatementRefused:
        """For several statements, or none."""
        return cls(f"only one statement is possible at a time, not {number}")


class FilesUnreadable(InfrastructureError):
    """Files of a table cannot be read."""

    @classmethod
    def of_query(cls, error: Exception) -> FilesUnreadable:
        """For an unknown table of a statement."""
        return cls(f"a file of the query cannot be read: {_first(error)}")

    @classmethod
    def of_table(cls, table: str, error: Exception) -> FilesUnreadable:
        """For a known table."""
        return cls(f"table {table} cannot be read: {_first(error)}")


def _first(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
