"""``ranked.<pattern>``: the best matches of each period, and of each value of FOR EACH."""

from __future__ import annotations

import pyarrow as pa

from chainlake.schemas.table import TIMESTAMP, Check, Column, Table, described

#: What identifies a row.
KEY = ("scope_kind", "scope_start", "per", "match_id")
#: The UTC day of this time owns a row: all periods that begin on a day are published together.
DAY_COLUMN = "scope_start"

_EVENT = pa.struct(
    [
        described("name", pa.string(), "Name in the pattern to which the event is bound."),
        described("event_id", pa.string(), "Hash that identifies the event, 128 bit, hex."),
        described("ts", TIMESTAMP, "Time of the event, UTC."),
    ]
)
_NUMBERS = pa.list_(pa.field("element", pa.float64()))


def ranked_table(pattern: str, source: str) -> Table:
    """The table of a pattern's best matches: docs/semantics.md#rankings-in-a-lake.

    Args:
        pattern: name of the pattern.
        source: name of its source.
    """
    return Table(
        schema="ranked",
        name=pattern,
        comment=f"The best matches of pattern {pattern} on source {source}, by period and by what FOR EACH says.",
        columns=(
            Column("scope_kind", pa.string(), "Kind of period: the word after PER, such as day or bucket.", False),
            Column(
                "scope_start", TIMESTAMP, "Start of the period, 1970 for all time; its UTC day owns the row.", False
            ),
            Column("scope_end", TIMESTAMP, "End of the period, which is not part of it; null for all time."),
            Column("per", pa.string(), "Values of FOR EACH as a JSON array; [] without.", False),
            Column("rank", pa.int64(), "Place among the matches of the period and of these values, from 1 on.", False),
            Column("score", pa.float64(), "Score; under COMBINE lex the first of its numbers.", False),
            Column("scores", _NUMBERS, "All numbers of the score: one, or under COMBINE lex one per criterion.", False),
            Column("criteria", _NUMBERS, "The criteria as they are, before NORM and MIN.", False),
            Column("match_id", pa.string(), "Of the match, as matches.<pattern> has it.", False),
            Column("decision_ts", TIMESTAMP, "When the match was decided.", False),
            Column("start_ts", TIMESTAMP, "Time of the earliest bound event.", False),
            Column("end_ts", TIMESTAMP, "Time of the latest bound event.", False),
            Column("events", pa.list_(pa.field("element", _EVENT)), "Bound events, name by name.", False),
        ),
        key=KEY,
        checks=(
            Check("rank_from_one", "rank >= 1"),
            Check("start_not_after_end", "start_ts <= end_ts"),
            Check("decided_not_before_end", "decision_ts >= end_ts"),
        ),
        day_column=DAY_COLUMN,
    )
