"""The port through which steps compute: work on many items, by Spark's executors or by a loop in this process.

A step uses Spark for nothing else. The result of an item comes back to this process, so it must be small: anything
large goes to a file, whose path comes back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

import pyarrow as pa

from chainlake.errors import ChainlakeError
from chainlake.lake.spark.lost import ProcessLost
from chainlake.lake.spark.python_workers import forget_archives
from chainlake.lake.spark.session import spark_session
from chainlake.paths import Home
from chainlake.run.shared import require_shared
from chainlake.storage.errors import store_error
from chainlake.storage.settings import carried

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")


class Tasks(Protocol):
    """What does the work."""

    @property
    def name(self) -> str:
        """``spark`` or ``process``, as recorded in ``ops.runs``."""

    @property
    def parallelism(self) -> int:
        """How many items are worked on at a time."""

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """The results of ``work`` for each item, in the order of the items.

        After a worker was lost, an item can be worked on twice, even at the same time. Only the result that comes back
        counts, so a file that ``work`` writes must get a new name in every attempt.

        Args:
            work: a function that can be pickled by value, and reads nothing that only this process has.
            items: the items, which must be small and can be pickled.

        Raises:
            ChainlakeError: the first that ``work`` raised, in the order of the items; the others were still worked on.
            ProcessLost: a worker was killed, and no other took its place.
        """


@dataclass(frozen=True)
class LocalTasks:
    """A loop in this process, for tests and the simulator."""

    name: str = field(default="process", init=False)
    parallelism: int = 1

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """See `Tasks.map`."""
        return _results([_attempt(work, item) for item in items])


@dataclass(frozen=True)
class SparkTasks:
    """One Spark task per item. The session is made by the first call that needs it.

    Args:
        home: the installation.
        app: name shown in Spark's logs.
        long_running: see :func:`chainlake.lake.spark.session.spark_session`.
    """

    home: Home
    app: str
    long_running: bool = False
    name: str = field(default="spark", init=False)

    @property
    def session(self) -> SparkSession:
        """The Spark session of this process.

        Raises:
            NotShared: a worker of a cluster does not see the folders of this process.
        """
        session = spark_session(self.home, self.app, long_running=self.long_running)
        asked = (str(session.sparkContext.applicationId), self.home.lake)
        if not (session.sparkContext.master or "local").startswith("local") and asked not in _seen:
            # Recorded before the check, since the check itself is work in this session.
            _seen.add(asked)
            try:
                require_shared(self, self.home)
            except BaseException:
                _seen.discard(asked)
                raise
        return session

    @property
    def parallelism(self) -> int:
        """Cores of all executors together, as far as Spark knows them."""
        return int(self.session.sparkContext.defaultParallelism)

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """See `Tasks.map`."""
        if not items:
            return []

        settings = carried(self.home.lake, self.home.landed_all)

        def worked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import cloudpickle

            # Workers of a cluster do not have the settings of the store.
            os.environ.update(settings)
            forget_archives()
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    gave = cloudpickle.dumps(_attempt(work, items[number]))
                    yield pa.RecordBatch.from_pydict({"number": [number], "gave": [gave]}, _GAVE)

        from pyspark import cloudpickle

        session = self.session
        try:
            numbers = session.range(0, len(items), 1, numPartitions=len(items))
            results = numbers.mapInArrow(worked, "number bigint, gave binary").toArrow()
        except Exception as error:
            lost = ProcessLost.of(error)
            if lost is None:
                raise
            raise lost from error
        found = dict(zip(results["number"].to_pylist(), results["gave"].to_pylist(), strict=True))
        return _results([cloudpickle.loads(found[number]) for number in range(len(items))])


#: Pairs of application and lake whose workers have been checked.
_seen: set[tuple[str, str]] = set()
_GAVE = pa.schema([("number", pa.int64()), ("gave", pa.binary())])


@dataclass(frozen=True)
class _Failed:
    """An error as a result of the work, as opposed to a lost worker, after which Spark tries again."""

    error: ChainlakeError


def _attempt(work: Callable[[T], R], item: T) -> R | _Failed:
    try:
        return work(item)
    except ChainlakeError as error:
        return _Failed(error)
    except OSError as error:
        known = store_error(error, "a task's files")
        if known is None:
            raise
        return _Failed(known)


def _results(gave: Sequence[R | _Failed]) -> list[R]:
    results: list[R] = []
    for one in gave:
        if isinstance(one, _Failed):
            raise one.error
        results.append(one)
    return results
