"""``events.<source>``: one row per event, resolved from all landed files."""

from __future__ import annotations

import pyarrow as pa

from chainlake.schemas.source import SourceLike, attribute_columns
from chainlake.schemas.table import TIMESTAMP, Check, Column, Table


def events_table(source: SourceLike) -> Table:
    """The events table of ``source``: docs/semantics.md#identity-of-events."""
    return Table(
        schema="events",
        name=source.name,
        comment=f"Events of source {source.name}: a pure function of the set of landed files.",
        columns=(
            Column("event_id", pa.string(), "Hash that identifies the event, 128 bit, hex.", False),
            Column("type", pa.string(), "Event type.", False),
            Column(source.key, pa.string(), "Key of the event's series.", False),
            Column("ts", TIMESTAMP, "Time of the event, UTC.", False),
            Column("seq", pa.int64(), "Position among the events of equal type, key and ts, from 0.", False),
            *attribute_columns(source),
            Column("event_date", pa.date32(), "UTC day of ts.", False),
            Column("file_id", pa.string(), "File that the event was taken from.", True, True),
            Column("line", pa.int64(), "Line in that file.", True, True),
            Column("ingested_at", TIMESTAMP, "When the row was written.", True, True),
        ),
        key=("event_id",),
        checks=(
            Check("event_id_is_hash", "length(event_id) = 32"),
            Check("seq_not_negative", "seq >= 0"),
            Check("event_date_is_day_of_ts", "event_date = to_date(ts)"),
        ),
        partition_by=("event_date",),
    )
