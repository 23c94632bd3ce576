"""The line that is logged when a phase ends."""

from __future__ import annotations

import logging
from datetime import date

import pytest

from chainlake.days import Days
from chainlake.lake.records.runs import LOG, phase
from chainlake.paths import Home


def test_a_phase_of_several_definitions_says_which(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    days = Days(date(2025, 10, 1), date(2025, 10, 3))
    with caplog.at_level(logging.INFO, LOG.name):
        with phase(home, "r", source="s", step="detect", phase="detect", days=days) as row:
            row.about = "pattern/p, pattern/q"
        with phase(home, "r", source="s", step="detect", phase="detect", definition="pattern/p", days=days):
            pass
    first, second = (record.getMessage() for record in caplog.records if record.name == LOG.name)
    assert first.startswith(f"detect pattern/p, pattern/q {days}: ok, ")
    assert second.startswith(f"detect pattern/p {days}: ok, ")
