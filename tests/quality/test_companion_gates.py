"""The gates of zone events, learners and fault scores: each expectation goes red on a row planted against it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from chainlake.paths import Home
from chainlake.quality import Audit
from chainlake.quality.gates.companions import GATES
from chainlake.quality.gates.models import Gated, audit_models
from chainlake.schemas.models import FAULT_SCORES, LEARNERS, METRICS, ZONE_EVENTS
from chainlake.schemas.table import Table

pytestmark = pytest.mark.slow

DAYS = [date(2025, 10, 1), date(2025, 10, 2)]
ZONE = [{"node": "a", "coverage": None, "levels": [1.0]}]


def at(hour: int, day: int) -> dict[str, Any]:
    ts = datetime(2025, 10, day, hour, tzinfo=UTC)
    return {"model": "m", "group_id": "", "ts": ts, "round": hour, "event_date": ts.date()}


def zone(hour: int, day: int = 1, kind: str = "balanced", **values: Any) -> dict[str, Any]:
    """A row as its kind has it."""
    row = at(hour, day) | {"kind": kind, "zones": None if kind == "outside" else ZONE}
    if kind != "design":
        row["collected"] = 2
    if kind in ("balanced", "outside"):
        row |= {"violators": ["a"], "facets": ["x <= 1"], "excess": 0.5}
    return row | values


def learner(hour: int, day: int = 1, kind: str = "sync", name: str = "a", **values: Any) -> dict[str, Any]:
    row = at(hour, day) | {"kind": kind, "learner": name}
    sums = {"loss": 1.0, "loss_alone": 1.0, "loss_static": 1.0, "errors": 0, "rounds": 5}
    return row | (sums if kind == "day" else {"violator": True, "divergence": 0.2}) | values


def score(machine: str, day: int = 1, **values: Any) -> dict[str, Any]:
    row = {"model": "m", "group_id": "", "day": date(2025, 10, day), "machine": machine, "rounds": 288, "v_norm": 0.5}
    return row | {"gamma": 0.1, "p": 0.5, "flagged": False} | values


GOOD: dict[str, tuple[Table, float, list[dict[str, Any]]]] = {
    "zones": (ZONE_EVENTS, 0.0, [zone(8), zone(9, kind="outside"), zone(10, kind="inside"), zone(0, 2, "design"),
                                 zone(9, 2, "outside")]),
    "learners": (LEARNERS, 0.3, [learner(8), learner(8, name="b"), learner(9, 2), learner(23, 2, "day")]),
    "scores": (FAULT_SCORES, 0.01, [score("a"), score("b", p=0.001, flagged=True), score("a", 2)]),
}  # fmt: skip


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    root = tmp_path_factory.mktemp("companions")
    return Audit(Home(root=root, lake=str(root / "lake"), config=root, cache=root))


def run(audit: Audit, name: str, more: list[dict[str, Any]]) -> dict[date, str | None]:
    table, bound, rows = GOOD[name]
    metrics = {"model": "m", "group_id": "", "rounds": 10, "rounds_skipped": 0, "carried_share": 0.0}
    measured = pa.Table.from_pylist([{**metrics, "day": day} for day in DAYS], schema=METRICS.arrow())
    staged = pa.Table.from_pylist([*rows, *more], schema=pa.schema([f.with_nullable(True) for f in table.arrow()]))
    return dict(audit_models(audit, GATES[table.path_name], Gated("m", staged, measured, bound), DAYS).reasons)


@pytest.mark.parametrize("name", GOOD)
def test_good_rows_pass(audit: Audit, name: str) -> None:
    assert run(audit, name, []) == dict.fromkeys(DAYS)


@pytest.mark.parametrize(
    ("name", "planted", "words"),
    [
        ("zones", zone(11, 2, model="other"), "every row is of the model"),
        ("zones", zone(11, 2, kind="outside"), "outside and inside take turns"),
        ("zones", zone(11, 2, violators=None), "who reported"),
        ("zones", zone(11, 2, excess=0.0), "who reported"),
        ("zones", zone(11, 2, kind="inside", zones=None), "who reported"),
        ("zones", zone(11, 2, kind="design", collected=2), "who reported"),
        ("zones", zone(9, 2, "outside"), "is unique"),
        ("zones", zone(11, 2, kind="else"), "the kind is a known one"),
        ("zones", zone(11, 2, event_date=DAYS[0]), "event_date is the UTC day"),
        ("learners", learner(11, 2, divergence=0.31), "no further apart than the radius"),
        ("learners", learner(11, 2, divergence=float("nan")), "no further apart than the radius"),
        ("learners", learner(11, 2, "day", loss=-1.0), "no loss, count or distance is negative"),
        ("learners", learner(23, 2, "day"), "is unique"),
        ("scores", score("b", 2, p=0.01, flagged=True), "flagged where p is below alpha"),
        ("scores", score("b", 2, v_norm=1.1), "no longer than 1"),
        ("scores", score("b", 2, gamma=-0.1), "gamma is not negative"),
        ("scores", score("b", 2, rounds=0), "the window has rounds"),
        ("scores", score("a", 2), "is unique"),
    ],
)
def test_a_bad_row_fails_its_day(audit: Audit, name: str, planted: dict[str, Any], words: str) -> None:
    found = run(audit, name, [planted])
    assert words in (found[DAYS[1]] or "")
    assert found[DAYS[0]] is None
