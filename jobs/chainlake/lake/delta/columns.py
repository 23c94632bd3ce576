"""Whether a stored table has the columns that its definition declares, and how it gets more.

A definition can be edited after its table was made. Delta lets files be committed whose columns are not the table's,
and Spark casts what it writes into them; both silently lose values. So every writer checks here first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from chainlake.errors import InfrastructureError
from chainlake.lake.delta.log import marked, require_taken
from chainlake.lake.delta.reader import open_table
from chainlake.lake.errors import ConcurrentWriter
from chainlake.paths import Home
from chainlake.schemas.table import Column, Table

if TYPE_CHECKING:
    from deltalake import DeltaTable


@dataclass(frozen=True)
class Misfit:
    """A column in which a stored table and its definition differ.

    Args:
        name: name of the column.
        stored: as it is stored; ``None`` if it is not.
        defined: as it is defined; ``None`` if it is not.
    """

    name: str
    stored: pa.Field | None
    defined: pa.Field | None


class OtherColumns(InfrastructureError):
    """The rows to be written do not have the columns of the stored table."""

    @classmethod
    def of(cls, table: Table, wrong: Sequence[Misfit]) -> OtherColumns:
        """For rows of ``table`` and the columns that differ."""
        listed = "; ".join(f"{m.name}: stored {_type_text(m.stored)}, written {_type_text(m.defined)}" for m in wrong)
        return cls(
            f"the columns of {table.path_name} are not those of the rows to be written ({listed}); nothing was written",
            key=wrong[0].name,
            hint="Undo the edit of the definition, or give it another name.",
        )


def misfits(stored: pa.Schema, table: Table) -> list[Misfit]:
    """The columns whose name, type or nullability differ: those defined first, then those only stored.

    Columns may be in any order: every writer and reader goes by their names, and an added one comes last.
    """
    there = {field.name: field for field in stored}
    defined = {field.name: field for field in table.arrow()}
    names = [*defined, *(name for name in there if name not in defined)]
    both = [Misfit(name, there.get(name), defined.get(name)) for name in names]
    return [one for one in both if _described(one.stored) != _described(one.defined)]


def add_columns(home: Home, table: Table, columns: Sequence[Column]) -> None:
    """Give an existing table more columns, last and null in all rows, in one commit; under the lock of its writers.

    Raises:
        InfrastructureError: another writer came in between, or the store refuses.
    """
    from deltalake import Schema
    from deltalake.exceptions import CommitFailedError

    wanted = Schema.from_arrow(pa.schema([table.arrow().field(column.name) for column in columns]))
    at = open_table(home, table.schema, table.name, to_write=True)
    base = at.version()
    try:
        at.alter.add_columns(wanted.fields, commit_properties=marked("columns", 0))
    except CommitFailedError:
        require_taken(at, base)
        raise ConcurrentWriter.widening(table.path_name) from None


def require_columns(at: DeltaTable, table: Table) -> None:
    """Make sure that rows written for ``table`` fit the stored table ``at``.

    Raises:
        OtherColumns: their columns differ in name or type.
    """
    stored = pa.schema(at.schema().to_arrow())
    wrong = [one for one in misfits(stored, table) if not _same_type(one.stored, one.defined)]
    if wrong:
        raise OtherColumns.of(table, wrong)


def same_columns(stored: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether two schemas have the same names and types, in the same order."""
    return [(f.name, plain_type(f.type)) for f in stored] == [(f.name, plain_type(f.type)) for f in wanted]


def plain_type(kind: pa.DataType) -> object:
    """A type without the names and nullability that storage formats give to list elements."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return ("list", plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return ("struct", tuple((kind.field(i).name, plain_type(kind.field(i).type)) for i in range(kind.num_fields)))
    if pa.types.is_large_string(kind) or pa.types.is_string(kind) or pa.types.is_string_view(kind):
        return "string"
    return str(kind)


def _type_text(field: pa.Field | None) -> str:
    return "not at all" if field is None else str(field.type)


def _described(field: pa.Field | None) -> object:
    return None if field is None else (plain_type(field.type), field.nullable)


def _same_type(a: pa.Field | None, b: pa.Field | None) -> bool:
    return a is not None and b is not None and plain_type(a.type) == plain_type(b.type)
