"""The gate of alerts.threshold: each expectation goes red on a row planted against it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from chainlake.paths import Home
from chainlake.quality import Audit
from chainlake.quality.gates.alerts import ALERTS_GATE
from chainlake.quality.gates.models import Gated, audit_models
from chainlake.schemas.models import ALERTS, METRICS

pytestmark = pytest.mark.slow

DAYS = [date(2025, 10, 1), date(2025, 10, 2)]


def alert(hour: int, day: int = 0, **values: Any) -> dict[str, Any]:
    ts = datetime(2025, 10, 1 + day, hour, tzinfo=UTC)
    return {"monitor": "m", "ts": ts, "kind": "below", "mean": 49.0, "n_collected": 3, **values}


GOOD = [alert(8), alert(9, kind="recovered", mean=50.0), alert(7, day=1), alert(9, day=1, kind="recovered", mean=51.0)]


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    root = tmp_path_factory.mktemp("alerts")
    return Audit(Home(root=root, lake=str(root / "lake"), config=root, cache=root))


def run(audit: Audit, rows: list[dict[str, Any]]) -> Mapping[date, str | None]:
    metrics = {"model": "m", "group_id": "", "rounds": 10, "rounds_skipped": 0, "carried_share": 0.0}
    measured = pa.Table.from_pylist([{**metrics, "day": day} for day in DAYS], schema=METRICS.arrow())
    staged = Gated("m", pa.Table.from_pylist(rows, schema=ALERTS.arrow()), measured, 50.0)
    return audit_models(audit, ALERTS_GATE, staged, DAYS).reasons


def test_good_rows_pass(audit: Audit) -> None:
    assert run(audit, GOOD) == dict.fromkeys(DAYS)


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        (alert(10, day=1, monitor="other"), "every row is of the monitor"),
        (alert(10, day=1, mean=50.1), "the mean is below the threshold"),
        (alert(10, day=1, kind="recovered", mean=52.0), "take turns"),
        (alert(10, day=1, n_collected=0), "at least one sensor was collected"),
        (alert(10, day=2), "a day that this run owns"),
    ],
)
def test_a_bad_row_fails_its_day(audit: Audit, planted: dict[str, Any], words: str) -> None:
    found = run(audit, [*GOOD, planted])
    assert words in (found[DAYS[1]] or "")
    if planted["ts"].date() in DAYS:
        assert found[DAYS[0]] is None
