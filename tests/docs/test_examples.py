"""Examples in docstrings do what they show."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["chainlake", "chainlake.definitions.duration"])
def test_examples_of_a_module(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module))
    assert found.attempted and not found.failed
