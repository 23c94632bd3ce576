"""Why a statement gets no answer."""

from __future__ import annotations

from collections.abc import Sequence

from chainlake.errors import InfrastructureError, UsageError


class OnlyReads(UsageError):
    """A statement does something else than read."""

    kind: str

    @classmethod
    def of(cls, kind: str, safe: bool) -> OnlyReads:
        """For a kind of statement; ``safe``: with ``--safe``, where fewer kinds are possible."""
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
        """There is no table at all."""
        return cls(
            f"the lake at {lake} is empty: there is no table {name} yet",
            hint="`make run` fills it with the shipped data; `chainlake ingest SOURCE FROM TO` with yours.",
        ).holding(name=name)

    @classmethod
    def needs_schema(cls, name: str, full: Sequence[str]) -> NotInTheLake:
        """Tables of that name exist, and it is written without its schema."""
        return cls(f"table {name} needs its schema", hint=f"Write {' or '.join(full)}.").holding(name=name)

    @classmethod
    def listed(cls, kind: str, name: str, known: Sequence[str]) -> NotInTheLake:
        """No table or schema of that name exists; those that do are told."""
        return cls(f"there is no {kind} {name}", hint=f"There are {', '.join(known)}.").holding(name=name)

    @classmethod
    def inside(cls, kind: str, name: str, columns: str) -> NotInTheLake:
        """No table of the statement has that column or field; ``columns`` says what they have."""
        return cls(f"there is no {kind} {name}", hint=columns).holding(name=name)

    @classmethod
    def of_many(cls, name: str, field: str) -> NotInTheLake:
        """A field is asked of something that is not one event."""
        return cls(
            f"{name} has no field {field}: it is not one event",
            hint=f"If it is an array of events, write {name}[1].{field} or unnest({name}).",
        ).holding(name=field)


class StatementRefused(UsageError):
    """A statement that DuckDB does not take."""

    @classmethod
    def of(cls, first: str, mark: str | None) -> StatementRefused:
        """For the first line that DuckDB says, and the line of the statement with the place marked, if it says so."""
        return cls(first if mark is None else f"{first}\n{mark}")

    @classmethod
    def several(cls, number: int) -> StatementRefused:
        """Several statements, or none."""
        return cls(f"one statement at a time, this is {number}")


class FilesUnreadable(InfrastructureError):
    """Files of a table cannot be read."""

    @classmethod
    def of_query(cls, error: Exception) -> FilesUnreadable:
        """For whatever table of a statement it was."""
        return cls(f"a file of the query cannot be read: {_first(error)}")

    @classmethod
    def of_table(cls, table: str, error: Exception) -> FilesUnreadable:
        """For a table."""
        return cls(f"table {table} cannot be read: {_first(error)}")


def _first(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
