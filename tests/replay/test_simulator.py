"""A few seeds of the replay simulator, and that it sees what is broken. ``make simulate SEEDS=200`` runs more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chainlake.lake.records.event_days import EventDays
from chainlake.model_change.days.definitions import KINDS, kind_name, parse_definition
from chainlake.operations.backfills import plan as range_plan
from chainlake.paths import Home
from tests.replay import world
from tests.replay.simulator import Broken, Simulation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


#: One with a model of each kind beside the linear one.
SEEDS = (8, 9, 10, 19)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_history_ends_in_the_tables_of_one_clean_run(home: Home, tmp_path: Path, seed: int) -> None:
    Simulation(seed, tmp_path / "seed", home.cache, light=True, actions=5).run()


def test_audits_pass_whatever_happens(home: Home, tmp_path: Path) -> None:
    Simulation(9, tmp_path / "seed", home.cache, light=True, actions=3, audits=True).run()


@pytest.mark.on_spark("3")
@pytest.mark.parametrize("seed", [2, 3, 5, 7])
def test_any_history_on_spark_ends_in_the_tables_of_one_clean_run(
    spark: SparkSession, home: Home, tmp_path: Path, seed: int
) -> None:
    Simulation(seed, tmp_path / "seed", home.cache, light=False, actions=2).run()


def test_a_broken_rule_is_seen(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fingerprints that hold no checksums: a late file makes nothing stale."""
    monkeypatch.setattr(EventDays, "checksums", lambda self, lo, hi: [])
    with pytest.raises(Broken, match=r"not those of a clean run[\s\S]*history of seed 14"):
        Simulation(14, tmp_path / "seed", home.cache, light=True, actions=5).run()


def test_a_plan_that_announces_other_days_is_seen(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that passes over every other day, which the steps then compute with the days around them."""
    real = range_plan._positions
    monkeypatch.setattr(range_plan, "_positions", lambda judged, asked: real(judged, asked)[::2])
    with pytest.raises(Broken, match="computed and not announced: pattern/linked 2025-03-02"):
        Simulation(8, tmp_path / "seed", home.cache, light=True, actions=5).run()


def test_the_world_is_a_function_of_the_seed_and_has_every_pattern(home: Home, tmp_path: Path) -> None:
    made = [Simulation(seed, tmp_path / f"{seed}", home.cache, light=True) for seed in range(len(world.PATTERNS))]
    again = Simulation(3, tmp_path / "again", home.cache, light=True)
    assert (again.kind, again.patterns, again.coming) == (made[3].kind, made[3].patterns, made[3].coming)
    assert {name for one in made for name in one.patterns} == set(world.PATTERNS)
    with_models = [seed for seed in SEEDS if made[seed].model is not None]
    assert {world.companion(seed) for seed in with_models} == set(world.COMPANIONS)
    texts = [world.model_text(0), *(world.companion_text(name, 0) for name in world.COMPANIONS)]
    assert sorted(kind_name(parse_definition(text)) for text in texts) == sorted(KINDS)
    assert {one.kind.identity for one in made} == {"unique", "multiset"}
    whats = {delivery.what for one in made for delivery in one.coming}
    assert {"the same file twice", "overlapping file", "conflicting file"} <= whats
    assert {"correction, a row moves to another day", "path overwritten", "dirt"} <= whats
