"""Long stretches: what is planned is what is done, in any order, in pieces, after failures, and never twice."""

from __future__ import annotations

import dataclasses
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chainlake.catalog.patterns import load_patterns
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.errors import AuditFailed, InfrastructureError, UsageError
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.chain import EMPTY
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.defined.fingerprints import fingerprint
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.upkeep.same import same_tables
from chainlake.monitoring import course
from chainlake.operations.backfills.applications import Application
from chainlake.operations.backfills.backfill import run_plan
from chainlake.operations.backfills.plan import plan_range
from chainlake.operations.status import all_definitions
from chainlake.paths import Home
from chainlake.schemas.models import CHANGES, METRICS
from tests.steps.history import configured, day, deliver, pattern, readings

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.slow

SPAN = 8
ALL = Days(day(0), day(SPAN))
QUIET: Any = {"say": lambda line: None}


@pytest.fixture
def history(home: Home) -> Home:
    """Eight days of events, two patterns and a model, nothing computed."""
    made = configured(home, near=pattern(), far=pattern("26 h", step=1.0))
    deliver(made, {n: readings(n) for n in range(SPAN)})
    return made


def played(home: Home, application: Application, run_id: str) -> dict[str, Any]:
    """An application without Spark: it makes its tables and notes its days as done, as publishing does."""
    definitions = {d.name: d for d in all_definitions(home)[0]}
    asked = {part.definition for part in application.parts}
    compiled = load_patterns(home, load_sources(home))[0]
    for table in (CHANGES, METRICS, *(one.table for one in compiled if one.definition.name in asked)):
        tables.ensure_table(home, table)
    events = EventDays.load(home, application.source)
    for part in application.parts:
        definition = definitions[part.definition]
        ops.append(home, "intervals", [
            {"definition": definition.name, "day": d, "table_name": definition.table_name, "status": "done",
             "rows": 1, "published_version": 1,
             "definition_hash": definition.definition_hash, "engine_version": definition.engine_version,
             "input_fingerprint": fingerprint(definition, d, events), **ends(definition, d)}
            for d in part.days
        ], run_id)  # fmt: skip
    return {"days": sum(len(p.days) for p in application.parts), "added": 0, "changed": 0, "withdrawn": 0}


def ends(definition: Definition, at: date) -> dict[str, str]:
    """The states of a chained day, which nothing changes."""
    if definition.start is None:
        return {}
    return {"state_in": EMPTY if at <= definition.start else "some", "state_out": "some"}


def counts(home: Home, **options: Any) -> list[tuple[str, dict[str, int]]]:
    """Applications of a plan with the days per definition."""
    plan = plan_range(home, **{"days": ALL, "chunk": 3, **options})
    return [(a.name, {p.definition: len(p.days) for p in a.parts}) for a in plan.applications]


def test_the_plan_says_what_is_computed_and_read(history: Home) -> None:
    assert counts(history, models=[]) == []
    assert counts(history) == [
        ("detect lab 2025-03-01 2025-03-04", {"pattern/far": 3, "pattern/near": 3}),
        ("detect lab 2025-03-04 2025-03-07", {"pattern/far": 3, "pattern/near": 3}),
        ("detect lab 2025-03-07 2025-03-09", {"pattern/far": 2, "pattern/near": 2}),
        ("monitor lab 2025-03-02 2025-03-04", {"model/slope": 2}),
        ("monitor lab 2025-03-04 2025-03-07", {"model/slope": 3}),
        ("monitor lab 2025-03-07 2025-03-09", {"model/slope": 2}),
    ]
    (application,) = plan_range(history, Days(day(3), day(4)), patterns=["far"]).applications
    (part,) = application.parts
    assert (part.reads, part.rows_read, part.rows_there) == (Days(day(1), day(4)), 24, 0)
    assert part.states == {"missing": 1} and part.table == "matches.far"
    assert not Path(history.table("matches", "far")).exists()


def test_days_without_finished_events_are_left_and_said(history: Home) -> None:
    deliver(history, {2: readings(2)}, status="open")
    plan = plan_range(history, ALL, patterns=["near"])
    assert [len(p.days) for a in plan.applications for p in a.parts] == [SPAN - 1]
    assert dict(plan.left) == {("pattern/near", "expected files are missing or not read"): 1}


def test_names_that_do_not_exist_and_broken_files(history: Home) -> None:
    with pytest.raises(UsageError, match="no pattern nil"):
        plan_range(history, ALL, patterns=["nil"])
    with pytest.raises(UsageError, match="holds no day"):
        plan_range(history, ALL, chunk=0)
    (history.config / "patterns" / "wrong.sase").write_text(pattern().replace("p.x", "p.z"))
    assert [name for name, _ in plan_range(history, ALL, models=["slope"]).failures] == []
    plan = plan_range(history, ALL, patterns=["wrong", "near"])
    assert [name for name, _ in plan.failures] == ["pattern/wrong"]
    assert [p.definition for a in plan.applications for p in a.parts] == ["pattern/near"]


def test_what_was_done_is_not_done_again_and_failures_lose_nothing_else(history: Home) -> None:
    said: list[str] = []

    def launch(home: Home, application: Application, run_id: str) -> dict[str, Any]:
        if application.days.start == day(3):
            raise {"detect": InfrastructureError, "monitor": AuditFailed}[application.step]("the machine is small")
        return played(home, application, run_id)

    with pytest.raises(AuditFailed, match="2 failed: .*the machine is small"):
        run_plan(history, plan_range(history, ALL, chunk=3), run_id="b", launch=launch, say=said.append)
    assert [line[:12] for line in said if "failed" in line] == ["[2/6] failed", "[5/6] failed"]
    ended = {line[:8]: line.split(": ", 1)[1] for line in said if line[6:8] == "ok"}
    assert [at for at in ended if "to go" not in ended[at]] == ["[6/6] ok"]
    told, rows = "added 0, changed 0, withdrawn 0 rows of", "matches, episodes and rankings"
    assert ended["[3/6] ok"].startswith(f"days 4, {told} {rows}; about ")
    assert ended["[6/6] ok"] == "days 2, added 0, changed 0, withdrawn 0 rows of findings of models"
    assert counts(history) == [
        ("detect lab 2025-03-04 2025-03-07", {"pattern/far": 3, "pattern/near": 3}),
        ("monitor lab 2025-03-04 2025-03-07", {"model/slope": 5}),  # nothing kept its state
    ]
    (part,) = plan_range(history, ALL, models=["slope"]).applications[0].parts
    assert part.following == (day(6), day(7)) and part.states == {"missing": 3, "done": 2}

    def stopped(home: Home, application: Application, run_id: str) -> dict[str, Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_plan(history, plan_range(history, ALL), run_id="s", launch=stopped, **QUIET)
    assert run_plan(history, plan_range(history, ALL), run_id="c", launch=played, **QUIET)["applications"] == 2
    assert run_plan(history, plan_range(history, ALL), run_id="d", launch=played, **QUIET)["applications"] == 0


def test_only_what_is_stale_is_restated(history: Home) -> None:
    run_plan(history, plan_range(history, Days(day(0), day(6))), run_id="b", launch=played, **QUIET)
    deliver(history, {1: readings(1, edition=1)})
    assert counts(history, days=None, only_stale=True) == [
        ("detect lab 2025-03-02 2025-03-05", {"pattern/far": 3, "pattern/near": 2}),
        ("monitor lab 2025-03-02 2025-03-03", {"model/slope": 1}),
    ]
    (part,) = plan_range(history, None, models=["slope"], only_stale=True).applications[0].parts
    assert part.days == (day(1),) and part.following == tuple(day(n) for n in range(2, 6))
    assert part.reads == Days(day(1), day(6)) and part.rows_there == 5
    assert counts(history, days=None, sources=["lab"], only_stale=True) == counts(history, days=None, only_stale=True)
    with pytest.raises(UsageError, match="no source 'road'"):
        run_plan(history, plan_range(history, None, sources=["road"], only_stale=True), run_id="r")
    stale = {"run_id": "r", "launch": played, **QUIET}
    assert run_plan(history, plan_range(history, None, only_stale=True), **stale)["days"] == 6
    assert run_plan(history, plan_range(history, None, only_stale=True), **stale)["applications"] == 0
    assert [a.days for a in plan_range(history, ALL).applications] == [Days(day(6), day(8))] * 2


def test_a_model_whose_chain_is_too_long_is_a_failure_of_its_own(history: Home) -> None:
    plan = plan_range(history, Days(day(7), day(8)))
    assert [name for name, _ in plan.failures] == ["model/slope"]
    assert "chainlake backfill 2025-03-02 2025-03-09 --models slope" in str(plan.failures[0][1])
    assert [a.step for a in plan.applications] == ["detect"]


@pytest.mark.on_spark()
def test_chunks_in_reverse_and_one_application_give_the_same_tables(
    history: Home, tasks: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_range(history, ALL, patterns=["near", "far"], chunk=5)
    plan.applications.reverse()
    assert run_plan(history, plan, run_id="r", **QUIET)["days"] == 2 * SPAN
    models = plan_range(history, ALL, models=["slope"], chunk=4)
    assert run_plan(history, models, run_id="b", **QUIET)["days"] == SPAN - 1
    assert plan_range(history, ALL).applications == []

    other = dataclasses.replace(history, root=tmp_path / "other", lake=str(tmp_path / "other" / "lake"))
    deliver(other, {n: readings(n) for n in range(SPAN)})
    monkeypatch.setattr(course, "BATCH", 3)  # one application, published in stretches
    total = run_plan(other, plan_range(other, ALL), run_id="b", **QUIET)
    assert total["applications"] == 2 and total["added"] > 20
    assert {tables.version(other, "matches", name) for name in ("near", "far")} == {1}, "one commit for all days"
    assert same_tables(history, other) == []
