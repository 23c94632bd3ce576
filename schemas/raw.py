"""``raw.<source>``: rows as delivered, parsed; append-only. Events are resolved from them."""

from __future__ import annotations

import pyarrow as pa

from chainlake.schemas.source import SourceLike, attribute_columns
from chainlake.schemas.table import TIMESTAMP, Column, Table


def raw_table(source: SourceLike) -> Table:
    """The raw table of ``source``: docs/semantics.md#the-ingest-step."""
    return Table(
        schema="raw",
        name=source.name,
        comment=f"Rows of source {source.name} as delivered and parsed; append-only, one load_id per file parsed.",
        columns=(
            Column("load_id", pa.string(), "One parse of one file; ops.files names the loads that count.", False),
            Column("line", pa.int64(), "Line in the file, 1-based, the header counted.", False),
            Column("entry", pa.int64(), "Position within the line where one line holds several rows, else 0.", False),
            Column("file_id", pa.string(), "Checksum of the file's content and its path fields.", False),
            Column("type", pa.string(), "Event type.", False),
            Column(source.key, pa.string(), "Key of the event's series.", False),
            Column("ts", TIMESTAMP, "Time of the event, UTC.", False),
            *attribute_columns(source),
            Column("event_date", pa.date32(), "UTC day of ts.", False),
        ),
        key=("load_id", "line", "entry"),
        partition_by=("event_date",),
    )
