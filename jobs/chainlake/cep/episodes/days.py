"""Episodes day by day: what is open at the end of a day is the state from which the next day continues.

An episode is decided when no match can join it any more: a match that begins at most a pause after its end is decided
at most ``wait`` after its own start. To decide earlier would be wrong, since a long match that is decided late may join
an episode that seemed to be over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.episodes.merge import merged, span_schema
from chainlake.cep.values.arrow import int64_scalar
from chainlake.digests import text_digest

#: The digest of a state in which nothing is open.
NOTHING_OPEN = "empty"


@dataclass(frozen=True)
class Timing:
    """When episodes are decided, in ticks.

    Args:
        pause: matches of one key that are at most this far apart are one episode.
        wait: how long after its start a match is decided, at most.
    """

    pause: int
    wait: int

    @property
    def late(self) -> int:
        """How long after its end an episode is decided."""
        return self.pause + self.wait


@dataclass(frozen=True)
class Day:
    """What a day gives.

    Args:
        decided: the episodes that are decided on it, as spans in the order of (key, start).
        open: those that are still open at its end, in the same order.
    """

    decided: pa.Table
    open: pa.Table


def episodes_of_day(timing: Timing, before: pa.Table | None, matches: Iterable[pa.Table], end: int | None) -> Day:
    """The episodes that are decided on a day, and those that stay open.

    Args:
        timing: when episodes are decided.
        before: what was open when it began; None if nothing was.
        matches: those that are decided on the day, as spans; at least one table, which may be empty.
        end: the end of the day, in ticks; None decides all.
    """
    known = [*matches, *([] if before is None else [before])]
    schema = known[0].schema
    every = merged(pa.concat_tables([one.cast(schema) for one in known]), timing.pause)
    if end is None:
        return Day(every, every.slice(0, 0))
    done = pc.less(every["end"], int64_scalar(end - timing.late))
    return Day(every.filter(done), every.filter(pc.invert(done)))


# ---- the state


def state_text(open_: pa.Table) -> str:
    """The open spans as a string, the same for equal spans, whatever led to them."""
    rows = open_.to_pylist()
    rows.sort(key=lambda row: (row["key"] is not None, row["key"], row["start"]))
    return json.dumps([_listed(row) for row in rows], ensure_ascii=False, separators=(",", ":"))


def _listed(row: dict[str, Any]) -> list[Any]:
    members = [[one["start"], one["match_id"]] for one in row.pop("members")]
    return [*row.values(), members]


def state_of(text: str, key: pa.DataType, severity: pa.DataType) -> pa.Table:
    """The open spans from their :func:`state_text`.

    Args:
        text: the text.
        key, severity: the types of these columns.
    """
    schema = span_schema(key, severity)
    return pa.Table.from_pylist(list(_rows(json.loads(text), schema.names)), schema)


def _rows(state: list[list[Any]], names: list[str]) -> Iterator[dict[str, Any]]:
    for *values, members in state:
        row = dict(zip(names, values, strict=False))
        yield {**row, "members": [{"start": start, "match_id": match_id} for start, match_id in members]}


def digest(text: str) -> str:
    """The digest of a state's text."""
    return NOTHING_OPEN if text == "[]" else text_digest(text)
