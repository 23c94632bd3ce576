"""Where the events of a pattern lie, by name, time and key: counted by Spark, or on rows that are in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.partition import name_sql
from chainlake.cep.search.hindsight import Sample
from chainlake.detect.tasks.by_shuffle import ticks_column
from chainlake.detect.tasks.slices import count_cells, part_length

#: Keys that are looked at one by one; none of the others has more events than any of these.
KEYS = 10_000


@dataclass(frozen=True)
class SparkCounts:
    """Counts of the events that SQL lets through.

    Args:
        found: the candidates.
        pattern: the pattern.
    """

    found: DataFrame
    pattern: Pattern

    def _tests(self) -> list[str]:
        return [sql for branch in self.pattern.branches for sql in name_sql(branch, self.pattern.kinds).values()]

    def by_cell(self, cells: Sequence[tuple[int, int]], parts: int, key: Any = None) -> np.ndarray:
        """As ``chainlake.detect.tasks.slices.Counts``; one job."""
        ticks = ticks_column(self.pattern)
        part = F.lit(None).cast("long")
        for number, (lo, hi) in reversed(list(enumerate(cells))):
            inside = F.floor((ticks - lo) / part_length(lo, hi, parts)) + number * parts
            part = F.when((ticks >= lo) & (ticks < hi), inside).otherwise(part)
        found = self.found if key is None else self.found.where(F.col(str(self.pattern.partition_key)) == F.lit(key))
        return self._counted(found.select(part.alias("_part"), "*").where("_part IS NOT NULL"), len(cells) * parts)

    def _counted(self, found: DataFrame, parts: int) -> np.ndarray:
        tests = self._tests()
        sums = [F.count_if(F.expr(sql)).alias(f"c{i}") for i, sql in enumerate(tests)]
        table = found.groupBy("_part").agg(*sums).toArrow()
        counts = np.zeros((len(tests), parts))
        for i in range(len(tests)):
            counts[i, table["_part"].to_numpy()] = table[f"c{i}"].to_numpy()
        return counts

    def by_key(self) -> tuple[list[Any], np.ndarray]:
        """As ``chainlake.detect.tasks.slices.Counts``; one job."""
        tests = self._tests()
        sums = [F.count_if(F.expr(sql)).alias(f"c{i}") for i, sql in enumerate(tests)]
        key = F.col(str(self.pattern.partition_key))
        counted = self.found.where(key.isNotNull()).groupBy(key.alias("_key")).agg(F.count("*").alias("_rows"), *sums)
        table = counted.orderBy(F.desc("_rows"), "_key").limit(KEYS).toArrow()
        return table["_key"].to_pylist(), np.array([table[f"c{i}"].to_numpy() for i in range(len(tests))], np.float64)

    def whole(self, columns: Sequence[str]) -> pa.Table:
        """As ``chainlake.detect.order.Look``; one job."""
        return self.found.select(*columns).toArrow()

    def stretches(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        """As ``chainlake.detect.order.Look``; one job."""
        sums = [F.count_if(F.expr(sql)).alias(f"c{i}") for i, sql in enumerate(self._tests())]
        table = self.found.groupBy(_stretch(length).alias("stretch")).agg(*sums).toArrow().sort_by("stretch")
        return table["stretch"].to_numpy(), np.array([table[f"c{i}"].to_numpy() for i in range(len(sums))], np.float64)

    def drawn(self, length: int, stretches: Sequence[int], thinning: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """As ``chainlake.detect.order.Look``; one job."""
        flags = [F.expr(sql) for sql in self._tests()]
        taken = F.lit(False)
        for flag, every in zip(flags, thinning, strict=True):
            taken = taken | (flag & (F.pmod(F.xxhash64("event_id"), F.lit(every)) == 0))
        found = self.found.where(_stretch(length).isin(list(stretches)) & taken)
        named = [F.coalesce(flag, F.lit(False)).alias(f"_is{i}") for i, flag in enumerate(flags)]
        return found.select(*columns, *named).toArrow()


def _stretch(length: int) -> Column:
    return F.floor(F.unix_micros("ts") / F.lit(length)).cast("long")


@dataclass(frozen=True)
class SampleCounts:
    """Counts of events that are all in memory.

    Args:
        sample: the pattern's events.
        keys: the partition key of each row of the table that the sample was made of; None without a partition key.
    """

    sample: Sample
    keys: pa.ChunkedArray | None

    def by_cell(self, cells: Sequence[tuple[int, int]], parts: int, key: Any = None) -> np.ndarray:
        """As ``chainlake.detect.tasks.slices.Counts``."""
        times = (ts if key is None else ts[keys == self._code(key)] for ts, keys in self._events())
        return count_cells(times, cells, parts)

    def by_key(self) -> tuple[list[Any], np.ndarray]:
        """As ``chainlake.detect.tasks.slices.Counts``."""
        names = self._encoded().dictionary.to_pylist()
        counts = [np.bincount(keys[keys >= 0], minlength=len(names)) for _, keys in self._events()]
        return names, np.array(counts, np.float64)

    def _encoded(self) -> pa.DictionaryArray:
        assert self.keys is not None
        return self.keys.combine_chunks().dictionary_encode()

    def _code(self, key: Any) -> int:
        return self._encoded().dictionary.to_pylist().index(key)

    def _events(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Per name, the times and the codes of the keys of its events."""
        data = self.sample.data
        codes = np.zeros(len(data.rows), np.int64)
        if self.keys is not None:
            codes = self._encoded().indices.fill_null(-1).to_numpy()[data.rows]
        every = [those[name] for those in self.sample.candidates for name in those]
        return [(one.ts, codes[one.rows]) for one in every]
