"""Many models in one Spark application: one day of minutes, evenly sized and skewed.

Usage: ``python -m benchmarks.monitor_spark [--models N] [--nodes K] [--minutes M] [--json FILE]`` (1000, 10, 1440).
Every model is a group of one definition: response and two features of K nodes, window of an hour, both detectors. The
*skewed* run has one group with a tenth of all nodes, the others share the rest. Timed apart: events to rounds (Spark),
and the groups (workers, states included); then the largest group by itself on the driver. Where skew serialised the
job, the skewed run would take about that much longer than the even one.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.days import day_start_us
from jobs.model_change.config import ModelConfig, parse_model
from jobs.paths import Home

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAY = date(2025, 3, 3)
MODEL = {
    "source": "made", "start": DAY, "response": "y", "features": ["u", "v"], "round": {"length": "1 min"},
    "window": {"sliding": 60}, "eps": 0.5,
}  # fmt: skip


def sizes(models: int, nodes: int, *, skewed: bool) -> list[int]:
    """Nodes per group; the same total either way."""
    if not skewed:
        return [nodes] * models
    large = models * nodes // 10
    rest, more = divmod(models * nodes - large, models - 1)
    return [large, *(rest + (i < more) for i in range(models - 1))]


def definition(counts: list[int]) -> ModelConfig:
    """One definition with a group of each size; keys are n0, n1, ..."""
    groups, at = {}, 0
    for i, count in enumerate(counts):
        groups[f"g{i}"] = [f"n{j}" for j in range(at, at + count)]
        at += count
    return parse_model({**MODEL, "groups": groups}, "made")


def events(spark: SparkSession, keys: int, minutes: int) -> DataFrame:
    """One event per key and minute; the slope of every model moves from 1 to 2 at half of the day."""
    from pyspark.sql import functions as F

    start = day_start_us(DAY) // 1_000_000
    rows = spark.range(keys * minutes)
    minute = (F.col("id") % minutes).cast("long")
    made = rows.select(
        F.col("id").cast("string").alias("event_id"),
        F.concat(F.lit("n"), F.expr(f"id div {minutes}").cast("string")).alias("key"),
        F.timestamp_seconds(F.lit(start) + minute * 60).alias("ts"),
        F.randn(1).alias("u"),
        F.randn(2).alias("v"),
        F.randn(3).alias("noise"),
        minute.alias("minute"),
    )
    slope = F.when(F.col("minute") < minutes // 2, 1.0).otherwise(2.0)
    return made.withColumn("y", slope * F.col("u") - F.col("v") + F.col("noise"))


def measure(spark: SparkSession, made: DataFrame, config: ModelConfig) -> dict[str, Any]:
    """Seconds of both phases, and of the largest group alone on the driver."""
    from pyspark import StorageLevel
    from pyspark.sql import functions as F

    from jobs.model_change.reduce_spark import reduced_frame, run_groups
    from jobs.model_change.replay import run_days

    end = DAY + timedelta(days=1)
    began = time.perf_counter()
    reduced = reduced_frame(made, config, "key").persist(StorageLevel.DISK_ONLY)
    rows = reduced.count()
    rounds = time.perf_counter()
    found = run_groups(reduced, config, DAY, end, {})
    done = time.perf_counter()
    largest = max(config.groups, key=lambda group: len(config.groups[group]))
    its = reduced.where(F.col("key").isin(*config.keys(largest))).toArrow()
    alone = time.perf_counter()
    run_days(config, largest, its, DAY, end)
    alone = time.perf_counter() - alone
    reduced.unpersist()
    changed = sum(any(row["kind"] == "change" for row in gave.found) for gave in found.values())
    return {
        "groups": len(found), "rows": rows, "reduce_s": rounds - began, "groups_s": done - rounds,
        "ms_per_group": 1000 * (done - rounds) / len(found), "largest_s": alone, "groups_with_a_change": changed,
    }  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Run both and print one line each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.monitor_spark", description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--minutes", type=int, default=1440)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    from jobs.lake.session import spark_session, stop_session

    root = Path(tempfile.mkdtemp(prefix="chainlake-monitor-"))
    home = dataclasses.replace(Home.from_env(), root=root, lake=str(root / "lake"))
    spark = spark_session(home, "monitor benchmark", long_running=True)
    slots = spark.sparkContext.defaultParallelism
    results = {}
    try:
        made = events(spark, args.models * args.nodes, args.minutes)
        for name in ("even", "skewed"):
            config = definition(sizes(args.models, args.nodes, skewed=name == "skewed"))
            found = results[name] = measure(spark, made, config)
            print(
                f"{name}: {found['groups']} models, {found['rows']:,} rows; rounds by Spark {found['reduce_s']:.1f} s, "
                f"models {found['groups_s']:.1f} s on {slots} slots = {found['ms_per_group']:.1f} ms each "
                f"(the largest alone {found['largest_s']:.1f} s); {found['groups_with_a_change']} with a change",
                flush=True,
            )
    finally:
        stop_session()
        shutil.rmtree(root, ignore_errors=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
