"""Many models in one run of the monitor step, for one day of minutes, evenly sized and skewed.

Usage: ``python -m benchmarks.monitor_spark [--models N] [--nodes K] [--large L] [--minutes M] [--json FILE]``
(1000, 10, 50, 1440). Every model is a separate file, with a response and two features on K nodes, a window of an hour
and both detectors; the source has one event per node and minute. The step is that of ``chainlake monitor``: it plans,
computes, audits and publishes. The *skewed* run has one model with L times K nodes instead of one with K. Phases are
timed, and then the large model by itself on the driver. If the others waited for the large model, the skewed run would
take longer than the even one by more than its share of rows.
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

from chainlake.days import Days, day_start_us
from chainlake.paths import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = date(2025, 3, 3)
SOURCE = """\
key: node
type: Reading
zone: UTC
attributes: {u: {type: double}, v: {type: double}, y: {type: double}}
identity: unique
on_conflict: first
formats:
  - {name: csv, glob: '*.csv', header: [ts, node, u, v, y], time: {column: ts, format: '%Y-%m-%dT%H:%M:%S'},
     map: {node: node, u: u, v: v, y: y}}
"""
MODEL = """\
source: made
start: 2025-03-03
nodes: [%s]
response: y
features: [u, v]
round: {length: 1 min}
window: {sliding: 60}
eps: 0.5
"""


def configure(home: Home, counts: list[int]) -> None:
    """Write the source, and a model file for each number of nodes; keys are n0, n1, ..."""
    for folder in ("sources", "models", "patterns"):
        (home.config / folder).mkdir(parents=True, exist_ok=True)
    (home.config / "sources" / "made.yaml").write_text(SOURCE)
    at = 0
    for i, count in enumerate(counts):
        nodes = ", ".join(f"n{j}" for j in range(at, at + count))
        (home.config / "models" / f"{home.config.name}_{i}.yaml").write_text(MODEL % nodes)
        at += count


def deliver(spark: SparkSession, home: Home, keys: int, minutes: int) -> None:
    """Write the events table as ingest leaves it; the slope of every model moves from 1 to 2 at midday."""
    from pyspark.sql import functions as F

    from chainlake.definitions.source import load_sources
    from chainlake.lake.delta import tables
    from chainlake.lake.records import ops
    from chainlake.schemas.events import events_table

    table = events_table(load_sources(home)["made"])
    tables.ensure_table(home, table)
    start = day_start_us(DAY) // 1_000_000
    # Minute by minute, as in landed files, so that a model's nodes are spread all over the table.
    minute = F.expr(f"id div {keys}")
    made = spark.range(keys * minutes).select(
        F.md5(F.col("id").cast("string")).alias("event_id"),
        F.lit("Reading").alias("type"),
        F.concat(F.lit("n"), (F.col("id") % keys).cast("string")).alias("node"),
        F.timestamp_seconds(F.lit(start) + minute * 60).alias("ts"),
        F.lit(0).cast("long").alias("seq"),
        F.randn(1).alias("u"),
        F.randn(2).alias("v"),
        F.randn(3).alias("y"),
        F.lit(DAY).alias("event_date"),
        F.lit("f").alias("file_id"),
        F.col("id").alias("line"),
        F.current_timestamp().alias("ingested_at"),
    )
    slope = F.when(F.col("line") < keys * (minutes // 2), 1.0).otherwise(2.0)
    made = made.withColumn("y", slope * F.col("u") - F.col("v") + F.col("y"))
    made.write.format("delta").mode("append").save(home.table("events", "made"))
    row = {"source": "made", "day": DAY, "status": "complete", "rows": keys * minutes, "checksum": "made"}
    version = tables.version(home, "events", "made")
    ops.append(home, "event_days", [{**row, "events_version": version}], "benchmark")


def measure(home: Home) -> dict[str, Any]:
    """Wall seconds of the step, and of its phases according to ``ops.runs``."""
    from chainlake.lake.delta import tables
    from chainlake.lake.records import ops
    from chainlake.monitoring.step import monitor

    run_id = f"benchmark-{home.config.name}"
    began = time.perf_counter()
    result = monitor(home, "made", Days.one(DAY), run_id=run_id)
    whole = time.perf_counter() - began
    phases: dict[str, set[tuple[Any, Any]]] = {}
    for row in ops.current(home, "runs", run_id=run_id):
        phases.setdefault(row["phase"], set()).add((row["started"], row["ended"]))
    changes = tables.arrow(home, "models", "changes", columns=["model", "kind"])
    mine = [row for row in changes.to_pylist() if row["model"].startswith(f"{home.config.name}_")]
    return {
        "models": result["models"], "days": result["days"], "seconds": whole,
        "ms_per_model": 1000 * whole / result["models"],
        "phases": {
            name: sum((ended - started).total_seconds() for started, ended in spans) for name, spans in phases.items()
        },
        "syncs": sum(row["kind"] == "sync" for row in mine),
        "models_with_a_change": len({row["model"] for row in mine if row["kind"] == "change"}),
        "versions": tables.version(home, "models", "metrics"),
    }  # fmt: skip


def alone(home: Home) -> float:
    """Seconds that the largest model takes on the driver, once its rounds are made."""
    from chainlake.lake.delta import tables
    from chainlake.model_change.days.definitions import load_definition
    from chainlake.model_change.days.replay import GroupRun, run_days
    from chainlake.model_change.rounds.reduce import reduce_rows

    config = load_definition(home.config / "models" / f"{home.config.name}_0.yaml")
    columns = ["event_id", "ts", "node", *config.columns]
    wanted = [("node", "in", list(config.all_keys))]
    reduced = reduce_rows(config, tables.arrow(home, "events", "made", columns=columns, filters=wanted), "node")
    began = time.perf_counter()
    run_days(GroupRun(config, "", DAY, DAY + timedelta(days=1)), reduced)
    return time.perf_counter() - began


def main(argv: list[str] | None = None) -> int:
    """Run both and print one line each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.monitor_spark", description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--large", type=int, default=50)
    parser.add_argument("--minutes", type=int, default=1440)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    from chainlake.lake.spark.session import spark_session, stop_session

    root = Path(tempfile.mkdtemp(prefix="chainlake-monitor-"))
    even, skewed = (
        dataclasses.replace(Home.from_env(), root=root, lake=str(root / "lake"), config=root / name)
        for name in ("even", "skewed")
    )
    configure(even, [args.nodes] * args.models)
    configure(skewed, [args.nodes * args.large, *([args.nodes] * (args.models - 1))])
    began = time.perf_counter()
    spark = spark_session(even, "monitor benchmark", long_running=True)
    results: dict[str, Any] = {"slots": spark.sparkContext.defaultParallelism}
    try:
        keys = args.nodes * (args.models - 1 + args.large)
        deliver(spark, even, keys, args.minutes)
        print(f"{keys * args.minutes:,} events made in {time.perf_counter() - began:.0f} s, session included")
        for name, home, nodes in (("even", even, args.nodes * args.models), ("skewed", skewed, keys)):
            found = results[name] = measure(home) | {"rows": nodes * args.minutes}
            parts = ", ".join(f"{phase} {seconds:.1f}" for phase, seconds in found["phases"].items())
            print(
                f"{name}: {found['models']} models over {found['rows']:,} rows in {found['seconds']:.1f} s ({parts}) "
                f"= {found['ms_per_model']:.0f} ms a model; {found['syncs']} synchronisations, "
                f"{found['models_with_a_change']} models with a change",
                flush=True,
            )
        results["largest_alone_s"] = alone(skewed)
        ideal = results["even"]["seconds"] * results["skewed"]["rows"] / results["even"]["rows"]
        print(
            f"skewed: the even run's time for as many rows is {ideal:.1f} s; the largest model by itself takes "
            f"{results['largest_alone_s']:.1f} s"
        )
    finally:
        stop_session()
        shutil.rmtree(root, ignore_errors=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
