"""Models that share a task, a file or a commit give what each gives by itself, and fail by themselves."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pyarrow as pa
import pytest

from chainlake.catalog.models import load_models
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.errors import ChainlakeError, InputError
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.event_days import pin
from chainlake.lake.records.staleness import status_rows
from chainlake.lake.store.files import FilesLake
from chainlake.model_change.library import monitor as library
from chainlake.monitoring import compute as monitor_compute
from chainlake.monitoring import run as monitor_run
from chainlake.monitoring.step import monitor
from chainlake.monitoring.tasks import events as monitor_events
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from tests.model_change.companions import COMPANIONS
from tests.model_change.test_step import readings, replays
from tests.steps.history import MODEL, day, deliver

pytestmark = pytest.mark.slow


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
    "seen": MODEL.replace("[x]", "[{name: half, expression: x / 2}, {expression: \"Hour(ts, 'Asia/Tokyo')\"}]")
    + "where: sensor = 'a' OR Hour(ts, 'Asia/Tokyo') >= 6 AND y < 3\n",
    "low": "kind: threshold\nsource: lab\nstart: 2025-03-02\nnodes: [a, b]\nvalue: x\nthreshold: 0.1\n"
    "round: {length: 1 h}\n",
    **COMPANIONS,
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
    from chainlake.monitoring.tasks.staging import Folder

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
    items = replays(lab, loaded, days, pinned.event_days)
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
        assert plain(one)[:2] == tuple(sorted(rows.to_pylist(), key=str) for rows in (whole.found, whole.metrics)), name
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
    from chainlake.monitoring.tasks import task as monitor_task

    loaded = configured(lab, MANY)
    deliver(lab, {i: readings(i) for i in (1, 2, 3)})
    pinned = pin(lab, "lab", Days(day(1), day(4)))
    items = replays(lab, loaded, Days(day(1), day(4)), pinned.event_days)
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
    items = replays(lab, loaded, Days.one(day(1)), pinned.event_days)
    of = {item.model.config.name: one for item, one in zip(items, computed(pinned, items).outcomes, strict=True)}
    assert "no column 'z'" in str(of["later"]) and len(of["plain"].metrics) == 1


def test_a_group_that_cannot_say_what_it_gave_stops_alone(lab, computed, monkeypatch):
    from chainlake.model_change.days.replay import GroupReplay

    loaded = configured(lab, {"plain": MODEL, "later": MODEL})
    deliver(lab, {1: readings(1)})
    honest = GroupReplay.gave

    def gave(group):
        if group._run.config.name == "later":
            raise ZeroDivisionError("no")
        return honest(group)

    monkeypatch.setattr(GroupReplay, "gave", gave)
    pinned = pin(lab, "lab", Days.one(day(1)))
    items = replays(lab, loaded, Days.one(day(1)), pinned.event_days)
    of = {item.model.config.name: one for item, one in zip(items, computed(pinned, items).outcomes, strict=True)}
    assert "ZeroDivisionError" in str(of["later"]) and len(of["plain"].metrics) == 1


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
    # Of what stopped it the first day tells; what the others hold is as it was.
    assert now.get(("model/mean", day(2))) is now.get(("model/mean", day(3))) is None
    assert now["model/mean", day(1)] == "failed" and now["model/third", day(1)] in ("failed", "audit_failed")
    assert {row["model"] for row in tables.arrow(lab, "models", "changes").to_pylist()} >= {"slope", "plain", "also"}

    # Mended, what is left to do is done; then nothing is.
    monkeypatch.setattr(monitor_run, "compute", original)
    (lab.config / "models" / "third.yaml").write_text(MODEL)
    with pytest.raises(InputError, match="model/also cannot continue to 2025-03-04: 2025-03-03 before it: its audit"):
        monitor(lab, "lab", days, run_id="r2", ports=here)
    (lab.config / "models" / "also.yaml").write_text(MODEL.replace("eps: 0.3", "eps: 0.31"))
    monitor(lab, "lab", days, run_id="r2b", ports=here)
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
    # Models, the threshold monitor, and each of the other kinds.
    assert tables.version(lab, "models", "metrics") - version == 2 + len(COMPANIONS)
    runs = [row for row in ops.current(lab, "runs") if row["run_id"] == "r4" and row["phase"] == "monitor"]
    assert {row["definition"] for row in runs} == {model.definition.name for model in loaded}


def test_no_bin_waits_for_a_heavy_group_and_many_light_ones():
    from chainlake.model_change.days.replay import pack

    weights = [1.0] * 99 + [60.0]
    place = pack(weights, 4)
    load = [sum(w for w, p in zip(weights, place, strict=True) if p == i) for i in range(4)]
    assert place[99] == 0 and load[0] == 60 and max(load[1:]) == 33
