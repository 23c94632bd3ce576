"""Rows that monitors give have the columns of their tables, each of the kind that Arrow gives for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from types import NoneType
from typing import Any, Literal, NotRequired, get_args, get_origin, get_type_hints

import pyarrow as pa
import pytest

from chainlake.model_change.rounds import rows
from chainlake.schemas.models import ALERTS, CHANGES, COEFFICIENTS, FAULT_SCORES, LEARNERS, METRICS, ZONE_EVENTS, ZONES
from chainlake.schemas.table import TIMESTAMP, Table

ROWS: list[tuple[Table, type]] = [
    (CHANGES, rows.ChangeRow),
    (ALERTS, rows.AlertRow),
    (ZONE_EVENTS, rows.ZoneRow),
    (LEARNERS, rows.LearnerRow),
    (FAULT_SCORES, rows.FaultRow),
    (METRICS, rows.MetricRow),
]
KINDS: dict[pa.DataType, Any] = {
    pa.string(): str,
    pa.int64(): int,
    pa.float64(): float,
    pa.bool_(): bool,
    pa.date32(): date,
    TIMESTAMP: datetime,
    COEFFICIENTS: Sequence[rows.Coefficient],
    ZONES: Sequence[rows.Zone],
    pa.list_(pa.field("element", pa.string())): Sequence[str],
}


@pytest.mark.parametrize(("table", "row"), ROWS, ids=[table.name for table, _ in ROWS])
def test_a_row_has_the_columns_of_its_table(table: Table, row: type) -> None:
    """A column that can be null may be missing from a row."""
    hints = get_type_hints(row, include_extras=True)
    assert hints.keys() == {column.name for column in table.columns}
    for column in table.columns:
        hint = hints[column.name]
        optional = get_origin(hint) is NotRequired
        kind = get_args(hint)[0] if optional else hint
        assert (optional or column.name in rows.MetricFigures.__annotations__) == column.nullable
        kinds = get_args(kind) if NoneType in get_args(kind) else (kind,)
        kinds = tuple(type(get_args(one)[0]) if get_origin(one) is Literal else one for one in kinds)
        assert kinds == ((KINDS[column.type], NoneType) if column.nullable else (KINDS[column.type],))


@pytest.mark.parametrize(("kind", "part"), [(COEFFICIENTS, rows.Coefficient), (ZONES, rows.Zone)])
def test_a_part_has_the_fields_of_its_struct(kind: pa.ListType, part: type) -> None:
    """What the arrays of a row hold."""
    assert list(get_type_hints(part)) == [field.name for field in kind.value_type]
