"""Rows of ``ops`` as rooms hand them on have the columns of the tables, each of the kind that Arrow gives for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from types import NoneType
from typing import Any, Literal, NotRequired, get_args, get_origin, get_type_hints

import pyarrow as pa
import pytest

from chainlake.paths import PROJECT
from chainlake.schemas import ops_rows
from chainlake.schemas.ops import ALL
from chainlake.schemas.quarantine import LostTo, RowProblem, Stage
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


def words_of(hint: Any) -> set[str]:
    """Those of a closed set; none of any other type."""
    return {word for one in (hint, *get_args(hint)) if get_origin(one) is Literal for word in get_args(one)}


@pytest.mark.parametrize("name", ROWS)
def test_the_words_of_a_closed_set_are_those_that_its_column_says(name: str) -> None:
    """In a list such as 'a, b or c', one of those of the comment."""
    hints = get_type_hints(ROWS[name])
    for column in ALL[name].columns:
        lists = [
            set(re.split(r", | or ", one)) for one in re.findall(r"\b\w+(?:, \w+)* or \w+(?=[.:;])", column.comment)
        ]
        words = words_of(hints[column.name])
        explained = {one for one in words if re.search(rf"(?:^|; ){one}: ", column.comment)}
        assert not words or words - explained in lists, column.name
        assert words or not any(one <= CLOSED for one in lists), f"{column.name}: a type for the words"


#: The words of all closed sets: a column that lists some of them is of one.
CLOSED = {word for row in ROWS.values() for hint in get_type_hints(row).values() for word in words_of(hint)}


def test_the_closed_sets_are_those_of_these_columns() -> None:
    found = {
        f"{name}.{key}" for name, row in ROWS.items() for key, hint in get_type_hints(row).items() if words_of(hint)
    }
    assert found == {
        "files.outcome", "event_days.status", "intervals.status", "runs.step", "runs.phase", "runs.status",
        "runs.engine", "plans.how",
    }  # fmt: skip


def section(page: str, title: str) -> str:
    found = re.search(
        rf"^## {title}\n(.*?)(?=^## |\Z)", (PROJECT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE
    )
    assert found is not None
    return found[1]


def test_the_page_of_sources_explains_each_word() -> None:
    """Of rows that go to quarantine, and of files that are not read."""
    files = {
        word for line in section("sources.md", "Files that are not read").splitlines() if line.startswith("| `")
        for word in re.findall(r"`(\w+)`", line.split(" | ")[0])
    }  # fmt: skip
    assert files == set(get_args(ops_rows.FileOutcome))
    rows = [line.split(" | ")[0] for line in section("sources.md", "Quarantine").splitlines() if line.startswith("| ")]
    told = {stage: {word for line in rows if line.startswith(f"| {stage}") for word in re.findall(r"`(\w+)`", line)}
            for stage in get_args(Stage)}  # fmt: skip
    assert told == {"parse": set(get_args(RowProblem)), "resolve": set(get_args(LostTo))}
