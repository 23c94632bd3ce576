"""What the events inside a match mean, in the match table itself: the words and units of the source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import chainlake.catalog.patterns as catalog
from chainlake.detect.step import detect
from chainlake.lake.delta import tables
from chainlake.paths import Home
from chainlake.schemas.matches import MatchShape, matches_table
from tests.steps.conftest import DAY

pytestmark = pytest.mark.slow

PAIR = """---
source: stock
output: [close, volume]
---
PATTERN SEQ(Bar a, Bar+ b)
WHERE a.ticker = IBM AND b.ticker = IBM AND b.close > a.close AND a.volume > 20000
WITHIN 2 min
"""
MEANINGS = {
    "event_id": "Hash that identifies the event, 128 bit, hex.",
    "ts": "Time of the event, UTC.",
    "type": "Event type.",
    "ticker": "Key of the event's series.",
    "close": "Last price of the minute [USD]",
    "volume": "Shares traded in the minute [shares]",
}


def _inside(home: Home) -> dict[str, dict[str, Any]]:
    """The comments of the fields of ``a`` and of the elements of ``b``, as Delta has them."""
    found = {field.name: field.type for field in DeltaTable(home.table("matches", "pair")).schema().fields}
    structs: dict[str, Any] = {"a": found["a"], "b": found["b"].element_type}
    return {name: {one.name: one.metadata.get("comment") for one in of.fields} for name, of in structs.items()}


def test_the_fields_of_an_event_in_a_match_have_the_words_and_units_of_the_source(
    stock_home: Home, add_pattern: Callable[[str, str], Path]
) -> None:
    add_pattern("pair", PAIR)
    detect(stock_home, "stock", DAY, run_id="r1")
    # Also after the commit that added the rows.
    assert tables.version(stock_home, "matches", "pair") == 1
    assert _inside(stock_home) == {"a": MEANINGS, "b": MEANINGS}


def test_a_table_of_before_has_the_same_columns_and_is_not_computed_again(
    stock_home: Home, add_pattern: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_pattern("pair", PAIR)

    def bare(shape: MatchShape) -> Any:
        return matches_table(MatchShape(shape.pattern, shape.version, shape.source, shape.names))

    with monkeypatch.context() as before:
        before.setattr(catalog, "matches_table", bare)
        detect(stock_home, "stock", DAY, run_id="r1")
    assert set(_inside(stock_home)["b"].values()) == {None}
    detect(stock_home, "stock", DAY, run_id="r2")
    assert tables.version(stock_home, "matches", "pair") == 1
    add_pattern("pair", PAIR.replace("20000", "10000"))
    detect(stock_home, "stock", DAY, run_id="r3")
    assert tables.version(stock_home, "matches", "pair") == 2 and not tables.exists(stock_home, "matches", "pair/v2")
