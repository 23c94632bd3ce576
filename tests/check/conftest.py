"""A small whole lake, made once per file of tests, and copies of it to be damaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from chainlake.paths import Home
from tests.check import lakes
from tests.replay.surroundings import quick


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A lake that nothing has befallen; steps run in their light mode as long as it is there."""
    with ExitStack() as stack:
        stack.enter_context(quick())
        stack.enter_context(lakes.place())
        yield lakes.make(tmp_path_factory.mktemp("whole lake"))


@pytest.fixture
def copy(whole: Home, tmp_path: Path) -> Home:
    """A copy of it to be damaged."""
    return lakes.copied(whole, tmp_path / "a copy")


@pytest.fixture
def named(copy: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A copy that the verbs of the command line find."""
    monkeypatch.setenv("CHAINLAKE_HOME", str(copy.root))
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(copy.config))
    monkeypatch.delenv("CHAINLAKE_LAKE", raising=False)
    return copy
