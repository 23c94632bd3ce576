"""The messages made from a table's change feed: what each contains, and in which order they are sent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any

from chainlake.operations.alerts.outbox import Outbox, Row

#: Columns of the feed that do not come from the table.
_OF_THE_FEED = ("change", "version", "committed_at")


def messages(outbox: Outbox, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """A message for each reported change of a row, oldest version first, in an order that never changes.

    Args:
        outbox: the definition's.
        rows: rows of the feed, including what changed rows were before.
    """
    before = {(row["version"], _id(outbox, row)): row for row in rows if row["change"] == "before"}
    changed = [row for row in rows if row["change"] != "before"]
    for row in sorted(changed, key=lambda row: (row["version"], row["change"], _id(outbox, row))):
        kind = _kind(outbox, row, before.get((row["version"], _id(outbox, row))))
        if kind is None or (kind == "withdrawn" and not outbox.alerts.withdrawn):
            continue
        yield {
            # A row that is found, withdrawn and found again makes three messages, so the version is part of the id.
            "id": f"{_id(outbox, row)}:{kind}:{row['version']}",
            "kind": kind,
            outbox.kind: outbox.name,
            "description": outbox.description,
            "source": outbox.source,
            "published": _plain(row["committed_at"]),
            "match" if outbox.kind == "pattern" else "change": {
                name: _plain(value) for name, value in row.items() if name not in _OF_THE_FEED
            },
        }


def _kind(outbox: Outbox, row: Row, was: Row | None) -> str | None:
    """What is reported of a row, or None; a row that stays but is no longer worth reporting counts as withdrawn."""
    now = outbox.is_reported(row)
    if row["change"] != "changed" or was is None:
        return str(row["change"]) if now else None
    if outbox.is_reported(was):
        return "changed" if now else "withdrawn"
    return "added" if now else None


def _id(outbox: Outbox, row: Row) -> str:
    return ":".join(str(_plain(row[column])) for column in outbox.key)


def _plain(value: Any) -> Any:
    """A value in a form that JSON can hold."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no infinities and no NaN.
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
