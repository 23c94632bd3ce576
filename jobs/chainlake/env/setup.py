"""Makes the virtual environment; the Makefile runs it before anything is installed.

It needs only the standard library, and every failure is one sentence.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import NoReturn

#: The lock file of the installer uv, with hashes like that of the packages.
INSTALLER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "installer.txt")
NEEDED_GB = 3.0
TRY_AGAIN = " Nothing is broken: run the same command again."


def stop(sentence: str) -> NoReturn:
    """Print one sentence and end the set-up."""
    sys.stderr.write("chainlake: " + sentence + "\n")
    sys.exit(5)


def check_disk(folder: str) -> None:
    """Stop unless there is room for the packages, for which 2.3 GB were measured."""
    free = shutil.disk_usage(folder).free / 1e9
    if free < NEEDED_GB:
        stop(
            f"{NEEDED_GB:.0f} GB of free disk are needed in {folder}, but only {free:.1f} GB are free. "
            "Free some space or move the folder."
        )


def run(command: list[str], log: str, problem: str) -> None:
    """Run ``command`` quietly with its output in ``log``; on failure, stop with ``problem`` and the printed reason."""
    with open(log, "ab") as out:
        before = out.tell()
        code = subprocess.call(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    if code == 0:
        return
    with open(log, "rb") as lines:
        lines.seek(before)
        text = lines.read().decode(errors="replace")[-20000:]
    network = ("error sending request", "Connection", "dns", "resolve host", "timed out", "NewConnectionError")
    no_space = ("No space left", "os error 28")
    if any(sign in text for sign in no_space):
        stop(f"{problem} because the disk is full. Free some space in {os.getcwd()}." + TRY_AGAIN)
    if any(sign in text for sign in network) or "No matching distribution found for uv" in text:
        stop(f"{problem} because the Python package index cannot be reached. Check the network or proxy." + TRY_AGAIN)
    if any(sign in text for sign in ("DO NOT MATCH THE HASHES", "Hash mismatch")):
        stop(
            f"{problem} because a file that was downloaded is not the one that was locked. See {log}; do not continue."
        )
    last = [line.strip() for line in text.splitlines() if line.strip()]
    stop("{} ({}). The whole output is in {}.".format(problem, last[-1][:300] if last else "no output", log))


def main(venv: str, requirements: str) -> None:
    """Create ``venv`` if it does not exist, and install ``requirements`` into it.

    Every file is compared with the lock's hashes, including the installer's own.
    """
    python = os.path.join(venv, "bin", "python")
    if not os.path.exists(os.path.join(venv, ".installed")):
        check_disk(os.getcwd())
    try:
        os.makedirs(venv, exist_ok=True)
    except OSError as error:
        stop(f"the folder {venv} cannot be made: {error}. Choose a folder that you can write to.")
    log = os.path.join(venv, "setup.log")
    have_pip = os.path.exists(python) and subprocess.call(
        [python, "-c", "import uv"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    if not os.path.exists(python) or have_pip != 0:
        print("chainlake: making .venv", flush=True)
        try:
            import ensurepip  # noqa: F401
        except ImportError:
            stop("this Python has no venv module. On Debian or Ubuntu: apt-get install -y python3.11-venv")
        run([sys.executable, "-m", "venv", venv], log, "the virtual environment cannot be made")
        checked = ["--quiet", "--require-hashes", "--only-binary", ":all:", "-r", INSTALLER]
        run([python, "-m", "pip", "install", *checked], log, "the installer uv cannot be installed")
    print("chainlake: installing the pinned packages (about a minute with a good network)", flush=True)
    # Compiled once here, since a run starts some sixty Python processes; where the environment forbids writing
    # bytecode, each of them would compile Airflow, pandas and Great Expectations again.
    install = [python, "-m", "uv", "pip", "install", "--compile-bytecode", "--python", python]
    install += ["--require-hashes", "-r", requirements]
    run(install, log, "the packages of requirements.txt cannot be installed")
    # The checkout itself, so that ``chainlake`` is a command and every process finds the package.
    own = [python, "-m", "uv", "pip", "install", "--python", python, "--no-deps", "--no-build-isolation", "-e", "."]
    run(own, log, "the checkout cannot be installed into the virtual environment")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
