"""One source file that is wrong: the sources beside it are ingested, computed, planned and shown as ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainlake.airflow.broken import BrokenDefinitions, check_definitions
from chainlake.cli.main import main
from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.errors import DefinitionError
from chainlake.ingest.step import ingest
from chainlake.lake.records.runs import new_run_id
from chainlake.monitoring.step import monitor
from chainlake.operations.backfills.plan import plan_range
from chainlake.paths import Home
from tests.steps.history import SOURCE, configured, day, deliver, pattern, readings

pytestmark = pytest.mark.slow

DAYS = Days(day(0), day(2))


@pytest.fixture
def lab(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The source lab with two days of events, and a source ``bad`` whose file is wrong, with a pattern and a model."""
    made = configured(home, near=pattern(), other=pattern().replace("source: lab", "source: bad"))
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(made.config))
    (made.config / "sources" / "bad.yaml").write_text(SOURCE.replace("identity: unique", "identity: uniqe"))
    model = made.config / "models" / "slope.yaml"
    Path(model.parent, "slope_bad.yaml").write_text(model.read_text().replace("source: lab", "source: bad"))
    deliver(made, {n: readings(n) for n in range(2)})
    return made


def test_the_other_sources_go_on(lab: Home, capsys: pytest.CaptureFixture[str]) -> None:
    # Days before all events: the steps read every definition, and have nothing to do.
    before = Days(day(-2), day(-1))
    assert ingest(lab, "lab", before, run_id=new_run_id("ingest"))["files"] == 0
    assert detect(lab, "lab", before, run_id=new_run_id("detect"))["patterns"] == 0
    assert monitor(lab, "lab", before, run_id=new_run_id("monitor"))["models"] == 0
    plan = plan_range(lab, DAYS)
    assert [part.definition for app in plan.applications for part in app.parts] == ["pattern/near", "model/slope"]
    assert [name for name, _ in plan.failures] == ["pattern/other", "model/slope_bad"]
    assert main(["status"]) == 0
    said = capsys.readouterr().out
    assert "pattern/near" in said and "broken source/bad: " in said and "'uniqe' is not" in said
    # The source's error is told once, however many definitions need it.
    waiting = "waiting for source/bad, which is broken: pattern/other, model/slope_bad"
    assert said.count("'uniqe' is not") == 1 and waiting in said.splitlines()
    assert main(["plan", str(DAYS.start), str(DAYS.end)]) == 3
    said = capsys.readouterr().out
    assert said.count("'uniqe' is not") == 1 and waiting in said.splitlines()
    assert "cannot be computed: source/bad: " in said
    with pytest.raises(BrokenDefinitions) as raised:
        check_definitions(lab)
    assert str(raised.value).count("'uniqe' is not") == 1 and waiting in str(raised.value)
    assert main(["lint"]) == 3
    told = capsys.readouterr()
    assert (told.out + told.err).count("'uniqe' is not") == 1 and ": 1 error, " in told.out
    assert "waiting for source/bad, which is broken: other, slope_bad" in told.out.splitlines()


@pytest.mark.parametrize("step", [ingest, detect, monitor])
def test_the_broken_one_fails_with_its_message(lab: Home, step: object) -> None:
    with pytest.raises(DefinitionError, match="uniqe") as caught:
        step(lab, "bad", DAYS, run_id="r")  # type: ignore[operator]
    assert Path(str(caught.value.file)).name == "bad.yaml" and caught.value.line == 7
