"""Proxies between a client and a server of an object store, which change or delay what passes."""

from __future__ import annotations

import http.client
import http.server
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from urllib.parse import urlsplit

_S = 60.0


class Passage(Protocol):
    """What happens to requests."""

    def sent(self, method: str, path: str, headers: dict[str, str]) -> dict[str, str]:
        """The headers with which a request goes on, once it may."""

    def answered(self, method: str, path: str, status: int) -> None:
        """The server has answered it."""


class Careless:
    """The store does not get to know that a write is conditional."""

    def sent(self, method: str, path: str, headers: dict[str, str]) -> dict[str, str]:
        """Without the condition."""
        return {name: value for name, value in headers.items() if name.lower() != "if-none-match"}

    def answered(self, method: str, path: str, status: int) -> None:
        """Nothing."""


class Held:
    """The first write of a file of some name is on its way until it may arrive.

    Args:
        name: pattern of its path.
    """

    def __init__(self, name: str) -> None:
        self.underway, self.go = threading.Event(), threading.Event()
        self._name, self._answered = re.compile(name), threading.Event()
        self._status = 0

    def sent(self, method: str, path: str, headers: dict[str, str]) -> dict[str, str]:
        """When it may arrive."""
        if self._is(method, path):
            self.underway.set()
            self.go.wait(_S)
        return headers

    def answered(self, method: str, path: str, status: int) -> None:
        """Keep the answer."""
        if self._is(method, path):
            self._status = status
            self._answered.set()

    def status(self) -> int:
        """What the server said to the write, once it may arrive; 0 if nothing."""
        self.go.set()
        self._answered.wait(_S)
        return self._status

    def _is(self, method: str, path: str) -> bool:
        return method == "PUT" and self._name.search(path) is not None


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: clients are killed."""


@contextmanager
def between(url: str, passage: Passage) -> Iterator[str]:
    """A proxy in front of a store, for a block; its address.

    Args:
        url: the store's.
        passage: what happens to requests.
    """
    port = urlsplit(url).port

    class Handler(http.server.BaseHTTPRequestHandler):
        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = passage.sent(self.command, self.path, dict(self.headers.items()))
            asked = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            asked.request(self.command, self.path, body or None, headers)
            answer = asked.getresponse()
            data = answer.read()
            asked.close()
            passage.answered(self.command, self.path, answer.status)
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass  # noqa: N815

        def log_message(self, *given: object) -> None:
            """Nothing."""

    proxy = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}"
    finally:
        proxy.shutdown()
