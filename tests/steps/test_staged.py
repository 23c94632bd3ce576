"""Staged matches: rows and reports apart, and the same rows whichever way they are read."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chainlake.detect.staged as staged_module
from chainlake.detect.staged import Staged, folder_of_matches, read_staged, write_staged
from chainlake.detect.tasks.worker import REPORT
from chainlake.errors import LimitExceeded
from chainlake.lake.spark.types import frame_of
from chainlake.schemas.matches import MatchName, MatchShape, matches_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = matches_table(MatchShape("p", 1, "s", (MatchName("a", True, (("event_id", pa.string()),)),)))
PLAIN = pa.schema([pa.field(f.name, f.type) for f in TABLE.arrow()])
COUNTS = {"evaluations": 5, "evaluations_neg": 2, "evaluations_pre": 1}


def row(n: int) -> dict[str, Any]:
    at = datetime(1969, 12, 31, 23, 59, 58, tzinfo=UTC) + timedelta(seconds=n)
    ends = {"decision_ts": at, "start_ts": at, "end_ts": at}
    return {"match_id": f"{n:032x}", **ends, "a": [{"event_id": str(n)}] * (n % 3)}


def found(spark: SparkSession, rows: list[dict[str, Any]], *reports: dict[str, Any]) -> DataFrame:
    """As workers give it: rows, and reports behind them."""
    schema = pa.unify_schemas([PLAIN, REPORT])
    lines = [*rows, *({REPORT.names[0]: json.dumps(report)} for report in reports)]
    return frame_of(spark, pa.Table.from_pylist(lines, schema=schema))


def read(spark: SparkSession, path: str) -> tuple[list[dict[str, Any]], Staged]:
    staged = read_staged(spark, path, TABLE)
    return staged.frame.toArrow().sort_by("match_id").cast(PLAIN).to_pylist(), staged


def test_rows_are_the_same_whichever_way_they_are_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(n) for n in range(5)]
    per_day = {date(1969, 12, 31): 2, date(1970, 1, 1): 3}
    write_staged(found(spark, rows, COUNTS, COUNTS), str(tmp_path / "out"))
    for path, small in [(str(tmp_path / "out"), 5), (str(tmp_path / "out"), 4), ((tmp_path / "out").as_uri(), 5)]:
        monkeypatch.setattr(staged_module, "SMALL_ROWS", small)
        plain, staged = read(spark, path)
        assert plain == pa.Table.from_pylist(rows, schema=PLAIN).to_pylist()
        assert staged.per_day == per_day and staged.counts == {name: 2 * n for name, n in COUNTS.items()}
        if "://" in path:
            assert staged.to_publish.paths == (folder_of_matches(path),)
            continue
        assert staged.paths is not None
        in_files = pa.concat_tables([pq.ParquetFile(one).read() for one in staged.paths])
        assert in_files.schema.equals(PLAIN) and len(in_files) == 5
        assert staged.to_publish.paths == tuple(staged.paths)
        assert (staged.rows is None) == (small < 5)


def test_no_match_and_an_error_of_a_worker(spark: SparkSession, tmp_path: Path) -> None:
    write_staged(found(spark, [], COUNTS), str(tmp_path / "none"))
    plain, staged = read(spark, str(tmp_path / "none"))
    assert (plain, staged.per_day, staged.rows is not None and len(staged.rows)) == ([], {}, 0)
    error = {"error": "LimitExceeded", "what": "too many", "details": {}}
    write_staged(found(spark, [row(1)], COUNTS, error), str(tmp_path / "error"))
    for path in (str(tmp_path / "error"), (tmp_path / "error").as_uri()):
        with pytest.raises(LimitExceeded, match="too many"):
            read_staged(spark, path, TABLE)
