"""Source YAML: what it means, and that mistakes are reported where they stand."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from datetime import date, timedelta

import pytest

from chainlake.definitions.source import load_source
from chainlake.errors import DefinitionError
from chainlake.ingest.landing.expected import LandedNames, expected_globs, glob_matches, missing_expected
from chainlake.ingest.path_fields import path_fields
from chainlake.paths import PROJECT

BASE = """\
key: ticker
type: Bar
attributes:
  price: {type: double}
formats:
  - time: {column: ts}
"""


def source(tmp_path, text=BASE, name="x"):
    path = tmp_path / f"{name}.yaml"
    path.write_text(text)
    return load_source(path)


@pytest.mark.parametrize("name", ["stock", "traffic", "sensor"])
def test_shipped_sources_load_and_travel_to_workers(name):
    found = load_source(PROJECT / "dags" / "config" / "sources" / f"{name}.yaml")
    assert found.name == name and found.settle == timedelta(0)
    assert pickle.loads(pickle.dumps(found)) == found
    assert list(found.event_columns())[:4] == ["type", found.key, "ts", "seq"]


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("type: double", "type: float", 4, "'float' is not allowed"),
        ("key: ticker", "key: event_id", 1, "cannot be the name of the key"),
        ("  price:", "  TICKER:", 4, "cannot be the name of an attribute"),
        ("key: ticker\n", "", 1, "'key' is missing"),
        ("type: Bar", "type: Bar\nidentity: both", 3, "'both' is not allowed"),
        ("type: Bar", "type: Bar\nlag: soon", 3, "not a duration"),
        ("type: Bar", "type: Bar\nzone: Mars", 3, "zone 'Mars' is not known"),
        ("type: Bar", "type: Bar\npath: '('", 3, "not a regular expression"),
        ("type: Bar", "type: Bar\nreplaces: [file_date]", 3, "needs the file's date"),
        ("type: Bar", "type: Bar\nexpect: ['a_{day}.csv']", 3, "not understood"),
        ("type: Bar", "type: Bar\nkey: b", 3, "duplicate key key"),
        ("- time", "- delimeter: x\n    time", 6, "unknown key"),
        ("{column: ts}", "{column: ts, format: julian}", 6, "time format"),
        ("{column: ts}", "{column: ts}\n    encoding: utf-9", 7, "encoding"),
        ("{column: ts}", "{column: ts, earliest: soon}", 6, "must be a day such as 2025-01-31, not 'soon'"),
        ("{column: ts}", "{column: ts, latest: 2025-01-31 10:00:00}", 6, "must be a day"),
        ("{column: ts}", "{column: ts, latest: 1850-01-31}", 6, "must not be after"),
        ("{column: ts}", "{column: ts}\n    map: {price: {path: p}}", 7, "path field"),
        ("key: ticker", "key: [", None, "not valid YAML"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path, old, new, line, what):
    assert old in BASE
    with pytest.raises(DefinitionError, match=what) as caught:
        source(tmp_path, BASE.replace(old, new, 1))
    assert caught.value.file.endswith("x.yaml")
    assert line is None or caught.value.line == line


def test_hash_moves_with_what_changes_rows_only(tmp_path):
    known = source(tmp_path).definition_hash
    same = BASE.replace("{type: double}", "{type: double, description: text}")
    same += "expect: ['{date}']\nlag: 1 d\nsettle: 1 s\ndescription: d\nderived: {last: 'history(price, 2, 1 h)'}\n"
    assert source(tmp_path, same).definition_hash == known
    assert source(tmp_path, BASE + "on_conflict: latest\n").definition_hash != known
    derived = source(tmp_path, same).derived[0]
    assert (derived.of, derived.count, derived.max_gap_us) == ("price", 2, 3_600_000_000)


def test_expected_files_of_a_utc_day(tmp_path):
    found = source(tmp_path, BASE + "expect: ['r_{date:%Y%m%d}*', 'r_{date-1:%Y%m%d}*', 'x_{date+1}.csv']\n")
    day = date(2025, 3, 1)
    assert expected_globs(found, day) == ["r_20250301*", "r_20250228*", "x_2025-03-02.csv"]
    names = LandedNames(["in/r_20250301.zip!a.csv", "r_20250228.csv"])
    assert missing_expected(found, day, names) == ["x_2025-03-02.csv"]
    assert glob_matches("*.zip", "a.zip!b.csv") and not glob_matches("*.gz", "a.zip!b.csv")


def test_path_fields(tmp_path):
    text = BASE + "path: '(?P<date>\\d{4}-\\d\\d-\\d\\d)_(?P<key>\\w+?)(?:_r(?P<revision>\\d+))?\\.csv'\n"
    found = source(tmp_path, text)
    assert path_fields(found, "a/2025-01-31_ibm_r10.csv")[1:] == (date(2025, 1, 31), 10, "")
    assert path_fields(found, "2025-01-31_ibm.csv") == (
        {"date": "2025-01-31", "key": "ibm"}, date(2025, 1, 31), 0, "",
    )  # fmt: skip
    assert path_fields(found, "2025-02-31_ibm.csv")[3] == "bad_path_date"
    assert path_fields(found, "other.csv") == ({}, None, 0, "")


@pytest.mark.slow
def test_an_index_of_names_finds_what_a_look_at_each_finds() -> None:
    rng = random.Random(5)

    def word() -> str:
        return "".join(rng.choices("ab1", k=rng.randint(0, 3)))

    def glob() -> str:
        return "".join(rng.choices(["a", "b", "1", "*", "?", "[ab]", "[!a]", "[", "]", "/", "."], k=rng.randint(0, 5)))

    found = Counter()
    for _ in range(100):
        paths = [rng.choice(["{}/{}.{}", "{}{}.zip!{}", "{}[{}]{}", "{}\U0010ffff{}{}"]).format(word(), word(), word())
                 for _ in range(rng.randint(0, 6))]  # fmt: skip
        names = LandedNames(paths)
        for _ in range(30):
            one = glob() if rng.random() < 0.7 or not paths else rng.choice(paths)
            plain = any(glob_matches(one, path) for path in paths)
            assert names.has(one) == plain, (one, paths)
            found[plain] += 1
    assert min(found.values()) > 150
    many = LandedNames(f"x/bars_{n:07}.csv" for n in range(100_000))
    assert all(many.has(f"bars_{n:07}*") and many.has(f"*_{n:07}.csv") for n in range(0, 100_000, 100))
