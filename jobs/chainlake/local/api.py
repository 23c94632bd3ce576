"""The few calls to Airflow's REST API that the launcher and ``make run`` need. Standard library only."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlsplit

from chainlake.env.ports import require_own
from chainlake.errors import InfrastructureError
from chainlake.local.access import USER

_PAGE = 100
TIMEOUT_S = 30.0


class ApiError(InfrastructureError):
    """The API server answered with an error; ``status`` is the HTTP status."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(what)
        self.status = status


class ApiUnreachable(InfrastructureError):
    """The API server does not answer, because it is starting or was restarted."""


def logical_date(day: date) -> str:
    """The logical date of the run that processes ``day``: its first instant, as the API writes dates."""
    return f"{day.isoformat()}T00:00:00Z"


class Api:
    """A client of an API server.

    Args:
        page: address of the server, such as ``http://127.0.0.1:8080``.
        password: password of the page's user; requests that need no login work without it.
        ours: whether a process is one of the server's, for :func:`chainlake.env.ports.require_own`.
    """

    def __init__(self, page: str, password: str = "", ours: Callable[[int], bool] | None = None) -> None:
        self.page = page
        self._ours = ours
        self._password = password
        self._token: str | None = None

    def health(self) -> dict[str, str]:
        """The state of each component: ``healthy`` or ``unhealthy``."""
        answer = self._send("GET", "/api/v2/monitor/health", authorised=False)
        return {name: str(part.get("status")) for name, part in answer.items() if isinstance(part, dict)}

    def warm_up(self) -> None:
        """Ask for the health of the interface that tasks use."""
        self._send("GET", "/execution/health", authorised=False)

    def answers_to(self, host: str) -> bool:
        """Whether the server answers a request that calls it ``host``."""
        try:
            self._once("GET", "/api/v2/monitor/health", None, {"Host": host})
        except ApiError as error:
            if error.status != 421:
                raise
            return False
        return True

    def dags(self) -> dict[str, bool]:
        """Id of every DAG → whether it is paused."""
        return {str(dag["dag_id"]): bool(dag["is_paused"]) for dag in self._pages("/api/v2/dags", "dags")}

    def import_errors(self) -> list[tuple[str, str]]:
        """File and last line of the error of every DAG file that cannot be imported."""
        errors = self._pages("/api/v2/importErrors", "import_errors")
        return [(str(e["filename"]), str(e["stack_trace"]).strip().splitlines()[-1]) for e in errors]

    def pause(self, dag_id: str, paused: bool) -> None:
        """Pause or unpause a DAG."""
        self._send("PATCH", f"/api/v2/dags/{dag_id}?update_mask=is_paused", {"is_paused": paused})

    def set_pool(self, name: str, slots: int, description: str) -> None:
        """Create a pool, or set its size if it exists."""
        body = {"name": name, "slots": slots, "description": description}
        try:
            self._send("POST", "/api/v2/pools", body)
        except ApiError as error:
            if error.status != 409:
                raise
            body = {"pool": name, "slots": slots, "include_deferred": False}
            self._send("PATCH", f"/api/v2/pools/{name}?update_mask=slots", body)

    def backfill(self, dag_id: str, day: date) -> None:
        """Create the backfill run of one day, or repeat the run that the day already has.

        Args:
            dag_id: the DAG, which must not be paused.
            day: the UTC day; a backfill's dates are inclusive, so both are this day.
        """
        body = {
            "dag_id": dag_id,
            "from_date": logical_date(day),
            "to_date": logical_date(day),
            "reprocess_behavior": "completed",
            "max_active_runs": 1,
        }
        self._send("POST", "/api/v2/backfills", body)

    def runs(self, dag_ids: Iterable[str]) -> list[dict[str, Any]]:
        """All runs of the DAGs: ``dag_id``, ``dag_run_id``, ``state``, ``run_type``, ``logical_date``, …"""
        return list(self._batch("/api/v2/dags/~/dagRuns/list", "dag_runs", {"dag_ids": list(dag_ids)}))

    def task_instances(self, dag_ids: Iterable[str], states: Iterable[str | None]) -> list[dict[str, Any]]:
        """Task instances of the DAGs that are in one of ``states``."""
        body = {"dag_ids": list(dag_ids), "state": list(states)}
        return list(self._batch("/api/v2/dags/~/dagRuns/~/taskInstances/list", "task_instances", body))

    def log(self, task: dict[str, Any], attempt: int) -> list[dict[str, Any]]:
        """The log records of one attempt of a task instance: ``event``, ``level``, ``logger``, …"""
        path = f"/api/v2/dags/{task['dag_id']}/dagRuns/{task['dag_run_id']}/taskInstances/{task['task_id']}"
        content = self._send("GET", f"{path}/logs/{attempt}?full_content=true&map_index={task['map_index']}")["content"]
        return [entry if isinstance(entry, dict) else {"event": str(entry)} for entry in content]

    def _pages(self, path: str, field: str) -> Iterator[dict[str, Any]]:
        offset = 0
        while True:
            answer = self._send("GET", f"{path}?limit={_PAGE}&offset={offset}")
            yield from answer[field]
            offset += _PAGE
            if offset >= int(answer["total_entries"]):
                return

    def _batch(self, path: str, field: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        offset = 0
        while True:
            answer = self._send("POST", path, {**body, "page_limit": _PAGE, "page_offset": offset})
            yield from answer[field]
            offset += _PAGE
            if len(answer[field]) < _PAGE:
                return

    def _send(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, authorised: bool = True
    ) -> dict[str, Any]:
        if not authorised:
            return self._once(method, path, body, {})
        if self._token is None:
            self._log_in()
        try:
            return self._once(method, path, body, {"Authorization": f"Bearer {self._token}"})
        except ApiError as error:
            if error.status != 401:
                raise
        # The token has expired: get another one, once.
        self._log_in()
        return self._once(method, path, body, {"Authorization": f"Bearer {self._token}"})

    def _log_in(self) -> None:
        require_own(urlsplit(self.page).port or 80, self._ours)
        given = {"username": USER, "password": self._password}
        self._token = str(self._once("POST", "/auth/token", given, {})["access_token"])

    def _once(self, method: str, path: str, body: dict[str, Any] | None, headers: Mapping[str, str]) -> dict[str, Any]:
        request = urllib.request.Request(self.page + path.replace("+", "%2B"), method=method)
        request.add_header("Accept", "application/json")
        for name, value in headers.items():
            request.add_header(name, value)
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        # The page is on loopback, so it must not be requested through a proxy that the environment names.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=TIMEOUT_S) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            detail = error.read().decode(errors="replace")[:500]
            raise ApiError(error.code, f"Airflow refused {method} {path}: {error.code} {detail}") from error
        except (OSError, http.client.HTTPException) as error:
            raise ApiUnreachable(f"Airflow's API server at {self.page} does not answer: {error}") from error
        return dict(json.loads(text)) if text else {}


def day_of_run(run: dict[str, Any]) -> date | None:
    """The UTC day that a run processes; None for a run without a logical date."""
    text = run.get("logical_date")
    return datetime.fromisoformat(str(text).replace("Z", "+00:00")).astimezone(UTC).date() if text else None
