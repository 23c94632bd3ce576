"""Whether the containers are what compose.yaml says: healthy, bounded, without rights, and silent about secrets."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

from tests.proof.containers.images import ACCOUNT
from tests.proof.containers.services import Services

#: Where the kernel says the bounds of a container, in groups of version 2 and of version 1.
_GROUPS = "/sys/fs/cgroup"
_MEMORY = (f"{_GROUPS}/memory.max", f"{_GROUPS}/memory/memory.limit_in_bytes")
_PIDS = (f"{_GROUPS}/pids.max", f"{_GROUPS}/pids/pids.max")
_CPU_2 = f"{_GROUPS}/cpu.max"
_CPU_1 = (f"{_GROUPS}/cpu/cpu.cfs_quota_us", f"{_GROUPS}/cpu/cpu.cfs_period_us")
_UNITS = {"m": 1 << 20, "g": 1 << 30}
_HEALTHY_WITHIN_S = 300.0
#: The service whose bound of memory is passed, the gibibytes that do it, and how the kernel ends who does.
_BURST, _KILLED = ("init", 2), 137


def faults(services: Services) -> Iterator[str]:
    """What is wrong with the containers that run, a line each."""
    yield from healthy(services)
    declared, there = services.declared, services.containers()
    for name, container in there.items():
        if name != "init":
            yield from (f"{name}: {line}" for line in _unbounded(services, name, declared[name]))
            yield from (f"{name}: {line}" for line in _privileged(services, name, declared[name]))
        yield from (f"{name}: {line}" for line in _told(services, name, container))
    yield from _unended(services)


def healthy(services: Services) -> Iterator[str]:
    """Services that do not run or are not healthy; they get some time."""
    until = time.monotonic() + _HEALTHY_WITHIN_S
    while (found := list(_unhealthy(services))) and time.monotonic() < until:
        time.sleep(1)
    yield from found


def _unhealthy(services: Services) -> Iterator[str]:
    there = services.containers()
    for name, declared in services.declared.items():
        if name not in there:
            if "profiles" not in declared:
                yield f"{name}: there is no container"
            continue
        state = there[name]["State"]
        if name == "init":
            if (state["Status"], state["ExitCode"]) != ("exited", 0):
                yield f"{name}: {state['Status']}, exit code {state['ExitCode']}"
        elif (found := state.get("Health", {}).get("Status")) != "healthy":
            yield f"{name}: {state['Status']}, {found}"


def _unbounded(services: Services, name: str, declared: dict[str, Any]) -> Iterator[str]:
    """Bounds that the kernel does not know, or has otherwise."""

    def read(*files: str) -> str:
        script = "".join(f"if [ -f {file} ]; then cat {file}; exit; fi; " for file in files)
        return services.within(name, "sh", "-c", script)

    size, unit = re.findall(r"^(\d+)([mg])$", declared["mem_limit"])[0]
    if (found := read(*_MEMORY)) != str(int(size) * _UNITS[unit]):
        yield f"memory of {found} bytes, not {declared['mem_limit']}"
    if "pids_limit" in declared and (found := read(*_PIDS)) != str(declared["pids_limit"]):
        yield f"{found} processes, not {declared['pids_limit']}"
    quota, period = (read(_CPU_2) or " ".join(read(file) for file in _CPU_1)).split()
    if int(quota) != declared["cpus"] * int(period):
        yield f"{quota} of {period} microseconds of a core, not {declared['cpus']} cores"


def _privileged(services: Services, name: str, declared: dict[str, Any]) -> Iterator[str]:
    """Rights that the first process has and should not have."""
    status = dict(re.findall(r"^(\w+):\s+(.*)$", services.within(name, "cat", "/proc/1/status"), re.MULTILINE))
    if status["NoNewPrivs"] != "1":
        yield "it can get new privileges"
    if declared.get("cap_drop") == ["ALL"] and int(status["CapBnd"], 16):
        yield f"it has capabilities: {status['CapBnd']}"
    if declared["image"].startswith("chainlake:") and set(status["Uid"].split()) != {str(ACCOUNT)}:
        yield f"it runs as {status['Uid']}"


def _told(services: Services, name: str, container: dict[str, Any]) -> Iterator[str]:
    """Secrets in what the daemon says of a container, in its command lines, or in its log."""
    there = container["State"]["Running"]
    places = {
        "environment": "\n".join(container["Config"]["Env"]),
        "command lines": services.said("docker", "top", container["Id"], "-eo", "pid,args") if there else "",
        "log": _log(services, container["Id"]),
    }
    for secret, text in services.secrets.items():
        yield from (f"the secret {secret} is in its {where}" for where, said in places.items() if text in said)


def _log(services: Services, container: str) -> str:
    done = subprocess.run(["docker", "logs", container], env=services.environment, check=True, capture_output=True)
    return (done.stdout + done.stderr).decode(errors="replace")


def _unended(services: Services) -> Iterator[str]:
    """Who takes more memory than a service may is ended, and nobody else."""
    name, gibibytes = _BURST
    for size, wanted in ((gibibytes << 30, _KILLED), (64 << 20, 0)):
        code = services.alone(name, "python", "-c", f"taken = b'x' * {size}")
        if code != wanted:
            yield f"{name}: {size} bytes were taken with exit code {code}, not {wanted}"
