"""The monitor step: which days it replays (no JVM), and that any history of runs ends in the tables of one pass."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from chainlake.catalog.models import load_models
from chainlake.cli.main import main
from chainlake.days import Days, day_of
from chainlake.definitions.source import load_sources
from chainlake.errors import AuditFailed, DefinitionError, InputError, UsageError
from chainlake.lake.delta import tables
from chainlake.lake.delta.log import marked
from chainlake.lake.records import ops
from chainlake.lake.records.chain import EMPTY
from chainlake.lake.records.defined.fingerprints import fingerprint
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.staleness import TO_DO, judge, status_rows
from chainlake.model_change.library import monitor as library
from chainlake.monitoring import run as monitor_run
from chainlake.monitoring import step as monitor_step
from chainlake.monitoring.states import KeptStates
from chainlake.monitoring.step import Wanted, course_of, monitor
from chainlake.quality import Verdict
from chainlake.schemas.models import CHANGES, METRICS, STATE
from tests.steps.history import MODEL, day, deliver

pytestmark = pytest.mark.slow


def the_model(lab):
    (model,), broken = load_models(lab, load_sources(lab))
    assert not broken
    return model


def recorded(lab, events: str, letters: str) -> None:
    """What ops says, one letter per day from FIRST, and no state of any day.

    Args:
        events: c complete, e complete without events, o open, - no row.
        letters: d done, s done and stale since, m never computed, f its audit failed, - nothing to compute.
    """
    model = the_model(lab).definition
    names = {"c": "complete", "e": "complete", "o": "open"}
    days = [{"source": "lab", "day": day(i), "status": names[s], "rows": 9 * (s != "e"), "checksum": f"{i}{s}",
             "events_version": 0} for i, s in enumerate(events) if s != "-"]  # fmt: skip
    ops.append(lab, "event_days", days, "r")
    for table in (CHANGES, METRICS):
        tables.ensure_table(lab, table)
    now = EventDays.load(lab, "lab")
    first = min((i for i, s in enumerate(letters) if s != "-"), default=0)
    ops.append(lab, "intervals", [
        {"definition": model.name, "day": day(i), "table_name": model.table_name, "rows": 0, "published_version": 0,
         "definition_hash": model.definition_hash, "engine_version": model.engine_version,
         "input_fingerprint": "old" if s == "s" else fingerprint(model, day(i), now),
         "status": "audit_failed" if s == "f" else "done",
         "state_in": EMPTY if i == first else f"{i - 1}", "state_out": f"{i}"}
        for i, s in enumerate(letters) if s in "dsf"
    ], "r")  # fmt: skip


def course(lab, asked: Days, pinned=None):
    """How a run for some days would go, None if nothing is to do."""
    model, events = the_model(lab), pinned or EventDays.load(lab, "lab")
    (judged,) = judge(lab, [model.definition], asked=asked)
    span = Wanted(asked, 7, TO_DO).span(model, judged)
    return span and course_of(KeptStates(lab, [model.config.name]), model, judged, (asked, span.start), events)


def numbers(outlook):
    return tuple([day_of(n) for n in listed] for listed in (outlook.certain, outlook.possible))


def replays(lab, loaded, days: Days, event_days: EventDays):
    """All days of models of which nothing was ever computed."""
    found = []
    for model in loaded:
        (judged,) = judge(lab, [model.definition], asked=days)
        kept = KeptStates(lab, [model.config.name])
        found.append(course_of(kept, model, judged, (days, days.start), event_days).next())
    return found


@pytest.mark.parametrize(
    ("asked", "events", "letters", "certain", "possible"),
    [
        ((1, 2), "-c", "-m", [1], []),
        ((3, 4), "-ccc", "-mmm", [1, 2, 3], []),  # missing days before are made up for
        ((2, 3), "-cccc", "-dsdd", [1, 2], [3, 4]),  # from the start, since there is no state, to the last published
        ((2, 3), "-cccc", "-dsds", [1, 2, 4], [3]),
        ((1, 4), "-cco", "-mmm", [1, 2], []),  # a day that is not finished ends the chain
        ((0, 2), "ec", "mm", [0, 1], []),  # days before the start are published empty
        ((4, 5), "----c", "----m", [4], []),  # no state exists before the first event
        ((3, 4), "-ccc", "-sdm", [1, 3], [2]),
    ],
)
def test_replayed_days(lab, asked, events, letters, certain, possible):
    recorded(lab, events, letters)
    found = course(lab, Days(day(asked[0]), day(asked[1]))).outlook
    assert numbers(found) == ([day(n) for n in certain], [day(n) for n in possible])


def test_the_window_of_a_backfill_asks_for_no_day(lab):
    """Its days are those that other models need; a plan, which knows each model's, has announced no more."""
    recorded(lab, "-cceee", "-mm")
    window, model = Days(day(1), day(6)), the_model(lab)
    (course,) = monitor_step._plan(lab, [model], Wanted(window, 0, TO_DO), "r").work
    assert numbers(course.outlook) == ([day(1), day(2)], [])
    (asked,) = monitor_step._plan(lab, [model], Wanted(window, 7, TO_DO), "r").work
    assert numbers(asked.outlook) == ([day(n) for n in range(1, 6)], [])


def test_days_behind_one_whose_audit_failed_wait_and_their_run_says_so(lab, here):
    recorded(lab, "-cccc", "-dfdm")
    assert course(lab, Days(day(4), day(5))) is None
    rows = {row.day: (row.state, row.why) for row in status_rows(lab, [the_model(lab).definition])}
    assert rows[day(1)][0] == "done" and rows[day(2)][0] == "audit_failed"
    assert rows[day(3)] == rows[day(4)] == ("waiting", f"{day(2)} before it: its audit failed")
    with pytest.raises(InputError, match="cannot continue to 2025-03-05: 2025-03-03 before it: its audit failed"):
        monitor(lab, "lab", Days(day(4), day(5)), run_id="r", ports=here)


def test_days_behind_one_whose_events_are_not_there_wait_and_their_run_says_so(lab, here):
    recorded(lab, "-coc", "-dmm")
    assert course(lab, Days(day(3), day(4))) is None
    with pytest.raises(InputError, match="2025-03-04: 2025-03-03 before it: expected files are missing"):
        monitor(lab, "lab", Days(day(3), day(4)), run_id="r", ports=here)
    # It was asked for itself, and shows that it waits.
    assert monitor(lab, "lab", Days(day(2), day(4)), run_id="r", ports=here)["days"] == 0


def test_what_follows_a_late_day_is_marked_as_an_estimate(lab):
    recorded(lab, "-ccccc", "-dsddm")
    rows = [(row.state, row.why) for row in status_rows(lab, [the_model(lab).definition])]
    follows = ("following", "2025-03-03 before it is stale; it may turn out to be unaffected")
    assert [state for state, _ in rows] == ["done", "stale", "following", "following", "missing"]
    assert rows[2] == rows[3] == follows
    # Days are shown as they stand in the whole chain.
    assert [row.state for row in status_rows(lab, [the_model(lab).definition], Days(day(3), day(5)))] == [
        "following", "following",
    ]  # fmt: skip


def test_a_long_replay_names_the_stretch_to_ask_for(lab):
    recorded(lab, "-ccccccc", "-sddddds")
    with pytest.raises(InputError, match="must be replayed from 2025-03-02, 6 days") as caught:
        course(lab, Days(day(7), day(8))).outlook  # noqa: B018
    assert caught.value.key == "max_replay" and "chainlake backfill 2025-03-02" in caught.value.hint
    # Stale days that lie further back make no run by themselves, whatever the horizon.
    (judged,) = judge(lab, [the_model(lab).definition])
    assert Wanted(Days.one(day(7)), 7, TO_DO).span(the_model(lab), judged).start == day(7)
    assert Wanted(Days.one(day(6)), 7, TO_DO).span(the_model(lab), judged).start == day(1)


def test_a_chain_that_cannot_go_on_names_the_ingest(lab):
    recorded(lab, "-coc", "-dds")
    with pytest.raises(
        InputError, match="cannot continue from 2025-03-03: the events of that day are not final"
    ) as caught:
        course(lab, Days(day(3), day(4))).outlook  # noqa: B018
    assert "chainlake ingest lab 2025-03-03 2025-03-04" in caught.value.hint


def test_models_are_checked_against_their_source(lab):
    path = lab.config / "models" / "slope.yaml"
    for old, new, key, text in (
        ("response: y", "response: z", "response", "no numeric column 'z'"),
        ("[x]", "[sensor]", "features", "no numeric column 'sensor'"),
        ("lab", "labs", "source", "no source 'labs'"),
        ("eps:", "where: x > 1 AND z = 1\neps:", "where", "no attribute z"),
        ("eps:", "where: sensor > 1\neps:", "where", "a string and a number have no order"),
        ("[x]", "[x, {expression: x + z}]", "features.1.expression", "no attribute z"),
        ("response: y", "response: {expression: Upper(sensor)}", "response.expression", "this is a string"),
    ):
        path.write_text(MODEL.replace(old, new, 1))
        loaded, (broken,) = load_models(lab, load_sources(lab))
        assert not loaded and text in broken.error.what
        assert (broken.error.file, broken.error.key) == (str(path), key) and broken.error.line
    path.write_text(MODEL.replace("eps: 0.3", "eps: none"))
    with pytest.raises(DefinitionError, match=r"slope\.yaml:8"):
        monitor(lab, "lab", Days.one(day(1)), run_id="r")
    with pytest.raises(UsageError, match="no model other"):
        monitor(lab, "lab", Days.one(day(1)), run_id="r", models=["other"])


def readings(i: int, seed: int = 0) -> list[dict]:
    """Hourly readings of a day; the slope of the model doubles on day 4."""
    rng = np.random.default_rng([seed, i])
    rows = []
    for hour in range(24):
        for key in ("a", "b"):
            x = float(rng.normal())
            ts = datetime.combine(day(i), datetime.min.time(), UTC) + timedelta(hours=hour, minutes=3)
            y = (1.0 if i < 4 else 2.0) * x + 0.05 * float(rng.normal())
            rows.append({"event_id": f"{key}{ts:%d%H}".zfill(32), "type": "Reading", "sensor": key, "ts": ts, "seq": 0,
                         "x": x, "y": y, "event_date": day(i)})  # fmt: skip
    return rows


def published(lab) -> dict[str, list[dict]]:
    found = {}
    for name in ("changes", "metrics", "state"):
        rows = tables.arrow(lab, "models", name).to_pylist()
        found[name] = sorted(rows, key=_by_time)
    return found


def _by_time(row: dict) -> list[str]:
    return [str(row.get(key)) for key in ("day", "ts", "kind")]


def states(lab) -> str:
    rows = status_rows(lab, [the_model(lab).definition])
    letters = {"done": "d", "audit_failed": "f", "missing": "m", "stale": "s", "following": "o", "waiting": "w"}
    return "".join(letters[row.state] for row in rows)


@pytest.mark.on_spark()
def test_any_history_ends_in_the_tables_of_one_pass(lab, tasks, monkeypatch, tmp_path):
    kept = {i: readings(i) for i in range(1, 6)}
    deliver(lab, {1: readings(1, seed=9), 2: kept[2]})
    first = monitor(lab, "lab", Days(day(1), day(3)), run_id="r1")
    assert first["days"] == 2 and first["models"] == 1 and states(lab) == "dd"

    with monkeypatch.context() as patch:  # nothing to do: no session
        patch.setattr(monitor_step, "open_ports", lambda *a, **k: pytest.fail("a JVM was started"))
        assert monitor(lab, "lab", Days(day(1), day(3)), run_id="r2")["days"] == 0

    # Days 3 and 4 go on from the state of day 2, and the audit of day 4 fails.
    monkeypatch.setattr(
        monitor_run, "audit_models", lambda *a: Verdict({d: "broken" if d == day(4) else None for d in a[3]})
    )
    deliver(lab, {3: kept[3], 4: readings(4, seed=8)})
    with pytest.raises(AuditFailed, match="first 2025-03-05: broken"):
        monitor(lab, "lab", Days(day(4), day(5)), run_id="r3")
    assert states(lab) == "dddf"
    assert {row["day"] for row in published(lab)["metrics"]} == {day(i) for i in range(1, 4)}
    monkeypatch.setattr(monitor_run, "audit_models", lambda *a: Verdict.passed(a[3]))

    # Days 1 and 4 are corrected, so the days between may be affected; the cache is lost besides, and day 5 arrives.
    deliver(lab, {1: kept[1], 4: kept[4], 5: kept[5]})
    assert states(lab) == "soosm"
    shutil.rmtree(Path(lab.table("models", "state")))
    last = monitor(lab, "lab", Days(day(5), day(6)), run_id="r4")
    assert 3 <= last["days"] <= 5 and states(lab) == "ddddd"

    # The library, given all rows at once, is the one pass.
    rows = [row for of_day in kept.values() for row in of_day]
    whole = library(lab.config / "models" / "slope.yaml", rows, key="sensor")
    for table, found in ((CHANGES, whole.changes), (METRICS, whole.metrics)):
        wanted = sorted(found.to_pylist(), key=_by_time)
        assert published(lab)[table.name] == wanted
    assert any(row["kind"] == "change" and row["event_date"] >= day(4) for row in published(lab)["changes"])
    state = published(lab)["state"]
    assert {"": state[-1]["state"]} == whole.state
    ends = {row["day"]: (row["state_in"], row["state_out"]) for row in ops.current(lab, "intervals")}
    assert all(row["fingerprint"] == ends[row["day"]][1] for row in state)
    assert [ends[day(i)][0] for i in range(1, 6)] == [EMPTY, *(ends[day(i)][1] for i in range(1, 5))]


THRESHOLD = """\
kind: threshold
source: lab
start: 2025-03-02
nodes: [a, b]
value: x
threshold: 0.1
round: {length: 1 h}
"""


def test_a_threshold_monitor_is_published_audited_and_validated(lab, here):
    from chainlake.quality import Audit
    from chainlake.quality import published as gate

    (lab.config / "models" / "slope.yaml").write_text(THRESHOLD)
    rows = [row for i in (1, 2) for row in readings(i)]
    deliver(lab, {1: readings(1), 2: readings(2)})
    monitor(lab, "lab", Days(day(1), day(2)), run_id="r1", ports=here)
    monitor(lab, "lab", Days(day(2), day(3)), run_id="r2", ports=here)
    whole = library(lab.config / "models" / "slope.yaml", rows, key="sensor")
    assert len(whole.alerts) > 6
    assert tables.arrow(lab, "alerts", "threshold").sort_by("ts").to_pylist() == [
        {**row, "monitor": "slope"} for row in whole.alerts.to_pylist()
    ]
    assert tables.arrow(lab, "models", "metrics").sort_by("day").to_pylist() == whole.metrics.to_pylist()
    assert not tables.exists(lab, "models", "changes") and states(lab) == "dd"
    (outcome,) = gate.models(Audit(lab), [the_model(lab)], Days(day(0), day(3)))
    assert outcome.days == (day(1), day(2)) and not outcome.broken
    DeltaTable(lab.table("alerts", "threshold")).update({"kind": "'below'"})
    (outcome,) = gate.models(Audit(lab), [the_model(lab)], Days(day(0), day(3)))
    assert sorted(outcome.broken) == [day(1), day(2)]


def test_status_says_which_keys_no_event_has(lab, monkeypatch, capsys):
    """By the state of the last day that is done: a misspelt node has no rounds, and its group no rows."""
    file = lab.config / "models" / "slope.yaml"
    text = file.read_text()
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(lab.config))
    for nodes, where, wanted in (
        ("[a, 7]", "", ["no event up to 2025-03-03 has the key '7':"]),
        ("[b, c]", "", ["no event up to 2025-03-03 has the keys 'b', 'c':"]),
        ("[a]", "", []),
        ("[a]", "where: x > 99\n", ["no event that 'where' is true for up to 2025-03-03 has the key 'a':"]),
    ):
        file.write_text(text.replace("[a, b]", nodes) + where)
        rows = [row for i in (1, 2) for row in readings(i) if row["sensor"] == "a"]
        state = library(file, rows, key="sensor", until=day(3)).state[""]
        head = {"model": "slope", "group_id": "", "day": day(2), "fingerprint": "2", "state": state}
        kept = pa.Table.from_pylist([head], schema=STATE.arrow())
        for table in (CHANGES, METRICS, STATE):
            tables.ensure_table(lab, table)
        write_deltalake(lab.table("models", "state"), kept, mode="overwrite", commit_properties=marked("monitor"))
        recorded(lab, "-cc", "-dd")
        assert main(["status"]) == 0
        out = capsys.readouterr().out
        said = [line for line in out.splitlines() if "no event" in line]
        assert len(said) == len(wanted) and all(part in line for part, line in zip(wanted, said, strict=True)), out
