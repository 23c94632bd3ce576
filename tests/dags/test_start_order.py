"""The scheduler starts last, when the API server answers tasks: one that it starts earlier would lose a try."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from chainlake.env.ports import HOST
from chainlake.errors import InfrastructureError, UsageError
from chainlake.local import launcher
from chainlake.local.api import ApiUnreachable
from chainlake.local.errors import PortTaken
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


@pytest.fixture
def taken() -> Iterator[int]:
    """A port at which a program listens that no launcher has started: these tests."""
    with socket.create_server((HOST, 0)) as server:
        yield server.getsockname()[1]


def test_whoever_else_has_the_port_is_not_taken_for_our_server(airflow: Airflow, events: list[str], taken: int) -> None:
    airflow.page = f"http://{HOST}:{taken}"
    with pytest.raises(PortTaken, match=rf"port {taken} of {HOST}.*process {os.getpid()} \((?s:.*)CHAINLAKE_PAGE_PORT"):
        airflow._start_components()
    assert "the API answers" not in events and "start scheduler" not in events


def test_another_port_is_taken_when_somebody_was_faster(
    home: Home, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port is free when it is chosen, and somebody else's when the server would have it."""
    said: list[str] = []
    prepared: list[int] = []
    airflow = Airflow(home, said.append)

    class Kept(Components):
        def __init__(self, env: dict[str, str], *others: object) -> None:
            super().__init__([])
            prepared.append(int(env["AIRFLOW__API__PORT"]))

        def stop(self) -> None:
            said.append("stop")

    def nothing(*given: Any) -> None:
        return None

    monkeypatch.setattr(launcher, "Components", Kept)
    monkeypatch.setattr(launcher, "free_port", lambda first: taken if first == 8080 else first)
    monkeypatch.setattr(launcher, "start_keeper", lambda *given: (subprocess.Popen(["true"]), "1:token"))
    monkeypatch.setattr(launcher.guard, "start", nothing)
    monkeypatch.setattr(launcher.settings, "java_home", lambda: home.root)
    monkeypatch.setenv("CHAINLAKE_DB", "postgresql+psycopg2://nobody")
    for name in ("_migrate", "_wait_ready"):
        monkeypatch.setattr(airflow, name, nothing)
    monkeypatch.setattr(launcher.Api, "warm_up", nothing)
    monkeypatch.setattr(launcher.Api, "answers_to", nothing)
    monkeypatch.setattr(launcher.Api, "set_pool", nothing)
    airflow._start()
    assert prepared == [taken, taken + 1] and airflow.page == airflow.api.page == f"http://{HOST}:{taken + 1}"
    assert airflow.address.startswith(airflow.page) and said[1] == "stop"
    assert f"the Airflow page is at {airflow.page}" in said[2]


@pytest.mark.parametrize("text", ["http", "0", "65536", "-1"])
def test_a_port_of_the_page_that_is_none_is_told(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINLAKE_PAGE_PORT", text)
    with pytest.raises(UsageError, match=f"CHAINLAKE_PAGE_PORT is '{text}'"):
        launcher.first_port()
