"""Linear algebra takes one thread in every process of ours, unless somebody asks for more."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from chainlake.env.threads import one_thread_each
from chainlake.local.settings import base_environment
from chainlake.paths import Home

PROGRAM = (
    "import os, sys; from chainlake.cli import main as line\n"
    "line.main = lambda *given: print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules) or 0\n"
    "line.{}"
)


@pytest.mark.parametrize("call", ["command()", "run_verb('status')"])
@pytest.mark.parametrize("given", [None, "3"])
def test_the_command_line_asks_before_numpy_is_there(call: str, given: str | None) -> None:
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    env |= {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(call)], env=env, capture_output=True, text=True)
    assert (done.stdout.split(), done.returncode) == ([given or "1", "False"], 0), done.stderr


def test_what_the_environment_says_stays(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"MKL_NUM_THREADS": "4"}
    one_thread_each(asked)
    assert asked == {"MKL_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    found = base_environment(home)
    assert (found["OPENBLAS_NUM_THREADS"], found["OMP_NUM_THREADS"]) == ("1", "2")
