"""What is kept while a suite is validated is what Great Expectations would make, after every audit of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chainlake.quality import configurations


@pytest.fixture(autouse=True)
def configurations_are_those_made_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither changed by whoever got them nor of an expectation that changed."""
    kept = configurations.kept

    @contextmanager
    def compared() -> Iterator[configurations.Kept]:
        with kept() as found:
            yield found
        assert found, "an audit asks for configurations"
        for one, configuration in found.values():
            assert configuration == one.configuration, one

    monkeypatch.setattr(configurations, "kept", compared)
    yield
