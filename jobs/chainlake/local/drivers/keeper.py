"""Keeps Spark drivers warm between tasks; the launcher starts it, and tasks send it requests.

A short step spends nine tenths of its CPU time on starting up and on compiling code that runs only once. A driver that
has already run a step runs the next one in a fraction of that time. A driver runs one step at a time. It is ended if
its step failed, if its code is no longer the code on disk, or if it has been idle for long. A task that goes away ends
its driver, as it would end its own child; without a keeper, tasks start their own children.

The keeper limits how many steps run at a time, and Airflow's pool lets one more task begin than that. So the time that
Airflow needs to start or end a task passes while the steps of others run, and no driver waits for it.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import math
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chainlake.env.ports import HOST
from chainlake.env.processes.child import GRACE_S, die_with_parent
from chainlake.env.processes.warm_driver import LINE_BYTES, Answer, KeeperGone, Request
from chainlake.paths import PROJECT, code_files

#: How many drivers work at a time and are kept, for how many seconds idle ones are kept, and after how many steps a
#: driver is replaced.
KEPT = 2
IDLE_S = 120.0
STEPS = 40


def code_state() -> int:
    """A number that changes whenever a Python file of the project does."""
    return hash(tuple((str(path), path.stat().st_mtime_ns) for path in code_files()))


@dataclass(eq=False)
class Driver:
    """One driver process."""

    process: asyncio.subprocess.Process
    code: int
    steps: int = 0
    idle_since: float = field(default_factory=time.monotonic)

    async def end(self) -> None:
        """End the driver, and return when it is gone."""
        if self.process.returncode is None:
            self.process.terminate()
            try:
                await asyncio.wait_for(self.process.wait(), GRACE_S)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()

    async def run(self, arguments: Sequence[str], tell: Callable[[Answer], None]) -> int:
        """Run one step and return its exit code; ``tell`` gets ``{"line": …}`` for each line of its output."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.steps += 1
        nonce = secrets.token_hex(16)
        self.process.stdin.write(json.dumps({"nonce": nonce, "arguments": list(arguments)}).encode() + b"\n")
        while line := await self.process.stdout.readline():
            # Output without a line end may stand before the nonce.
            text, found, code = line.decode(errors="replace").rstrip("\n").partition(nonce)
            if text or not found:
                tell({"line": text})
            if found:
                return int(code)
        return await self.process.wait()


class Keeper:
    """The drivers, and the server that tasks talk to."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._idle: list[Driver] = []
        self._turns = asyncio.Semaphore(KEPT)

    async def prepare(self, count: int) -> None:
        """Start drivers that prepare themselves before anything is requested, and then wait for their first step."""
        for _ in range(min(count, KEPT)):
            driver = await self._started("--prepare")
            driver.idle_since = math.inf
            self._idle.append(driver)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, a line of JSON; answers are lines, the last has the code.

        A fresh driver has run nothing before, and runs nothing afterwards.
        """

        def tell(answer: Answer) -> None:
            writer.write(json.dumps(answer).encode() + b"\n")

        try:
            request: Request = json.loads(await reader.readline())
            if hmac.compare_digest(str(request["token"]), self._token):
                await self._in_turn(request, reader, tell)
            await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.close()

    async def _in_turn(self, request: Request, reader: asyncio.StreamReader, tell: Callable[[Answer], None]) -> None:
        """Run the step once fewer than ``KEPT`` others run, unless the task has gone by then."""
        # The task sends nothing more, so its stream ends when the task does.
        gone = asyncio.ensure_future(reader.read())
        if self._turns.locked():
            tell({"line": f"waiting until another step ends: {KEPT} run at a time"})
        turn = asyncio.ensure_future(self._turns.acquire())
        either: set[asyncio.Future[Any]] = {turn, gone}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if turn.done() and not gone.done():
                await self._step(request["arguments"], request["fresh"], gone, tell)
        finally:
            gone.cancel()
            if turn.done():
                self._turns.release()
            else:
                turn.cancel()

    async def _step(
        self, arguments: list[str], fresh: bool, gone: asyncio.Future[bytes], tell: Callable[[Answer], None]
    ) -> None:
        driver = await self._started() if fresh else await self._take()
        work = asyncio.ensure_future(driver.run(arguments, tell))
        kept = False
        either: set[asyncio.Future[Any]] = {work, gone}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                code = work.result()
                tell({"code": code, "driver": driver.process.pid})
                kept = code == 0 and not fresh and driver.steps < STEPS and len(self._idle) < KEPT
        finally:
            work.cancel()
            if not kept:
                await driver.end()
        if kept:
            driver.idle_since = time.monotonic()
            self._idle.append(driver)

    async def _take(self) -> Driver:
        code = code_state()
        await self._end(lambda driver: driver.code != code or driver.process.returncode is not None)
        return self._idle.pop() if self._idle else await self._started()

    async def _started(self, *arguments: str) -> Driver:
        # Taken before the start, so that the driver has this code or newer code, never older.
        code = code_state()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "chainlake.local.drivers.driver",
            *arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=PROJECT,
            limit=LINE_BYTES,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )
        return Driver(process, code)

    async def _end(self, which: Callable[[Driver], bool]) -> None:
        ended = [driver for driver in self._idle if which(driver)]
        self._idle = [driver for driver in self._idle if driver not in ended]
        await asyncio.gather(*(driver.end() for driver in ended))

    async def rest(self) -> None:
        """Keep ending drivers that have been idle for too long; never returns."""
        while True:
            await asyncio.sleep(IDLE_S / 10)
            await self._end(lambda driver: time.monotonic() - driver.idle_since > IDLE_S)


async def keep(prepared: int) -> None:
    """Print ``PORT:TOKEN`` and serve until stdin ends; ``prepared`` drivers are started at once."""
    token = secrets.token_hex(16)
    keeper = Keeper(token)
    server = await asyncio.start_server(keeper.serve, HOST, 0, limit=LINE_BYTES)
    print(f"{server.sockets[0].getsockname()[1]}:{token}", flush=True)
    await keeper.prepare(prepared)
    resting = asyncio.ensure_future(keeper.rest())
    await asyncio.to_thread(sys.stdin.buffer.read)
    resting.cancel()
    server.close()
    # Exit at once, whatever is going on: running steps end with their drivers, and the drivers with this process.
    os._exit(0)


def start_keeper(env: Mapping[str, str], prepared: int = 0) -> tuple[subprocess.Popen[bytes], str]:
    """Start the keeper, and return its process and its address for the tasks' environment; closing its stdin ends it.

    Args:
        env: the whole environment of the keeper and its drivers.
        prepared: number of drivers to prepare at once, for work that is certain to come.

    Raises:
        InfrastructureError: it could not be started.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "chainlake.local.drivers.keeper", str(prepared)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(env),
        cwd=PROJECT,
        process_group=0,
        preexec_fn=die_with_parent(signal.SIGKILL),
    )
    assert process.stdout is not None
    address = process.stdout.readline().decode().strip()
    if not address:
        raise KeeperGone.not_started()
    return process, address


if __name__ == "__main__":
    asyncio.run(keep(int(sys.argv[1])))
