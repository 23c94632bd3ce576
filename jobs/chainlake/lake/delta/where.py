"""Conditions on the rows of a table, in one form that is translated for Arrow, DuckDB, Spark and delta-rs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

#: Column, operator (``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``in``, ``not in``) and value. A null satisfies ``not
#: in`` and nothing else.
Condition = tuple[str, str, Any]
#: Disjunctive normal form: rows that satisfy every condition of at least one of the lists.
Where = Sequence[Sequence[Condition]]

_COMPARED = {"=": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
_LISTED = ("in", "not in")


def expression(where: Where, schema: pa.Schema) -> pc.Expression:
    """The condition as an Arrow expression over columns of ``schema``; null for some rows that do not satisfy it."""
    found = pc.scalar(False)
    for conditions in where:
        every = pc.scalar(True)
        for condition in conditions:
            every = every & _expression(condition, schema)
        found = found | every
    return found


def _expression(condition: Condition, schema: pa.Schema) -> pc.Expression:
    name, operator, value = _checked(condition)
    column, kind = pc.field(name), schema.field(name).type
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        # Where delta-rs has rewritten a file, Arrow finds string views in it, which it cannot compare with strings.
        column, kind = column.cast(pa.string()), pa.string()
    if operator in _LISTED:
        among = column.isin(pa.array([one for one in value if one is not None], kind))
        return ~among if operator == "not in" else among
    return getattr(column, _COMPARED[operator])(pa.scalar(value, kind))


def sql(where: Where) -> str:
    """The condition as SQL that Spark understands; null for some rows that do not satisfy it."""
    return " OR ".join(
        "(" + " AND ".join(["true", *(_sql(condition) for condition in conditions)]) + ")" for conditions in where
    ) or "false"  # fmt: skip


def _sql(condition: Condition) -> str:
    name, operator, value = _checked(condition)
    column = f"`{name}`"
    if operator in _LISTED:
        listed = ", ".join(spark_literal(one) for one in value if one is not None)
        among = f"coalesce({column} IN ({listed}), false)" if listed else "false"
        return f"NOT {among}" if operator == "not in" else among
    return f"{column} {operator} {spark_literal(value)}"


def _checked(condition: Condition) -> Condition:
    if condition[1] not in (*_COMPARED, *_LISTED):
        raise ValueError(f"{condition[1]} is not an operator of a condition")
    return condition


def spark_literal(value: Any) -> str:
    """A value as Spark reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"double('{value}')"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime):
        return f"timestamp_micros({micros(value)})"
    if isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def micros(value: datetime) -> int:
    """An instant as µs since 1970; one without a zone is in this process's local time, as Spark returns it."""
    if value.tzinfo is None:
        value = value.astimezone()
    return int(pa.scalar(value, pa.timestamp("us", "UTC")).cast(pa.int64()).as_py())


def delta_literal(value: Any) -> str:
    """A date, an instant or a string as delta-rs reads it."""
    if isinstance(value, datetime):
        return f"arrow_cast({micros(value)}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    assert isinstance(value, str)
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def delta_names(names: Iterable[str], alias: str) -> dict[str, str]:
    """Each column → the same column of ``alias``, quoted for delta-rs."""
    return {f'"{name}"': f'{alias}."{name}"' for name in names}
