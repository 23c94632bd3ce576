"""Whom the page of Airflow answers, without an Airflow: the layer in front of it, and who listens on a port."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from chainlake.env.ports import ForeignServer
from chainlake.env.private import private_folder, write_private
from chainlake.env.processes.warm_driver import run_in_driver
from chainlake.local.access import AccessMiddleware, login_address, new_password, own_hosts, passwords_file
from chainlake.local.api import Api
from chainlake.local.settings import airflow_environment
from chainlake.paths import CODE, PACKAGE, PROJECT, Home
from tests.other_user import follow, start_as_other_user

OWN = "127.0.0.1:8080"
PASSWORD = new_password()

Answer = tuple[int, dict[str, str]]


async def _inside(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-inside", b"yes")]})
    await send({"type": "http.response.body", "body": b"everything"})


def ask(
    headers: Mapping[str, str] | list[tuple[str, str]], method: str = "GET", path: str = "/", query: str = ""
) -> Answer:
    """Status and headers of one request."""
    listed = list(headers.items()) if isinstance(headers, Mapping) else headers
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in listed],
    }
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    middleware = AccessMiddleware(_inside, own_hosts(8080), lambda: PASSWORD, lambda: "a-session")
    asyncio.run(middleware(scope, send, send))  # type: ignore[arg-type]
    return said[0]["status"], {name.decode(): value.decode() for name, value in said[0]["headers"]}


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080"])
def test_own_name_is_answered(host: str) -> None:
    status, headers = ask({"host": host})
    assert (status, headers["x-inside"], headers["x-frame-options"]) == (200, "yes", "SAMEORIGIN")


@pytest.mark.parametrize(
    "host",
    ["rebound.example:8080", "127.0.0.1", "127.0.0.1:8081", "localhost.:8080", "127.0.0.1:8080.evil.example",
     "localhost:8080@evil.example", "", "[::1]:8080", "127.0.0.1:8080,evil.example"],
)  # fmt: skip
def test_another_name_is_refused(host: str) -> None:
    status, headers = ask({"host": host})
    assert status == 421 and "x-inside" not in headers


def test_no_name_and_two_names_are_refused() -> None:
    assert ask({})[0] == 421
    assert ask([("host", OWN), ("host", "rebound.example:8080")])[0] == 421


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1:9000", "http://localhost:8080", "https://127.0.0.1:8080"],
)
def test_a_request_of_another_origin_is_refused(method: str, origin: str) -> None:
    assert ask({"host": OWN, "origin": origin}, method)[0] == 403


def test_a_request_of_the_page_itself_is_answered() -> None:
    fetched = {"host": OWN, "origin": f"http://{OWN}", "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
    assert ask(fetched, "PATCH")[0] == 200
    assert ask({"host": OWN, "sec-fetch-site": "none", "sec-fetch-mode": "navigate"})[0] == 200


@pytest.mark.parametrize(
    ("mode", "dest", "method", "status"),
    [
        ("navigate", "document", "GET", 200),
        ("navigate", "document", "POST", 403),
        ("navigate", "iframe", "GET", 403),
        ("no-cors", "script", "GET", 403),
        ("no-cors", "image", "GET", 403),
        ("cors", "empty", "GET", 403),
    ],
)
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_from_elsewhere_only_a_link_is_followed(site: str, mode: str, dest: str, method: str, status: int) -> None:
    headers = {"host": OWN, "sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
    assert ask(headers, method)[0] == status


def test_the_printed_address_logs_in_and_others_do_not() -> None:
    path, _, query = login_address("", PASSWORD).partition("?")
    status, headers = ask({"host": OWN}, "GET", path, query)
    assert (status, headers["location"]) == (303, "/")
    assert headers["set-cookie"].startswith("_token=a-session; ") and "HttpOnly" in headers["set-cookie"]
    assert headers["referrer-policy"] == "no-referrer" and headers["cache-control"] == "no-store"
    for wrong in ("", "token=", "token=" + PASSWORD[:-1], "token=\xff", "other=" + PASSWORD):
        status, headers = ask({"host": OWN}, "GET", path, wrong)
        assert status == 403 and "set-cookie" not in headers
    assert ask({"host": OWN}, "POST", path, query)[0] == 403
    assert ask({"host": "rebound.example:8080"}, "GET", path, query)[0] == 421


def test_nobody_is_logged_in_for_reaching_the_port(home: Home) -> None:
    private_folder(home.airflow)
    env = airflow_environment(home, "postgresql+psycopg2://x", 8080)
    assert env["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS"] == "False"
    assert env["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"] == str(passwords_file(home))
    assert list(Path(env["AIRFLOW__CORE__PLUGINS_FOLDER"]).glob("*.py")) != []
    assert stat.S_IMODE((home.airflow / "keys.json").stat().st_mode) == 0o600


def test_private_folders_and_files_are_closed_whatever_they_were(tmp_path: Path) -> None:
    folder, file = tmp_path / "folder", tmp_path / "folder" / "secret"
    folder.mkdir()
    folder.chmod(0o775)
    file.write_text("old")
    file.chmod(0o644)
    private_folder(folder)
    write_private(file, "new")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o701 and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == "new" and [one.name for one in folder.iterdir()] == ["secret"]
    assert stat.S_IMODE(private_folder(tmp_path / "new").stat().st_mode) == 0o700


def listen(tell: Callable[[Any], None]) -> None:
    """Take a port and tell what is sent to it within some seconds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        tell(server.getsockname()[1])
        server.settimeout(5)
        try:
            tell(server.accept()[0].recv(1000).decode())
        except TimeoutError:
            tell("")


def test_no_secret_is_sent_to_a_port_that_another_user_took() -> None:
    pid, reading = start_as_other_user(listen)
    port = int(os.read(reading, 100))
    with pytest.raises(ForeignServer, match=f"port {port} of 127.0.0.1 is held by another user"):
        Api(f"http://127.0.0.1:{port}", "secret").dags()
    with pytest.raises(ForeignServer):
        run_in_driver(f"{port}:secret", ["status"], print)
    assert follow(pid, reading) == ""


def test_the_plugin_puts_the_middleware_first() -> None:
    """In a process of its own: Airflow reads the plugins once per process."""
    code = (
        "from airflow.plugins_manager import get_fastapi_plugins\n"
        "layer, = get_fastapi_plugins()[1]\n"
        "middleware = layer['middleware'](None)\n"
        "print(type(middleware).__name__, *sorted(middleware._hosts))"
    )
    folder = PACKAGE / "local" / "plugins"
    env = os.environ | {
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(folder),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": "http://Api-Server:8080/execution/",
        "AIRFLOW__API__PORT": "8080",
        "PYTHONPATH": str(CODE),
    }
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, cwd=PROJECT)
    # Tasks elsewhere call the server by the name that they have for it.
    wanted = "AccessMiddleware 127.0.0.1:8080 api-server:8080 localhost:8080"
    assert done.stdout.splitlines()[-1:] == [wanted], done.stderr[-2000:]
