"""Whatever befalls a lake is found and named, and a repair with the steps it names gives the same tables again."""

from __future__ import annotations

import os

import pytest

from chainlake.lake.upkeep.findings import LandedFile
from chainlake.lake.upkeep.same import same_tables
from chainlake.paths import Home
from tests.check import damages, lakes
from tests.check.damage import opened
from tests.check.damages import Damage

pytestmark = pytest.mark.slow


def test_whole_lake_has_no_findings(whole: Home) -> None:
    found = lakes.checked(whole)
    assert (found.findings, found.tables) == ([], 14)


#: ``make damage-proof`` tries all of them, each in a lake of its own, which takes minutes.
EACH_ALONE = bool(os.environ.get("CHAINLAKE_ALL_DAMAGES"))


def tried() -> list[list[Damage]]:
    """The damages of each lake: several at a time, of different tables; none beside those of ``ops``, by which all
    other tables are judged, and none that is harmless beside one that is not."""
    if EACH_ALONE:
        return [[one] for one in damages.ALL]
    lakes_of = list[list[Damage]]()
    for one in damages.ALL:
        if one.rare:
            continue
        alone = one.table.startswith("ops.")
        free = (
            lake
            for lake in lakes_of
            if lake[0].harmless == one.harmless
            and not alone
            and not any(other.table == one.table or other.table.startswith("ops.") for other in lake)
        )
        lake = next(free, None)
        if lake is None:
            lakes_of.append([one])
        else:
            lake.append(one)
    return lakes_of


@pytest.mark.parametrize("done", tried(), ids=lambda done: "-".join(one.name for one in done))
def test_damage_is_found_and_repaired(done: list[Damage], whole: Home, copy: Home) -> None:
    for damage in done:
        damage.act(copy)
    found = lakes.checked(copy)
    for damage in done:
        said = [str(one) for one in found.findings if one.damage != damage.harmless and one.table == damage.table]
        assert any(damage.says in line for line in said), (damage.name, [str(one) for one in found.findings])
    assert bool(found.damage) != done[0].harmless

    result = lakes.repaired(copy)
    assert result.left == []
    assert lakes.checked(copy).damage == []
    assert same_tables(whole, copy) == []


def test_events_of_a_file_that_was_replaced_are_found_in_the_new_one(copy: Home) -> None:
    """They stay as they were ingested, with the id of the old file and their lines in it."""
    lakes.land(copy, "lab_20250302.csv", lakes.rows_of(1)[3:])
    lakes.run(copy, lakes.SPAN)
    assert lakes.checked(copy).findings == []
    kept = lakes.copied(copy, copy.root.with_name("kept"))
    opened(copy, "raw.lab").update({"y": "y * 2"}, predicate="event_date = '2025-03-02'")
    (found,) = [one for one in lakes.checked(copy).damage if "became events" in one.what]
    assert found.table == "raw.lab" and "2025-03-02: 9 rows" in found.what
    assert LandedFile("lab", "lab_20250302.csv") in found.fixes
    assert lakes.repaired(copy).left == []
    assert lakes.checked(copy).damage == []
    assert same_tables(kept, copy) == []
