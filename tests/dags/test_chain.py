"""``make run``'s order of things, against an Airflow played by a few lines."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from chainlake.errors import DefinitionError
from chainlake.local.api import ApiError, logical_date
from chainlake.local.errors import NotShipped
from chainlake.local.run.chain import Chain
from chainlake.local.run.shipped import ShippedDay, land, selected_days, shipped_days
from chainlake.paths import Home

D1, D2 = date(2025, 10, 1), date(2025, 10, 2)


class PlayedAirflow:
    """Runs by (dag_id, day); each look moves every open run one state on."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.states: dict[tuple[str, date], str] = {}
        self.created: list[str] = []
        self.fails: set[str] = set()
        self.still = 0  # looks during which nothing moves on

    def backfill(self, dag_id: str, day: date) -> None:
        if any(name == dag_id and state in ("queued", "running") for (name, _), state in self.states.items()):
            raise ApiError(409, "another backfill is running")
        source = dag_id.split("_")[1]
        landed = len(list(self.home.landing(source).glob("*")))
        self.states[dag_id, day] = "queued"
        self.created.append(f"{dag_id} {day} with {landed} files")

    def runs(self, dag_ids: Any) -> list[dict[str, Any]]:
        found = []
        self.still -= 1
        for (dag_id, day), state in self.states.items():
            if state in ("queued", "running") and self.still <= 0:
                end = "failed" if f"{dag_id} {day}" in self.fails else "success"
                self.states[dag_id, day] = "running" if state == "queued" else end
            found.append(
                {"dag_id": dag_id, "dag_run_id": f"{day}", "state": self.states[dag_id, day], "duration": 1.0}
                | {"logical_date": logical_date(day)}
            )
        return found


@pytest.fixture
def played(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[PlayedAirflow, dict[str, Any]]:
    """A source ``road`` with a model and two shipped days."""
    config = home.root / "config"
    for folder, text in (("sources", "key: detector\n"), ("models", "source: road\nstart: 2025-10-01\n")):
        (config / folder).mkdir(parents=True)
        (config / folder / "road.yaml").write_text(text)
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(config))
    files = []
    for day in (D1, D2):
        files.append(tmp_path / f"{day}.csv")
        files[-1].write_text(f"rows of {day}\n")
    plan = {"road": [ShippedDay(day, (file,)) for day, file in zip((D1, D2), files, strict=True)]}
    return PlayedAirflow(Home.from_env()), plan


def drive(airflow: PlayedAirflow, plan: dict[str, Any]) -> Chain:
    chain = Chain(airflow.home, airflow, lambda: None, plan)  # type: ignore[arg-type]
    for _ in range(60):
        if chain.ended:
            return chain
        chain.step()
    raise AssertionError(f"not ended: {[run for run in chain.runs if not run.ended]}")


def test_files_land_before_their_run_and_detection_follows_ingest(played: Any) -> None:
    airflow, plan = played
    chain = drive(airflow, plan)
    assert all(run.ok for run in chain.runs) and len(chain.runs) == 6
    order = airflow.created
    assert order[0] == "ingest_road 2025-10-01 with 1 files"
    assert [line for line in order if line.startswith("ingest")][1] == "ingest_road 2025-10-02 with 2 files"
    for day in (D1, D2):
        at = [index for index, line in enumerate(order) if str(day) in line]
        assert order[at[0]].startswith("ingest_road") and len(at) == 3
    assert chain.landed == 2


def test_until_a_detection_has_ended_only_the_first_days_are_ingested_and_detected(played: Any) -> None:
    airflow, plan = played
    for folder, text in (("sources", "key: share\n"), ("models", "source: market\nstart: 2025-10-01\n")):
        (airflow.home.config / folder / "market.yaml").write_text(text)
    plan["market"] = plan["road"]
    drive(airflow, plan)
    order = [line.rsplit(" with", 1)[0] for line in airflow.created]
    assert set(order[:4]) == {f"{step}_{source} {D1}" for step in ("ingest", "detect") for source in plan}
    assert len(order) == 12


@pytest.mark.parametrize("failed", ["ingest_road", "detect_road"])
def test_what_waits_for_the_first_detection_does_not_wait_for_one_that_fails(played: Any, failed: str) -> None:
    airflow, plan = played
    airflow.fails.add(f"{failed} {D1}")
    chain = drive(airflow, plan)
    assert [run.dag_id for run in chain.runs if run.state == "failed"] == [failed]


def test_a_failed_ingest_stops_its_source_with_the_reason(played: Any) -> None:
    airflow, plan = played
    airflow.fails.add("ingest_road 2025-10-01")
    chain = drive(airflow, plan)
    assert not any(run.ok for run in chain.runs)
    assert airflow.created == ["ingest_road 2025-10-01 with 1 files"]
    assert {run.skipped for run in chain.runs if run.dag_id == "detect_road"} == {
        f"the ingest of {day} did not succeed" for day in (D1, D2)
    }


def test_a_failed_detection_stops_nothing_else(played: Any) -> None:
    airflow, plan = played
    airflow.fails.add("detect_road 2025-10-01")
    chain = drive(airflow, plan)
    assert [(run.dag_id, run.day) for run in chain.runs if not run.ok] == [("detect_road", D1)]
    assert [run.state for run in chain.news if not run.ok] == ["failed"]


def test_again_only_the_last_day_and_what_failed(played: Any) -> None:
    airflow, plan = played
    airflow.fails.add("detect_road 2025-10-01")
    drive(airflow, plan)
    airflow.created.clear()
    airflow.fails.clear()
    chain = drive(airflow, plan)
    assert chain.landed == 0
    assert {line.rsplit(" with", 1)[0] for line in airflow.created} == {
        "ingest_road 2025-10-02",
        "detect_road 2025-10-01",
        "detect_road 2025-10-02",
        "monitor_road 2025-10-02",
    }


def test_a_run_that_is_still_going_on_is_waited_for(played: Any) -> None:
    airflow, plan = played
    airflow.states["ingest_road", D1] = "queued"  # left by a make run that was killed
    airflow.still = 5
    drive(airflow, plan)
    assert "ingest_road 2025-10-01" not in {line.rsplit(" with", 1)[0] for line in airflow.created}


def test_landing_replaces_only_what_differs(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("1\n")
    shipped = ShippedDay(D1, (file,))
    assert land(home, "road", shipped) == 1
    assert land(home, "road", shipped) == 0
    file.write_text("2\n")
    assert land(home, "road", shipped) == 1
    assert (home.landing("road") / "a.csv").read_text() == "2\n"
    assert [path.name for path in home.landing("road").iterdir()] == ["a.csv"]


def test_a_shipped_file_that_is_missing_is_named(home: Home, tmp_path: Path) -> None:
    (tmp_path / "days.yaml").write_text("sources:\n  stock:\n    days:\n      - {day: 2025-10-01, land: [no.csv]}\n")
    with pytest.raises(DefinitionError, match=r"no\.csv is missing"):
        shipped_days(home, tmp_path)


def test_shipped_days_can_be_chosen_and_what_is_not_shipped_is_named() -> None:
    home = Home.from_env()
    plan = shipped_days(home)
    assert selected_days(home, None, None) == plan
    assert selected_days(home, ["stock"], 2) == {"stock": plan["stock"][:2]}
    with pytest.raises(NotShipped, match="no data of a source 'stocks' ships") as caught:
        selected_days(home, ["sensor", "stocks"], None)
    assert caught.value.hint == "Did you mean stock?"
    for none in (0, -1):
        with pytest.raises(NotShipped, match=f"^{none} is not a number of days"):
            selected_days(home, None, none)


def test_the_shipped_days_are_those_of_the_data_folder() -> None:
    plan = shipped_days(Home.from_env())
    assert set(plan) == {"stock", "traffic", "sensor"}
    assert all(len(days) >= 3 for days in plan.values())
