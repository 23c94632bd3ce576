"""The same on real Spark: what publishing by Spark notes is what the check computes, and damages that Spark can do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chainlake.detect.step import detect
from chainlake.lake.records import ops
from chainlake.lake.upkeep.same import same_tables
from chainlake.monitoring.step import monitor
from chainlake.paths import Home
from tests.check import lakes
from tests.steps.conftest import DAY, add_pattern, stock_home, stock_lake  # noqa: F401
from tests.steps.test_validate import MODEL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PATTERN = """---
source: stock
---
PATTERN SEQ(Bar a, Bar* m, Bar b)
WHERE a.ticker = IBM AND b.ticker = IBM AND m.ticker = IBM AND a.close > a.open AND b.close > a.close
WITHIN 3 min
"""


@pytest.mark.on_spark("spark")
@pytest.mark.parametrize("large", [False, True], ids=["files", "spark"])
def test_what_spark_leaves_is_whole_and_what_it_damages_is_found(
    stock_home: Home,  # noqa: F811
    add_pattern: Callable[[str, str], Path],  # noqa: F811
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    large: bool,
) -> None:
    home = stock_home
    if large:
        monkeypatch.setenv("CHAINLAKE_ENGINE", "spark")
    add_pattern("pair", PATTERN)
    (home.config / "models").mkdir()
    (home.config / "models" / "slope.yaml").write_text(MODEL)
    assert detect(home, "stock", DAY, run_id="r1")["added"] > 0
    assert monitor(home, "stock", DAY, run_id="r2")["added"] > 1
    assert all(row["rows_checksum"] for row in ops.current(home, "intervals"))
    whole = lakes.checked(home)
    assert (whole.damage, whole.findings) == ([], [])

    before = lakes.copied(home, tmp_path / "before")
    place = f"delta.`{home.table('matches', 'pair')}`"
    if large:
        spark.sql(f"UPDATE {place} SET end_ts = start_ts WHERE start_ts < end_ts")
        (found,) = lakes.checked(home).damage
        assert "with other values" in found.what
    else:
        spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
        spark.sql(f"DELETE FROM {place} WHERE match_id < '8'")
        (found,) = lakes.checked(home).damage
        assert "features" in found.what or "deletion" in found.what.lower()
    spark.sql(f"OPTIMIZE delta.`{home.table('events', 'stock')}`")
    assert {one.table for one in lakes.checked(home).damage} == {"matches.pair"}
    result = lakes.repaired(home)
    assert result.left == [] and result.commands == ["chainlake restate --source stock"]
    assert lakes.checked(home).damage == []
    assert same_tables(before, home) == []
