"""Which events published matches use up, from the rows of the match table alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.events.columns import ticks_of
from chainlake.cep.policy import Policy
from chainlake.digests import text_digest
from chainlake.schemas.matches import FIXED_COLUMNS


@dataclass(frozen=True)
class Consumed:
    """Events that matches have used up; an event may occur more than once.

    Args:
        ids: their ids.
        ts: their times, µs.
        decided: for each, when the match that used it up was decided, µs.
    """

    ids: pa.Array
    ts: np.ndarray
    decided: np.ndarray

    @classmethod
    def none(cls) -> Consumed:
        """No events."""
        return cls(pa.array([], pa.string()), np.zeros(0, np.int64), np.zeros(0, np.int64))

    @classmethod
    def by(cls, policy: Policy, rows: pa.Table) -> Consumed:
        """The events that the matches of a policy use up.

        Args:
            policy: the policy.
            rows: of the match table; bound events have at least ``event_id`` and ``ts``, and ``seq`` if it is known.
        """
        bound = _bound(policy, rows)
        if policy.consume == "initiator":
            order = pc.sort_indices(bound, [(name, "ascending") for name in ("match", "ts", "seq", "event_id")])
            bound = bound.take(order)
            match = bound["match"].to_numpy()
            bound = bound.filter(pa.array(np.diff(match, prepend=-1) != 0))
        decided = ticks_of(rows["decision_ts"], "decision_ts")[bound["match"].to_numpy()]
        ids = bound["event_id"].combine_chunks()
        return cls(pa.concat_arrays(ids.chunks) if isinstance(ids, pa.ChunkedArray) else ids,
                   bound["ts"].to_numpy(), decided)  # fmt: skip

    @classmethod
    def together(cls, parts: Iterable[Consumed]) -> Consumed:
        """All events of the parts."""
        every = [cls.none(), *parts]
        arrays = (np.concatenate([getattr(one, name) for one in every]) for name in ("ts", "decided"))
        return cls(pa.concat_arrays([one.ids for one in every]), *arrays)

    def since(self, lo: int) -> Consumed:
        """The events at or after a time, µs."""
        return self._only(self.ts >= lo)

    def before(self, time: int) -> Consumed:
        """The events that were used up before a time, µs."""
        return self._only(self.decided < time)

    def digest(self) -> str | None:
        """A digest of which events these are; None if there are none."""
        if not len(self.ids):
            return None
        lines = sorted({f"{ts} {one}" for ts, one in zip(self.ts.tolist(), self.ids.to_pylist(), strict=True)})
        return text_digest("\n".join(lines))

    def _only(self, some: np.ndarray) -> Consumed:
        return self if some.all() else Consumed(self.ids.filter(pa.array(some)), self.ts[some], self.decided[some])


def consuming_columns(policy: Policy, schema: pa.Schema) -> list[str]:
    """The columns of a match table whose events are used up, or one of which is the initiator."""
    names = [field.name for field in schema if field.name not in FIXED_COLUMNS and _is_bound(field.type)]
    return [name for name in names if isinstance(policy.consume, str) or name in policy.consume]


def _bound(policy: Policy, rows: pa.Table) -> pa.Table:
    """The events that may be used up, one per row, with the number of their match."""
    parts = [pa.table({name: pa.array([], kind) for name, kind in _BOUND.items()})]
    for name in consuming_columns(policy, rows.schema):
        column = rows[name].combine_chunks()
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
        match = pa.array(np.arange(len(column)))
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            match, column = pc.list_parent_indices(column), pc.list_flatten(column)
        there = column.is_valid()
        column, match = column.filter(there), match.filter(there)
        fields = [column.type.field(i).name for i in range(column.type.num_fields)]
        seq = pc.fill_null(column.field("seq"), 0) if "seq" in fields else pa.array(np.zeros(len(column), np.int64))
        ts = pa.array(ticks_of(column.field("ts"), "ts"))
        cells = {"match": match, "ts": ts, "seq": seq, "event_id": column.field("event_id")}
        parts.append(pa.table({name: cells[name].cast(kind) for name, kind in _BOUND.items()}))
    return pa.concat_tables(parts)


def _is_bound(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else kind
    return bool(pa.types.is_struct(inner))


_BOUND = {"match": pa.int64(), "ts": pa.int64(), "seq": pa.int64(), "event_id": pa.string()}
