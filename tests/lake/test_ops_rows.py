"""Rows of ``ops`` as rooms hand them on have the columns of the tables, each of the kind that Arrow gives for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from types import NoneType
from typing import Any, Literal, NotRequired, get_args, get_origin, get_type_hints

import pyarrow as pa
import pytest

from chainlake.schemas import ops_rows
from chainlake.schemas.ops import ALL
from chainlake.schemas.table import TIMESTAMP

ROWS = {
    "files": ops_rows.FileRow,
    "waiting_files": ops_rows.WaitingFileRow,
    "event_days": ops_rows.EventDayRow,
    "rates": ops_rows.RateRow,
    "intervals": ops_rows.IntervalRow,
    "runs": ops_rows.RunRow,
    "plans": ops_rows.PlanRow,
}
KINDS: dict[pa.DataType, set[Any]] = {
    pa.string(): {str},
    pa.int64(): {int},
    pa.float64(): {float},
    pa.bool_(): {bool},
    pa.date32(): {date},
    TIMESTAMP: {datetime},
    # A map is written as a mapping and read as pairs.
    pa.map_(pa.string(), pa.string()): {Mapping[str, str], Sequence[tuple[str, str]]},
    pa.list_(pa.field("element", pa.string())): {Sequence[str]},
}
#: What appending sets.
SET = {"seq", "written_at", "run_id"}


def test_there_is_a_row_for_each_table() -> None:
    """A new table needs one."""
    assert ROWS.keys() == ALL.keys()


@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_the_columns_of_its_table(name: str) -> None:
    """A column that can be null may be missing from a row that is written; appending sets the last three."""
    hints = get_type_hints(ROWS[name], include_extras=True)
    assert [one for one in hints if one not in SET] == [c.name for c in ALL[name].columns if c.name not in SET]
    for column in ALL[name].columns:
        hint = hints[column.name]
        optional = get_origin(hint) is NotRequired
        kinds = set(get_args(get_args(hint)[0]) or get_args(hint)) if optional else {hint}
        kinds = {type(get_args(one)[0]) if get_origin(one) is Literal else one for one in kinds}
        assert optional == (column.nullable or column.name in SET)
        assert kinds - {NoneType} == KINDS[column.type] and (NoneType in kinds) == column.nullable


@pytest.mark.parametrize("name", ROWS)
def test_the_words_of_a_closed_set_are_those_that_its_column_says(name: str) -> None:
    hints, columns = get_type_hints(ROWS[name]), {column.name: column for column in ALL[name].columns}
    assert ("status" in columns) == (name in ("event_days", "intervals", "runs"))
    for column, hint in hints.items():
        if get_origin(hint) is Literal:
            said = columns[column].comment.split(":")[0].rstrip(".")
            assert sorted(re.split(r",? or |, ", said)) == sorted(get_args(hint))
        else:
            assert column != "status"
