"""``matches.<pattern>``: one row per match, one struct per positive name of the pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from chainlake.schemas.table import TIMESTAMP, Check, Column, Table, described

_FIXED = (
    Column("match_id", pa.string(), "Hash of pattern name and bound event ids, 128 bit, hex.", False),
    Column("decision_ts", TIMESTAMP, "When the match was decided; its UTC day owns the row.", False),
    Column("start_ts", TIMESTAMP, "Time of the earliest bound event.", False),
    Column("end_ts", TIMESTAMP, "Time of the latest bound event.", False),
)
#: Columns that every match table has; a pattern's positive names must not be among them.
FIXED_COLUMNS = tuple(column.name for column in _FIXED)
#: The extra column of a table's differences (chainlake.lake.store); no name may be this one either.
CHANGE_COLUMN = "_op"
#: Which matches a table has, without a ranking and with one.
_WHICH = ("every match, nothing else", "those that can be among the best of a period")


@dataclass(frozen=True)
class MatchName:
    """One positive name: its struct's fields, and whether it is Kleene in any branch (then an array of structs)."""

    name: str
    kleene: bool
    fields: tuple[tuple[str, pa.DataType], ...]

    def arrow_type(self, meanings: Mapping[str, str]) -> pa.DataType:
        """Struct, or list of structs for a Kleene name; ``meanings`` are the comments of its fields."""
        struct = pa.struct([described(one, kind, meanings.get(one)) for one, kind in self.fields])
        return pa.list_(pa.field("element", struct)) if self.kleene else struct


@dataclass(frozen=True)
class MatchShape:
    """What the match table of a pattern looks like.

    Args:
        pattern: name of the pattern.
        version: 1, or higher when an edit made the output columns incompatible.
        source: name of the source.
        names: positive names in the pattern's order; their fields begin with event_id, ts, type and the key.
        counted: names for which only the number of events is kept.
        measures: computed columns, with their types.
        ranking: for a ranked pattern, the columns by which its matches are compared, each with type and comment.
        meanings: comments of the events' columns, as ``events.<source>`` has them, for the fields of the names.
    """

    pattern: str
    version: int
    source: str
    names: tuple[MatchName, ...]
    counted: tuple[str, ...] = ()
    measures: tuple[tuple[str, pa.DataType], ...] = ()
    ranking: tuple[tuple[str, pa.DataType, str], ...] = ()
    meanings: Mapping[str, str] = field(default_factory=dict)

    @property
    def table_name(self) -> str:
        """``<pattern>``, or ``<pattern>/v<version>`` from version 2 on."""
        return self.pattern if self.version == 1 else f"{self.pattern}/v{self.version}"


def matches_table(shape: MatchShape) -> Table:
    """The match table of a pattern: docs/semantics.md#match-ids."""
    return Table(
        schema="matches",
        name=shape.table_name,
        comment=f"Matches of pattern {shape.pattern} on source {shape.source}: {_WHICH[bool(shape.ranking)]}.",
        columns=(
            *_FIXED,
            *(
                Column(
                    n.name,
                    n.arrow_type(shape.meanings),
                    f"Events bound to {n.name}, by (ts, event_id)." if n.kleene else f"Event bound to {n.name}.",
                )
                for n in shape.names
            ),
            *(Column(name, pa.int64(), f"Number of events bound to {name}.") for name in shape.counted),
            *(Column(name, kind, f"Measure {name} of the pattern.") for name, kind in shape.measures),
            *(Column(name, kind, comment) for name, kind, comment in shape.ranking),
        ),
        key=("match_id", "decision_ts"),
        checks=(
            Check("match_id_is_hash", "length(match_id) = 32"),
            Check("start_not_after_end", "start_ts <= end_ts"),
            Check("decided_not_before_end", "decision_ts >= end_ts"),
        ),
    )
