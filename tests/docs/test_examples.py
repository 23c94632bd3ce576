"""The examples in docstrings do what they say, and every public name has one."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
from pathlib import Path

import pytest

import chainlake

#: Modules with examples are found by their text, so that nothing has to be imported that has none.
WITH_EXAMPLES = sorted(
    one.name
    for one in pkgutil.walk_packages(chainlake.__path__, "chainlake.")
    if (spec := one.module_finder.find_spec(one.name, None)) is not None  # type: ignore[call-arg]
    and spec.origin is not None
    and ">>> " in Path(spec.origin).read_text()
)


@pytest.mark.parametrize("name", ["chainlake", *WITH_EXAMPLES])
def test_examples_do_what_they_say(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
    assert result.attempted > 0


@pytest.mark.parametrize("name", chainlake.__all__)
def test_a_public_name_has_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(chainlake, name)) or "")


@pytest.mark.parametrize("name", chainlake.__all__)
def test_a_public_name_is_no_room(name: str) -> None:
    """An import of a room of that name would put the room in the function's place."""
    assert importlib.util.find_spec(f"chainlake.{name}") is None
