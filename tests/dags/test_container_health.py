"""The health checks of docker/compose.yaml against the pages that Airflow's own code serves."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest
import yaml

from chainlake.paths import PROJECT

DOCKER = PROJECT / "docker"
SERVICES = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """A server on a port of its own."""
    handler.log_message = lambda *told: None  # type: ignore[method-assign,assignment]
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def checked(service: str, port: int) -> int:
    """The exit code of a service's health check, were its page on that port of this machine."""
    kind, _, program, url, *part = SERVICES[service]["healthcheck"]["test"]
    assert kind == "CMD" and program == "/opt/chainlake/healthy.py"
    path = "/" + url.split("/", 3)[3]
    command = [sys.executable, str(DOCKER / "healthy.py"), f"http://127.0.0.1:{port}{path}", *part]
    return subprocess.run(command, check=False, capture_output=True).returncode


@pytest.mark.airflow
@pytest.mark.parametrize(("alive", "wanted"), [(True, 0), (False, 1), (None, 1)])
def test_a_scheduler_is_healthy_while_its_own_page_says_so(
    monkeypatch: pytest.MonkeyPatch, alive: bool | None, wanted: int
) -> None:
    from airflow.utils import scheduler_health

    job = None if alive is None else SimpleNamespace(is_alive=lambda: alive)
    session = SimpleNamespace(scalar=lambda query: job)
    monkeypatch.setattr(scheduler_health, "create_session", lambda: nullcontext(session))
    with serving(scheduler_health.HealthServer) as port:
        assert checked("scheduler", port) == wanted


@pytest.mark.airflow
@pytest.mark.parametrize(
    ("service", "part"),
    [("api-server", "metadatabase"), ("dag-processor", "dag_processor"), ("triggerer", "triggerer")],
)
def test_a_part_of_airflow_is_healthy_while_the_page_of_all_says_so(service: str, part: str) -> None:
    from airflow.api_fastapi.core_api.datamodels.monitor import HealthInfoResponse

    def page(status: str) -> type[BaseHTTPRequestHandler]:
        unknown = {"status": "unhealthy"}
        parts = {"metadatabase": unknown, "scheduler": unknown, "triggerer": unknown, "dag_processor": unknown}
        beats = {f"latest_{name}_heartbeat": None for name in ("scheduler", "triggerer", "dag_processor")}
        told = {name: {**one, **beats} for name, one in {**parts, part: {"status": status}}.items()}
        answer = HealthInfoResponse.model_validate(told).model_dump_json().encode()

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                assert self.path == "/api/v2/monitor/health" and json.loads(answer)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(answer)

        return Page

    for status, wanted in (("healthy", 0), ("unhealthy", 1)):
        with serving(page(status)) as port:
            assert checked(service, port) == wanted
