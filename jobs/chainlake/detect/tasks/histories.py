"""History columns on Spark: computed on the scanned events, once for all patterns that use them (design §5).

Events are put side by side by key and stretch of time, each stretch with the events before it that its histories can
reach back to, and one Python function computes the lists, the one that ``jobs match`` uses on files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, StructField, StructType

from chainlake.cep.events.dataset import ticks_of
from chainlake.cep.events.history import LIST, add_histories
from chainlake.days import US_PER_DAY
from chainlake.definitions.derived import History

#: Events that are collected before their histories are computed.
ROWS = 200_000
#: A stretch is so many times as long as its histories reach back, so that few events are sent twice.
_LONGER = 8


def with_histories(events: DataFrame, key: str, histories: Sequence[History]) -> DataFrame:
    """``events`` with a column per history.

    Args:
        events: event_id, type, ts, seq, the key and the attributes; from as far back as histories reach.
        key: the source's key column.
        histories: the columns to add.
    """
    reach = max(one.reach_us for one in histories)
    length = max(US_PER_DAY, _LONGER * reach)
    ticks = F.unix_micros("ts")
    own, last = (F.floor(t / F.lit(length)) for t in (ticks, ticks + reach))
    copied = events.withColumn("_stretch", F.explode(F.sequence(own, last)))
    copied = copied.withColumn("_own", F.col("_stretch") == own)
    sent = copied.repartition("_stretch", key).sortWithinPartitions("_stretch", key, "ts", "type", "seq", "event_id")
    schema = StructType([*events.schema.fields, *(StructField(h.name, ArrayType(DoubleType())) for h in histories)])

    def compute(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        return stream(batches, key, histories, reach)

    return sent.mapInArrow(compute, schema)


def stream(
    batches: Iterable[pa.RecordBatch], key: str, histories: Sequence[History], reach: int, rows: int = ROWS
) -> Iterator[pa.RecordBatch]:
    """Batches sorted by (``_stretch``, key, ts, type, seq, event_id), with histories, without the copies.

    Args:
        batches: the events, ``_stretch``, and ``_own``, false for copies that are there for others' histories.
        key: the key column.
        histories: the columns to add.
        reach: how far back they reach, in microseconds.
        rows: events to collect before histories are computed.
    """
    waiting: list[pa.RecordBatch] = []
    enough = rows
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= enough:
            table = pa.Table.from_batches(waiting)
            yield from _computed(table, key, histories)
            tail = _tail(table, key, reach)
            waiting, enough = tail.to_batches(), max(rows, 2 * len(tail))
    if waiting:
        yield from _computed(pa.Table.from_batches(waiting), key, histories)


def _computed(table: pa.Table, key: str, histories: Sequence[History]) -> Iterator[pa.RecordBatch]:
    found = add_histories(table, ["_stretch", key], histories).filter(table["_own"])
    found = found.drop_columns(["_stretch", "_own"])
    assert all(found.schema.field(one.name).type == LIST for one in histories)
    yield from found.to_batches()


def _tail(table: pa.Table, key: str, reach: int) -> pa.Table:
    """The events that later ones of the same stretch and key can still reach back to, as copies."""
    ts = ticks_of(table["ts"], "ts")
    keep = ts >= ts[-1] - reach
    for name in ("_stretch", key):
        # An event without a key has no history, and none of it is needed.
        keep &= pc.fill_null(pc.equal(table[name], table[name][-1]), False).to_numpy()
    found = table.filter(pa.array(keep))
    copies = pa.array(np.zeros(len(found), bool))
    return found.set_column(found.column_names.index("_own"), "_own", copies)
