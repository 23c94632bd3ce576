"""The scheduler starts last, when the API server answers tasks: one that it starts earlier would lose a try."""

from __future__ import annotations

import pytest

from chainlake.errors import InfrastructureError
from chainlake.local import launcher
from chainlake.local.api import ApiUnreachable
from chainlake.local.launcher import Airflow
from chainlake.paths import Home


class Components:
    """Notes what is started, restarts nothing."""

    def __init__(self, events: list[str]) -> None:
        self._events = events

    def start(self, name: str) -> None:
        self._events.append(f"start {name}")

    def tick(self, before_restart: object) -> None:
        self._events.append("look")


class Api:
    """Answers tasks at the third time; then everything is healthy."""

    def __init__(self, events: list[str]) -> None:
        self._events = events
        self._asked = 0

    def warm_up(self) -> None:
        self._asked += 1
        if self._asked < 3:
            raise ApiUnreachable("not yet")
        self._events.append("the API answers")


@pytest.fixture
def events() -> list[str]:
    return []


@pytest.fixture
def airflow(home: Home, events: list[str]) -> Airflow:
    started = Airflow(home)
    started._components = Components(events)  # type: ignore[assignment]
    started.api = Api(events)  # type: ignore[assignment]
    return started


def test_the_scheduler_waits_for_the_api_server(airflow: Airflow, events: list[str]) -> None:
    airflow._start_components()
    assert [event for event in events if event != "look"] == [
        "start api-server", "start dag-processor", "the API answers", "start scheduler", "start triggerer",
    ]  # fmt: skip
    assert events.count("look") == 3


def test_an_api_server_that_never_answers_is_told(
    airflow: Airflow, events: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "START_TIMEOUT_S", 0.0)
    with pytest.raises(InfrastructureError, match="still waiting for the API server"):
        airflow._start_components()
    assert "start scheduler" not in events
