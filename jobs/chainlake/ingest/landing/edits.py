"""A source's tables, made or adapted to an edited definition before anything is written (docs/sources.md)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from chainlake.definitions.source import Source
from chainlake.definitions.source_keys import TYPES
from chainlake.definitions.yaml_lines import load_section
from chainlake.errors import DefinitionError
from chainlake.ingest.errors import UnfitEdit
from chainlake.lake.delta import tables
from chainlake.lake.delta.columns import Misfit, add_columns, misfits
from chainlake.lake.faults import around
from chainlake.paths import Home
from chainlake.schemas.events import events_table
from chainlake.schemas.quarantine import quarantine_table
from chainlake.schemas.raw import raw_table
from chainlake.schemas.table import Table


def prepare_tables(home: Home, source: Source) -> None:
    """Make the tables of ``source``, and give those that exist the columns of new attributes; under the source's lock.

    Tables with other columns are made again if they have no rows, so that a wrong type at the first try does not cost
    the source its name. If this is killed anywhere, the next call does what is missing.

    Args:
        home: the installation.
        source: the source as it is defined now.

    Raises:
        DefinitionError: the tables have columns that the definition lacks or defines differently; nothing was written.
    """
    wanted = (raw_table(source), events_table(source), quarantine_table(source))
    stored = [table for table in wanted if tables.exists(home, table.schema, table.name)]
    new: list[tuple[Table, set[str]]] = []
    wrong: dict[str, tuple[Misfit, list[str]]] = {}
    for table in stored:
        found = misfits(tables.arrow_schema(home, table.schema, table.name), table)
        added = {one.name for one in found if one.stored is None and one.defined is not None and one.defined.nullable}
        if added:
            new.append((table, added))
        for one in found:
            if one.name not in added:
                wrong.setdefault(one.name, (one, []))[1].append(table.path_name)
    replaced = {name for _, names in wrong.values() for name in names}
    if any(table.path_name in replaced and not tables.is_empty(home, table.schema, table.name) for table in stored):
        raise _refused(source, list(wrong.values()))
    for table in stored:
        if table.path_name in replaced:
            with around("ingest.columns"):
                tables.ensure_table(home, table, replace=True)
    for table, added in new:
        if table.path_name in replaced:
            continue
        with around("ingest.columns"):
            add_columns(home, table, [column for column in table.columns if column.name in added])
    for table in wanted:
        tables.ensure_table(home, table)


def _refused(source: Source, wrong: list[tuple[Misfit, list[str]]]) -> DefinitionError:
    section = load_section(Path(source.file))
    first = wrong[0][0].name
    keys = ("key",) if first == source.key else ("attributes", first)
    listed = [f"{_what(source, one)} is {_both(one)} in {' and '.join(names)}" for one, names in wrong]
    return section.placed(UnfitEdit.of(source.name, listed), *keys)


def _what(source: Source, one: Misfit) -> str:
    """The column in a definition's terms: one that can never be null and is no attribute is or was the key."""
    if one.name == source.key or (one.defined is None and one.stored is not None and not one.stored.nullable):
        return f"the key '{one.name}'"
    return f"attribute '{one.name}'"


def _both(one: Misfit) -> str:
    return f"{_kind(one.defined)} here, but {_kind(one.stored)}"


def _kind(field: pa.Field | None) -> str:
    if field is None:
        return "absent"
    name = next((name for name, kind in TYPES.items() if kind == field.type), str(field.type))
    return f"of type {name}" if field.nullable else f"of type {name} and never null"
