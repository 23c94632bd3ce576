"""The simulator's light mode: plain Python where the steps call Spark, so that a seed takes seconds.

What protects the tables, that is plans, days, fingerprints, publishing, locks and the data tables' Delta logs, is the
product's own; so are the parser, the matching kernel and the model monitor. Only what Spark computes is done by plain
loops here. ``ops`` is in memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock, patch

import pyarrow as pa
import pyarrow.compute as pc

import chainlake.lake.spark.session
from chainlake.detect import run as detect_run
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.monitor import run as monitor_run
from chainlake.quality import Verdict
from tests.replay.memory import MemoryOps


class Rows:
    """Rows with as much of a DataFrame's face as the steps need."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def select(self, *columns: str) -> Rows:
        """Some columns."""
        return Rows(self.table.select(list(columns)))

    def unionByName(self, other: Rows) -> Rows:  # noqa: N802
        """Both, one after the other."""
        return Rows(pa.concat_tables([self.table, other.table.select(self.table.column_names)]))

    def toArrow(self) -> pa.Table:  # noqa: N802
        """As Arrow."""
        return self.table

    def persist(self, *_: Any) -> Rows:
        """Nothing to keep."""
        return self

    def unpersist(self) -> None:
        """Nothing was kept."""


@contextlib.contextmanager
def light(*, ops_in_memory: bool = True) -> Iterator[None]:
    """Put the plain loops in Spark's place; files land and steps run as ever.

    Args:
        ops_in_memory: ``ops`` is no table either.
    """
    from pyspark.sql import functions

    session, spared = MagicMock(), MagicMock()
    session.sparkContext.defaultParallelism = 1
    quiet = {"spark_session": lambda *a, **k: session, "warm_up": lambda: None}
    memory = MemoryOps()
    logs: list[tuple[Any, dict[str, Any]]] = [
        (ops, {"append": memory.append, "current_table": memory.current_table}),
        (tables, {"arrow": memory.arrow, "exists": memory.exists}),
    ]
    places: list[tuple[Any, dict[str, Any]]] = [
        *(logs if ops_in_memory else ()),
        (chainlake.lake.spark.session, {"spark_session": quiet["spark_session"]}),
        (functions, {"col": lambda *_: spared}),
        (tables, {"read": _read, "read_days": _read_days}),
        (detect_run, {"audit_matches": lambda a, p, f, days: Verdict.passed(days)}),
        (monitor_run, {
            **quiet, "audit_models": lambda *a: dict.fromkeys(a[4]),
        }),
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        for module, changes in places:
            for name, value in changes.items():
                stack.enter_context(patch.object(module, name, value))
        yield


def _read(spark: Any, home: Any, schema: str, name: str, version: int | None = None) -> Rows:
    return Rows(tables.arrow(home, schema, name, version=version))


def _read_days(spark: Any, home: Any, schema: str, name: str, days: Any, **options: Any) -> Rows:
    rows = tables.arrow(home, schema, name, version=options.get("version"))
    return Rows(rows.filter(pc.is_in(rows["event_date"], value_set=pa.array(list(days), pa.date32()))))
