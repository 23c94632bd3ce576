"""``chainlake validate`` on a lake made by the steps: it passes as published and names what is broken later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from chainlake.cli.main import main
from chainlake.detect.step import detect
from chainlake.lake.records import ops
from chainlake.monitoring.step import monitor
from chainlake.paths import Home
from tests.steps.conftest import DAY

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pages")]

PAIR = """---
source: stock
---
PATTERN SEQ(Bar a, Bar b)
WHERE a.ticker = IBM AND b.ticker = IBM AND a.close > a.open AND b.close > a.close
WITHIN 2 min
"""
MODEL = """\
source: stock
start: 2013-10-07
nodes: [AIG, BAC, IBM, SPY]
response: close
features: [open]
round: {length: 5 min, min_nodes: 2}
window: {sliding: 12}
eps: 0.3
"""


def validate(home: Home, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and output of the verb for the one day."""
    capsys.readouterr()
    code = main(["validate", "stock", "2013-10-07", "2013-10-08"])
    out = capsys.readouterr().out
    assert f"Data Docs: {home.docs / 'index.html'}" in out
    return code, out


def pages_of(home: Home) -> set[Path]:
    """The pages of what was audited."""
    return set((home.docs / "validations").rglob("*.html"))


@pytest.fixture
def configured(stock_home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(stock_home.config))
    (stock_home.config / "models").mkdir()
    (stock_home.config / "models" / "slope.yaml").write_text(MODEL)
    return stock_home


def test_what_is_published_is_validated(
    configured: Home, add_pattern: Callable[[str, str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    home = configured
    add_pattern("pair", PAIR)
    assert detect(home, "stock", DAY, run_id="r1")["added"] > 0
    shown = pages_of(home)
    assert shown and (home.docs / "index.html").is_file()
    assert monitor(home, "stock", DAY, run_id="r2")["added"] > 1
    assert pages_of(home) > shown
    code, out = validate(home, capsys)
    assert (code, out.splitlines()[:-1]) == (
        0,
        [
            "contents of the tables of stock: ok, 1 day",
            "accounting of source stock: ok, 1 day",
            "pattern/pair: ok, 1 day",
            "model/slope: ok, 1 day",
        ],
    )

    DeltaTable(home.table("events", "stock")).delete("ticker = 'IBM'")
    DeltaTable(home.table("models", "metrics")).update({"max_error": "99.0"})
    row = ops.current(home, "event_days", source="stock")[0]
    ops.append(home, "event_days", [{**row, "duplicates": row["duplicates"] + 1}], "r3")
    code, out = validate(home, capsys)
    assert code == 1 and out.count("BROKEN") == 5
    assert "contents of events.stock: BROKEN" in out and "events ingested" in out
    assert "contents of models.metrics: BROKEN" in out and "but with other values" in out
    assert "raw rows = events + duplicates + conflicts + superseded" in out
    assert "every bound event exists in the events table" in out and "unknown_event=" in out
    assert "the guarantee holds" in out and "max_error" in out


def test_a_source_without_definitions_needs_no_session(
    configured: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import chainlake.lake.spark.session

    def no_session(*_: object, **__: object) -> None:
        raise AssertionError("nothing is published by Spark, and yet a session was started")

    monkeypatch.setattr(chainlake.lake.spark.session, "spark_session", no_session)
    code, out = validate(configured, capsys)
    assert (code, out.splitlines()[:-1]) == (
        0,
        ["contents of the tables of stock: ok, 1 day", "accounting of source stock: ok, 1 day"],
    )


def test_an_unknown_source_is_a_usage_error(configured: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "stocks", "2013-10-07", "2013-10-08"]) == 2
    assert "no source 'stocks'" in capsys.readouterr().err


def test_a_definition_that_cannot_be_read_is_named_after_the_others(
    configured: Home, add_pattern: Callable[[str, str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    add_pattern("wrong", PAIR.replace("a.close", "a.klose"))
    add_pattern("foreign", PAIR.replace("a.close", "a.klose").replace("source: stock", "source: traffic"))
    assert main(["validate", "stock", "2013-10-07", "2013-10-08"]) == 3
    said = capsys.readouterr()
    assert "contents of the tables of stock: ok" in said.out and "accounting of source stock: ok" in said.out
    assert "wrong.sase" in said.err and "foreign" not in said.err
