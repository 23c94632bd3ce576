"""The kinds beside regression and threshold go the way of all models: published, audited, validated, queried."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from chainlake.catalog.models import load_models
from chainlake.days import Days
from chainlake.definitions.source import load_sources
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.chain import EMPTY
from chainlake.lake.sql.query import SqlConnection
from chainlake.lake.upkeep.same import MODELS
from chainlake.model_change.days.definitions import KINDS, kind_name, load_definition, result_table
from chainlake.model_change.library import monitor as library
from chainlake.monitoring.step import monitor
from chainlake.quality import Audit
from chainlake.quality import published as gate
from chainlake.quality.gates.companions import GATES
from chainlake.schemas.models import FINDINGS
from tests.check.published import published_damage
from tests.model_change.companions import COMPANIONS
from tests.model_change.test_step import readings
from tests.replay.light import light
from tests.steps.history import day, deliver

#: A value that breaks what each table promises, and that no row has.
BROKEN = {"zone_events": {"excess": "-1.0"}, "learners": {"divergence": "9.0"}, "fault_scores": {"p": "0.0"}}


def test_every_kind_has_a_table_and_a_gate_of_its_own() -> None:
    assert {kind.table.path_name for kind in KINDS.values()} == set(GATES) == {table.path_name for table in FINDINGS}
    assert len(KINDS) == len({kind.table.path_name for kind in KINDS.values()}) == 5
    assert set(MODELS) == {table.name for table in FINDINGS if table.schema == "models"} | {"metrics"}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPANIONS)
def test_a_monitor_is_published_audited_and_validated(lab, here, name) -> None:
    (lab.config / "models" / "slope.yaml").write_text(COMPANIONS[name])
    config = load_definition(lab.config / "models" / "slope.yaml")
    table = result_table(config)
    assert kind_name(config) == name
    rows = [row for i in (1, 2, 3) for row in readings(i)]
    deliver(lab, {i: readings(i) for i in (1, 2, 3)})
    for i in (1, 2, 3):
        monitor(lab, "lab", Days(day(i), day(i + 1)), run_id=f"r{i}", ports=here)
    whole = library(config, rows, key="sensor")
    assert len(whole.found) > 3

    def in_order(found) -> list[dict]:
        return found.sort_by([(column, "ascending") for column in table.key]).to_pylist()

    assert in_order(tables.arrow(lab, "models", table.name)) == in_order(whole.found)
    assert tables.arrow(lab, "models", "metrics").sort_by("day").to_pylist() == whole.metrics.to_pylist()
    recorded = sorted(ops.current(lab, "intervals"), key=lambda row: row["day"])
    assert [row["status"] for row in recorded] == ["done"] * 3 and recorded[0]["state_in"] == EMPTY
    assert [row["state_in"] for row in recorded[1:]] == [row["state_out"] for row in recorded[:-1]]
    origin = f"SELECT count(*), count(published_by) FROM models.{table.name}_origin"
    assert SqlConnection(lab).query(origin).fetchall() == [(len(whole.found),) * 2]
    (model,), _ = load_models(lab, load_sources(lab))
    (outcome,) = gate.models(Audit(lab), [model], Days(day(0), day(4)))
    assert outcome.days == (day(1), day(2), day(3)) and not outcome.broken
    DeltaTable(lab.table("models", table.name)).update(BROKEN[table.name])
    (outcome,) = gate.models(Audit(lab), [model], Days(day(0), day(4)))
    assert outcome.broken


@pytest.mark.slow
@pytest.mark.on_spark("spark")
def test_one_step_runs_all_kinds_as_the_library_does(lab, tasks) -> None:
    models = lab.config / "models"
    for name, text in COMPANIONS.items():
        (models / f"{name}.yaml").write_text(text)
    rows = [row for i in (1, 2) for row in readings(i)]
    deliver(lab, {i: readings(i) for i in (1, 2)})
    done = monitor(lab, "lab", Days(day(1), day(3)), run_id="r")
    assert done["models"] == 1 + len(COMPANIONS)
    metrics = tables.arrow(lab, "models", "metrics")
    for name in COMPANIONS:
        whole = library(models / f"{name}.yaml", rows, key="sensor")
        table = result_table(load_definition(models / f"{name}.yaml"))
        order = [(column, "ascending") for column in table.key]
        found = tables.arrow(lab, "models", table.name).sort_by(order)
        assert len(found) > 1 and found.to_pylist() == whole.found.sort_by(order).to_pylist()
        mine = [row for row in metrics.sort_by("day").to_pylist() if row["model"] == name]
        assert mine == whole.metrics.to_pylist()


@pytest.mark.slow
def test_a_model_that_becomes_another_kind_leaves_no_rows_of_the_one_it_was(lab, here) -> None:
    """Whatever the order, and for both of two models that are edited together."""
    file, other = (lab.config / "models" / f"{name}.yaml" for name in ("slope", "again"))
    rows = [row for i in (1, 2) for row in readings(i)]
    head = COMPANIONS["safe_zones"].partition("source:")
    threshold = "kind: threshold\nnodes: [a, b]\nvalue: x\nthreshold: 0.1\n" + "".join(head[1:])
    kinds = [file.read_text(), *COMPANIONS.values(), threshold]
    with light():
        deliver(lab, {i: readings(i) for i in (1, 2)})
        for turn, text in enumerate([*kinds, kinds[1], kinds[0]]):
            file.write_text(text)
            other.write_text(kinds[turn % 3])
            monitor(lab, "lab", Days(day(1), day(3)), run_id=f"r{turn}", ports=here)
            assert published_damage(lab) == []
            for one in (file, other):
                whole = library(one, rows, key="sensor")
                own = result_table(load_definition(one))
                for table in FINDINGS:
                    if table != own and not tables.exists(lab, table.schema, table.name):
                        continue
                    found = tables.arrow(lab, table.schema, table.name)
                    mine = [row for row in found.to_pylist() if row[table.key[0]] == one.stem]
                    assert len(mine) == (len(whole.found) if table == own else 0), (text, table.path_name)
                assert len(whole.found) > 0 or one.stem == "again"


@pytest.mark.slow
def test_zones_are_asked_for_by_node_and_time(lab, here) -> None:
    (lab.config / "models" / "slope.yaml").write_text(COMPANIONS["safe_zones"])
    deliver(lab, {i: readings(i) for i in (1, 2)})
    monitor(lab, "lab", Days(day(1), day(3)), run_id="r", ports=here)
    found = SqlConnection(lab).query("SELECT * FROM models.zones WHERE node = 'a' ORDER BY valid_from").fetchall()
    events = tables.arrow(lab, "models", "zone_events").sort_by("ts").to_pylist()
    wanted = [(row["ts"], row["kind"]) for row in events for zone in row["zones"] or () if zone["node"] == "a"]
    assert [(row[3], row[5]) for row in found] == wanted and len(wanted) > 2
    assert [row[4] for row in found] == [row[3] for row in found[1:]] + [None]
    assert all(len(row[7]) == 4 for row in found)
