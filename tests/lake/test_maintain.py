"""Compaction and clean-up: same rows, pinned readers go on, old loads and files go, ten years stay small."""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from chainlake.cli.main import main
from chainlake.errors import InfrastructureError, UsageError
from chainlake.lake.commits.changes import changes
from chainlake.lake.delta import tables
from chainlake.lake.locks import file_lock
from chainlake.lake.records import ops
from chainlake.lake.upkeep.maintain import OPS_KEPT, lock_of, maintain_table
from chainlake.operations.maintain import all_tables, maintain
from chainlake.paths import Home
from tests.lake.appending import append_arrow
from tests.lake.test_publish import D1, D2, TABLE, match, publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

OLD = time.time() - 90 * 86_400


def fill(home: Home, count: int) -> None:
    """``count`` appends of one match each."""
    tables.ensure_table(home, TABLE)
    base = tables.version(home, "matches", "p") or 0
    for number in range(base + 1, base + count + 1):
        rows = pa.Table.from_pylist([match(number, D1)], schema=TABLE.arrow())
        append_arrow(home, TABLE, rows, app="p", base_version=number - 1, mark="m")


def ids(home: Home, version: int | None = None) -> list[int]:
    return sorted(int(name, 16) for name in tables.arrow(home, "matches", "p", version=version)["match_id"].to_pylist())


def age(folder: Path) -> None:
    """As if everything had been written 90 days ago."""
    for path in folder.rglob("*"):
        if path.suffix == ".json":
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            for line in lines:
                if "remove" in line:
                    line["remove"]["deletionTimestamp"] = int(OLD * 1000)
                if "commitInfo" in line:
                    line["commitInfo"]["timestamp"] = int(OLD * 1000)
            path.write_text("\n".join(map(json.dumps, lines)))
        if path.is_file():
            os.utime(path, (OLD, OLD))


def test_a_reader_pinned_within_the_retention_goes_on(home: Home) -> None:
    fill(home, 12)
    pinned = DeltaTable(home.table("matches", "p"), version=7).to_pyarrow_dataset()
    found = maintain_table(home, "matches", "p")
    assert (found.compacted, found.files, found.removed) == (12, 1, 0)
    assert pinned.count_rows() == 7 and ids(home, 7) == list(range(1, 8)) and ids(home) == list(range(1, 13))
    assert len(changes(home, "matches.p", 0).rows) == 12
    # Nothing is left to be done: no version is made.
    version = tables.version(home, "matches", "p")
    assert maintain_table(home, "matches", "p").compacted == 0 and tables.version(home, "matches", "p") == version


@pytest.mark.on_spark()
def test_spark_publishes_and_reads_after_maintenance(
    spark: SparkSession, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainlake.lake.upkeep.maintain.COMPACT_ABOVE", 0)
    publish(home, [match(1, D1), match(2, D1)], [D1])
    publish(home, [match(5, D2)], [D2])
    pinned = tables.read(spark, home, "matches", "p", version=1)
    assert maintain_table(home, "matches", "p").compacted == 2
    version = tables.version(home, "matches", "p")
    publish(home, [match(1, D1, key="other"), match(3, D1)], [D1])
    assert ids(home) == [1, 3, 5] and tables.read(spark, home, "matches", "p").count() == 3
    assert sorted(int(row.match_id, 16) for row in pinned.collect()) == [1, 2]
    feed = [(r["change"], int(r["match_id"], 16)) for r in changes(home, "matches.p", version).rows.to_pylist()]
    assert feed == [("added", 3), ("changed", 1), ("withdrawn", 2)]


def test_what_is_past_the_retention_goes_and_what_guards_the_table_stays(home: Home) -> None:
    fill(home, 12)
    folder = Path(home.table("matches", "p"))
    maintain_table(home, "matches", "p")
    (folder / "part-left-by-a-writer-that-died.parquet").write_bytes(b"x")
    for foreign in ("notes.txt", "mine/part-1.parquet", "thesis.parquet"):
        (folder / foreign).parent.mkdir(exist_ok=True)
        (folder / foreign).write_bytes(b"x")
    age(folder)
    for log in folder.glob("_delta_log/*checkpoint*"):
        log.unlink()
    (folder / "part-of-a-writer-at-work.parquet").write_bytes(b"x")
    found = maintain_table(home, "matches", "p")
    assert found.removed == 13
    left = {path.name for path in folder.glob("*.parquet")}
    assert len(left) == 3 and {"part-of-a-writer-at-work.parquet", "thesis.parquet"} < left
    assert (folder / "notes.txt").exists() and (folder / "mine" / "part-1.parquet").exists()
    assert ids(home) == list(range(1, 13))
    assert len(list(folder.glob("_delta_log/*.json"))) < 5
    # The turn of the last commit is still known: a late one of a dead attempt is refused.
    assert DeltaTable(str(folder)).transaction_version("p") == 12
    with pytest.raises(UsageError, match="is kept"):
        changes(home, "matches.p", 0)


def test_maintenance_waits_for_a_publish_and_a_publish_for_maintenance(home: Home) -> None:
    fill(home, 12)
    with file_lock(home, "table-matches.p"):
        with pytest.raises(InfrastructureError, match="table matches.p cannot be changed"):
            maintain_table(home, "matches", "p", wait_s=0.1)
        assert tables.version(home, "matches", "p") == 12
    begun, ended = threading.Event(), threading.Event()

    def write() -> None:
        with file_lock(home, "table-matches.p"):
            begun.set()
            time.sleep(0.3)
            fill(home, 1)
        ended.set()

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait()
    assert maintain_table(home, "matches", "p").compacted == 13
    assert ended.is_set() and ids(home) == list(range(1, 14))
    thread.join()
    # Where locks do not reach, what was taken from the version before the compaction is refused, and tried again.
    rows = pa.Table.from_pylist([match(99, D1)], schema=TABLE.arrow())
    with pytest.raises(InfrastructureError, match="Run this again|nothing was written"):
        append_arrow(home, TABLE, rows, app="p", base_version=13, mark="m")
    assert lock_of("events", "s") == lock_of("raw", "s") == "source-s" and lock_of("ops", "runs") == "ops"


def test_every_table_is_maintained_and_one_in_use_hides_no_other(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home, 12)
    ops.append(home, "rates", [{"source": "s", "day": D1, "type": "T", "key": "k", "events": 1}], "r")
    assert list(all_tables(home)) == [("matches", "p"), ("ops", "rates")]
    assert main(["maintain"]) == 0
    assert [r["status"] for r in ops.current(home, "runs")] == ["ok"]
    with pytest.raises(UsageError, match=r"no table matches.q\nhint: Did you mean matches.p\? "):
        maintain(home, run_id="r", only=["matches.q"])
    assert main(["maintain", "--keep-days", "0"]) == 2
    monkeypatch.setitem(maintain_table.__kwdefaults__, "wait_s", 0.1)
    with file_lock(home, "table-matches.p"), pytest.raises(InfrastructureError):
        maintain(home, run_id="r2")
    assert [r["status"] for r in ops.current(home, "runs", run_id="r2")] == ["failed"]


def test_years_of_daily_rows_stay_few_files(home: Home) -> None:
    """What is older than the retention comes to a few files however many days it was; a day's own commits come on top.

    No retention stands for years that have passed: after each day everything replaced is gone.
    """
    folder, left = Path(home.table("ops", "runs")), []
    for day in range(3):
        for number in range(15):
            row = {"source": "s", "step": "detect", "phase": f"p{number}", "definition": "", "status": "ok"}
            ops.append(home, "runs", [row], f"run-{day}")
        maintain_table(home, "ops", "runs", keep=timedelta(0))
        left.append(sum(path.is_file() for path in folder.rglob("*")))
    # Beside the files of rows, the log has a hint, a checkpoint and the entry that it stands for.
    assert max(left) <= ops.COMPACT_ABOVE + 3, left
    assert len(ops.current_table(home, "runs")) == 45
    assert OPS_KEPT == timedelta(days=1)


def test_raw_keeps_the_loads_of_current_files_only(home: Home) -> None:
    from deltalake import write_deltalake

    rows = pa.table({"load_id": ["a", "b", "dead"], "line": [1, 2, 3], "event_date": [date(2025, 1, 1)] * 3})
    write_deltalake(home.table("raw", "s"), rows, partition_by=["event_date"])
    for load in ("a", "b"):
        ops.append(home, "files", [{"source": "s", "path": "f.csv", "file_id": load, "load_id": load}], "r")
    found = maintain_table(home, "raw", "s")
    assert found.loads == 2 and tables.arrow(home, "raw", "s")["load_id"].to_pylist() == ["b"]
    assert maintain_table(home, "raw", "s").loads == 0


def test_a_table_that_is_dropped_before_its_turn_is_passed_over(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home, 1)
    names = [("matches", "dropped"), *all_tables(home)]
    monkeypatch.setattr("chainlake.operations.maintain.all_tables", lambda home: names)
    assert maintain(home, run_id="m")["tables"] == len(names) - 1 > 0


def test_a_load_that_others_have_named_takes_no_other_with_it(home: Home) -> None:
    from deltalake import write_deltalake

    odd = "x') OR ('1' = '1"
    rows = pa.table({"load_id": ["a", odd], "line": [1, 2], "event_date": [date(2025, 1, 1)] * 2})
    write_deltalake(home.table("raw", "s"), rows, partition_by=["event_date"])
    ops.append(home, "files", [{"source": "s", "path": "f.csv", "file_id": "a", "load_id": "a"}], "r")
    assert maintain_table(home, "raw", "s").loads == 1
    assert tables.arrow(home, "raw", "s")["load_id"].to_pylist() == ["a"]
