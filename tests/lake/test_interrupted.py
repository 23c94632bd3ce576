"""Whether a commit of a dead attempt may still be on its way, told from the log of ``ops.intervals``."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from chainlake.lake.commits.attempts import Attempts
from chainlake.lake.records import ops
from chainlake.lake.records.defined.definitions import Definition
from chainlake.paths import Home

DAY, OTHER = date(2025, 10, 1), date(2025, 10, 2)
P = Definition("pattern/p", "s", "h", 1, "matches.p", 0, lambda day: (0, 1))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        (["publishing"], True),
        (["publishing", "done"], False),
        (["done", "publishing", "failed"], True),
        (["publishing", "audit_failed", "failed"], True),
        (["publishing", "failed", "publishing", "done", "failed"], False),
        (["failed"], False),
        ([], False),
    ],
)
def test_what_failed_later_hides_no_commit_on_its_way(home: Home, log: list[str], wanted: bool) -> None:
    for status in log:
        note(home, status)
    assert interrupted(home, P, DAY) is wanted
    assert not interrupted(home, P, OTHER)


def test_a_day_done_in_another_table_ends_nothing_in_this_one(home: Home) -> None:
    note(home, "publishing")
    note(home, "publishing", "matches.p/v2")
    note(home, "done", "matches.p/v2")
    assert interrupted(home, P, DAY)
    assert not interrupted(home, replace(P, table_name="matches.p/v2"), DAY)


def test_an_attempt_of_a_model_settles_what_is_on_its_way_to_any_table_of_it(home: Home) -> None:
    """It commits to those of the kinds that the model was before, too."""
    zones = replace(P, name="model/m", table_name="models.zone_events")
    faults = replace(zones, table_name="models.fault_scores")
    note(home, "publishing", zones.table_name, zones.name)
    assert interrupted(home, zones, DAY) and interrupted(home, faults, DAY)
    assert Attempts.of(home, [faults, P], [DAY]).elsewhere([faults, P]) == {zones.table_name: {"model/m"}}
    note(home, "done", faults.table_name, faults.name)
    assert not interrupted(home, zones, DAY) and not interrupted(home, faults, DAY)
    assert Attempts.of(home, [zones], [DAY]).elsewhere([zones]) == {faults.table_name: {"model/m"}}
    assert Attempts.of(home, [zones], [OTHER]).elsewhere([zones]) == {}


def interrupted(home: Home, definition: Definition, day: date) -> bool:
    return Attempts.of(home, [definition], [day]).interrupted([definition], [day])


def note(home: Home, status: str, table: str = "matches.p", definition: str = "pattern/p") -> None:
    row = {"definition": definition, "day": DAY, "table_name": table, "definition_hash": "h", "engine_version": 1,
           "input_fingerprint": "f", "status": status}  # fmt: skip
    ops.append(home, "intervals", [row], "r")
