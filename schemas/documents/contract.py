"""What readers of a table can rely on, as a data contract in the Open Data Contract Standard (ODCS)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import yaml

from chainlake.schemas.table import Column, Table, comment_of

#: The version of the standard.
API_VERSION = "v3.2.0"
_LOGICAL = (
    (pa.types.is_string, "string"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "number"),
    (pa.types.is_decimal, "number"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_list, "array"),
    (pa.types.is_struct, "object"),
    (pa.types.is_map, "map"),
)


def contract(tables: Iterable[Table], lake: str, version: str) -> dict[str, Any]:
    """The contract of some tables.

    Args:
        tables: tables of one lake.
        lake: where it is, a path or a URI.
        version: version of the package that defines them.

    Returns:
        the document, made of plain values.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": "DataContract",
        "id": "chainlake",
        "name": "Chainlake",
        "version": version,
        "status": "active",
        "description": {
            "purpose": "Event patterns and model changes found in history, with the events that they are made of.",
            "limitations": "A day's rows are final for the files that have landed: late files change them, and the "
            "change feed says how. Columns that are volatile say when or from which file a row was written.",
            "usage": "Read by SQL, Delta or Arrow; only Chainlake writes, compacts or vacuums these tables.",
        },
        "servers": [_server(lake)],
        "schema": [_table(table) for table in tables],
    }


def as_yaml(document: dict[str, Any]) -> str:
    """The document as YAML, in its own order."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def _server(lake: str) -> dict[str, Any]:
    if "://" in lake:
        return {"server": "lake", "type": "s3", "location": lake.replace("s3a://", "s3://"), "format": "delta"}
    return {"server": "lake", "type": "local", "path": lake, "format": "delta"}


def _table(table: Table) -> dict[str, Any]:
    name = f"{table.schema}.{table.name}"
    keys = ", ".join(table.key)
    unique = f"SELECT count(*) FROM (SELECT {keys} FROM {name} GROUP BY {keys} HAVING count(*) > 1)"
    rules = [_rule("unique_key", f"One row per {keys}.", unique)]
    for check in table.checks:
        query = f"SELECT count(*) FROM {name} WHERE NOT coalesce({check.sql}, true)"
        rules.append(_rule(check.name, f"Every row has {check.sql}.", query))
    return {
        "name": name,
        "physicalName": f"{table.schema}/{table.name}",
        "logicalType": "object",
        "physicalType": "table",
        "description": table.comment,
        "properties": [_column(column, table) for column in table.columns],
        "quality": rules,
    }


def _rule(name: str, description: str, query: str) -> dict[str, Any]:
    return {"name": name, "type": "sql", "description": description, "query": query, "mustBe": 0}


def _column(column: Column, table: Table) -> dict[str, Any]:
    entry = {"name": column.name, **_type(column.type), "description": column.comment, "required": not column.nullable}
    if column.name in table.key:
        entry |= {"primaryKey": True, "primaryKeyPosition": table.key.index(column.name) + 1}
    if column.name in table.partition_by:
        entry |= {"partitioned": True, "partitionKeyPosition": table.partition_by.index(column.name) + 1}
    if column.volatile:
        entry["tags"] = ["volatile"]
    return entry


def _field(field: pa.Field) -> dict[str, Any]:
    """A field of a struct, with its comment if it has one."""
    comment = comment_of(field)
    return {"name": field.name, **_type(field.type), **({} if comment is None else {"description": comment})}


def _type(kind: pa.DataType) -> dict[str, Any]:
    """The type in the standard's words, with the types inside a list, a struct or a map."""
    entry: dict[str, Any] = {
        "logicalType": next(name for fits, name in _LOGICAL if fits(kind)),
        "physicalType": str(kind),
    }
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        entry["properties"] = [_field(field) for field in fields]
    elif pa.types.is_list(kind):
        entry["items"] = _type(kind.value_type)
    elif pa.types.is_map(kind):
        entry["map"] = {"key": _type(kind.key_type), "value": _type(kind.item_type)}
    return entry
