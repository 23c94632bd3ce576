"""What is used up: audits see what is used up twice, views show it, and definitions that cannot be computed."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from chainlake.catalog.patterns import load_patterns
from chainlake.cep.matches.consumed import Consumed
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.detect.chained import rounds
from chainlake.detect.chained.walk import Leg, Walked
from chainlake.detect.feed import Events
from chainlake.errors import InputError
from chainlake.lake.delta import tables
from chainlake.lake.sql.query import SqlConnection
from chainlake.paths import Home
from chainlake.quality import Audit
from chainlake.quality.matches import gate
from chainlake.quality.published import matches
from chainlake.run.tasks import Tasks
from tests.steps.consuming import KINDS, events_of
from tests.steps.history import day, deliver
from tests.steps.in_process import run
from tests.steps.test_chained_matches import (
    ALL,
    CHRONICLE,
    SPAN,
    busy,
    in_this_process,
    intervals,
    lake_of,
    made,
)

pytestmark = pytest.mark.slow

__all__ = ["in_this_process"]


def test_the_audit_sees_what_is_used_up_twice(home: Home) -> None:
    contents = busy()
    lake = lake_of(home, contents)
    run(lake, ALL)
    found = {n: False for n in range(SPAN)}
    compiled = load_patterns(lake, load_sources(lake))[0]
    with measured_audits() as seen:
        list(matches(Audit(lake), compiled, ALL))
    assert seen == [] and found
    table = DeltaTable(lake.table("matches", "chronicle"))
    rows = table.to_pyarrow_table().sort_by("decision_ts")
    # The second match of the third day binds an A that the first one of the second day has used up.
    at = [n for n, ts in enumerate(rows["decision_ts"].to_pylist()) if ts.date() == day(2)][1]
    stolen = rows["a"].to_pylist()
    stolen[at] = stolen[[n for n, ts in enumerate(rows["decision_ts"].to_pylist()) if ts.date() == day(1)][0]]
    rows = rows.set_column(rows.column_names.index("a"), "a", pa.array(stolen, rows.schema.field("a").type))
    write_deltalake(lake.table("matches", "chronicle"), rows, mode="overwrite")
    with measured_audits() as seen:
        list(matches(Audit(lake), compiled, ALL))
    assert seen == [(day(2), 1)]
    # And where only the days from there on are looked at.
    with measured_audits() as seen:
        list(matches(Audit(lake), compiled, Days(day(2), day(4))))
    assert seen == [(day(2), 1)]


def test_what_is_staged_is_audited_with_what_was_used_up_before(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = busy(a=2)
    lake = lake_of(home, {n: contents[n] for n in range(3)})
    run(lake, Days(day(0), day(3)))
    deliver(lake, {3: contents[3]})
    real = rounds.walk

    def forgetful(tasks: Tasks, events: Events, key: str, legs: Sequence[Leg]) -> list[Walked]:
        return real(tasks, events, key, [replace(leg, state=Consumed.none()) for leg in legs])

    monkeypatch.setattr(rounds, "walk", forgetful)
    with measured_audits() as seen, contextlib.suppress(InputError):
        run(lake, Days.one(day(3)), repair_horizon=0)
    assert [at for at, _ in seen] == [day(3)]
    # Nor does a day go on from another state than the one that was left.
    assert 3 not in intervals(lake)


@contextlib.contextmanager
def measured_audits() -> Iterator[list[tuple[date, int]]]:
    """The days on which audits saw matches of what was used up, and the most events of one match."""
    seen: list[tuple[date, int]] = []
    real = gate.three_rows

    def three_rows(found: pa.Table, ordered: Any) -> Any:
        place = list(ordered).index("used_up_events")
        for row in found.to_pylist():
            if row[f"hi{place}"]:
                seen.append((date.fromisoformat(row["decision_day"]), row[f"hi{place}"]))
        return real(found, ordered)

    with patch.object(gate, "three_rows", three_rows):
        yield seen


def test_views_of_what_is_used_up(home: Home) -> None:
    contents = busy(3)
    lake = lake_of(home, contents)
    run(lake, Days(day(0), day(3)))
    con = SqlConnection(lake)
    rows = con.query("SELECT publish_order, a.event_id, b.event_id FROM matches.chronicle_ordered").fetchall()
    kind = CHRONICLE.expected([row for rows in contents.values() for row in rows])
    ids = [(dict(one)["a"][0], dict(one)["b"][0]) for one in kind]
    assert rows == [(n, *one) for n, one in enumerate(sorted(ids, key=lambda one: (one[1], one[0])), 1)]
    used = con.query("SELECT name, event_id FROM matches.chronicle_consumed").fetchall()
    assert sorted(used) == sorted([*(("a", a) for a, _ in ids), *(("b", b) for _, b in ids)])
    (initiators,) = con.query("SELECT count(*) FROM matches.chronicle_consumed WHERE name = 'b'").fetchone() or ()
    assert initiators == len(ids)


def test_the_view_of_what_is_used_up_is_that_of_the_rows(home: Home) -> None:
    """The view and the state are told from the same rows by two programs."""
    for name, kind in KINDS.items():
        rng = random.Random(name)
        lake = lake_of(home, {n: events_of(rng, n, 8) for n in range(SPAN)}, name)
        run(lake, ALL, patterns=[name])
        policy = load_patterns(lake, load_sources(lake), only=name)[0][0].pattern.extras.policy
        assert policy is not None
        told = Consumed.by(policy, tables.arrow(lake, "matches", name))
        shown = SqlConnection(lake).query(f"SELECT event_id FROM matches.{name}_consumed ORDER BY 1").fetchall()
        assert [one for (one,) in shown] == sorted(told.ids.to_pylist()) and shown, kind.query


@pytest.mark.parametrize(
    ("query", "line", "what"),
    [
        ("SEQ(A a, B b) WITHIN 5 EVENTS", 4, "does not say how far back"),
        ("SEQ(A a, B b) WITHIN 5 EVENTS OF KEY, 3 h", 4, "counts the events of one sensor"),
    ],
)
def test_windows_in_events_need_a_duration_and_those_of_a_key_one_key(
    home: Home, query: str, line: int, what: str
) -> None:
    lake = made(home, "p", f"---\nsource: lab\n---\nPATTERN {query}\n")
    (broken,) = load_patterns(lake, load_sources(lake))[1]
    assert what in str(broken.error) and f":{line}:" in str(broken.error)


def test_a_start_is_for_what_uses_events_up(home: Home) -> None:
    lake = made(home, "p", "---\nsource: lab\nstart: 2025-03-02\n---\nPATTERN SEQ(A a, B b) WITHIN 2 h\n")
    (broken,) = load_patterns(lake, load_sources(lake))[1]
    assert "uses no events up" in str(broken.error) and ":3:" in str(broken.error)
