"""Publishing matches and model results: differences only, and the same tables after a crash anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from chainlake.days import US_PER_DAY, day_start_us
from chainlake.lake import faults
from chainlake.lake.commits.publish import (
    MatchOutput,
    ModelOutput,
    Published,
    PublishingRun,
    publish_matches,
    publish_models,
)
from chainlake.lake.commits.publishable import DaysNow
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.chain import EMPTY, Link
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.port import Staged
from chainlake.paths import PROJECT, Home
from chainlake.schemas.matches import MatchName, MatchShape, matches_table
from chainlake.schemas.models import CHANGES, METRICS, STATE
from tests.lake.stored import left_over

pytestmark = pytest.mark.slow

D1, D2, D3 = (date(2025, 10, n) for n in (1, 2, 3))
FIELDS = (("event_id", pa.string()), ("ts", pa.timestamp("us", tz="UTC")), ("type", pa.string()), ("key", pa.string()))
TABLE = matches_table(MatchShape("p", 1, "s", (MatchName("a", False, FIELDS), MatchName("b", True, FIELDS))))


def definition(name: str = "pattern/p", table: str = "matches.p") -> Definition:
    return Definition(name, "s", "h", 1, table, 0, lambda d: (day_start_us(d), day_start_us(d) + US_PER_DAY))


def match(n: int, day: date, seconds: int = 60, key: str = "k") -> dict[str, Any]:
    end = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=n)
    event = {"event_id": f"{n:032x}", "ts": end, "type": "T", "key": key}
    return {
        "match_id": f"{n:032x}", "decision_ts": end, "start_ts": end, "end_ts": end, "a": event, "b": [event, event],
    }  # fmt: skip


def staged(matches: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(matches, schema=TABLE.arrow())


def run_of(home: Home) -> PublishingRun:
    return PublishingRun(home, FilesLake(home), "run")


def publish(
    home: Home,
    matches: list[dict[str, Any]],
    days: list[date],
    *,
    audits: dict[date, str | None] | None = None,
    now: dict[date, str] | None = None,
) -> Published:
    prints = {day: f"f{day}" for day in days}
    rows = Staged(rows=staged(matches))
    passed = audits or {day: None for day in days}
    output = MatchOutput(definition(), TABLE, rows, prints, passed)
    return publish_matches(run_of(home), output, lambda: DaysNow(prints if now is None else now, lambda day: True))


def ids(home: Home) -> list[int]:
    return sorted(int(name, 16) for name in tables.arrow(home, "matches", "p")["match_id"].to_pylist())


def intervals(home: Home, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in ops.current(home, "intervals")]


def test_days_are_published_as_differences(home: Home) -> None:
    first = [match(1, D1), match(2, D1), match(3, D2), match(4, D3)]
    assert publish(home, first, [D1, D2, D3]) == Published([D1, D2, D3], {}, 4, 0, 0, 1)
    assert publish(home, first, [D1, D2, D3]) == Published([D1, D2, D3], {}, 0, 0, 0, 1)
    # Another content, one withdrawn, one new; D2 is not published again, whatever is staged or there.
    second = [match(1, D1, key="other"), match(5, D3), match(9, D2)]
    assert publish(home, second, [D1, D3]) == Published([D1, D3], {}, 1, 1, 2, 2)
    assert ids(home) == [1, 3, 5]
    assert intervals(home, "day", "status", "rows", "added", "changed", "withdrawn", "published_version") == [
        (D1, "done", 1, 0, 1, 1, 2),
        (D2, "done", 1, 0, 0, 0, 1),
        (D3, "done", 1, 1, 0, 1, 2),
    ]


def test_a_match_that_decides_on_another_day_moves(home: Home) -> None:
    """An edited window gives the same match another decision time, hence the key (match_id, decision_ts)."""
    publish(home, [match(1, D1)], [D1, D2])
    assert publish(home, [match(1, D2)], [D1, D2]) == Published([D1, D2], {}, 1, 0, 1, 2)
    assert ids(home) == [1]


def test_days_that_moved_or_failed_their_audit_are_left_out(home: Home) -> None:
    found = publish(
        home, [match(1, D1), match(2, D2), match(3, D3)], [D1, D2, D3],
        audits={D1: None, D2: "ids repeat", D3: None}, now={D1: f"f{D1}", D2: f"f{D2}", D3: "another"},
    )  # fmt: skip
    assert found.days_done == [D1] and sorted(found.left_out) == [D2, D3]
    assert ids(home) == [1]
    assert intervals(home, "day", "status", "reason") == [(D1, "done", None), (D2, "audit_failed", "ids repeat")]


class Killed(Exception):
    """Stands for the end of the process."""


#: The others leave the same state as one of these: nothing is written between, say, publishing.after and commit.before.
POINTS = ["publish.publishing.before", "publish.publishing.after", "publish.commit.after", "publish.done.after"]


@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere_the_retry_gives_the_same_table(
    home: Home, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    def end(status: int) -> None:
        raise Killed(status)

    monkeypatch.setattr(faults.os, "_exit", end)
    faults._counts.clear()
    monkeypatch.setenv("CHAINLAKE_FAULT", point)
    with pytest.raises(Killed, match="137"):
        publish(home, [match(1, D1), match(2, D2)], [D1, D2])
    monkeypatch.delenv("CHAINLAKE_FAULT")
    interrupted = "publishing" in [status for (status,) in intervals(home, "status")]
    before = tables.version(home, "matches", "p")
    again = publish(home, [match(1, D1), match(2, D2)], [D1, D2])
    assert ids(home) == [1, 2]
    assert intervals(home, "day", "status", "rows") == [(D1, "done", 1), (D2, "done", 1)]
    # After an interrupted attempt a version appears in any case, so that its late commit is refused.
    assert interrupted == point.endswith(("publishing.after", "commit.after"))
    assert again.version == before + (1 if interrupted or again.added else 0)


CHILD = """
import sys
sys.path[:0] = [{project!r}]
from chainlake.paths import Home
from tests.lake.test_publish import D1, match, publish
publish(Home.from_env(), [match(1, D1)], [D1])
"""


def test_a_killed_process_frees_its_locks_and_its_table_can_be_mended(home: Home) -> None:
    environment = {
        **os.environ,
        "CHAINLAKE_FAULT": "publish.commit.after",
        "PYTHONPATH": f"{PROJECT}{os.pathsep}{PROJECT / 'jobs'}",
    }
    environment.pop("SPARK_LOCAL_DIRS", None)
    child = subprocess.run(
        [sys.executable, "-c", CHILD.format(project=str(PROJECT))], env=environment, capture_output=True, text=True
    )
    assert child.returncode == faults.KILLED, child.stderr[-2000:]
    assert intervals(home, "status") == [("publishing",)]
    assert publish(home, [match(1, D1)], [D1]) == Published([D1], {}, 0, 0, 0, 2)
    assert ids(home) == [1]


def change_row(day: date, beta: float) -> dict[str, Any]:
    ts = datetime(day.year, day.month, day.day, 8, tzinfo=UTC)
    return {
        "model": "m", "group_id": "", "ts": ts, "kind": "sync", "round": 1, "violators": ["n"], "event_date": day,
        "beta_after": [{"feature": "x", "value": beta}],
    }  # fmt: skip


def publish_model(
    home: Home,
    days: list[date],
    beta: float = 1.0,
    audits: dict[date, str | None] | None = None,
    links: list[str] | None = None,
) -> Published:
    prints = {day: f"f{day}" for day in days}
    key = {"model": "m", "group_id": ""}
    ends = links or [EMPTY, *(f"s{day}" for day in days)]
    output = ModelOutput(
        definition("model/m", "models.changes"),
        pa.Table.from_pylist([change_row(day, beta) for day in days], schema=CHANGES.arrow()),
        pa.Table.from_pylist(
            [{**key, "day": day, "rounds": 5, "rounds_skipped": 0} for day in days], schema=METRICS.arrow()
        ),
        pa.Table.from_pylist(
            [{**key, "day": day, "fingerprint": prints[day], "state": "{}"} for day in days], schema=STATE.arrow()
        ),
        prints,
        audits or {day: None for day in days},
        {day: Link(*pair) for day, pair in zip(days, pairwise(ends), strict=True)},
    )
    now = DaysNow(prints, lambda day: day <= D1)
    return publish_models(run_of(home), [output], lambda: {"model/m": now})["model/m"]


def test_models_publish_changes_metrics_and_state_up_to_the_first_failed_audit(home: Home) -> None:
    found = publish_model(home, [D1, D2, D3], audits={D1: None, D2: "too far", D3: None})
    assert found.days_done == [D1] and found.added == 1
    assert found.left_out[D3] == "2025-10-02, on which it depends, was left out"
    for name, column in (("changes", "event_date"), ("metrics", "day"), ("state", "day")):
        assert tables.arrow(home, "models", name)[column].to_pylist() == [D1]
    again = publish_model(home, [D1, D2], beta=2.0)
    assert (again.added, again.changed, again.withdrawn) == (1, 1, 0)
    assert intervals(home, "day", "status") == [(D1, "done"), (D2, "done")]


def test_a_chain_is_published_after_the_state_that_the_day_before_has_left_and_no_other(home: Home) -> None:
    moved = "it was computed from a state other than the one at the end of the day before"
    # Nothing was ever published before it.
    assert publish_model(home, [D2], links=["a", "b"]).left_out == {D2: moved}
    assert publish_model(home, [D2], links=[EMPTY, "b"]).left_out == {D2: moved}, "it does not begin anew"
    assert publish_model(home, [D1, D2], links=[EMPTY, "a", "b"]).days_done == [D1, D2]
    assert intervals(home, "day", "state_in", "state_out") == [(D1, EMPTY, "a"), (D2, "a", "b")]
    assert publish_model(home, [D3], links=["b", "c"]).days_done == [D3]
    # Another attempt has moved the state meanwhile.
    assert publish_model(home, [D1], links=[EMPTY, "x"]).days_done == [D1]
    assert publish_model(home, [D2], links=["a", "b"]).left_out == {D2: moved}
    # A day that is not done has left no state, nor has one of another definition or engine.
    for change in ({"status": "failed"}, {"definition_hash": "other"}, {"engine_version": 0}):
        publish_model(home, [D1], links=[EMPTY, "a"])
        assert publish_model(home, [D2], links=["a", "b"]).days_done == [D2]
        (row,) = (row for row in ops.current(home, "intervals") if row["day"] == D1)
        ops.append(home, "intervals", [{**row, **change}], "r")
        assert publish_model(home, [D2], links=["a", "b"]).left_out == {D2: moved}, change


def test_an_audit_is_noted_as_failed_for_the_first_day_alone(home: Home) -> None:
    found = publish_model(home, [D1, D2, D3], audits={D1: None, D2: "too far", D3: "farther"})
    assert list(found.left_out) == [D2, D3]
    recorded = intervals(home, "day", "status", "state_in")
    assert recorded == [(D1, "done", EMPTY), (D2, "audit_failed", f"s{D1}")]


def test_a_model_leaves_the_rows_of_other_models_alone(home: Home) -> None:
    publish_model(home, [D1])
    other = pa.Table.from_pylist([{**change_row(D1, 3.0), "model": "other"}], schema=CHANGES.arrow())
    write_deltalake(home.table("models", "changes"), other, mode="append")
    publish_model(home, [D1], beta=2.0)
    assert sorted(tables.arrow(home, "models", "changes")["model"].to_pylist()) == ["m", "other"]


@pytest.mark.parametrize("at", ["publish.publishing", "publish.commit"])
def test_a_change_that_is_not_committed_leaves_nothing_on_the_disk(
    at: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of matches and of models: what stops the attempt comes after the difference was taken."""
    publish(home, [match(1, D1)], [D1])
    before = tables.version(home, "matches", "p")

    append = ops.append

    def stops(*args: Any) -> None:
        raise OSError("no space left")

    def stops_at_rows(home: Home, table: str, rows: list[Any], run_id: str) -> None:
        if rows:
            stops()
        append(home, table, rows, run_id)

    if at == "publish.publishing":
        monkeypatch.setattr(ops, "append", stops_at_rows)
    else:
        monkeypatch.setattr(FilesLake, "_commit", stops)
    with pytest.raises(OSError, match="no space left"):
        publish(home, [match(1, D1), match(2, D1)], [D1])
    with pytest.raises(OSError, match="no space left"):
        publish_model(home, [D1])
    assert tables.version(home, "matches", "p") == before and left_over(home) == []
