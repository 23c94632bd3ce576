"""``explain --near-misses`` on ingested days, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chainlake.cli.main import main
from chainlake.paths import Home
from tests.shipped.test_shipped_patterns import COUNTS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["shakeout", "fall_not_recovered"])
def test_days_of_the_lake_are_searched(
    stock_home: Home,
    add_pattern: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(stock_home.config))
    file = add_pattern(name, name)
    assert main(["explain", str(file), "--near-misses", "2013-10-07", "2013-10-08"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert f"  matches decided on these days: {COUNTS[name]['2013-10-07']}" in out
    # Each name sees the 2,309 bars of the day, and what its own conditions leave of them goes on.
    assert sum(": 2,309 looked at" in line for line in out) == (2 if name == "shakeout" else 3)
    ended = [line for line in out if " rejected by: " in line]
    assert any("down.close <= down.open * (1 - 0.001)" in line for line in ended)
    last = "back.close >= down.open" if name == "shakeout" else "a forbidden rebound where"
    at = next(i for i, line in enumerate(out) if f"rejected by: {last}" in line)
    assert out[at + 1].startswith("      down 2013-10-07T") and "ticker=" in out[at + 1] and "open=" in out[at + 1]


def test_history_patterns_are_searched_too(
    stock_home: Home,
    add_pattern: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(stock_home.config))
    assert main(["explain", str(add_pattern("echo", "echo")), "--near-misses", "2013-10-07", "2013-10-08"]) == 0
    out = capsys.readouterr().out
    assert "and for last_closes the values of close up to 20 min before them" in out
    assert "rejected by: corr(market.last_closes, share.last_closes) > 0.95" in out
    assert "  matches decided on these days: 0" in out
