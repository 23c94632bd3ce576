"""What each results table holds according to ``ops.intervals``, by definition and day."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import date

from chainlake.lake.commits.places import held_version
from chainlake.lake.delta.sums.checksums import Checksum
from chainlake.lake.records import ops
from chainlake.paths import Home
from chainlake.schemas.models import FINDINGS

_COLUMNS = ["definition", "day", "table_name", "status", "rows", "rows_checksum", "state_out", "seq"]
#: The tables that a model's day can be published to, by its kind; names of patterns are not in them.
_OF_MODELS = {table.path_name for table in FINDINGS}


@dataclass(frozen=True)
class RecordedDay:
    """A day of a definition as it was last published to a table.

    Args:
        rows: number of rows.
        sums: checksum per table, see ``rows_checksum``; ``None`` if it was published before checksums were kept.
        state_out: for a chained day, the digest of the state at its end.
        settled: whether no attempt has begun to publish it since without finishing.
    """

    rows: int
    sums: tuple[Checksum, ...] | None
    state_out: str | None
    settled: bool = True


#: (definition, day) → what was recorded.
Days = dict[tuple[str, date], RecordedDay]


def recorded_of(home: Home, schema: str, name: str) -> Days:
    """Every day that a table should hold, according to :func:`recorded_days`.

    If a later version of a match table has taken its place, but the process died before recording it, these are the
    days of that version; the next step records them before it does anything else.
    """
    held = held_version(home, name) if schema == "matches" else None
    return recorded_days(home).get(f"{schema}.{held or name}", {})


def recorded_days(home: Home) -> dict[str, Days]:
    """Table name → every day that was recorded for it and not dropped; a day that was never done there is not
    settled.

    What publishes a model's day also takes back its rows in the tables of the kinds that the model was before.
    """
    log = ops.current_table(home, "intervals", columns=_COLUMNS, as_log=True)
    found: dict[str, Days] = defaultdict(dict)
    for row in log.sort_by("seq").to_pylist():
        if row["table_name"] is None:
            continue
        days, key = found[row["table_name"]], (row["definition"], row["day"])
        former = [found[other] for other in _OF_MODELS - {row["table_name"]} if key in found.get(other, ())]
        if row["status"] == "done":
            for other in former:
                del other[key]
            text = row["rows_checksum"]
            sums = None if text is None else tuple(map(Checksum.of, text.split(" ")))
            days[key] = RecordedDay(int(row["rows"] or 0), sums, row["state_out"])
        elif row["status"] == "publishing":
            for other in former:
                other[key] = replace(other[key], settled=False)
            old = days.get(key, RecordedDay(0, None, None))
            days[key] = RecordedDay(old.rows, old.sums, old.state_out, settled=False)
        elif row["status"] == "retired" and row["rows"] == 0:
            days.pop(key, None)
        elif key not in days:
            # Its rows may have come from a table of another version, where the day was done before it failed here.
            days[key] = RecordedDay(0, None, None, settled=False)
    return dict(found)
