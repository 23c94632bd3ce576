"""Real files with known dirt (tests/cases/messy): counts verified by hand, variants equal to the clean reference."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from chainlake.ingest.events.local import in_order, resolve_local
from chainlake.ingest.rows.parsed import raw_schema
from tests.ingest.test_parse import MESSY, Parsed

PEMS = (Path(__file__).parent / "sources" / "pems.yaml").read_text()
VALUES = ("ts", "detector", "flow", "occupancy", "speed", "pct_observed")


def rows_of(tmp_path: Path, *names: str) -> Parsed:
    return Parsed(tmp_path, PEMS, **{name: (MESSY / name).read_bytes() for name in names})


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    found = rows_of(tmp_path_factory.mktemp("reference"), "pems_clean_reference.csv")
    assert (len(found.rows), found.bad) == (2304, [])
    return {row[:2]: row for row in found.values(*VALUES)}


@pytest.mark.parametrize("mark", ["bom", "cp1252"])
def test_european_variants_equal_the_reference(tmp_path, reference, mark):
    found = rows_of(tmp_path, f"pems_eu_{mark}_semicolon_decimalcomma.csv")
    assert found.bad == []
    assert {row[:2]: row for row in found.values(*VALUES)} == reference


def test_three_headers_of_one_day_equal_the_reference_on_the_columns_they_have(tmp_path, reference):
    names = ("pems_header_v1_0000_0755.csv", "pems_header_v2_0800_1555.csv", "pems_header_v3_1600_2355.csv")
    found = rows_of(tmp_path, *names)
    assert found.bad == [] and len(found.rows) == 2304
    missing = 0
    for row in found.values(*VALUES):
        known = reference[row[:2]]
        # v2 has no column for the measured share.
        missing += row[5] is None
        assert row[2:5] == known[2:5] and row[5] in (None, known[5])
    assert missing == 768


def test_dirty_file_has_the_dirt_that_was_injected(tmp_path):
    injected = json.loads((MESSY / "pems_dirty_injected.json").read_text())
    found = rows_of(tmp_path, "pems_dirty.csv")
    assert found.bad == [] and len(found.rows) == injected["rows_after"]
    kinds = injected["measured in the file (after duplicates and gap)"]
    empty = sum(row["speed"] is None for row in found.rows)
    assert empty == sum(kinds.values())
    keys = Counter((row["ts"], row["detector"]) for row in found.rows)
    repeats = sum(n - 1 for n in keys.values())
    assert repeats == injected["measured: duplicate (Timestamp,Station) keys"]
    whole = Counter(tuple(row) for row in found.values(*VALUES))
    assert sum(n - 1 for n in whole.values()) >= injected["measured: exact duplicate rows"]


def test_dirty_file_resolves_to_one_reading_per_detector_and_time(tmp_path):
    injected = json.loads((MESSY / "pems_dirty_injected.json").read_text())
    found = rows_of(tmp_path, "pems_dirty.csv")
    files = in_order(list(found.landing.files.values()))
    resolved = resolve_local(found.source, files, [pa.Table.from_pylist(found.rows, raw_schema(found.source))])
    assert resolved.duplicates == injected["measured: exact duplicate rows"] == 75
    assert resolved.conflicts == injected["conflicting duplicate keys added (AvgSpeed+5)"] == 40
    assert len(resolved.events) == injected["rows_after"] - 115 == 2286


def test_mixed_offsets_across_a_change_of_the_clock(tmp_path):
    yaml = (
        "key: ticker\ntype: Bar\nzone: America/New_York\nattributes:\n  close: {type: double}\n  volume: {type: long}\n"
        "formats:\n  - time: {column: ts, format: iso}\n"
    )
    found = Parsed(tmp_path, yaml, **{"a.csv": (MESSY / "shy_mixed_utc_offsets.csv").read_bytes()})
    assert (len(found.rows), found.bad) == (652, [])
    days = Counter(row["ts"].date().isoformat() for row in found.rows)
    assert days == {"2008-03-07": 336, "2008-03-10": 316}
    assert found.rows[0]["ts"].isoformat() == "2008-03-07T13:54:00+00:00"
