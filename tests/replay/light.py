"""The simulator's light mode: plain Python where the steps call Spark, so that a seed takes seconds.

What protects the tables, that is plans, days, fingerprints, publishing, locks and the data tables' Delta logs, is the
product's own; so are the parser, the matching kernel and the model monitor. Only what Spark computes is done by plain
loops here. ``ops`` is in memory.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import pyarrow as pa
import pyarrow.compute as pc

import chainlake.lake.spark.session
from chainlake.cep.matches.rows import match_rows
from chainlake.cep.search.find import find
from chainlake.definitions.source import Source
from chainlake.detect import run as detect_run
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.store.port import Staged
from chainlake.quality import Audit, AuditResult, Verdict
from chainlake.quality import audit as auditing
from chainlake.schemas.events import events_table
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
def light(*, ops_in_memory: bool = True, audits: bool = False) -> Iterator[None]:
    """Put the plain loops in Spark's place; files land and steps run as ever.

    Args:
        ops_in_memory: ``ops`` is no table either.
        audits: ask Great Expectations, which takes longer than all else; if not, every suite passes.
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
        (detect_run, {
            **quiet, "_scan": _scan, "_derived": lambda *_: None, "_spark_counts": lambda *_: None,
            "choose_plan": lambda *_: MagicMock(), "lay_out": lambda base, *_: base, "detect_matches": _Matches,
            "write_staged": _Matches.stage, "read_staged": _read_staged,
            "record_plan": lambda *_: None, "audit_matches": lambda a, p, f, days: Verdict.passed(days),
        }),
        *([] if audits else [
            (auditing, {"warm_up": quiet["warm_up"]}),
            (Audit, {"run": lambda self, suite, df, params, label, **_: AuditResult(label, True)}),
        ]),
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


# Detect


def _scan(spark: Any, home: Any, source: Source, pinned: Any, work: Any) -> Rows:
    if pinned.version is None:
        return Rows(events_table(source).arrow().empty_table())
    return _read(spark, home, "events", source.name, pinned.version)


class _Matches:
    """The matches that the slices own; ``stage`` keeps them for :func:`_read_staged`."""

    staged: dict[str, pa.Table] = {}

    def __init__(self, events: Rows, pattern: Any, table: Any, cut: Sequence[Any], orders: Any) -> None:
        parts = [table.arrow().empty_table()]
        ticks = pc.cast(events.table["ts"], pa.int64())
        for piece in cut:
            inside = pc.and_(pc.greater_equal(ticks, piece.read[0]), pc.less(ticks, piece.read[1]))
            read = events.table.filter(inside)
            for matches in find(pattern, read, own=piece.own):
                parts.append(match_rows(pattern, read, matches, table.arrow()))
        self.rows = pa.concat_tables([part.cast(table.arrow()) for part in parts])

    def stage(self, path: str) -> None:
        """Stage them."""
        self.staged[path] = self.rows


def _read_staged(spark: Any, path: str, table: Any) -> Any:
    rows = _Matches.staged.pop(path)
    days = Counter(pc.cast(rows["decision_ts"], pa.date32(), safe=False).to_pylist())
    return SimpleNamespace(paths=[], to_publish=Staged(rows=rows), per_day=dict(days), counts={})
