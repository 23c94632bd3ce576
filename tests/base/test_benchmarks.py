"""What benchmarks and proofs import from the package is there: nobody runs them every day, mypy does not read them."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.processes import PeakMemory
from chainlake.lake.spark import session
from chainlake.paths import PROJECT

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("folder", ["benchmarks", "tests/proof"])
def test_what_they_import_from_the_package_exists(folder: str) -> None:
    missing, seen = [], 0
    for path in sorted((PROJECT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(("chainlake.", "tests.")):
                continue
            module = importlib.import_module(str(node.module))
            for one in node.names:
                seen += 1
                try:
                    # A name may be one of a module, or a module of a room.
                    getattr(module, one.name, None) or importlib.import_module(f"{node.module}.{one.name}")
                except ModuleNotFoundError:
                    missing.append(f"{path.name}:{node.lineno}: {node.module} has no {one.name}")
    assert missing == [] and seen > 100


def test_the_workers_of_this_machine_are_measured_as_such() -> None:
    daemon = session._forked_workers(Path("code.zip"))["spark.python.daemon.module"]
    asleep = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)", "-m"]
    for module in (daemon, "pyspark.daemon"):
        with PeakMemory() as memory:
            process = subprocess.Popen([*asleep, module, "pyspark.worker"], stdout=subprocess.PIPE)
            assert process.stdout is not None and process.stdout.readline()
            memory._look()
            process.kill()
            process.wait()
        assert memory.peak["worker"] > 0
