"""What an edit would do is what it does: told beforehand, compared with the tables after the edit went live."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chainlake.cli.main import main
from chainlake.cli.verbs.history import shadow as verb
from chainlake.days import Days
from chainlake.errors import DefinitionError, InfrastructureError, UsageError
from chainlake.lake.delta import tables
from chainlake.lake.store.files import FilesLake
from chainlake.operations.backfills.applications import Application
from chainlake.operations.backfills.backfill import run_here, run_plan
from chainlake.operations.backfills.plan import plan_range
from chainlake.operations.shadow.run import EditTrial, try_edit
from chainlake.paths import Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from tests.replay.light import light
from tests.replay.surroundings import quick, quiet
from tests.steps.history import MODEL, configured, day, deliver, pattern, readings

pytestmark = pytest.mark.slow

SPAN = Days(day(0), day(5))
#: Every pair is used up by the first match that takes it.
CONSUMING = pattern("26 h") + "CONTEXT chronicle\n"


@pytest.fixture(autouse=True)
def in_this_process() -> Iterator[None]:
    with quiet(), quick(), light(ops_in_memory=False):
        yield


def here(home: Home, application: Application, run_id: str) -> dict[str, Any]:
    return run_here(home, application, run_id, Ports(LocalTasks(), FilesLake(home)))


def settle(home: Home, days: Days = SPAN) -> None:
    run_plan(home, plan_range(home, days), run_id="live", launch=here, say=lambda line: None)


def rows(home: Home, schema: str, name: str, days: Days, column: str) -> dict[Any, Any]:
    """The published rows of some days by their key."""
    if not tables.exists(home, schema, name):
        return {}
    key = ("match_id",) if schema == "matches" else ("model", "group_id", "ts", "kind")
    found = tables.arrow(home, schema, name).to_pylist()
    return {tuple(row[part] for part in key): row for row in found if row[column].date() in days}


def state(folder: str) -> dict[str, str]:
    """All files of a lake but what runs log, with their contents."""
    paths = [Path(root, file) for root, _, files in os.walk(folder) for file in files]
    return {str(path): hashlib.md5(path.read_bytes()).hexdigest() for path in paths}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pattern(), pattern("60 min", 0.5)),
        (pattern("26 h", 0.2), pattern("26 h", 0.2, "output: [y]\n")),
        (CONSUMING, CONSUMING.replace("+ 0.0", "+ 1.0")),
    ],
    ids=["fewer", "other columns", "using events up"],
)
def test_a_pattern(home: Home, tmp_path: Path, before: str, after: str) -> None:
    lab = configured(home, near=before)
    deliver(lab, {n: readings(n) for n in range(5)})
    settle(lab)
    days = Days(day(1), day(4))
    was, contents = rows(lab, "matches", "near", days, "decision_ts"), state(lab.lake)
    draft = tmp_path / "near.sase"
    draft.write_text(after)
    told = try_edit(lab, draft, days, run_id="shadow", launch=here, say=lambda line: None)
    assert told.definition == "pattern/near" and told.compared == (day(1), day(2), day(3)) and not told.unpublished
    assert state(lab.lake) == contents and not list(lab.temporary.glob("shadow-*"))

    (lab.config / "patterns" / "near.sase").write_text(after)
    settle(lab)
    assert_told(told, was, rows(lab, "matches", "near", days, "decision_ts"), "match_id")


def assert_told(told: EditTrial, was: dict[Any, Any], now: dict[Any, Any], key: str) -> None:
    (table,) = told.tables
    assert {row[key] for row in table.added} == {at[0] for at in now.keys() - was.keys()}
    assert {row[key] for row in table.withdrawn} == {at[0] for at in was.keys() - now.keys()}
    assert table.kept + len(table.changed) == len(was.keys() & now.keys())
    assert len(was) + len(now) > 0


def test_a_model_is_computed_from_its_start(home: Home, tmp_path: Path) -> None:
    lab = configured(home)
    deliver(lab, {n: readings(n) for n in range(8)})
    whole = Days(day(0), day(8))
    settle(lab, whole)
    days = Days(day(4), day(8))
    was = rows(lab, "models", "changes", days, "ts")
    draft = tmp_path / "slope.yaml"
    draft.write_text(MODEL.replace("eps: 0.3", "eps: 0.9"))
    told = try_edit(lab, draft, days, run_id="shadow", launch=here, say=lambda line: None)
    (lab.config / "models" / "slope.yaml").write_text(draft.read_text())
    settle(lab, whole)
    now = rows(lab, "models", "changes", days, "ts")
    (table,) = told.tables
    assert {(row["ts"], row["kind"]) for row in table.added} == {(at[2], at[3]) for at in now.keys() - was.keys()}
    assert {(row["ts"], row["kind"]) for row in table.withdrawn} == {(at[2], at[3]) for at in was.keys() - now.keys()}
    assert was != now


def test_a_new_one_has_nothing_to_be_compared_with(home: Home, tmp_path: Path) -> None:
    lab = configured(home)
    deliver(lab, {n: readings(n) for n in range(3)})
    draft = tmp_path / "fresh.sase"
    draft.write_text(pattern())
    told = try_edit(lab, draft, Days(day(0), day(3)), run_id="shadow", launch=here, say=lambda line: None)
    assert told.compared == () and told.unpublished == (day(0), day(1), day(2))
    assert all(not (table.kept or table.added or table.withdrawn) for table in told.tables)


def test_the_verb(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = configured(home, near=pattern())
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(lab.config))
    deliver(lab, {n: readings(n) for n in range(3)})
    settle(lab)
    draft = tmp_path / "near.sase"
    draft.write_text(pattern("60 min", 0.5))
    words = [str(draft), "2025-03-01", "2025-03-04"]
    monkeypatch.setattr("chainlake.operations.shadow.run.try_edit.__kwdefaults__", {"launch": here, "say": print})
    assert main(["shadow", *words]) == 1
    out = capsys.readouterr().out
    assert "pattern/near: 3 published days compared" in out and "matches.near: withdrawn, " in out
    samples = out.partition("matches.near: withdrawn, ")[2].splitlines()
    assert samples[1].split()[:4] == ["match_id", "decision_ts", "start_ts", "end_ts"]
    # What the events say, but not their ids.
    assert "p.sensor" in samples[1].split() and "p.event_id" not in samples[1]
    assert "removed again, with its Data Docs" in out
    draft.write_text(pattern())
    assert main(["shadow", *words]) == 0
    assert main(["shadow", str(tmp_path / "none.sase"), *words[1:]]) == 2
    assert verb.SHOWN == 5


def test_what_cannot_be_tried(home: Home, tmp_path: Path) -> None:
    lab = configured(home)
    for name, text, error in (
        ("wrong.sase", "---\nsource: lab\n---\nPATTERN SEQ(Reading p\n", DefinitionError),
        ("lab.csv", "", UsageError),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(error):
            try_edit(lab, tmp_path / name, SPAN, run_id="shadow")
    from dataclasses import replace

    (tmp_path / "near.sase").write_text(pattern())
    with pytest.raises(InfrastructureError, match="is in an object store"):
        try_edit(replace(lab, lake="s3://bucket/lake"), tmp_path / "near.sase", SPAN, run_id="shadow")
