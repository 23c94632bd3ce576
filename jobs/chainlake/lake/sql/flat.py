"""The flat view of a match table, for programs that understand only plain columns, in the SQL of several engines."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

#: What the name of the view ends in.
FLAT = "_flat"


@dataclass(frozen=True)
class Dialect:
    """How an engine writes what a flat view needs.

    Args:
        mark: the character around names.
        count: the number of elements of the array ``{0}``; NULL for NULL.
        first, last: its first and last element; NULL if it has none.
    """

    mark: str
    count: str
    first: str
    last: str

    def quoted(self, name: str) -> str:
        """``name`` as an identifier."""
        return self.mark + name.replace(self.mark, self.mark * 2) + self.mark


DUCKDB = Dialect('"', "len({0})", "{0}[1]", "{0}[-1]")
SPARK = Dialect("`", "array_size({0})", "try_element_at({0}, 1)", "try_element_at({0}, -1)")
TRINO = Dialect('"', "cardinality({0})", "element_at({0}, 1)", "element_at({0}, -1)")


def flat_select(rows: str, schema: pa.Schema, dialect: Dialect = DUCKDB) -> str:
    """The SELECT of :data:`FLAT`, with one row per match.

    An event ``a`` gives its fields as ``a_ts``, ``a_close``; several events give their number as ``a_count`` and the
    fields of the first and the last as ``a_first_ts``, ``a_last_ts``. A name that is already taken gets a ``_`` at its
    end, so that a column of the table never changes its meaning.

    Args:
        rows: a match table, as SQL.
        schema: the schema of that table.
        dialect: of the engine that runs it.
    """
    nested = [field for field in schema if pa.types.is_list(field.type) or pa.types.is_struct(field.type)]
    # The engines' names are case-insensitive.
    taken = {field.name.lower() for field in schema if field not in nested}

    def free(name: str) -> str:
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        return dialect.quoted(name)

    columns = []
    for field in schema:
        column = f"m.{dialect.quoted(field.name)}"
        if field not in nested:
            columns.append(column)
            continue
        events = [(column, field.name)]
        if pa.types.is_list(field.type):
            columns.append(f"{dialect.count.format(column)} AS {free(f'{field.name}_count')}")
            ends = (("first", dialect.first), ("last", dialect.last))
            events = [(template.format(column), f"{field.name}_{end}") for end, template in ends]
        kind = field.type.value_type if pa.types.is_list(field.type) else field.type
        for event, name in events if pa.types.is_struct(kind) else ():
            for one in (kind.field(i).name for i in range(kind.num_fields)):
                columns.append(f"({event}).{dialect.quoted(one)} AS {free(f'{name}_{one}')}")
    return f"SELECT {', '.join(columns)} FROM {rows} AS m"
