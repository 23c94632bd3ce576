"""Airflow's components as the launcher handles them: started through the nursery, watched, restarted, ended."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from chainlake.env.processes.child import die_with_parent, wait_until
from chainlake.local.errors import AirflowUnavailable
from chainlake.paths import PROJECT

#: Name and arguments of each component; they are started in the reverse of this order.
COMPONENTS = {
    # No task of ours waits in it, but Airflow's home page calls an Airflow without one unhealthy.
    "triggerer": ["triggerer", "--skip-serve-logs"],
    # Task logs are read from the folder that all components share; serving them would open a port to the network.
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    "api-server": ["api-server"],
}
STOP_GRACE_S = 4.0
#: A component that ends more often than this within RESTART_WINDOW_S is broken, not unlucky.
MAX_RESTARTS = 5
RESTART_WINDOW_S = 120.0


@dataclass
class Component:
    """One component: its process while it runs, whether the process was told to end, and when it was started."""

    name: str
    arguments: list[str]
    pid: int | None = None
    code: int | None = None
    asked: bool = False
    starts: list[float] = field(default_factory=list)


class Components:
    """The nursery and the components that it started.

    Args:
        env: their environment.
        folder: where their logs go.
        say: receives one line per restart.
    """

    def __init__(self, env: Mapping[str, str], folder: Path, say: Callable[[str], None]) -> None:
        self._env = dict(env)
        self.folder = folder
        self._say = say
        self._all: dict[str, Component] = {}
        self._rest = b""
        self._nursery = self._open()

    def log(self, name: str) -> Path:
        """The log file of a component."""
        return self.folder / f"{name}.log"

    def start(self, name: str) -> None:
        """Start the component ``name``, which :meth:`tick` restarts whenever it ends."""
        self._ask(self._all.setdefault(name, Component(name, COMPONENTS[name])))

    def run(self, name: str, arguments: list[str]) -> int:
        """Run an Airflow command to its end, with its output in the log ``name``, and return its exit code."""
        command = Component(name, arguments)
        self._all[name] = command
        self._ask(command)
        while command.code is None:
            if self._nursery.poll() is not None:
                raise AirflowUnavailable.cannot_import(last_line(self.log("nursery")))
            self._listen(0.1)
        del self._all[name]
        return command.code

    def tick(self, before_restart: Callable[[str], None]) -> None:
        """Restart components that have ended; ``before_restart`` is first called with the name of each.

        Raises:
            InfrastructureError: a component keeps ending.
        """
        self._listen(0.0)
        if self._nursery.poll() is not None:
            self._nursery.wait()
            self._nursery = self._open()
            for component in self._all.values():
                component.code = -signal.SIGKILL
        for component in self._all.values():
            if component.code is None:
                continue
            if component.pid is not None:
                # Processes that it had started may still be there.
                _signal_group(component.pid, signal.SIGKILL)
            now = time.monotonic()
            component.starts = [start for start in component.starts if now - start < RESTART_WINDOW_S]
            if len(component.starts) > MAX_RESTARTS:
                log = self.log(component.name)
                raise AirflowUnavailable.ended_often(component.name, len(component.starts), last_line(log), log)
            self._say(f"Airflow's {component.name} ended (code {component.code}); starting it again")
            before_restart(component.name)
            self._ask(component)

    def ask_to_end(self) -> None:
        """Tell all components to end, each only once, without waiting for them."""
        for component in self._living():
            if not component.asked:
                component.asked = True
                _signal_group(component.pid, signal.SIGTERM)

    def _living(self) -> list[Component]:
        return [c for c in self._all.values() if c.pid is not None and c.code is None]

    def stop(self) -> None:
        """End all components and the nursery, and return when they are gone."""
        self._listen(0.0)
        living = self._living()
        self.ask_to_end()

        def all_ended() -> bool:
            self._listen(0.05)
            return all(c.code is not None for c in living) or self._nursery.poll() is not None

        wait_until(all_ended, STOP_GRACE_S, every_s=0.0, what="Airflow's components to end")
        for component in self._all.values():
            _signal_group(component.pid, signal.SIGKILL)
        assert self._nursery.stdin is not None and self._nursery.stdout is not None
        self._nursery.stdin.close()
        try:
            self._nursery.wait(STOP_GRACE_S)
        except subprocess.TimeoutExpired:
            self._nursery.kill()
            self._nursery.wait()
        self._nursery.stdout.close()

    def _open(self) -> subprocess.Popen[bytes]:
        self.folder.mkdir(parents=True, exist_ok=True)
        nursery = subprocess.Popen(
            [sys.executable, "-m", "chainlake.local.nursery", str(self.folder)],
            env=self._env,
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )
        self._rest = b""
        return nursery

    def _ask(self, component: Component) -> None:
        component.pid, component.code, component.asked = None, None, False
        component.starts.append(time.monotonic())
        assert self._nursery.stdin is not None
        try:
            self._nursery.stdin.write(" ".join(["start", component.name, *component.arguments]).encode() + b"\n")
            self._nursery.stdin.flush()
        except BrokenPipeError:
            # The nursery has just ended; the next tick opens another one and asks again.
            component.code = -signal.SIGKILL

    def _listen(self, timeout_s: float) -> None:
        """Take in what the nursery reports."""
        assert self._nursery.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._nursery.stdout, selectors.EVENT_READ)
            if not selector.select(timeout_s):
                return
        block = os.read(self._nursery.stdout.fileno(), 65536)
        *lines, self._rest = (self._rest + block).split(b"\n")
        for line in lines:
            what, name, pid, *code = line.decode().split(" ")
            component = self._all[name]
            if what == "started":
                component.pid = int(pid)
            else:
                component.code = int(code[0])


def last_line(log: Path) -> str:
    """``: `` and the last line of a log file; empty if it has none."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()] if log.exists() else []
    return f": {lines[-1].strip()[:300]}" if lines else ""


def _signal_group(pid: int | None, sig: signal.Signals) -> None:
    """Signal the process group that ``pid`` leads, or led: members may outlive their leader."""
    if pid is None:
        return
    try:
        os.killpg(pid, sig)
    except ProcessLookupError:
        return
