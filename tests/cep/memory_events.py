"""Events in memory that are read as those of files are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import day_of_us, day_start_us
from chainlake.detect.feed import between, by_time
from chainlake.lake.store.event_files import TYPES


@dataclass
class MemoryEvents:
    """Events of a source.

    Args:
        table: the events.
        opened: the reads so far: day, and rows given.
    """

    table: pa.Table
    opened: list[tuple[date, int]] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.table.schema

    @property
    def rows(self) -> dict[date, int]:
        """Events of each day."""
        found: dict[date, int] = {}
        for tick in self.table["ts"].cast(pa.int64()).to_pylist():
            found[day_of_us(tick)] = found.get(day_of_us(tick), 0) + 1
        return found

    def within(self, lo: int, hi: int) -> list[date]:
        """The days that hold events with ts in ``[lo, hi)``."""
        return sorted(day for day in self.rows if day_start_us(day) < hi and day >= day_of_us(lo))

    def read(self, day: date, columns: Sequence[str], types: Iterable[str] | None, lo: int, hi: int) -> pa.Table:
        """Some events of a day, the last ones first."""
        start = day_start_us(day)
        found = between(by_time(self.table), max(lo, start), min(hi, start + 86_400_000_000)).select(columns)
        if types is not None:
            names = pa.array(sorted(types))
            found = found.filter(pc.is_in(found["type"], value_set=names))
            codes = pc.index_in(found["type"], value_set=names).combine_chunks()
            typed = pa.DictionaryArray.from_arrays(codes, names).cast(TYPES)
            found = found.set_column(found.column_names.index("type"), pa.field("type", TYPES), typed)
        self.opened.append((day, len(found)))
        return found.take(pa.array(range(len(found) - 1, -1, -1), pa.int64()))
