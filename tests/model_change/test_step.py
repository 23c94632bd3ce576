"""The monitor step: which days it replays (no JVM), and that any history of runs ends in the tables of one pass."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from chainlake.catalog.models import load_models
from chainlake.cli.main import main
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.errors import AuditFailed, ChainlakeError, DefinitionError, InputError, UsageError
from chainlake.lake.delta import tables
from chainlake.lake.delta.log import marked
from chainlake.lake.records import ops
from chainlake.lake.records.event_days import EventDays, pin
from chainlake.lake.records.staleness import StatusRow, fingerprint, status_rows
from chainlake.lake.store.files import FilesLake
from chainlake.model_change import ENGINE_VERSION
from chainlake.model_change import monitor as library
from chainlake.monitoring import compute as monitor_compute
from chainlake.monitoring import events as monitor_events
from chainlake.monitoring import run as monitor_run
from chainlake.monitoring import step as monitor_step
from chainlake.monitoring.states import KeptStates
from chainlake.monitoring.step import monitor, plan_model
from chainlake.quality import Verdict
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from chainlake.schemas.models import CHANGES, METRICS, STATE
from tests.steps.history import MODEL, SOURCE, day, deliver

pytestmark = pytest.mark.slow


@pytest.fixture
def lab(home, monkeypatch):
    """A home whose configuration is one source and one model."""
    config = home.root / "config"
    for name, text in (("sources/lab.yaml", SOURCE), ("models/slope.yaml", MODEL)):
        (config / name).parent.mkdir(parents=True, exist_ok=True)
        (config / name).write_text(text)
    return dataclasses.replace(home, config=config)


@pytest.fixture
def here(lab):
    """Work in this process, on the files."""
    return Ports(LocalTasks(), FilesLake(lab))


def the_model(lab):
    (model,), broken = load_models(lab, load_sources(lab))
    assert not broken
    return model


def event_days(statuses: str, version: int = 0) -> EventDays:
    """One letter per day from FIRST: c complete, e complete without events, o open, - no row."""
    names = {"c": "complete", "e": "complete", "o": "open"}
    rows = [
        {
            "day": day(i),
            "status": names[s],
            "rows": 0 if s == "e" else 9,
            "checksum": f"{i}{s}",
            "events_version": version,
        }
        for i, s in enumerate(statuses)
        if s != "-"
    ]
    return EventDays.of("lab", rows)


def status(letters: str) -> list[StatusRow]:
    """One letter per day from FIRST: d done, s stale, m missing, f audit failed, - no row."""
    names = {"d": "done", "s": "stale", "m": "missing", "f": "audit_failed"}
    return [
        StatusRow("model/slope", day(i), names[s], "", False, True, None, 1 if s in "dsf" else None)
        for i, s in enumerate(letters)
        if s != "-"
    ]


def plan(lab, asked: tuple[int, int], events: str, letters: str):
    span = Days(day(asked[0]), day(asked[1]))
    return plan_model(KeptStates(lab, ["slope"]), the_model(lab), span, event_days(events), status(letters))


@pytest.mark.parametrize(
    ("asked", "events", "letters", "wanted"),
    [
        ((1, 2), "-c", "-m", (1, 2)),
        ((3, 4), "-ccc", "-mmm", (1, 4)),  # missing days before are made up for
        ((2, 3), "-cccc", "-dsdd", (1, 5)),  # to the last day ever published, and from the start: there is no state
        ((2, 3), "-cccc", "-dsds", (1, 5)),
        ((3, 4), "-ccc", "-dfm", (1, 4)),  # a day whose audit failed holds up the ones after it
        ((1, 4), "-cco", "-mmm", (1, 3)),  # a day that is not finished ends the chain
        ((0, 2), "ec", "mm", (0, 2)),  # days before the start are published empty
        ((4, 5), "----c", "----m", (4, 5)),  # no state exists before the first event
    ],
)
def test_replayed_days(lab, asked, events, letters, wanted):
    item = plan(lab, asked, events, letters)
    assert item.days == Days(day(wanted[0]), day(wanted[1])) and item.snapshots == {}
    assert sorted(item.fingerprints) == list(item.days)


def test_a_long_replay_names_the_stretch_to_ask_for(lab):
    with pytest.raises(InputError, match="must be replayed from 2025-03-02, 6 days") as caught:
        plan(lab, (7, 8), "-ccccccc", "-sddddds")
    assert caught.value.key == "max_replay" and "jobs backfill 2025-03-02" in caught.value.hint


def test_a_chain_that_cannot_go_on_names_the_ingest(lab):
    with pytest.raises(InputError, match="cannot go on from 2025-03-03: the events of that day are open") as caught:
        plan(lab, (3, 4), "-coc", "-dmm")
    assert "jobs ingest lab 2025-03-03 2025-03-04" in caught.value.hint


def test_models_are_checked_against_their_source(lab):
    path = lab.config / "models" / "slope.yaml"
    for old, new, key, text in (
        ("response: y", "response: z", "response", "no numeric column 'z'"),
        ("[x]", "[sensor]", "features", "no numeric column 'sensor'"),
        ("lab", "labs", "source", "no source 'labs'"),
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
    return "".join({"done": "d", "audit_failed": "f", "missing": "m", "stale": "s"}[row.state] for row in rows)


def test_any_history_ends_in_the_tables_of_one_pass(lab, spark, monkeypatch, tmp_path):
    kept = {i: readings(i) for i in range(1, 6)}
    deliver(lab, {1: readings(1, seed=9), 2: kept[2]})
    first = monitor(lab, "lab", Days(day(1), day(3)), run_id="r1")
    assert first["days"] == 2 and first["models"] == 1 and states(lab) == "dd"

    with monkeypatch.context() as patch:  # nothing to do: no session
        patch.setattr(monitor_step, "open_ports", lambda *a, **k: pytest.fail("a JVM was started"))
        assert monitor(lab, "lab", Days(day(1), day(3)), run_id="r2")["days"] == 0

    # Days 3 and 4 go on from the state of day 2, and the audit of day 4 fails.
    monkeypatch.setattr(
        monitor_run, "audit_models", lambda *a: Verdict({d: "broken" if d == day(4) else None for d in a[4]})
    )
    deliver(lab, {i: kept[i] for i in (3, 4)})
    with pytest.raises(AuditFailed, match="first 2025-03-05: broken"):
        monitor(lab, "lab", Days(day(4), day(5)), run_id="r3")
    assert states(lab) == "dddf"
    assert {row["day"] for row in published(lab)["metrics"]} == {day(i) for i in range(1, 4)}
    monkeypatch.setattr(monitor_run, "audit_models", lambda *a: Verdict.passed(a[4]))

    # Day 1 is corrected, so all days are stale; the cache is lost besides, and day 5 arrives.
    deliver(lab, {1: kept[1], 5: kept[5]})
    assert states(lab) == "ssssm"
    shutil.rmtree(Path(lab.table("models", "state")))
    last = monitor(lab, "lab", Days(day(5), day(6)), run_id="r4")
    assert last["days"] == 5 and states(lab) == "ddddd"

    # The library, given all rows at once, is the one pass.
    rows = [row for of_day in kept.values() for row in of_day]
    whole = library(lab.config / "models" / "slope.yaml", rows, key="sensor")
    for table, found in ((CHANGES, whole.changes), (METRICS, whole.metrics)):
        wanted = sorted(found.to_pylist(), key=_by_time)
        assert published(lab)[table.name] == wanted
    assert any(row["kind"] == "change" and row["event_date"] >= day(4) for row in published(lab)["changes"])
    state = published(lab)["state"]
    assert len(state) == 5 and {"": state[-1]["state"]} == whole.state
    now = EventDays.load(lab, "lab")
    assert all(row["fingerprint"] == fingerprint(the_model(lab).definition, row["day"], now) for row in state)


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


def plain(outcome) -> tuple:
    """What a model gave, as lists; rows come in any order."""
    return *(
        sorted(rows.to_pylist(), key=str) for rows in (outcome.found, outcome.metrics, outcome.states)
    ), outcome.eps


#: Models that share columns, keys and rounds or do not; the last one's groups stop at their first day.
MANY = {
    "slope": MODEL.replace("nodes: [a, b]", "groups: {one: [a, b], two: [b], none: [z], three: [a]}")
    .replace("[x]", "[x, {of: y, key: a, transform: diff}]")
    .replace("sliding: 8", "sliding: 12"),
    "plain": MODEL,
    "mean": MODEL.replace("length: 1 h", "length: 2 h, aggregate: mean").replace("2025-03-02", "2025-03-03"),
    "low": "kind: threshold\nsource: lab\nstart: 2025-03-02\nnodes: [a, b]\nvalue: x\nthreshold: 0.1\n"
    "round: {length: 1 h}\n",
}


def configured(lab, texts):
    for name, text in texts.items():
        (lab.config / "models" / f"{name}.yaml").write_text(text)
    loaded, broken = load_models(lab, load_sources(lab))
    assert not broken
    return loaded


@pytest.fixture
def computed(lab, tmp_path):
    """What replays give: by that many tasks, pieces of that many events."""
    from chainlake.monitoring.staging import Folder

    numbers = itertools.count()

    def of(pinned, items, tasks=1):
        folder = Folder(str(tmp_path / f"staged-{next(numbers)}"))
        return monitor_compute.compute(Ports(LocalTasks(tasks), FilesLake(lab)), pinned, items, folder)

    return of


@pytest.mark.parametrize("tasks", [1, 3, 100])
@pytest.mark.parametrize("piece", [500_000, 100, 10])
def test_models_give_the_same_however_they_are_packed(lab, computed, monkeypatch, tasks, piece):
    """In one task or a task per group, over all days at once or over pieces of a day; and as the library has it."""
    loaded = configured(lab, MANY)
    rows = {i: readings(i) for i in (1, 2, 3)}
    deliver(lab, rows)
    days = Days(day(1), day(4))
    pinned = pin(lab, "lab", days)
    kept = KeptStates(lab, list(MANY))
    items = [plan_model(kept, model, days, pinned.event_days, status("-mmm")) for model in loaded]
    monkeypatch.setattr(monitor_compute, "_ROWS_PER_TASK", 1)
    monkeypatch.setattr(monitor_events, "ROWS_PER_PIECE", piece)
    found = computed(pinned, items, tasks)
    assert found.events == 3 * 48
    of = {one.item.model.config.name: one for one in found.outcomes}
    assert all(len(of[name].found) for name in MANY)
    assert {row["group_id"] for row in of["slope"].metrics.to_pylist()} == {"one", "two", "three"}
    assert len(of["slope"].states) == 4 * 3 and len(of["mean"].states) == 2
    for name, one in of.items():
        whole = library(one.item.model.config, [row for mine in rows.values() for row in mine], key="sensor")
        wanted = whole.alerts if name == "low" else whole.changes
        assert plain(one)[:2] == tuple(sorted(rows.to_pylist(), key=str) for rows in (wanted, whole.metrics)), name
        last = {r["group_id"]: r["state"] for r in one.states.to_pylist() if r["day"] == day(3)}
        assert last == whole.state
    # The last day by itself, from the state of the day before; one model's state is of no use, and stops it alone.
    again = []
    for name, one in of.items():
        state = {r["group_id"]: r["state"] for r in one.states.to_pylist() if r["day"] == day(2)}
        if name == "plain":
            state = dict.fromkeys(state, '{"version": 0}')
        again.append(dataclasses.replace(one.item, days=Days(day(3), day(4)), snapshots=state))
    for one, after in zip(of.values(), computed(pinned, again, tasks).outcomes, strict=True):
        if one is of["plain"]:
            assert isinstance(after, Exception) and "another version" in str(after)
            continue
        assert plain(after)[2] == [row for row in plain(one)[2] if row["day"] == day(3)]


def test_a_task_reads_a_file_once_for_all_its_groups(lab, computed, monkeypatch):
    from chainlake.monitoring import task as monitor_task

    loaded = configured(lab, MANY)
    deliver(lab, {i: readings(i) for i in (1, 2, 3)})
    pinned = pin(lab, "lab", Days(day(1), day(4)))
    kept = KeptStates(lab, list(MANY))
    items = [plan_model(kept, m, Days(day(1), day(4)), pinned.event_days, status("-mmm")) for m in loaded]
    read: list[str] = []
    honest = monitor_task.read_events
    monkeypatch.setattr(monitor_task, "read_events", lambda piece, *a: read.extend(piece.paths) or honest(piece, *a))
    assert not [one for one in computed(pinned, items).outcomes if isinstance(one, Exception)]
    assert len(read) == len(set(read)) == 3


def test_a_model_whose_column_is_missing_stops_alone(lab, computed):
    """A column that the events table does not have yet; another model of the same events goes on."""
    loaded = configured(lab, {"plain": MODEL})
    deliver(lab, {1: readings(1)})
    source = lab.config / "sources" / "lab.yaml"
    source.write_text(source.read_text().replace("y: {type: double}", "y: {type: double}\n  z: {type: double}"))
    loaded = configured(lab, {"later": MODEL.replace("response: y", "response: z")})
    pinned = pin(lab, "lab", Days.one(day(1)))
    kept = KeptStates(lab, ["plain"])
    items = [plan_model(kept, m, Days.one(day(1)), pinned.event_days, status("-m")) for m in loaded]
    of = {item.model.config.name: one for item, one in zip(items, computed(pinned, items).outcomes, strict=True)}
    assert "no column 'z'" in str(of["later"]) and len(of["plain"].metrics) == 1


def test_models_share_their_commits_and_fail_by_themselves(lab, here, monkeypatch):
    loaded = configured(lab, {**MANY, "also": MODEL, "third": MODEL.replace("eps: 0.3", "eps: 0.5")})
    deliver(lab, {i: readings(i) for i in (1, 2, 3)})
    days = Days(day(1), day(4))
    original = monitor_compute.compute

    def spoilt(*args):
        """One model stops; one breaks the gate on day 2, one a rule of the table."""
        computed = original(*args)
        found = list(computed.outcomes)
        for i, one in enumerate(found):
            name = one.item.model.config.name
            if name == "mean":
                found[i] = InputError("no")
            if name == "also":
                column = pa.array([9.0 if r["day"] == day(2) else r["max_error"] for r in one.metrics.to_pylist()])
                at = one.metrics.schema.get_field_index("max_error")
                found[i] = dataclasses.replace(one, metrics=one.metrics.set_column(at, "max_error", column))
            if name == "third":
                at = one.found.schema.get_field_index("model")
                none = pa.array([None] * len(one.found), pa.string())
                found[i] = dataclasses.replace(one, found=one.found.set_column(at, one.found.schema.field(at), none))
        return dataclasses.replace(computed, outcomes=tuple(found))

    monkeypatch.setattr(monitor_run, "compute", spoilt)
    with pytest.raises(ChainlakeError, match="3 failed") as caught:
        monitor(lab, "lab", days, run_id="r1", ports=here)
    text = str(caught.value)
    assert "model/mean" in text and "model/also failed on 2 of 3" not in text
    assert "guarantee" in text and "model/third" in text
    now = {(row["definition"], row["day"]): row["status"] for row in ops.current(lab, "intervals")}
    assert {now.get(("model/also", day(i))) for i in (2, 3)} == {"audit_failed", None}
    assert now["model/also", day(1)] == now["model/plain", day(3)] == now["model/low", day(3)] == "done"
    assert now["model/mean", day(1)] == "failed" and now["model/third", day(1)] in ("failed", "audit_failed")
    assert {row["model"] for row in tables.arrow(lab, "models", "changes").to_pylist()} >= {"slope", "plain", "also"}

    # Mended, what is left to do is done; then nothing is.
    monkeypatch.setattr(monitor_run, "compute", original)
    (lab.config / "models" / "third.yaml").write_text(MODEL)
    monitor(lab, "lab", days, run_id="r2", ports=here)
    loaded = configured(lab, {})
    rows = status_rows(lab, [model.definition for model in loaded], days)
    assert {row.state for row in rows} == {"done"} and len(rows) == 3 * len(loaded)
    version = tables.version(lab, "models", "metrics")
    assert monitor(lab, "lab", days, run_id="r3", ports=here)["days"] == 0
    events = [row for i in (1, 2, 3) for row in readings(i)]
    for model in loaded:
        whole = library(model.config.file and Path(model.config.file), events, key="sensor")
        mine = tables.arrow(lab, "models", "metrics", filters=[("model", "=", model.config.name)])
        assert sorted(mine.to_pylist(), key=str) == sorted(whole.metrics.to_pylist(), key=str)
    # One more day of all of them is one commit per table.
    deliver(lab, {4: readings(4)})
    assert monitor(lab, "lab", Days.one(day(4)), run_id="r4", ports=here)["models"] == len(loaded)
    assert tables.version(lab, "models", "metrics") - version == 2  # models, and the threshold monitor
    runs = [row for row in ops.current(lab, "runs") if row["run_id"] == "r4" and row["phase"] == "monitor"]
    assert {row["definition"] for row in runs} == {model.definition.name for model in loaded}


def test_no_bin_waits_for_a_heavy_group_and_many_light_ones():
    from chainlake.model_change.days.replay import pack

    weights = [1.0] * 99 + [60.0]
    place = pack(weights, 4)
    load = [sum(w for w, p in zip(weights, place, strict=True) if p == i) for i in range(4)]
    assert place[99] == 0 and load[0] == 60 and max(load[1:]) == 33


def test_status_says_which_keys_no_event_has(lab, monkeypatch, capsys):
    """By the state of the last day that is done: a misspelt node has no rounds, and its group no rows."""
    file = lab.config / "models" / "slope.yaml"
    text = file.read_text()
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(lab.config))
    for nodes, wanted in (("[a, 7]", ["the key '7':"]), ("[b, c]", ["the keys 'b', 'c':"]), ("[a]", [])):
        file.write_text(text.replace("[a, b]", nodes))
        model = the_model(lab)
        rows = [row for i in (1, 2) for row in readings(i) if row["sensor"] == "a"]
        state = library(file, rows, key="sensor", until=day(3)).state[""]
        head = {"model": "slope", "group_id": "", "day": day(2), "fingerprint": "x", "state": state}
        kept = pa.Table.from_pylist([head], schema=STATE.arrow())
        for table in (CHANGES, METRICS, STATE):
            tables.ensure_table(lab, table)
        write_deltalake(lab.table("models", "state"), kept, mode="overwrite", commit_properties=marked("monitor"))
        ops.append(lab, "event_days", [{"source": "lab", "day": day(i), "status": "complete", "rows": 24,
                                        "checksum": f"{i}", "events_version": 0} for i in (1, 2)], "r")  # fmt: skip
        print_ = fingerprint(model.definition, day(2), EventDays.load(lab, "lab"))
        done = {"definition": "model/slope", "day": day(2), "table_name": model.definition.table_name,
                "definition_hash": model.definition.definition_hash, "engine_version": ENGINE_VERSION,
                "input_fingerprint": print_, "status": "done", "rows": 0, "published_version": 0}  # fmt: skip
        ops.append(lab, "intervals", [done], "r")
        assert main(["status"]) == 0
        out = capsys.readouterr().out
        said = [line for line in out.splitlines() if "no event up to" in line]
        assert len(said) == len(wanted) and all(part in line for part, line in zip(wanted, said, strict=True)), out
