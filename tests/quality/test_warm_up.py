"""Great Expectations is imported while the step goes on, so that thread must not share half-made modules with it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest

from chainlake.paths import CODE
from chainlake.quality import audit

#: Prints the modules of other packages that the thread looked for first.
THREAD = """
import json, sys, threading
from importlib.abc import MetaPathFinder

class Seen(MetaPathFinder):
    names = set()

    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is not threading.main_thread():
            self.names.add(name)

import chainlake.detect.step, chainlake.ingest.step, chainlake.local.drivers.driver, chainlake.monitoring.step
from chainlake.quality import warm_up

sys.meta_path.insert(0, Seen())
warm_up().join()
print(json.dumps(sorted(Seen.names & set(sys.modules))))
"""


def imported() -> set[str]:
    """The modules of other packages that the code names in its imports, wherever these stand."""
    names = set()
    for file in CODE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in names if name.split(".")[0] not in sys.stdlib_module_names}


@pytest.mark.slow
def test_the_thread_imports_nothing_that_our_code_imports_too() -> None:
    """Two threads that import PySpark at once: cannot import name 'SQLContext' from partially initialized module."""
    done = subprocess.run([sys.executable, "-c", THREAD], capture_output=True, text=True, check=True)
    seen = set(json.loads(done.stdout.splitlines()[-1]))
    assert "great_expectations" in seen
    ours = {name for name in imported() if not name.startswith("great_expectations")}
    assert seen & ours == set()


def test_packages_that_are_not_installed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The `lake` extra has no psycopg2."""
    monkeypatch.setattr(audit, "_SHARED", ("not_installed.extensions", "json.tool"))
    monkeypatch.delitem(sys.modules, "json.tool", raising=False)
    audit._import_shared()
    assert "json.tool" in sys.modules
