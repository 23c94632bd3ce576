"""Whatever befalls a lake is found and named, and a repair with the steps it names gives the same tables again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from jobs.lake.same import same_tables
from jobs.paths import Home
from tests.check import damages, lakes
from tests.check.damages import Damage
from tests.replay.surroundings import quick, quiet


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A lake that nothing has befallen."""
    with ExitStack() as stack:
        for part in (quick(), quiet(), lakes.place()):
            stack.enter_context(part)
        yield lakes.make(tmp_path_factory.mktemp("whole lake"))


@pytest.fixture
def copy(whole: Home, tmp_path: Path) -> Home:
    """A copy of it to be damaged."""
    return lakes.copied(whole, tmp_path / "a copy")


def test_whole_lake_has_no_findings(whole: Home) -> None:
    found = lakes.checked(whole)
    assert (found.findings, found.tables) == ([], 13)


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
