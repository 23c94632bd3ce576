"""A real browser for the tests of the report: Chromium without a window, steered by its DevTools protocol."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from websockets.sync.client import connect

#: Programs that are Chromium, the first that exists is taken.
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def program() -> str | None:
    """The browser's path, None if this machine has none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Page:
    """A tab. What its console says and what it asks a network for is kept.

    Args:
        address: of its socket.
    """

    def __init__(self, address: str) -> None:
        self._socket = connect(address, max_size=None, open_timeout=60)
        self._number = 0
        self.errors: list[str] = []
        self.asked: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call the protocol and wait for the answer; what comes meanwhile is kept."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            found = json.loads(self._socket.recv(timeout=120))
            if found.get("id") == self._number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']['message']}")
                return dict(found["result"])
            self._note(found)

    def _note(self, found: dict[str, Any]) -> None:
        method, params = found.get("method"), found.get("params", {})
        if method == "Runtime.exceptionThrown":
            detail = params["exceptionDetails"]
            self.errors.append(detail.get("exception", {}).get("description") or detail["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(one.get("value", one.get("description"))) for one in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description", "?"))
        return found["result"].get("value")

    def until(self, script: str, seconds: float = 60.0) -> None:
        """Wait until an expression is true in the page."""
        end = time.monotonic() + seconds
        while not self._holds(script):
            if time.monotonic() > end:
                raise TimeoutError(f"not true within {seconds:g} s: {script}; the console said {self.errors}")
            time.sleep(0.03)

    def _holds(self, script: str) -> bool:
        try:
            return bool(self.run(script))
        except RuntimeError as error:
            # The page that was asked has just been left for the next one.
            if any(
                said in str(error) for said in ("navigated or closed", "context was destroyed", "Cannot find context")
            ):
                return False
            raise

    def open(self, where: str | Path) -> None:
        """Open a page from disk, or an address, and wait until its scripts have run."""
        url = where.as_uri() if isinstance(where, Path) else where
        self.call("Page.navigate", url=url)
        self.until(f"location.href.startsWith({json.dumps(url)}) && document.documentElement?.dataset.ready === 'yes'")

    def draw_all(self) -> int:
        """Draw every chart of the page, also those below the fold; returns how many there are."""
        self.run("dispatchEvent(new Event('beforeprint'))")
        self.until("[...document.querySelectorAll('.chart')].every((one) => one.dataset.drawn === 'yes')")
        return int(self.run("document.querySelectorAll('.chart').length"))

    def press(self, key: str) -> None:
        """Press a key."""
        codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"Enter": "\r"}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], text=text
            )

    def search(self, text: str) -> None:
        """Type into the search of the first page."""
        field = "document.getElementById('find')"
        self.run(f"{field}.value = {json.dumps(text)}; {field}.dispatchEvent(new Event('input'))")

    def screenshot(self, path: Path, *, width: int = 1200, tall: int | None = None, part: str | None = None) -> None:
        """A picture of the page, whole or ``tall`` pixels of it, from its top or from the element ``part`` on."""
        self.wide(width)
        time.sleep(0.3)
        height = int(self.run("Math.ceil(document.documentElement.scrollHeight)"))
        where = f"Math.floor(document.getElementById({json.dumps(part)}).getBoundingClientRect().top + scrollY)"
        top = 0 if part is None else int(self.run(where))
        clip = {"x": 0, "y": top, "width": width, "height": min(height - top, tall or height), "scale": 1}
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def wide(self, width: int) -> None:
        """How many pixels wide the window is."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    def dark(self, on: bool) -> None:
        """Whether the reader prefers dark pages."""
        value = "dark" if on else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])


@contextmanager
def browser(found: str) -> Iterator[Page]:
    """A tab of a browser that has no network: every address but those of this machine is refused.

    Args:
        found: path of the program.
    """
    with tempfile.TemporaryDirectory(prefix="chainlake-browser-", ignore_cleanup_errors=True) as profile:
        options = [
            "--headless=new",
            "--no-sandbox",
            "--no-first-run",
            "--disable-gpu",
            "--disable-extensions",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--hide-scrollbars",
            "--window-size=1200,900",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
            "about:blank",
        ]
        with subprocess.Popen(
            [found, *options], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        ) as process:
            try:
                yield Page(_address(process))
            finally:
                process.terminate()
                process.wait(30)


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if match := re.search(r"DevTools listening on ws://([^/]+)/", line):
            with urlopen(f"http://{match[1]}/json/list", timeout=60) as answer:
                tabs = json.load(answer)
            return str(next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"))
    raise RuntimeError(f"the browser did not start: {''.join(said[-5:])}")
