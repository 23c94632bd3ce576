"""The kinds beside regression and threshold through the command line: a history, and files that come late."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import pytest

from chainlake.cli.main import main
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.chain import EMPTY
from chainlake.model_change.days.definitions import load_definition, result_table
from chainlake.model_change.library import monitor as library
from chainlake.operations.backfills import launch
from chainlake.paths import Home
from tests.model_change.companions import COMPANIONS
from tests.model_change.test_chained_models import readings
from tests.replay.light import light
from tests.steps.history import SOURCE, day, deliver

pytestmark = pytest.mark.slow

DAYS = range(2, 13)
FROM, TO = str(day(2)), str(day(13))
#: Learners that forget within days what a late file taught them.
QUICK = COMPANIONS["shared_learning"].replace("learning_rate: 0.1", "learning_rate: 0.4\npenalty: 0.05")
TEXTS = COMPANIONS | {"shared_learning": QUICK}


@pytest.fixture
def lab(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A source and a model of each kind, found by the command line."""
    config = home.root / "config"
    files = {"sources/lab.yaml": SOURCE, **{f"models/{name}.yaml": text for name, text in TEXTS.items()}}
    for name, text in files.items():
        (config / name).parent.mkdir(parents=True, exist_ok=True)
        (config / name).write_text(text)
    (config / "patterns").mkdir()
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(config))
    return dataclasses.replace(home, config=config)


def child_here(command: Sequence[str], on_line: Callable[[str], None], **_: object) -> int:
    """What a child process would run, in this one."""
    assert list(command[1:3]) == ["-m", "chainlake"]
    return main(list(command[3:]))


def check(lab: Home, editions: dict[int, int]) -> None:
    """Each model's tables are those of one pass of the library over all events, and its days are a chain."""
    rows = [row for n in DAYS for row in readings(n, editions.get(n, 0))]
    metrics = tables.arrow(lab, "models", "metrics")
    for name in TEXTS:
        file = lab.config / "models" / f"{name}.yaml"
        whole, table = library(file, rows, key="sensor"), result_table(load_definition(file))
        order = [(column, "ascending") for column in table.key]
        found = tables.arrow(lab, "models", table.name).sort_by(order)
        assert found.to_pylist() == whole.found.sort_by(order).to_pylist() and len(found) > 10
        mine = [row for row in metrics.sort_by("day").to_pylist() if row["model"] == name]
        assert mine == whole.metrics.to_pylist()
        recorded = sorted(ops.current(lab, "intervals", definition=f"model/{name}"), key=lambda row: row["day"])
        assert [row["day"] for row in recorded] == [day(n) for n in DAYS] and {r["status"] for r in recorded} == {
            "done"
        }
        assert [row["state_in"] for row in recorded] == [EMPTY, *(row["state_out"] for row in recorded[:-1])]


def published(lab: Home) -> set[tuple[str, str, int]]:
    """(run, model, number of the day) of all that runs have published."""
    columns = ["run_id", "definition", "day", "status"]
    return {
        (row["run_id"], row["definition"].removeprefix("model/"), (row["day"] - day(0)).days)
        for row in ops.current_table(lab, "intervals", columns=columns, as_log=True).to_pylist()
        if row["status"] == "done"
    }


def late(lab: Home, n: int, edition: int, *words: str) -> dict[str, list[int]]:
    """Files of a day come late, one reading more and others than before, and a verb runs: which days it publishes."""
    deliver(lab, {n: readings(n, edition)})
    before = published(lab)
    assert main(list(words)) == 0
    found: dict[str, list[int]] = {name: [] for name in TEXTS}
    for _, name, at in sorted(published(lab) - before):
        found[name].append(at)
    return found


def test_late_files_are_followed_as_far_as_they_have_an_effect(lab: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "run_child", child_here)
    with light():
        deliver(lab, {n: readings(n) for n in DAYS})
        assert main(["backfill", FROM, TO, "--chunk", "5d"]) == 0
        check(lab, {})
        now: dict[int, int] = {}
        for n, edition, words in (
            (3, 1, ["monitor", "lab", str(day(3)), TO]),
            (4, 1, ["restate", "--source", "lab"]),
            (3, 2, ["backfill", FROM, TO, "--chunk", "30d"]),
        ):
            reached, now[n] = late(lab, n, edition, *words), edition
            assert all(days == list(range(n, days[-1] + 1)) for days in reached.values())
            last = {name: days[-1] for name, days in reached.items()}
            # Zones are designed again, and references of the variance set again; learners forget slowly.
            assert last["safe_zones"] - n <= 2 and 1 <= last["latent_faults"] - n <= 3
            assert 3 <= last["shared_learning"] - n and last["shared_learning"] < DAYS[-1]
            check(lab, now)
        # The same file once more is no news.
        assert late(lab, 3, 2, "backfill", FROM, TO) == {name: [] for name in TEXTS}
