"""The proofs, which no test run runs: their programs begin, and have what they work on."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import pytest

from chainlake.local import guard
from chainlake.local.drivers.keeper import start_keeper
from chainlake.operations.status import all_definitions
from chainlake.paths import PROJECT, Home
from tests.proof import history, small
from tests.proof.victims import Victims

pytestmark = pytest.mark.slow

#: The modules that the Makefile runs.
NAMED = sorted(set(re.findall(r"-m (tests\.proof\.\w+)", (PROJECT / "Makefile").read_text(encoding="utf-8"))))


@pytest.mark.parametrize("module", NAMED)
def test_a_proof_can_be_started(module: str) -> None:
    package = (PROJECT / module.replace(".", "/")).is_dir()
    assert callable(import_module(f"{module}.__main__" if package else module).main)


def test_there_are_proofs() -> None:
    assert len(NAMED) >= 9


def test_the_small_installation_has_its_definitions(tmp_path: Path) -> None:
    with patch.dict(os.environ):
        home = small.installation(tmp_path / "whole")
        definitions, models, broken, lines = all_definitions(home)
    assert not broken and not lines and len(definitions) == 3 and len(models) == 1
    assert home.root == tmp_path / "whole" and home.lake == str(tmp_path / "whole" / "lake")


def test_the_installation_of_shipped_days_has_its_definitions(tmp_path: Path) -> None:
    with patch.dict(os.environ):
        definitions, models, broken, lines = all_definitions(history.installation(tmp_path / "alone", None))
    assert not broken and not lines and definitions and models


def test_the_keeper_of_drivers_is_found(tmp_path: Path) -> None:
    home = replace(Home.from_env(), root=tmp_path)
    process, _ = start_keeper(os.environ | {guard.MARK: str(tmp_path)})
    try:
        assert Victims(home, os.getpid()).keeper == process.pid
    finally:
        process.kill()
        process.wait()
