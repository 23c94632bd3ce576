"""The lines of the DAGs that are run by hand, and how a line is run; no Spark."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.airflow_run import ranges, tasks
from jobs.days import Days
from jobs.errors import UsageError
from jobs.paths import Home
from tests.steps.history import configured, day, deliver, pattern, readings

PARAMS: dict[str, Any] = {
    "start": "2025-03-01", "end": "2025-03-05", "patterns": [], "models": [], "chunk": 2, "only_stale": False,
}  # fmt: skip


@pytest.fixture
def lab(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Four days of events, one good pattern, one broken one, a model."""
    made = configured(home, near=pattern(), wrong=pattern().replace("p.x", "p.z"))
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(made.config))
    deliver(made, {n: readings(n) for n in range(4)})
    return made


def test_patterns_run_beside_each_other_and_models_one_after_the_other(lab: Home) -> None:
    lines = ranges.backfill_lines(PARAMS)
    assert [(line["name"], len(line["applications"])) for line in lines] == [
        ("detect lab 2025-03-01 2025-03-03", 1),
        ("detect lab 2025-03-03 2025-03-05", 1),
        ("monitor lab", 2),
        ("pattern/wrong", 0),
    ]
    assert "wrong.sase" in lines[-1]["error"]
    (only,) = ranges.backfill_lines(PARAMS | {"patterns": ["near"], "chunk": 30})
    assert only["applications"][0]["definitions"] == ["near"]
    assert ranges.restate_lines({"sources": ["lab"], "chunk": 30}) == [lines[-1]]
    with pytest.raises(UsageError, match="no pattern nil"):
        ranges.backfill_lines(PARAMS | {"patterns": ["nil"]})


def test_more_lines_than_airflow_maps_are_refused(lab: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "MOST_LINES", 3)
    with pytest.raises(UsageError, match="4 tasks would be needed"):
        ranges.backfill_lines(PARAMS)


def test_a_line_runs_its_applications_in_order_and_stops_at_a_failure(
    lab: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    ran: list[Any] = []

    def run_step(step: str, source: str, days: Days, **told: Any) -> dict[str, Any]:
        ran.append((step, days, told["run_id"], told["definitions"], told["options"]))
        if len(ran) == 4:
            raise AirflowFailException("no")
        return {"days": 2, "added": 1, "changed": 0, "withdrawn": 0, "models": 1}

    monkeypatch.setattr(tasks, "run_step", run_step)
    models = ranges.backfill_lines(PARAMS)[2]
    assert ranges.run_line(models, "r.1") == {"days": 4, "added": 2, "changed": 0, "withdrawn": 0}
    span = (Days(day(0), day(2)), Days(day(2), day(4)))
    assert [(days, run_id) for _, days, run_id, *_ in ran] == [(span[0], "r.1.1"), (span[1], "r.1.2")]
    assert ran[0][3:] == (["slope"], ["--repair-horizon", "0"])
    with pytest.raises(AirflowFailException):
        ranges.run_line(models, "r.2")
    with pytest.raises(AirflowFailException, match="wrong"):
        ranges.run_line({"name": "pattern/wrong", "applications": [], "error": "wrong"}, "r")
