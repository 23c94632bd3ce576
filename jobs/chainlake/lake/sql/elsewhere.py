"""Statements that make the lake's tables known to another engine, which reads them where they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chainlake.lake.delta import tables
from chainlake.lake.records.defined.registered import registered_table
from chainlake.lake.sql.flat import FLAT, SPARK, TRINO, flat_select
from chainlake.lake.sql.scan import list_tables, literal
from chainlake.paths import Home
from chainlake.storage.resolve import storage_of

#: Name of an engine → its SQL.
ENGINES = {"spark": SPARK, "trino": TRINO}


def statements(home: Home, engine: str, schemas: Sequence[str]) -> Iterator[str]:
    """Statements that define every table and the flat view of every match table.

    In Spark, tables become views, so that no statement can write or vacuum them under these names. Trino has no name
    for a folder, so there they are registered, which writes only into its metastore.

    Args:
        home: the installation.
        engine: one of :data:`ENGINES`.
        schemas: the schemas whose tables are wanted.
    """
    quoted = ENGINES[engine].quoted
    for schema in schemas:
        names = sorted(name for name in list_tables(home, schema) if "/" not in name)
        if names:
            yield f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}"
        for name in names:
            stored = registered_table(home, name) if schema == "matches" else name
            uri = home.table(schema, stored)
            if engine == "spark":
                rows = f"delta.{quoted(as_hadoop_says(uri))}"
                yield f"CREATE OR REPLACE VIEW {quoted(schema)}.{quoted(name)} AS SELECT * FROM {rows}"
            else:
                rows = f"{quoted(schema)}.{quoted(name)}"
                place = f"local://{uri}" if storage_of(uri).on_disk else uri
                yield f"CALL system.register_table({literal(schema)}, {literal(name)}, {literal(place)})"
            if schema == "matches":
                select = flat_select(rows, tables.arrow_schema(home, schema, stored), ENGINES[engine])
                yield f"CREATE OR REPLACE VIEW {quoted(schema)}.{quoted(name + FLAT)} AS {select}"


def as_hadoop_says(place: str) -> str:
    """A path or URL of a lake as Spark takes it: Hadoop's client for ``s3://`` answers to ``s3a://`` only."""
    return re.sub("^s3://", "s3a://", place)
