"""``episodes.<pattern>``: one row per group of matches of one key that overlap or are close together."""

from __future__ import annotations

import pyarrow as pa

from chainlake.schemas.table import TIMESTAMP, Check, Column, Table

#: How many ids of an episode's matches are kept: those of the first ones.
MOST_IDS = 100


def episodes_table(pattern: str, source: str) -> Table:
    """The table of a pattern's episodes: docs/semantics.md#episodes.

    Args:
        pattern: name of the pattern.
        source: name of its source.
    """
    return Table(
        schema="episodes",
        name=pattern,
        comment=f"Episodes of pattern {pattern} on source {source}: its matches of one key that lie close together.",
        columns=(
            Column("key", pa.string(), "What the matches have in common, as text; null if it is missing."),
            Column("start_ts", TIMESTAMP, "Start of the first match.", False),
            Column("end_ts", TIMESTAMP, "Latest end of a match.", False),
            Column("decision_ts", TIMESTAMP, "End + pause + W; its UTC day owns the row.", False),
            Column("matches", pa.int64(), "Number of matches.", False),
            Column("first_match", pa.string(), "Id of the first match by (start_ts, match_id).", False),
            Column("top_match", pa.string(), "Id of the most severe match; of several, or without, the first.", False),
            Column("severity", pa.float64(), "Measure severity of the top match; null if there is none."),
            Column(
                "match_ids",
                pa.list_(pa.field("element", pa.string())),
                f"Ids of the first {MOST_IDS} matches by (start_ts, match_id).",
                False,
            ),
        ),
        key=("first_match", "decision_ts"),
        checks=(
            Check("start_not_after_end", "start_ts <= end_ts"),
            Check("decided_not_before_end", "decision_ts >= end_ts"),
            Check("has_a_match", "matches >= 1"),
        ),
    )
