"""The application that ``test_standalone_cluster`` runs: matches over a history of a few hundred events, which tasks
read from files and stage in others.

``python -m tests.cep.cluster_driver FILE`` writes what came of it, as JSON.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.definitions.derived import History, Series
from tests.cep import test_cut

if TYPE_CHECKING:
    from chainlake.run.tasks import Tasks

HISTORIES = (History("last3", "x", 3, 7_200_000_000),)
QUERY = """
PATTERN SEQ(A a, B b, NOT(A n))
WHERE a.k = b.k AND a.k = n.k AND n.x > 0.9 AND Corr(a.last3, b.last3) > 0.5
WITHIN 40 min
"""


def events() -> pa.Table:
    """Events of a day, many of one key."""
    table = test_cut.events(4, 600, burst=0.2, hot=0.4)
    return table.append_column("seq", pa.array([0] * len(table), pa.int64()))


def compiled() -> Pattern:
    """The pattern, over a history."""
    columns = {f.name: f.type for f in events().schema if f.name != "event_id"} | {"last3": pa.list_(pa.float64())}
    return compile_pattern(QUERY, columns=columns, series=Series(None, HISTORIES))


def found(tasks: Tasks, folder: Path) -> list[str]:
    """The matches that tasks find in a file of the events, each in its third of the day and its half of the keys."""
    from chainlake.detect.division.cut import Share, slice_of
    from chainlake.detect.feed import KeyShare
    from chainlake.detect.stage import Search, stage
    from chainlake.lake.store.event_files import EventFiles
    from chainlake.schemas.matches import matches_table
    from tests.cep.distributed import texts
    from tests.task_cases import rows_of

    pattern, table = compiled(), events()
    file = folder / "events.parquet"
    pq.write_table(table, file)
    day = test_cut.DAYS.start
    lo, hi = test_cut.DAYS.micros()
    bounds = [lo, lo + (hi - lo) // 3, hi - (hi - lo) // 3, hi]
    slices = [slice_of(pattern, own) for own in itertools.pairwise(bounds)]
    shares = [Share({0: (one,)}, KeyShare(half, 2)) for one in slices for half in range(2)]
    files = EventFiles(table.schema, {day: (str(file),)}, {day: len(table)})
    table_of = matches_table(match_shape(pattern, key="k"))
    (one,) = stage(tasks, files, "k", [Search(pattern, table_of, None, str(folder / "staged"))], shares)
    if one.failure is not None:
        raise one.failure
    return sorted(texts(pattern, [rows_of(one.paths, table_of)]))


def main(target: Path) -> None:
    """Run the application."""
    from chainlake.lake.spark.session import stop_session
    from chainlake.paths import Home
    from chainlake.run.tasks import SparkTasks

    tasks = SparkTasks(Home.from_env(), "cluster test")
    matches, context = found(tasks, target.parent), tasks.session.sparkContext
    code = tasks.map(lambda _: (__import__("os").getcwd(), __import__("chainlake").__file__), range(16))
    assert context._jsc is not None
    told = {
        "matches": matches,
        "code": sorted(set(code)),
        "executors": context._jsc.sc().getExecutorMemoryStatus().size() - 1,
    }
    target.write_text(json.dumps(told))
    stop_session()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
