"""Patterns of an installation say how far back they read: a window, or a limit, and how long ago PREV may look."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chainlake.catalog.patterns import load_patterns
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.paths import PROJECT, Home

MINUTE = 60_000_000


def load(tmp_path: Path, query: str, more: str = "") -> tuple[list, list]:
    """The pattern of an installation that has one of this query."""
    for folder in ("sources", "patterns", "models"):
        (tmp_path / folder).mkdir()
    (tmp_path / "sources" / "stock.yaml").write_bytes((PROJECT / "dags/config/sources/stock.yaml").read_bytes())
    (tmp_path / "patterns" / "one.sase").write_text(f"---\nsource: stock\n{more}---\nPATTERN {query}\n")
    home = Home(tmp_path, str(tmp_path / "lake"), tmp_path, tmp_path)
    return load_patterns(home, load_sources(home))


@pytest.mark.parametrize(
    ("query", "what", "hint"),
    [
        ("SEQ STRICT OF KEY (Bar+ b) PAUSE 5 min MAXIMAL", "one has no WITHIN", "limits: {longest: 12 h}"),
        (
            "SEQ STRICT (Bar a, Bar b) WHERE b.close > PREV(b.close) WITHIN 5 min",
            "PREV(b.close) does not say how long ago",
            "PREV(b.close, 1, 10 min)",
        ),
        (
            "SEQ(Bar a, Bar b) WHERE b.close > 2 * PREV(b.close, 3) WITHIN 5 min",
            "PREV(b.close) does not say how long ago",
            "PREV(b.close, 3, 10 min)",
        ),
        ("SEQ(Bar a, Bar b) RANK BY MAX(b.close) TOP 2 PER DAY", "one has no WITHIN", "Add WITHIN 12 h"),
    ],
)
def test_what_would_read_without_a_stated_bound_is_refused_by_name(
    tmp_path: Path, query: str, what: str, hint: str
) -> None:
    good, (broken,) = load(tmp_path, query, "description: A pause without PREV, by rank # PAUSE\n")
    assert not good and broken.name == "one"
    assert what in str(broken.error) and hint in str(broken.error)
    word = next(word for word in ("PREV", "PAUSE", "RANK") if word in query)
    assert (broken.error.line, broken.error.column) == (5, len("PATTERN ") + query.index(word) + 1)


@pytest.mark.parametrize(
    ("query", "more", "late", "back"),
    [
        ("SEQ STRICT OF KEY (Bar+ b) PAUSE 5 min MAXIMAL", "limits: {longest: 2 h}\n", 5, 130),
        ("SEQ STRICT OF KEY (Bar+ b) PAUSE 5 min", "limits: {longest: 2 h}\n", 0, 130),
        ("SEQ STRICT (Bar a, Bar+ b) WITHIN 1 h PAUSE 5 min OUTERMOST", "", 5, 120),
        ("SEQ(Bar a, Bar? b, Bar c) WITHIN 1 h MAXIMAL", "", 60, 120),
        ("SEQ STRICT (Bar a, Bar b) WHERE b.close > PREV(b.close, 2, 5 min) WITHIN 1 h", "", 0, 70),
        ("SEQ STRICT (Bar a, Bar b) WHERE b.close > PREV(b.close) WITHIN 1 h PAUSE 5 min", "", 0, 65),
    ],
)
def test_days_know_how_far_they_read_and_how_late_they_decide(
    tmp_path: Path, query: str, more: str, late: int, back: int
) -> None:
    ((compiled,), broken) = load(tmp_path, query, more)
    assert not broken
    start, end = Days.one(date(2013, 10, 7)).micros()
    assert compiled.definition.late_us == late * MINUTE
    assert compiled.definition.read_range(date(2013, 10, 7)) == (start - back * MINUTE, end)


def test_the_limit_of_stretches_is_part_of_the_definition(tmp_path: Path) -> None:
    query = "SEQ STRICT OF KEY (Bar+ b) PAUSE 5 min MAXIMAL"
    hashes = set()
    for number, limit in enumerate(("1 h", "60 min", "2 h")):
        (tmp_path / str(number)).mkdir()
        ((one,), _) = load(tmp_path / str(number), query, f"limits: {{longest: {limit}}}\n")
        hashes.add(one.pattern.definition_hash)
    assert len(hashes) == 2


def test_a_pattern_that_publishes_some_of_its_matches_has_a_version_of_its_own(tmp_path: Path) -> None:
    versions = {}
    for tail in ("", " SELECT first", " CONTEXT recent", " MAXIMAL"):
        root = tmp_path / f"w{len(versions)}"
        root.mkdir()
        second = "Bar+ b" if tail == " MAXIMAL" else "Bar b"
        (good,), _ = load(root, f"SEQ(Bar a, {second}) WITHIN 5 min{tail}")
        versions[tail] = good.definition.engine_version
    assert versions == {"": 5, " SELECT first": 6, " CONTEXT recent": 6, " MAXIMAL": 6}


@pytest.mark.parametrize("tail", ["SELECT first", "RANK BY MAX(c.close) TOP 1 PER DAY"])
def test_names_that_alternatives_have_in_another_order_make_a_version_of_their_own(tmp_path: Path, tail: str) -> None:
    versions = []
    for number, query in enumerate(("AND(Bar c, OR(Bar a, Bar b))", "AND(OR(Bar a, Bar b), Bar c)")):
        root = tmp_path / str(number)
        root.mkdir()
        (good,), _ = load(root, f"{query} WITHIN 5 min {tail}")
        versions.append(good.definition.engine_version)
    assert versions[0] < versions[1] == 8
