"""What an ingest does if tables of its source are gone: events can be made again from raw, raw rows cannot.

Resolving a day without its raw rows would withdraw its events, so if the raw table is gone, the ingest stops before
anything is written. If the events table is gone, all days are resolved again.
"""

from __future__ import annotations

from chainlake.definitions.source import Source
from chainlake.errors import InfrastructureError
from chainlake.ingest.landing.completeness import changing_rows
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.remembered import require_known
from chainlake.paths import Home
from chainlake.schemas.ops_rows import EventDayRow

#: Prefix of the file_id of a file that is to be read again because its rows are damaged.
DAMAGED = "damaged-"


class RawGone(InfrastructureError):
    """The raw table of a source is gone."""

    @classmethod
    def of(cls, source: str, files: int) -> RawGone:
        """Args: name of the source, and how many of its files have rows there."""
        return cls(
            f"the table raw.{source}, which held the rows of {files} files of the source, is gone; nothing was written",
            hint=f"Run 'chainlake check --table raw.{source} --repair', and then this again.",
        )


def trusted_days(home: Home, source: Source) -> list[EventDayRow]:
    """The current rows of ``ops.event_days``; without an events table, no day is final.

    Raises:
        RawGone: there is no raw table, and files have rows there that are not to be read again.
        SourceForgotten: nothing is recorded about a source that was ingested into this lake.
    """
    if not tables.exists(home, "raw", source.name):
        files = ops.current(home, "files", source=source.name)
        lost = [row for row in files if row["rows_raw"] and not row["file_id"].startswith(DAMAGED)]
        if lost:
            raise RawGone.of(source.name, len(lost))
    rows = ops.current(home, "event_days", source=source.name)
    if not rows and not ops.current(home, "files", source=source.name):
        require_known(home, source.name)
    if tables.exists(home, "events", source.name) or not any(row["rows"] for row in rows):
        return rows
    return [{**row, "status": "changing", "checksum": None} for row in rows]


def note_lost_days(home: Home, source: Source, run_id: str) -> None:
    """Record, before the events table is made again, that all days are to be resolved; under the source's lock."""
    if tables.exists(home, "events", source.name):
        return
    days = [row["day"] for row in ops.current(home, "event_days", source=source.name)]
    ops.append(home, "event_days", changing_rows(source.name, days), run_id)
