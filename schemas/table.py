"""What a table definition is made of. Types are Arrow types; the Delta side maps them
(``chainlake.lake.spark.types``)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")
_COMMENT = "comment"


def described(name: str, kind: pa.DataType, comment: str | None, *, nullable: bool = True) -> pa.Field:
    """A column, or a field of a struct, with its comment where Delta and Spark look for it; ``None`` is no comment."""
    return pa.field(name, kind, nullable=nullable, metadata=None if comment is None else {_COMMENT: comment})


def comment_of(field: pa.Field) -> str | None:
    """The comment of a column or of a field of a struct; ``None`` if it has none."""
    found = (field.metadata or {}).get(_COMMENT.encode())
    return None if found is None else found.decode()


@dataclass(frozen=True)
class Column:
    """One column.

    Args:
        name: column name.
        type: Arrow type; the fields of a struct are made by :func:`described`, with comments of their own.
        comment: what it holds, with unit; visible in ``DESCRIBE``.
        nullable: ``False`` makes it a NOT NULL constraint of the table.
        volatile: ``True`` for columns that depend on when or from which file a row was written; they are left out
            wherever tables are compared or checksummed.
    """

    name: str
    type: pa.DataType
    comment: str
    nullable: bool = True
    volatile: bool = False


@dataclass(frozen=True)
class Check:
    """A CHECK constraint: a name and a Spark SQL expression that must not be false."""

    name: str
    sql: str


@dataclass(frozen=True)
class Table:
    """One table of the lake.

    Args:
        schema: ``raw``, ``events``, ``quarantine``, ``matches``, ``ranked``, ``episodes``, ``models``, ``alerts`` or
            ``ops``.
        name: path under the schema, such as ``stock`` or ``rising/v2``.
        comment: one sentence, kept as the table's description.
        columns: the columns, in order.
        key: names of the columns that identify a row.
        checks: cheap row rules that the table itself enforces.
        partition_by: partition columns.
        day_column: for tables that are published by day, the column whose UTC day owns a row.
    """

    schema: str
    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    checks: tuple[Check, ...] = ()
    partition_by: tuple[str, ...] = ()
    day_column: str = "decision_ts"

    def arrow(self) -> pa.Schema:
        """The Arrow schema; comments are kept in the field metadata."""
        return pa.schema([described(c.name, c.type, c.comment, nullable=c.nullable) for c in self.columns])

    @property
    def column_names(self) -> list[str]:
        """Names of all columns, in order."""
        return [column.name for column in self.columns]

    @property
    def non_volatile(self) -> list[str]:
        """Names of the columns that count when tables are compared."""
        return [column.name for column in self.columns if not column.volatile]

    @property
    def volatile(self) -> list[str]:
        """Names of the columns that depend on when or from which file a row was written."""
        return [column.name for column in self.columns if column.volatile]

    @property
    def path_name(self) -> str:
        """``schema.name``."""
        return f"{self.schema}.{self.name}"
