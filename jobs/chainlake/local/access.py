"""Access to Airflow's page: which requests are let in, and the address that logs its user in with one click.

The page listens on loopback. That keeps other machines out, but neither web pages in the user's own browser nor other
users of the machine. Airflow asks for a password. This layer, in front of everything that the API server serves, adds
what no setting of Airflow offers: it refuses any name but our own in ``Host`` (a web site can point its own name at
127.0.0.1), and any request from a page of another origin, except that a link to the page may be followed.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

from chainlake.env.ports import HOST
from chainlake.paths import Home

#: The one user of the page, who may do everything.
USER = "admin"
ROLE = "ADMIN"
_LOGIN = "/chainlake/login"
#: Name of Airflow's own session cookie.
_COOKIE = "_token"

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]


def passwords_file(home: Home) -> Path:
    """The file with Airflow's users and passwords; mode 0600."""
    return home.airflow / "passwords.json"


def new_password() -> str:
    """A password that nobody can guess."""
    return secrets.token_urlsafe(32)


def login_address(page: str, password: str) -> str:
    """The address that logs the page's user in.

    Args:
        page: ``http://HOST:PORT`` of the page.
        password: password of :data:`USER`; it goes under the name ``token``, which Airflow's access log leaves out.
    """
    return f"{page}{_LOGIN}?{urlencode({'token': password})}"


class AccessMiddleware:
    """An ASGI layer in front of the whole API server.

    Args:
        app: answers the requests that are let in.
        hosts: values of ``Host`` that are our own, in lower case, with the port.
        password: returns the password in force.
        session: returns the token of a new session, for the cookie.
    """

    def __init__(
        self, app: _App, hosts: Iterable[str], password: Callable[[], str], session: Callable[[], str]
    ) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._password = password
        self._session = session

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Answer one request, or let it through."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        why = self._refusal(scope)
        if scope["type"] != "http":
            # The page uses no websockets; one that is refused is closed before it opens.
            await (self._app(scope, receive, send) if why is None else send({"type": "websocket.close"}))
        elif why is not None:
            await _answer(send, *why)
        elif scope["path"] == _LOGIN:
            await self._log_in(scope, send)
        else:
            await self._app(scope, receive, _unframed(send))

    def _refusal(self, scope: _Message) -> tuple[int, str] | None:
        """Status and reason of a refusal; None if the request may come in."""
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(bytes(name).lower(), []).append(bytes(value).decode("latin-1"))
        hosts = [host.lower() for host in headers.get(b"host", [])]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 421, f"This server is {' or '.join(sorted(self._hosts))} and answers to no other name."
        if any(origin != f"http://{hosts[0]}" for origin in headers.get(b"origin", [])):
            return 403, "Requests of other pages are refused."
        if {"cross-site", "same-site"} & set(headers.get(b"sec-fetch-site", [])):
            link = headers.get(b"sec-fetch-mode") == ["navigate"] and headers.get(b"sec-fetch-dest") == ["document"]
            if not link or scope.get("method") != "GET":
                return 403, "Requests of other pages are refused."
        return None

    async def _log_in(self, scope: _Message, send: _Send) -> None:
        given = parse_qs(bytes(scope["query_string"]).decode("latin-1")).get("token", [""])
        if scope["method"] != "GET" or not hmac.compare_digest(given[0].encode(), self._password().encode()):
            await _answer(send, 403, "This is not the address that was printed when Airflow was last started.")
            return
        cookie = f"{_COOKIE}={self._session()}; Path=/; HttpOnly; SameSite=Lax"
        await _answer(send, 303, "Logged in.", [("location", "/"), ("set-cookie", cookie)])


async def _answer(send: _Send, status: int, text: str, headers: Iterable[tuple[str, str]] = ()) -> None:
    body = (text + "\n").encode()
    # The address contains the password: it must be neither cached nor sent to the next page.
    fixed = [
        ("content-type", "text/plain; charset=utf-8"),
        ("content-length", str(len(body))),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ]
    listed = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in (*fixed, *headers)]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})


def _unframed(send: _Send) -> _Send:
    """Marks answers so that no page of another origin can show them in a frame for the user to click into."""

    async def sending(message: _Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"x-frame-options", b"SAMEORIGIN")]}
        await send(message)

    return sending


def own_hosts(port: int) -> list[str]:
    """The values of ``Host`` that name our own server."""
    return [f"{HOST}:{port}", f"localhost:{port}"]
