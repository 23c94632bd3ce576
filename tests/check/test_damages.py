"""Whatever befalls a lake is found and named, and a repair with the steps it names gives the same tables again."""

from __future__ import annotations

import os

import pytest

from chainlake.lake.upkeep.same import same_tables
from chainlake.paths import Home
from tests.check import damages, lakes
from tests.check.damages import Damage

pytestmark = pytest.mark.slow


def test_whole_lake_has_no_findings(whole: Home) -> None:
    found = lakes.checked(whole)
    assert (found.findings, found.tables) == ([], 14)


#: ``make damage-proof`` tries all of them, which takes minutes.
TRIED = [one for one in damages.ALL if not one.rare or os.environ.get("CHAINLAKE_ALL_DAMAGES")]


@pytest.mark.parametrize("damage", TRIED, ids=lambda damage: damage.name)
def test_damage_is_found_and_repaired(damage: Damage, whole: Home, copy: Home) -> None:
    damage.act(copy)
    found = lakes.checked(copy)
    said = [str(one) for one in found.findings if one.damage != damage.harmless and one.table == damage.table]
    assert any(damage.says in line for line in said), [str(one) for one in found.findings]
    assert bool(found.damage) != damage.harmless

    result = lakes.repaired(copy)
    assert result.left == []
    assert lakes.checked(copy).damage == []
    assert same_tables(whole, copy) == []
