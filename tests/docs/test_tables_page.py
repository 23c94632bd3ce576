"""docs/tables.md says what schemas/ says: every table and column, with a meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from chainlake.schemas.documents.page import families, main, type_name
from chainlake.schemas.table import TIMESTAMP, Column, Table, comment_of

ROOT = Path(__file__).parents[2]
TABLES = [table for _, _, tables in families() for table in tables]
COLUMNS = [pytest.param(column, id=f"{t.path_name}.{column.name}") for t in TABLES for column in t.columns]


def test_the_page_is_current(tmp_path: Path) -> None:
    assert main([str(tmp_path / "tables.md")]) == 0
    current = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert (ROOT / "docs" / "tables.md").read_text(encoding="utf-8") == current, "run 'make docs'"


def test_the_page_has_every_schema_that_tables_are_made_in() -> None:
    made = set()
    for path in (ROOT / "schemas").glob("*.py"):
        made |= set(re.findall(r'\bschema="(\w+)"', path.read_text(encoding="utf-8")))
    assert {table.schema for table in TABLES} == made


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_has_a_meaning(column: Column) -> None:
    assert column.comment[:1].strip() and column.comment.endswith(".")
    assert column.comment.rstrip(".").lower().replace(" ", "_") != column.name


def _inside(kind: pa.DataType) -> Iterator[pa.Field]:
    if pa.types.is_list(kind):
        yield from _inside(kind.value_type)
    if pa.types.is_struct(kind):
        for field in kind:
            yield field
            yield from _inside(field.type)


def test_a_field_inside_a_column_has_a_meaning() -> None:
    meanings = {
        f"{table.path_name}: {column.name}.{field.name}": comment_of(field)
        for table in TABLES
        for column in table.columns
        for field in _inside(column.type)
    }
    assert len(meanings) > 20
    assert [name for name, meaning in meanings.items() if not (meaning or "").endswith(".")] == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.path_name)
def test_a_table_has_a_meaning_and_a_key_of_its_columns(table: Table) -> None:
    assert table.comment.endswith(".")
    assert table.key and set(table.key) <= set(table.column_names)


def test_types_are_those_of_sql() -> None:
    nested = pa.list_(pa.field("element", pa.struct([pa.field("at", TIMESTAMP), pa.field("n", pa.int64())])))
    assert type_name(nested) == "array(struct(at timestamp, n long))"
    assert type_name(pa.map_(pa.string(), pa.bool_())) == "map(string, boolean)"
