"""``quarantine.<source>``: rows that did not become events, with the reason and their original text."""

from __future__ import annotations

from typing import Literal, get_args

import pyarrow as pa

from chainlake.schemas.source import SourceLike
from chainlake.schemas.table import TIMESTAMP, Check, Column, Table

#: Where it was found that a row is no event.
Stage = Literal["parse", "resolve"]
#: Why a row, or a line that should be one, cannot be used.
RowProblem = Literal[
    "columns", "quotes", "carriage_return", "long_line", "nul_byte", "bad_encoding", "bad_json",
    "missing", "unknown_type", "not_a_number", "not_a_whole_number", "not_boolean", "out_of_range",
    "bad_time", "time_unit", "time_range", "time_contradiction", "parser_error",
]  # fmt: skip
#: Why a row gives way to another one of the same event.
LostTo = Literal["conflict"]


def quarantine_table(source: SourceLike) -> Table:
    """The quarantine of ``source``: docs/semantics.md#quarantine."""
    return Table(
        schema="quarantine",
        name=source.name,
        comment=f"Rows of source {source.name} that did not become events, each with a reason.",
        columns=(
            Column("file_id", pa.string(), "Checksum of the file's content and its path fields.", False),
            Column("line", pa.int64(), "Line in the file, 1-based; 0 for the file as a whole.", False),
            Column("entry", pa.int64(), "Position within the line where one line holds several rows, else 0.", False),
            Column(
                "stage",
                pa.string(),
                "parse: the row cannot be used; resolve: it lost against another row of its event.",
                False,
            ),
            Column("reason", pa.string(), "Reason code, see docs/sources.md, Quarantine.", False),
            Column("field", pa.string(), "Attribute or column that the reason is about."),
            Column("value", pa.string(), "Its value as delivered."),
            Column("raw", pa.string(), "The line as delivered, cut at 1,000 characters."),
            Column("event_date", pa.date32(), "UTC day of the row, null if unknown."),
            Column("written_at", TIMESTAMP, "When the row was written.", True, True),
        ),
        key=("file_id", "line", "entry", "stage"),
        checks=(Check("stage_known", f"stage IN {get_args(Stage)}"),),
    )
