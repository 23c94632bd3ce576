"""Alerts of models: what is a change is told, what only says that all went on is not, and one of two machines sends."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from chainlake.errors import DefinitionError
from chainlake.lake.delta import tables
from chainlake.lake.delta.reader import open_table
from chainlake.model_change.days.definitions import parse_definition
from chainlake.operations.alerts.cursor import Cursor, write_cursor
from chainlake.operations.alerts.outbox import Outbox, of_model
from chainlake.operations.alerts.send import Sending, send
from chainlake.operations.alerts.webhook import Trying
from chainlake.paths import Home
from chainlake.schemas.models import ALERTS, CHANGES, FAULT_SCORES, ZONE_EVENTS
from chainlake.schemas.table import Table
from tests.lake.appending import append_arrow
from tests.lake.test_alerts import Receiver, receiver

__all__ = ["receiver"]

NOON = datetime(2025, 10, 1, 12, tzinfo=UTC)
HEAD = "source: stock\nstart: 2025-10-01\nnodes: [a, b, c]\nround: {length: 5 min}\nalerts: {webhook: 'URL'}\n"
LINEAR = HEAD + "response: y\nfeatures: [x]\nwindow: {sliding: 300}\neps: 1\n"
KINDS = {
    "linear": LINEAR,
    "threshold": HEAD + "kind: threshold\nvalue: y\nthreshold: 4\n",
    "safe_zones": HEAD + "kind: safe_zones\nvalues: [y]\nregion: {box: [[0, 1]]}\n",
    "latent_faults": HEAD + "kind: latent_faults\ncounters: [x, y]\n",
}


def box(receiver: Receiver, text: str, name: str = "m") -> Outbox:
    config = parse_definition(text.replace("URL", receiver.address), name)
    loaded: Any = SimpleNamespace(config=config, source=SimpleNamespace(name="stock"))
    found = of_model(loaded)
    assert found is not None
    return found


def add(home: Home, table: Table, version: int, *rows: dict[str, Any]) -> None:
    tables.ensure_table(home, table)
    append_arrow(
        home, table, pa.Table.from_pylist(list(rows), schema=table.arrow()), app="m", base_version=version - 1, mark="m"
    )


def change(number: int, kind: str = "change", **more: Any) -> dict[str, Any]:
    ts = NOON + timedelta(minutes=5 * number)
    return {"model": "m", "group_id": "", "ts": ts, "kind": kind, "round": number, "event_date": ts.date(), **more}


def told(receiver: Receiver) -> list[str]:
    """Kind of the message and round of the row, each once, in order."""
    return list(dict.fromkeys(f"{one['kind']} {one['change'].get('round')}" for one in receiver.got))


def quick(**more: Any) -> Sending:
    return Sending(Trying(tries=1, timeout_s=1.0, sleep=lambda _: None), **more)


def test_changes_of_the_model_are_told_and_nothing_else(home: Home, receiver: Receiver) -> None:
    item = box(receiver, LINEAR)
    add(home, CHANGES, 1, change(0, "init"), change(1), change(2, "sync", exceeded=True), change(3, model="other"))
    add(home, CHANGES, 2, change(4, "unidentifiable"), change(5, "recovered"), change(6, "node_change"))
    write_cursor(home, "model/m", Cursor(0))
    assert send(home, item, quick()).sent == 3 and told(receiver) == ["added 1", "added 4", "added 5"]
    one = receiver.got[0]
    assert one["id"] == receiver.keys[0] == "m::2025-10-01T12:05:00Z:change:added:1"
    assert (one["model"], one["source"], one["change"]["kind"]) == ("m", "stock", "change")
    assert send(home, item, quick()).sent == 0


def test_a_local_detector_tells_syncs_that_were_changes(home: Home, receiver: Receiver) -> None:
    add(home, CHANGES, 1, change(1, "sync", exceeded=False), change(2, "sync", exceeded=True))
    write_cursor(home, "model/m", Cursor(0))
    send(home, box(receiver, LINEAR + "detector: local\n"), quick())
    assert told(receiver) == ["added 2"]


@pytest.mark.slow
@pytest.mark.parametrize(("more", "expected"), [("", ["added 1", "withdrawn 1"]), (", withdrawn: false", ["added 1"])])
def test_a_change_that_is_gone_is_told(more: str, expected: list[str], home: Home, receiver: Receiver) -> None:
    add(home, CHANGES, 1, change(1))
    open_table(home, "models", "changes", to_write=True).delete()
    write_cursor(home, "model/m", Cursor(0))
    send(home, box(receiver, LINEAR.replace("'URL'", f"'URL'{more}")), quick())
    assert told(receiver) == expected


def test_of_the_other_kinds_what_needs_a_look_is_told(home: Home, receiver: Receiver) -> None:
    alert = {"monitor": "m", "mean": 3.0, "n_collected": 3}
    add(home, ALERTS, 1, {**alert, "ts": NOON, "kind": "below"}, {**alert, "monitor": "o", "ts": NOON, "kind": "below"})
    add(
        home, ZONE_EVENTS, 1, *(change(at, kind) for at, kind in enumerate(("design", "balanced", "outside", "inside")))
    )
    sent = {}
    for kind in ("threshold", "safe_zones"):
        write_cursor(home, "model/m", Cursor(0))
        receiver.got.clear()
        send(home, box(receiver, KINDS[kind]), quick())
        sent[kind] = [one["change"]["kind"] for one in receiver.got]
    assert sent == {"threshold": ["below"], "safe_zones": ["outside", "inside"]}


def test_a_machine_that_is_no_longer_flagged_is_withdrawn(home: Home, receiver: Receiver) -> None:
    def score(machine: str, flagged: bool) -> dict[str, Any]:
        row = {"model": "m", "group_id": "", "day": date(2025, 10, 1), "machine": machine, "rounds": 9}
        return {**row, "v_norm": 0.5, "gamma": 0.1, "p": 0.001 if flagged else 0.9, "flagged": flagged}

    item = box(receiver, KINDS["latent_faults"])
    add(home, FAULT_SCORES, 1, score("a", True), score("b", False), score("c", True))
    delta = open_table(home, "models", "fault_scores", to_write=True)
    delta.update({"flagged": "false", "p": "0.8"}, predicate="machine = 'a'")
    delta.update({"p": "0.7"}, predicate="machine = 'b'")
    delta.update({"p": "0.002"}, predicate="machine = 'c'")
    write_cursor(home, "model/m", Cursor(0))
    send(home, item, quick())
    assert [(one["kind"], one["change"]["machine"]) for one in receiver.got] == [
        ("added", "a"), ("added", "c"), ("withdrawn", "a"), ("changed", "c"),
    ]  # fmt: skip


def test_of_two_machines_that_share_a_lake_one_sends(home: Home, receiver: Receiver, tmp_path: Path) -> None:
    """Homes of their own, one lake: what the first has told, the second does not tell again."""
    item = box(receiver, LINEAR)
    other = replace(home, root=tmp_path / "elsewhere")
    add(home, CHANGES, 1, change(1))
    assert send(home, item, quick()).sent == 0
    add(home, CHANGES, 2, change(2))
    assert (send(home, item, quick()).sent, send(other, item, quick()).sent) == (1, 0)
    add(home, CHANGES, 3, change(3))
    assert (send(other, item, quick()).sent, send(home, item, quick()).sent) == (1, 0)
    assert told(receiver) == ["added 2", "added 3"]


def test_alerts_are_read_as_those_of_patterns_and_change_no_row() -> None:
    plain = parse_definition(LINEAR.replace("alerts: {webhook: 'URL'}\n", ""))
    quiet = parse_definition(LINEAR.replace("'URL'", "$HOOK, mute: ['22:00-06:00']"))
    assert quiet.alerts is not None and quiet.alerts.mute and plain.alerts is None
    assert plain.definition_hash == quiet.definition_hash
    with pytest.raises(DefinitionError, match="not a time span of a day"):
        parse_definition(LINEAR.replace("'URL'", "$HOOK, mute: ['22-06']"))
    shared = "kind: shared_learning\nresponse: y\nfeatures: [x]\nlearning_rate: 0.1\nsync: {static: 2}\n"
    with pytest.raises(DefinitionError, match="alerts"):
        parse_definition(HEAD + shared)
