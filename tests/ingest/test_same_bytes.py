"""When bytes are what they were: under another name, in another format, with the time of the bytes before."""

from __future__ import annotations

import pytest

from chainlake.ingest.landing import discovery
from chainlake.ingest.landing.plan import path_key
from tests.ingest.test_discovery import TEXT, Place, zipped
from tests.ingest.test_parse import BARS, Parsed, parsed

pytestmark = pytest.mark.slow

#: Whose rows a file holds stands in its name alone, and the name chooses the format that says so.
SITES = """\
key: site
type: Reading
attributes: {value: {type: double}}
path: '(?P<date>\\d{8})'
formats:
  - {glob: 'ny_*', time: {column: ts}, map: {site: {constant: NY}}}
  - {glob: 'la_*', time: {column: ts}, map: {site: {constant: LA}}}
"""
NOTHING = "ts,value\n2025-01-01T10:00:00,0\n2025-01-01T11:00:00,0\n"
BOTH = [(site, f"2025-01-01 {hour}:00:00", 0.0) for site in ("LA", "NY") for hour in (10, 11)]


@pytest.fixture
def place(tmp_path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("together", [True, False])
def test_bytes_that_formats_of_two_names_read_in_two_ways_count_twice(lake, together):
    (lake.home.config / "sources" / "sites.yaml").write_text(SITES)
    for name in ("ny_20250101.csv", "la_20250101.csv"):
        lake.land("sites", name, NOTHING)
        if not together:
            lake.ingest("sites", "2025-01-01", "2025-01-02")
    if together:
        assert lake.ingest("sites", "2025-01-01", "2025-01-02")["added"] == 4
    assert lake.events("sites", "site", "ts", "value") == BOTH
    # Under another name that the same formats take, they are the same content.
    lake.land("sites", "more/la_20250101.csv", NOTHING)
    assert lake.ingest("sites", "2025-01-01", "2025-01-02")["published"] is None
    assert len({row["file_id"] for row in lake.files("sites").values()}) == 2


def test_other_bytes_with_size_and_time_of_the_bytes_before_are_found(place, monkeypatch):
    monkeypatch.setattr(discovery, "_MTIME_GRAIN_S", 0.0)
    before = place.look().files["good.csv"]
    assert place.look().files["good.csv"] == before
    file = place.folder / "good.csv"
    number = file.stat().st_ino
    # As a tool writes that puts back the time of what it has changed.
    place.put("good.csv", TEXT.replace("A,1\n", "A,9\n"))
    assert (file.stat().st_ino, file.stat().st_size, file.stat().st_mtime) == (number, len(TEXT), 1e9)
    assert place.look().files["good.csv"].checksum != before.checksum


def test_a_checksum_is_not_remembered_of_a_file_that_was_just_written_with_an_old_time(place):
    place.look()
    assert not (place.home.root / "cache" / "checksums-x.json").exists()


def test_members_of_an_archive_have_the_names_that_files_have(place):
    members = {
        "./day/20250101.csv": TEXT,
        "__MACOSX/._20250101.csv": "\0\5\26\7\0\2",
        ".20250102.csv": TEXT,
        ".git/20250103.csv": TEXT,
        "20250104.csv.part": TEXT,
    }
    place.put("a.zip", zipped(**members))
    assert list(place.look().files) == ["a.zip!./day/20250101.csv", "good.csv"]
    # What is left of an archive with nothing else is told.
    place.put("a.zip", zipped(**{".20250102.csv": TEXT}))
    assert place.look().files["a.zip"].detail == "the archive has no member that a format takes"


@pytest.mark.parametrize("wide", [False, True])
def test_an_optional_column_that_a_file_has_twice_is_not_read(tmp_path, wide):
    """The one that comes first would be as good as the other."""
    more = "    unpivot: {columns: [a, b], into: price}\n" if wide else "    map: {price: b}\n"
    yaml, key = BARS + more + "    optional: [b]\n", "x" if wide else "ticker"
    found = parsed(tmp_path, f"ts,{key},a,b,b\n2025-01-01,A,1,2,3\n", yaml)
    assert [bad[:2] for bad in found.bad] == [(0, "no_format")] and not found.rows
    assert "the column 'b' is given twice" in found.bad[0][4]
    once = tmp_path / "once"
    once.mkdir()
    assert len(parsed(once, f"ts,{key},a,b\n2025-01-01,A,1,2\n", yaml).rows) == 1 + wide


@pytest.mark.parametrize(
    ("name", "case", "key"),
    [
        ("stra\xdfe_20250101", "upper", None),
        ("\xc4rger _20250101", "lower", None),
        ("spy_20250101", "upper", "SPY"),
        (" _20250101", "upper", None),
    ],
)
def test_the_key_of_a_path_is_the_one_that_its_rows_get(tmp_path, name, case, key):
    """Of an empty correction the path alone says whose rows it takes back."""
    yaml = BARS.replace("formats:", "path: '(?P<key>[^_]+)_(?P<date>\\d{8})'\nformats:")
    yaml += f"    map: {{ticker: {{path: key, case: {case}}}}}\n"
    found = Parsed(tmp_path, yaml, **{f"{name}.csv": "ts,price,volume,note\n2025-01-01,1,1,\n"})
    (landed,) = found.landing.files.values()
    given = path_key(found.source, landed.path, landed.fields)
    assert [given] == ([row["ticker"] for row in found.rows] or [None])
    assert key is None or given == key


def test_the_key_of_a_path_is_asked_of_the_formats_that_take_it(tmp_path):
    yaml = BARS.replace("formats:", "path: '(?P<key>[a-z]+)_(?P<date>\\d{8})'\nformats:")
    yaml = yaml.replace("  - time", "  - glob: 'own_*'\n    time") + "    map: {ticker: {path: key}}\n"
    yaml += "  - time: {column: ts, format: iso}\n"
    text = "ts,ticker,price,volume,note\n2025-01-01,A,1,1,\n"
    found = Parsed(tmp_path, yaml, **{"own_20250101.csv": text, "all_20250102.csv": text})
    keys = {path: path_key(found.source, path, one.fields) for path, one in found.landing.files.items()}
    assert keys == {"own_20250101.csv": "own", "all_20250102.csv": None}
    assert found.values("ticker") == [("A",), ("own",)]
