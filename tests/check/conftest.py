"""A small whole lake, made once, and copies of it to be damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainlake.paths import Home
from tests.check import lakes
from tests.replay.surroundings import quick


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A lake that nothing has befallen."""
    with quick(), lakes.place():
        return lakes.make(tmp_path_factory.mktemp("whole lake"))


@pytest.fixture(scope="module")
def whole(made: Home) -> Iterator[Home]:
    """The same; steps run in their light mode as long as it is there."""
    with quick(), lakes.place():
        yield made


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
