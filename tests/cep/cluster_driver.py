"""The application that ``test_standalone_cluster`` runs: histories and matches of a few hundred events, from rows that
Spark has, and without histories from files that the tasks read and write.

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

from chainlake.cep import Pattern, compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.definitions.derived import History
from tests.cep import test_slices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORIES = (History("last3", "x", 3, 7_200_000_000),)
QUERY = """
PATTERN SEQ(A a, B b, NOT(A n))
WHERE a.k = b.k AND a.k = n.k AND n.x > 0.9 AND Corr(a.last3, b.last3) > 0.5
WITHIN 40 min
"""


IN_FILES = "PATTERN SEQ(A a, B b) WHERE a.k = b.k AND a.x < b.x WITHIN 40 min"


def events() -> pa.Table:
    """Events of a day, many of one key."""
    table = test_slices.events(4, 600, burst=0.2, hot=0.4)
    return table.append_column("seq", pa.array([0] * len(table), pa.int64()))


def compiled(query: str = QUERY) -> Pattern:
    """The pattern, by default the one over a history."""
    columns = {f.name: f.type for f in events().schema if f.name != "event_id"} | {"last3": pa.list_(pa.float64())}
    return compile_pattern(query, columns=columns, histories=HISTORIES)


def found_in_files(spark: SparkSession, folder: Path) -> list[str]:
    """The matches that tasks find in a file of the events, each in its third of the day."""
    from chainlake.detect.tasks.by_files import Search, stage_matches
    from chainlake.detect.tasks.slices import Slice
    from chainlake.lake.delta.event_files import EventFiles
    from chainlake.schemas.matches import matches_table
    from tests.cep.distributed import bound

    pattern, table = compiled(IN_FILES), events()
    file = folder / "events.parquet"
    pq.write_table(table, file)
    day = test_slices.DAY.start
    lo, hi = test_slices.DAY.micros()
    bounds = [lo, lo + (hi - lo) // 3, hi - (hi - lo) // 3, hi]
    slices = [Slice(n, own, pattern.read_range(*own)) for n, own in enumerate(itertools.pairwise(bounds))]
    files = EventFiles(table.schema, {day: (str(file),)}, {day: len(table)})
    table_of = matches_table(match_shape(pattern, key="k"))
    stage_matches(spark, files, [Search(pattern, table_of, [[one] for one in slices], None, str(folder / "staged"))])
    rows = pq.read_table(folder / "staged").to_pylist()
    return sorted(json.dumps(bound(pattern, row), sort_keys=True) for row in rows)


def main(target: Path) -> None:
    """Run the application."""
    from chainlake.cep.events.history import add_histories
    from chainlake.cep.search.hindsight import sample_of
    from chainlake.detect.counts.spark_counts import SampleCounts
    from chainlake.detect.tasks.by_shuffle import count_reports, detect_matches
    from chainlake.detect.tasks.histories import with_histories
    from chainlake.detect.tasks.slices import Estimate, lay_out, runs
    from chainlake.lake.spark.session import spark_session, stop_session
    from chainlake.paths import Home
    from chainlake.schemas.matches import matches_table
    from tests.cep.distributed import bound

    spark = spark_session(Home.from_env(), "cluster test")
    pattern, table = compiled(), events()
    sample = sample_of(pattern, add_histories(table, ["k"], HISTORIES))
    orders = tuple(model.best() for model in sample.models)
    estimate = Estimate(pattern, sample.models, orders, ({},) * len(orders))
    layout = lay_out(runs(pattern, list(test_slices.DAY)), estimate, SampleCounts(sample, table["k"]), 1, not_cut=0.0)
    frame = with_histories(spark.createDataFrame(table).repartition(2), "k", HISTORIES)
    rows = (
        detect_matches(frame, pattern, matches_table(match_shape(pattern, key="k")), layout, orders)
        .toArrow()
        .to_pylist()
    )
    count_reports(row["#report"] for row in rows if row["#report"] is not None)
    matches = sorted(json.dumps(bound(pattern, row), sort_keys=True) for row in rows if row["#report"] is None)
    context = spark.sparkContext
    code = context.parallelize(range(16), 16).map(
        lambda _: (__import__("os").getcwd(), __import__("chainlake").__file__)
    )
    assert context._jsc is not None
    found = {
        "matches": matches,
        "in_files": found_in_files(spark, target.parent),
        "code": sorted(code.distinct().collect()),
        "executors": context._jsc.sc().getExecutorMemoryStatus().size() - 1,
    }
    target.write_text(json.dumps(found))
    stop_session()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
