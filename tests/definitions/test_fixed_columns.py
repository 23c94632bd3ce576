"""The columns that tables have beside attributes: sources, patterns and the tables mean the same ones."""

from __future__ import annotations

from types import SimpleNamespace

from chainlake.cep.language.check import FIXED_COLUMNS
from chainlake.definitions.source_keys import FIXED
from chainlake.schemas.events import events_table
from chainlake.schemas.raw import raw_table

SOURCE = SimpleNamespace(name="s", key="k", attributes=())


def test_no_attribute_is_called_like_a_column_that_tables_have_anyway() -> None:
    raw, events = ({column.name for column in of(SOURCE).columns} - {"k"} for of in (raw_table, events_table))
    assert set(FIXED) == raw | events | {"id"}
    assert FIXED_COLUMNS == events - {"type", "ts", "seq"}
