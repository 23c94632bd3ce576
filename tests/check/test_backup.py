"""A lake that is copied while steps run, in the order of docs/deploy.md#backup, is restored by the page's commands."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chainlake.lake.upkeep.same import same_tables
from chainlake.operations.alerts.cursor import FOLDER
from chainlake.paths import Home
from tests.check import backup, lakes
from tests.check.backup import Copy, now_and_then, page_groups
from tests.replay.surroundings import quick

pytestmark = pytest.mark.slow

#: Groups that were copied before anything happened; the others were copied when all was over.
BEFORE = (1, 3)
SEEDS = (1, 2)


@dataclass(frozen=True)
class Lived:
    """A lake on which steps ran, and the copies of it that were made meanwhile."""

    home: Home
    copies: dict[str, Home]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lived]:
    root = tmp_path_factory.mktemp("copied")
    with quick(), lakes.place():
        home = lakes.make(root / "lived", backup.PATTERNS, backup.MODELS)
        names = [*(f"before {count}" for count in BEFORE), *(f"seed {seed}" for seed in SEEDS)]
        copies = {name: Copy(home, root / name, page_groups()) for name in names}
        for count in BEFORE:
            copies[f"before {count}"].groups(count)
        copies["opposite"] = Copy(home, root / "opposite", page_groups()[::-1])
        copies["opposite"].landing()
        acts = [now_and_then(copies[f"seed {seed}"], seed) for seed in SEEDS]
        with backup.meanwhile(acts):
            backup.live(home)
        yield Lived(home, {name: copy.end() for name, copy in copies.items()})


@pytest.mark.parametrize("name", [*(f"before {count}" for count in BEFORE), *(f"seed {seed}" for seed in SEEDS)])
def test_a_copy_in_the_order_of_the_page_is_restored(lived: Lived, name: str) -> None:
    copy = lived.copies[name]
    if name.startswith("before"):
        # It takes the place of what was lost: the home remembers what had been ingested.
        shutil.copytree(lived.home.root / "ingested", copy.root / "ingested")
    assert backup.restored(copy) == []
    assert same_tables(lived.home, copy) == []
    assert lakes.checked(copy).damage == []


def test_a_copy_in_the_opposite_order_is_not(lived: Lived) -> None:
    """The file that was replaced after landing was copied is read again as it was before."""
    backup.restored(lived.copies["opposite"])
    assert any(line.startswith("events.lab: ") for line in same_tables(lived.home, lived.copies["opposite"]))


def test_the_page_names_every_folder_of_a_lake_that_is_needed(lived: Lived) -> None:
    listed = {folder for group in page_groups() for folder in group}
    there = {path.name for path in Path(lived.home.lake).iterdir()} | {FOLDER}
    assert (there - listed, listed - there) == ({"chainlake-staging"}, set())
