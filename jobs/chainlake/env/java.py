"""Finds a Java on which Spark 4.1 runs (17 or 21), or says how to install one. Uses only the standard library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from chainlake.errors import InfrastructureError

WANTED = (17, 21)


def java_version(java: Path) -> int | None:
    """The major version that ``java -version`` reports, or None if it is not a working Java."""
    try:
        done = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if done.returncode != 0 or found is None:
        return None
    # Java 8 and older call themselves 1.8.
    return int(found[2] or 0) if found[1] == "1" else int(found[1])


def _candidates() -> Iterator[Path]:
    """Java executables in the order in which they are tried: JAVA_HOME, PATH, then the usual folders."""
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        # macOS has a stub /usr/bin/java that only opens a dialogue; java_version rejects it.
        yield Path(os.path.realpath(on_path))
    folders = (
        "/usr/lib/jvm/*/bin/java",
        "/opt/*/bin/java",
        "/Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java",
        "/opt/homebrew/opt/openjdk@*/bin/java",
        "/usr/local/opt/openjdk@*/bin/java",
    )
    for pattern in folders:
        yield from sorted(Path("/").glob(pattern[1:]))


def install_hint() -> str:
    """The command that installs Java 17 on this kind of machine."""
    if sys.platform == "darwin":
        return "Install it with: brew install openjdk@17"
    for tool, command in (
        ("apt-get", "apt-get install -y openjdk-17-jre-headless"),
        ("dnf", "dnf install -y java-17-openjdk-headless"),
        ("apk", "apk add openjdk17-jre-headless"),
        ("pacman", "pacman -S jre17-openjdk-headless"),
    ):
        if shutil.which(tool):
            sudo = "" if os.geteuid() == 0 else "sudo "
            return f"Install it with: {sudo}{command}"
    return "Install a Java 17 or 21 runtime and set JAVA_HOME to its folder."


class JavaMissing(InfrastructureError):
    """There is no Java of a version on which Spark runs."""

    found: str

    @classmethod
    def of(cls, found: str) -> JavaMissing:
        """For the versions that were found, in one string."""
        seen = f"only Java {found} was found" if found else "no Java was found"
        return cls(f"Java 17 or 21 is needed and {seen}", hint=install_hint()).holding(found=found)


@cache
def java_home() -> Path:
    """The home folder of a Java 17 or 21.

    Raises:
        InfrastructureError: none was found; the message says which versions were seen, and how to install one.
    """
    seen: dict[str, int] = {}
    for java in _candidates():
        if not java.is_file() or str(java) in seen:
            continue
        version = java_version(java)
        if version in WANTED:
            return java.parent.parent
        if version is not None:
            seen[str(java)] = version
    found = ", ".join(f"{version} at {path}" for path, version in seen.items())
    raise JavaMissing.of(found)


def use_java() -> Path:
    """Set JAVA_HOME for this process and its children, and return it; raises what :func:`java_home` raises."""
    home = java_home()
    os.environ["JAVA_HOME"] = str(home)
    return home
