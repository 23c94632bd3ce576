"""Fingerprints and what is to do."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainlake.cli.main import main
from chainlake.days import US_PER_DAY, Days, day_start_us
from chainlake.errors import InfrastructureError
from chainlake.lake.delta import tables
from chainlake.lake.locks import file_lock
from chainlake.lake.records import ops
from chainlake.lake.records.chain import EMPTY
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.defined.fingerprints import fingerprint
from chainlake.lake.records.event_days import AbandonedDays, EventDays, pin
from chainlake.lake.records.staleness import judge, status_rows, to_do
from chainlake.paths import Home
from chainlake.schemas.models import METRICS
from tests.lake.things import THINGS

D0 = date(2025, 10, 1)
HOUR = US_PER_DAY // 24


def day(n: int) -> date:
    return D0 + timedelta(days=n)


def pattern(name: str = "p", window: int = HOUR, back: int | None = None, **more: Any) -> Definition:
    reach = window if back is None else back
    fields: dict[str, Any] = {
        "name": f"pattern/{name}",
        "source": "s",
        "definition_hash": "h1",
        "engine_version": 1,
        "table_name": f"matches.{name}",
        "late_us": window,
        "read_range": lambda d: (day_start_us(d) - reach, day_start_us(d) + US_PER_DAY),
    }
    return Definition(**{**fields, **more})


def event_day(n: int, checksum: str | None = None, status: str = "complete", rows: int = 5) -> dict[str, Any]:
    return {
        "source": "s",
        "day": day(n),
        "status": status,
        "rows": rows,
        "checksum": None if status == "changing" else checksum or f"c{n}",
        "events_version": 0,
    }


def done(home: Home, definition: Definition, n: int, status: str = "done", **more: Any) -> None:
    found = fingerprint(definition, day(n), EventDays.load(home, "s"))
    # Days of a table that is gone are not done.
    tables.ensure_table(home, replace(THINGS, name=definition.table_name.partition(".")[2]))
    row = {
        "definition": definition.name,
        "day": day(n),
        "table_name": definition.table_name,
        "definition_hash": definition.definition_hash,
        "engine_version": definition.engine_version,
        "input_fingerprint": found,
        "status": status,
        "rows": 3,
    }
    ops.append(home, "intervals", [{**row, **more}], "r")


def states(home: Home, definition: Definition) -> dict[int, str]:
    return {(row.day - D0).days: row.state for row in status_rows(home, [definition])}


CHECKSUMS = st.dictionaries(st.integers(0, 9), st.sampled_from(["a", "b", "c"]), max_size=10)


@pytest.mark.slow
@given(before=CHECKSUMS, after=CHECKSUMS, back=st.integers(0, 3 * US_PER_DAY), n=st.integers(0, 9))
def test_a_fingerprint_changes_if_and_only_if_a_checksum_in_the_read_range_does(
    before: dict[int, str], after: dict[int, str], back: int, n: int
) -> None:
    definition = pattern(back=back)
    read = [k for k in range(-3, 10) if n - -(-back // US_PER_DAY) <= k <= n]
    prints = [
        fingerprint(definition, day(n), EventDays.of("s", [event_day(k, c) for k, c in sums.items()]))
        for sums in (before, after)
    ]
    assert (prints[0] == prints[1]) == all(before.get(k) == after.get(k) for k in read)


def test_a_day_without_events_counts_as_an_absent_one() -> None:
    absent = EventDays.of("s", [event_day(1)])
    empty = EventDays.of("s", [event_day(0, "empty", rows=0), event_day(1)])
    assert fingerprint(pattern(), day(1), absent) == fingerprint(pattern(), day(1), empty)
    assert (empty.first, empty.last) == (day(1), day(1))


def test_a_chained_days_fingerprint_is_that_of_its_own_events() -> None:
    model = pattern(start=day(1), window=0)
    days = [event_day(n) for n in range(5)]
    changed = [*days[:1], event_day(1, "other"), *days[2:]]
    for n in range(5):
        prints = [fingerprint(model, day(n), EventDays.of("s", rows)) for rows in (days, changed)]
        assert (prints[0] != prints[1]) is (n == 1)
    before_start = [event_day(0, "other"), *days[1:]]
    same = {fingerprint(model, day(n), EventDays.of("s", rows)) for n in (0, -9) for rows in (days, before_start)}
    assert len(same) == 1, "what happens before the start is not seen"


@pytest.mark.slow
def test_a_chained_day_is_done_if_it_goes_on_from_what_the_day_before_left(home: Home) -> None:
    ops.append(home, "event_days", [event_day(n) for n in range(5)], "t")
    tables.ensure_table(home, METRICS)
    model = pattern(start=day(1), window=0)

    def chained(n: int, ends: str, **more: Any) -> None:
        before, after = ends.split(":")
        done(home, model, n, state_in=before or EMPTY, state_out=after, **more)

    for n, ends in ((1, ":a"), (2, "a:b"), (3, "b:b"), (4, "b:c")):
        chained(n, ends)
    assert states(home, model) == dict.fromkeys((1, 2, 3, 4), "done")
    # Also if some of the days are asked for: how they stand depends on those before them.
    assert [row.state for row in status_rows(home, [model], Days(day(3), day(5)))] == ["done", "done"]
    # Another state at the end of day 2, and then the one that was there before.
    chained(2, "a:x")
    assert states(home, model) == {1: "done", 2: "done", 3: "stale", 4: "following"}
    (item,) = to_do(home, [model])
    assert item.why == "the state at the end of the day before has changed"
    assert [row.state for row in status_rows(home, [model], Days(day(3), day(5)))] == ["stale", "following"]
    chained(2, "a:b")
    assert states(home, model) == dict.fromkeys((1, 2, 3, 4), "done")
    # A late file: what lies behind its day may be affected, or not.
    ops.append(home, "event_days", [event_day(2, "other")], "t")
    rows = status_rows(home, [model])
    assert [row.state for row in rows] == ["done", "stale", "following", "following"]
    assert rows[2].why == rows[3].why == f"{day(2)} before it is stale; it may turn out to be unaffected"
    chained(2, "a:b")
    assert states(home, model) == dict.fromkeys((1, 2, 3, 4), "done")
    # No state crosses an edit, and nothing goes on behind a day that cannot be finished.
    edited = pattern(start=day(1), window=0, definition_hash="h2")
    assert states(home, edited) == dict.fromkeys((1, 2, 3, 4), "stale")
    chained(3, "b:", status="audit_failed")
    assert states(home, model) == {1: "done", 2: "done", 3: "audit_failed", 4: "waiting"}
    chained(2, "a:x")
    assert states(home, model) == {1: "done", 2: "done", 3: "stale", 4: "following"}, "from another state it may pass"
    # Earlier events: the chain begins with them.
    ops.append(home, "event_days", [event_day(0)], "t")
    longer = pattern(start=day(0), window=0)
    assert states(home, longer)[0] == "missing" and states(home, longer)[1] == "following"


def test_a_model_has_no_days_before_its_start(home: Home) -> None:
    ops.append(home, "event_days", [event_day(n) for n in range(4)], "t")
    model = pattern(start=day(2), window=0)
    assert states(home, model) == {2: "missing", 3: "missing"}
    assert [item.day for item in to_do(home, [model])] == [day(2), day(3)]
    tables.ensure_table(home, METRICS)
    done(home, model, 1, state_in=EMPTY, state_out=EMPTY)
    assert states(home, model) == {1: "done", 2: "missing", 3: "missing"}
    assert states(home, pattern(start=day(9), window=0, name="later")) == {}


@pytest.mark.slow
def test_states_of_days(home: Home) -> None:
    p = pattern()
    ops.append(home, "event_days", [event_day(n) for n in range(6)], "r")
    ops.append(home, "event_days", [event_day(6, status="open"), event_day(7, "p", "provisional")], "r")
    for n in (0, 1):
        done(home, p, n)
    done(home, p, 2, "failed", reason="out of memory")
    done(home, p, 3, "audit_failed", reason="ids repeat")
    done(home, p, 4, "publishing")
    assert states(home, p) == {
        0: "done", 1: "done", 2: "failed", 3: "audit_failed", 4: "stale", 5: "missing", 6: "waiting", 7: "missing",
        8: "waiting",
    }  # fmt: skip
    listed = {(item.day - D0).days: (item.state, item.why) for item in to_do(home, [p])}
    assert listed == {
        2: ("failed", "out of memory"),
        4: ("stale", "publishing was interrupted"),
        5: ("missing", "never computed"),
        7: ("missing", "never computed, provisional input"),
    }
    assert [row.provisional for row in status_rows(home, [p]) if row.day == day(7)] == [True]
    assert [item.day for item in to_do(home, [p], Days(day(3), day(6)))] == [day(4), day(5)]


@pytest.mark.slow
def test_what_makes_a_day_stale(home: Home) -> None:
    p = pattern()
    ops.append(home, "event_days", [event_day(n) for n in range(4)], "r")
    for n in range(4):
        done(home, p, n)
    assert to_do(home, [p], Days(day(0), day(4))) == []
    ops.append(home, "event_days", [event_day(1, "other")], "r")
    assert [(item.day, item.why) for item in to_do(home, [p], Days(day(0), day(4)))] == [
        (day(1), "its events changed (late or corrected files)"),
        (day(2), "its events changed (late or corrected files)"),
    ]
    edited = pattern(definition_hash="h2", engine_version=2, table_name="matches.p/v2")
    (why,) = {item.why for item in to_do(home, [edited], Days(day(3), day(4)))}
    assert why == "its definition changed, the engine changed, migrating to matches.p/v2"


def test_an_audit_failure_is_to_do_again_only_when_something_changed(home: Home) -> None:
    p = pattern()
    ops.append(home, "event_days", [event_day(0)], "r")
    done(home, p, 0, "audit_failed")
    assert to_do(home, [p]) == []
    assert [item.state for item in to_do(home, [pattern(definition_hash="h2")])] == ["stale"]


def test_days_asked_for_are_to_do_without_events(home: Home) -> None:
    p = pattern()
    ops.append(home, "event_days", [event_day(n, rows=0) for n in range(3)], "r")
    assert to_do(home, [p]) == []
    assert [item.day for item in to_do(home, [p], asked=Days(day(1), day(9)))] == [day(1), day(2)]


def test_days_after_the_last_event_are_wanted_as_far_as_the_window_reaches(home: Home) -> None:
    ops.append(home, "event_days", [event_day(0), *(event_day(n, rows=0) for n in (1, 2, 3))], "r")
    assert [item.day for item in to_do(home, [pattern(window=US_PER_DAY + 1)])] == [day(0), day(1), day(2)]


def test_a_day_after_the_last_event_is_wanted_only_if_a_window_reaches_it(home: Home) -> None:
    ops.append(home, "event_days", [event_day(0), *(event_day(n, rows=0) for n in (1, 2))], "r")
    late = datetime(2025, 10, 1, 22, 30, tzinfo=UTC)
    rates = {"source": "s", "type": "T", "first_ts": late, "events": 5}
    ops.append(home, "rates", [rates | {"day": day(0), "key": key, "last_ts": late - timedelta(hours=at)}
                               for at, key in enumerate("ab")], "r")  # fmt: skip
    assert EventDays.load(home, "s").last_us == int(late.timestamp()) * 1_000_000
    for window, wanted in ((0, [0]), (HOUR, [0]), (2 * HOUR, [0, 1]), (26 * HOUR, [0, 1, 2])):
        assert [item.day for item in to_do(home, [pattern(window=window)])] == [day(n) for n in wanted]


def test_days_that_nobody_changes_are_not_waited_for(home: Home) -> None:
    ops.append(home, "event_days", [event_day(0), event_day(1, status="changing")], "r")
    assert pin(home, "s", Days.one(day(0))).version is None
    begun = time.monotonic()
    with pytest.raises(AbandonedDays, match="on 1 day from 2025-10-02, and no ingest of it is running") as raised:
        pin(home, "s", Days(day(0), day(2)))
    assert time.monotonic() - begun < 5
    assert raised.value.exit_code == 5
    assert raised.value.hint == "Repeat the ingest: run 'chainlake ingest s 2025-10-02 2025-10-03'."
    # Another source's ingest changes nothing in it.
    with file_lock(home, "source-t"), pytest.raises(AbandonedDays):
        pin(home, "s", Days(day(0), day(2)))


@pytest.mark.few(1)
@pytest.mark.parametrize("verb", ["detect", "monitor"])
def test_a_step_after_a_failed_ingest_ends_at_once(home: Home, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    row = {**event_day(1, status="changing"), "source": "traffic"}
    ops.append(home, "event_days", [{**event_day(0), "source": "traffic"}, row], "r")
    begun = time.monotonic()
    assert main([verb, "traffic", "2025-10-01", "2025-10-03"]) == 5
    assert time.monotonic() - begun < 30
    assert "chainlake ingest traffic 2025-10-02 2025-10-03" in capsys.readouterr().err


@pytest.mark.slow
def test_days_that_somebody_changes_are_waited_for(home: Home, capfd: pytest.CaptureFixture[str]) -> None:
    ops.append(home, "event_days", [event_day(0), event_day(1, status="changing")], "r")
    started, asked = threading.Event(), threading.Event()

    def ingest() -> None:
        with file_lock(home, "source-s"):
            started.set()
            asked.wait(20)
            time.sleep(1.5)
            ops.append(home, "event_days", [event_day(1)], "r")

    thread = threading.Thread(target=ingest)
    thread.start()
    started.wait(20)
    with pytest.raises(AbandonedDays, match=f"was so for 0 s, by process {os.getpid()} on .* UTC"):
        pin(home, "s", Days(day(0), day(2)), timeout_s=0)
    asked.set()
    assert pin(home, "s", Days(day(0), day(2)), timeout_s=60).event_days.checksum(day(1)) == "c1"
    thread.join()
    said = capfd.readouterr().err
    assert f"waiting for 1 day of events.s from 2025-10-02, being changed by process {os.getpid()} on" in said


def test_an_ingest_that_ends_between_the_two_looks_is_believed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    ops.append(home, "event_days", [event_day(1, status="changing")], "r")

    def just_ended(home: Home, purpose: str) -> bool:
        ops.append(home, "event_days", [event_day(1)], "r")
        return False

    monkeypatch.setattr("chainlake.lake.records.event_days.held", just_ended)
    assert pin(home, "s", Days.one(day(1))).event_days.checksum(day(1)) == "c1"


def test_a_day_of_a_newer_version_is_not_fit(home: Home) -> None:
    ops.append(home, "event_days", [{**event_day(0), "events_version": 7}], "r")
    with pytest.raises(InfrastructureError):
        pin(home, "s", Days.one(day(0)), timeout_s=0)


@pytest.mark.parametrize("status", ["failed", "audit_failed", "publishing"])
def test_rows_are_those_in_the_table_after_an_attempt_that_published_nothing(home: Home, status: str) -> None:
    ops.append(home, "event_days", [event_day(n) for n in range(3)], "r")
    definition, other = pattern(window=0), pattern("other")
    for n in range(2):
        done(home, definition, n, rows=n + 6, published_version=4)
    done(home, other, 0, rows=1, published_version=1)
    for n in range(1, 3):
        done(home, definition, n, status, rows=None)
    rows = status_rows(home, [definition])
    assert [(row.rows, row.version) for row in rows] == [(6, 4), (7, 4), (None, None)]
    done(home, definition, 1, "retired", rows=0)
    done(home, definition, 1, status, rows=None)
    assert [row.rows for row in status_rows(home, [definition])] == [6, 0, None]
    (judged,) = judge(home, [definition])
    assert judged.rows(np.arange(3)).tolist() == [6, 0, 0]
    assert judged.table(np.arange(3))["rows"].to_pylist() == [6, 0, None]
