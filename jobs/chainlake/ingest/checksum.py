"""The checksum of a day's events: their number, and the xor of their hashes."""

from __future__ import annotations

#: Checksum of a day without events; a day without a row in ``ops.event_days`` counts as having it, too.
EMPTY_CHECKSUM = "0:00000000000000000000000000000000"


def checksum(rows: int, first: int, second: int) -> str:
    """The checksum of a day: number of events, and xor of both 64-bit row hashes (signed) as hex."""
    mask = (1 << 64) - 1
    return f"{rows}:{first & mask:016x}{second & mask:016x}"
