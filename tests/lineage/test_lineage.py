"""The lineage that a run tells, by OpenLineage's own client to a file and to a server, and its absence."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from chainlake.lake.records import ops
from chainlake.lineage import send
from chainlake.paths import Home
from chainlake.schemas.ops_rows import RunRow

BEGIN = datetime(2025, 10, 2, 0, 5, tzinfo=UTC)


def _row(phase: str, definition: str, seconds: int, **more: Any) -> RunRow:
    started = BEGIN + timedelta(seconds=seconds)
    row: dict[str, Any] = {
        "source": "stock",
        "step": "detect",
        "phase": phase,
        "definition": definition,
        "day_from": BEGIN.date() - timedelta(days=1),
        "day_to": BEGIN.date(),
        "started": started,
        "ended": started + timedelta(seconds=2),
        "status": "ok",
        "reason": None,
        "rows_in": None,
        "rows_out": None,
        "code_version": "1.2.3",
        "spark_app_id": "",
        "engine": "files",
    }
    return {**row, **more}  # type: ignore[typeddict-item]


@pytest.fixture
def run(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A run of the shipped patterns: one published, one failed, one without anything to do."""
    for name in ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE_DISABLED", "OPENLINEAGE__TRANSPORT__TYPE"):
        monkeypatch.delenv(name, raising=False)
    rows = [
        _row("detect", "pattern/shakeout", 0, rows_out=76),
        _row("publish", "pattern/shakeout", 5, rows_in=76, rows_out=76),
        _row("publish", "pattern/echo", 6, status="failed", reason="no such column"),
        _row("plan", "pattern/three_pushes", 1, status="nothing"),
    ]
    ops.append(home, "runs", rows, "r1")
    return home


def _to_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "lineage.jsonl"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(file))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    return file


def test_what_a_run_read_and_wrote(run: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _to_file(tmp_path, monkeypatch)
    assert send.wanted()
    send.tell(run, "stock", "detect", "r1")
    events = [json.loads(line) for line in file.read_text().splitlines()]
    begun, ended = [("detect.shakeout", "START"), ("detect.echo", "START")], [("detect.shakeout", "COMPLETE")]
    assert [(e["job"]["name"], e["eventType"]) for e in events] == [*begun, *ended, ("detect.echo", "FAIL")]
    end = events[2]
    assert end["eventTime"] == "2025-10-02T00:05:07Z" and end["run"]["runId"] == events[0]["run"]["runId"]
    assert end["run"]["facets"]["nominalTime"]["nominalStartTime"] == "2025-10-01T00:00:00Z"
    (read,), (written,) = end["inputs"], end["outputs"]
    assert (read["namespace"], read["name"]) == ("file", f"{run.lake}/events/stock")
    assert (written["namespace"], written["name"]) == ("file", run.table("matches", "shakeout"))
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 76
    lineage = written["facets"]["columnLineage"]
    down = {field["field"] for field in lineage["fields"]["down"]["inputFields"]}
    assert down == {"event_id", "ts", "type", "ticker", "open", "close", "volume"}
    assert {field["field"] for field in lineage["dataset"]} >= {"open", "close", "volume"}
    described = {column["name"]: column["description"] for column in read["facets"]["schema"]["fields"]}
    assert described["ts"] == "Time of the event, UTC."
    (down_column,) = (column for column in written["facets"]["schema"]["fields"] if column["name"] == "down")
    inside = {field["name"]: field["description"] for field in down_column["fields"]}
    assert inside["close"] == "Last price of the minute [USD]" and inside["ts"] == "Time of the event, UTC."
    assert events[3]["run"]["facets"]["errorMessage"]["message"] == "no such column"


class _Server(BaseHTTPRequestHandler):
    seen: list[dict[str, Any]] = []
    code = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        _Server.seen.append(json.loads(body))
        self.send_response(self.code)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    """A lineage server's address."""
    _Server.seen, _Server.code = [], 200
    with HTTPServer(("127.0.0.1", 0), _Server) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


def test_a_server_gets_them_and_one_that_refuses_stops_nothing(
    run: Home, server: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", server)
    monkeypatch.setattr(send.LOG, "propagate", True)
    send.tell(run, "stock", "detect", "r1")
    assert [event["eventType"] for event in _Server.seen] == ["START", "START", "COMPLETE", "FAIL"]
    _Server.code = 400
    send.tell(run, "stock", "detect", "r1")
    assert "no lineage of this run was sent: " in caplog.text


def test_nothing_is_told_unless_somebody_wants_it(run: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not send.wanted()
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:9")
    assert send.wanted()
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    assert not send.wanted()
