"""Runs of several patterns: one scan finds for each what it finds by itself, and one's failure is its own."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import chainlake.detect.division.counts as counts
import chainlake.detect.division.cut as cut
import chainlake.detect.order as order_choice
import chainlake.detect.run as detect_run
from benchmarks.made_lake import SOURCE, Stream, make_lake
from chainlake.catalog.patterns import load_patterns
from chainlake.cep.library import as_dicts
from chainlake.cep.search.find import find
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.detect.stage import Found, Search, stage
from chainlake.detect.step import detect
from chainlake.errors import ChainlakeError
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.store.event_files import EventFiles
from chainlake.lake.store.files import FilesLake
from chainlake.paths import Home
from chainlake.quality import Verdict
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks, Tasks
from tests.cep.distributed import bound

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

STREAM = Stream(3, 500, 0.3)
DAYS = STREAM.span
MIDDLE = Days.one(list(DAYS)[1])
#: One per operator, keyed and keyless, with windows from minutes to hours.
PATTERNS = {
    "sequence": "SEQ(A a, B b, C c) WHERE a.price < b.price AND b.price < c.price WITHIN 40 min",
    "conjunction": "AND(A a, C c) WHERE a.price < c.price WITHIN 20 min",
    "disjunction": "OR(SEQ(A a, B b) WHERE a.price > 101, SEQ(B b, C c) WHERE b.price > 100) WITHIN 25 min",
    "negation": "SEQ(A a, NOT(B n), C c) WHERE n.price > a.price AND a.price > 100 WITHIN 1 h",
    "waiting": "SEQ(A a, B b, NOT(C n)) WHERE a.price < b.price AND b.price > 100 AND n.price > 98.5 WITHIN 10 h",
    "sets": "SEQ(A a, B+ b) WHERE b.price > 99.5 AND AVG(b.price) > 100 AND a.price > 101 WITHIN 30 min",
    "neighbours": "SEQ STRICT (A a, B+ b, * c) WHERE b.price < 101 WITHIN 90 min",
    "runs": "SEQ STRICT OF KEY (* a, *+ b) WHERE b.price < PREV(b.price, 1, 2 h) WITHIN 3 h PAUSE 90 min MAXIMAL",
    "largest": "SEQ(A a, B? b, C c) WHERE a.price < c.price AND b.price > 100 WITHIN 30 min OUTERMOST",
    "keyed": "SEQ(A a, B b) WHERE a.symbol = b.symbol AND a.price < b.price WITHIN 3 h",
}


def text(query: str, more: str = "") -> str:
    """A pattern file."""
    return f"---\nsource: {SOURCE}\n{more}---\nPATTERN {query}\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A lake of three days."""
    root = tmp_path_factory.mktemp("one scan")
    return make_lake(root, STREAM, {n: text(q) for n, q in PATTERNS.items()}, Home.from_env().cache)


def copied(made: Home, root: Path) -> Home:
    """A copy of the lake."""
    shutil.copytree(made.root, root)
    return replace(made, root=root, lake=str(root / "lake"), config=root / "config")


def here(home: Home) -> Ports:
    """Tasks of this process."""
    return Ports(LocalTasks(2), FilesLake(home))


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Every run is as if it were large, and audited elsewhere; the patterns of each scan."""
    names: list[list[str]] = []

    def staged(tasks: Tasks, files: EventFiles, key: str, searches: Sequence[Search], shares: Any) -> list[Found]:
        names.append([search.pattern.name for search in searches])
        return stage(tasks, files, key, searches, shares)

    for module, name, value in [
        (order_choice, "WHOLE", 0), (counts, "HERE_ROWS", 0), (cut, "NOT_CUT", 0.0),
        (detect_run, "stage", staged),
        (detect_run, "audit_matches", lambda audit, pattern, files, days: Verdict.passed(days)),
    ]:  # fmt: skip
        monkeypatch.setattr(module, name, value)
    return names


def rows(home: Home, name: str) -> list[Any]:
    """Published matches."""
    return sorted(tables.arrow(home, "matches", name).to_pylist(), key=lambda row: str(row["match_id"]))


def bindings(home: Home, name: str) -> list[str]:
    """Published matches as the events that they bind."""
    (compiled,), _ = load_patterns(home, load_sources(home), only=name)
    return sorted(json.dumps(bound(compiled.pattern, row), sort_keys=True) for row in rows(home, name))


@pytest.fixture(scope="module")
def by_kernel(made: Home) -> dict[str, list[str]]:
    """The same, found in all events at once."""
    events = tables.arrow(made, "events", SOURCE)
    ids = events["event_id"].to_pylist()
    compiled, _ = load_patterns(made, load_sources(made))
    found = {
        one.pattern.name: sorted(
            json.dumps(match, sort_keys=True)
            for batch in find(one.pattern, events, own=DAYS.micros())
            for match in as_dicts(one.pattern, batch, ids)
        )
        for one in compiled
    }
    assert list(found) == sorted(PATTERNS) and min(map(len, found.values())) > 8
    return found


def test_patterns_of_all_operators_come_out_of_one_scan(
    made: Home, by_kernel: dict[str, list[str]], scans: list[list[str]], tmp_path: Path
) -> None:
    """Also where one of them has the first and the last day to do only; and each finds the same alone."""
    home, other = copied(made, tmp_path / "home"), copied(made, tmp_path / "other")
    detect(home, SOURCE, MIDDLE, run_id="middle", patterns=["sequence"], repair_horizon=0, ports=here(home))
    detect(home, SOURCE, DAYS, run_id="all", ports=here(home))
    assert scans == [["sequence"], sorted(PATTERNS)]
    assert {name: bindings(home, name) for name in PATTERNS} == by_kernel
    detect(other, SOURCE, DAYS, run_id="all", patterns=["keyed"], ports=here(other))
    assert rows(home, "keyed") == rows(other, "keyed")
    plans = [row for row in ops.current(home, "plans") if row["run_id"] == "all"]
    counted = Counter(row["definition"] for row in plans if row["evaluations"])
    assert counted == {f"pattern/{name}": 1 for name in PATTERNS}
    spans = {(r["definition"], r["phase"]): r["ended"] - r["started"] for r in ops.current(home, "runs", run_id="all")}
    assert all(spans["", "detect"] > spans[f"pattern/{name}", "detect"] for name in PATTERNS)
    assert not list(Path(home.staging).rglob("*.parquet"))


def test_what_goes_wrong_with_a_pattern_is_its_own(
    made: Home, by_kernel: dict[str, list[str]], scans: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit, whose days are halved and searched again, and an error that is none of ours."""
    home = copied(made, tmp_path / "home")
    for name in ("conjunction", "waiting", "sets", "largest", "neighbours", "runs"):
        (home.config / "patterns" / f"{name}.sase").unlink()
    greedy = text(PATTERNS["disjunction"], "limits: {matches_per_day: 1}\n")
    (home.config / "patterns" / "disjunction.sase").write_text(greedy)
    honest = detect_run.stage

    def staged(tasks: Tasks, files: EventFiles, key: str, searches: Sequence[Search], shares: Any) -> list[Found]:
        wrong = [replace(s, orders=7) if s.pattern.name == "negation" else s for s in searches]  # type: ignore[arg-type]
        return honest(tasks, files, key, wrong, shares)

    monkeypatch.setattr(detect_run, "stage", staged)
    with pytest.raises(ChainlakeError, match="2 failed") as raised:
        detect(home, SOURCE, DAYS, run_id="all", repair_horizon=0, ports=here(home))
    assert "more than 1 matches" in str(raised.value) and "TypeError" in str(raised.value)
    assert scans == [["disjunction", "keyed", "negation", "sequence"], ["disjunction"] * 2, ["disjunction"] * 2]
    for name in ("sequence", "keyed"):
        assert bindings(home, name) == by_kernel[name]
    for name, words in (("disjunction", "more than 1 matches"), ("negation", "TypeError")):
        assert not tables.exists(home, "matches", name)
        found = ops.current(home, "intervals", definition=f"pattern/{name}")
        assert [row["status"] for row in found] == ["failed"] * 3 and all(words in row["reason"] for row in found)
    assert not list(Path(home.staging).rglob("*.parquet"))


class Deadly:
    """Ends the process that reads it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (1,)


@pytest.mark.on_spark()
def test_a_scan_that_dies_leaves_each_pattern_to_one_alone(
    spark: SparkSession,
    made: Home,
    by_kernel: dict[str, list[str]],
    scans: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = copied(made, tmp_path / "home")
    names = ["keyed", "sequence", "waiting"]
    honest = detect_run.stage

    def staged(tasks: Tasks, files: EventFiles, key: str, searches: Sequence[Search], shares: Any) -> list[Found]:
        deadly = [replace(s, orders=Deadly()) if s.pattern.name == "keyed" else s for s in searches]  # type: ignore[arg-type]
        return honest(tasks, files, key, deadly, shares)

    monkeypatch.setattr(detect_run, "stage", staged)
    with pytest.raises(Exception, match="keyed|Worker|worker|exited"):
        detect(home, SOURCE, DAYS, run_id="all", patterns=names)
    assert scans == [names, *([name] for name in names)]
    assert {name: bindings(home, name) for name in names[1:]} == {name: by_kernel[name] for name in names[1:]}
    assert not tables.exists(home, "matches", "keyed")
    phases = ops.current(home, "runs", run_id="all")
    failed = sorted((r["definition"], r["phase"]) for r in phases if r["status"] == "failed")
    assert failed == [("pattern/keyed", "detect")]
    assert not list(Path(home.staging).rglob("*.parquet"))
