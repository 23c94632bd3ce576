"""A lake that is copied file by file while steps run on it, and restored by the commands of docs/deploy.md#backup."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

from chainlake.days import Days
from chainlake.ingest.step import ingest
from chainlake.lake import faults
from chainlake.lake.records import ops, runs
from chainlake.lake.store.files import FilesLake
from chainlake.operations.backfills.backfill import run_here, run_plan
from chainlake.operations.backfills.plan import plan_range
from chainlake.paths import PROJECT, Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from tests.check import lakes

#: All days on which something can decide, one of which is delivered late.
DAYS = Days(lakes.FIRST, lakes.FIRST + timedelta(days=lakes.DAYS + 2))
PATTERNS = {
    "spells": "SEQ(A a, B b) WHERE a.sensor = b.sensor WITHIN 12 h MEASURES b.x AS what EPISODES BY sensor PAUSE 11 h",
    "best": "SEQ(A a, B b) WITHIN 12 h RANK BY MAX(b.x - a.x) TOP 3 PER WEEK",
}
MODELS = {
    "slope": lakes.MODEL,
    "means": "source: lab\nround: {length: 4 h, aggregate: mean}\nstart: 2025-03-01\nkind: threshold\n"
    "nodes: [k1, k2]\nvalue: x\nthreshold: 0.1\n",
}


def page_groups() -> list[list[str]]:
    """The folders that the page lists, group by group, without the last group, which is not in the lake."""
    page = (PROJECT / "docs" / "deploy.md").read_text().partition("\n## Backup\n")[2].partition("\n## ")[0]
    (line,) = [one for one in page.splitlines() if one.startswith("1. `ops/`")]
    groups = [re.findall(r"`([a-z-]+)/`", part) for part in re.split(r"\d\. ", line)[1:]]
    assert groups.pop() == ["landing"]
    return groups


def live(home: Home) -> None:
    """A day is added, a file comes late, another one is replaced, definitions are edited; steps run in between."""
    day = lakes.FIRST + timedelta(days=lakes.DAYS)
    lakes.land(home, f"lab_{day:%Y%m%d}.csv", lakes.rows_of(lakes.DAYS))
    lakes.run(home, DAYS)
    # A column of another type needs another table.
    _edit(home, "patterns/spells.sase", "WITHIN 12 h MEASURES b.x", "WITHIN 17 h MEASURES b.sensor")
    _edit(home, "models/slope.yaml", "eps: 0.2", "eps: 0.3")
    late = ["2025-03-02T05:10:00,A,k1,-1,1", "2025-03-02T06:10:00,B,k1,2,1", "no row at all"]
    lakes.land(home, "lab_20250302_late.csv", late)
    lakes.run(home, DAYS)
    lakes.land(home, "lab_20250303.csv", lakes.rows_of(2)[3:])
    _edit(home, "patterns/best.sase", "TOP 3", "TOP 2")
    lakes.run(home, DAYS)


def _edit(home: Home, name: str, old: str, new: str) -> None:
    text = (home.config / name).read_text()
    assert old in text
    (home.config / name).write_text(text.replace(old, new))


class Copy:
    """A copy in the making.

    Args:
        home: what is copied.
        root: the home of the copy.
        groups: folders of the lake, in the order in which they are copied.
    """

    def __init__(self, home: Home, root: Path, groups: Sequence[Sequence[str]]) -> None:
        self._from = home
        self.home = replace(home, root=root, lake=str(root / "lake"), config=root / "config")
        self._groups = [self._listed(group) for group in groups]

    def groups(self, count: int) -> None:
        """Copy the first groups, so many of those that are left."""
        for _ in range(count):
            for path in self._groups.pop(0):
                self._take(path)

    def files(self, count: int) -> None:
        """Copy some more files."""
        for path in islice(chain.from_iterable(self._groups), count):
            self._take(path)

    def end(self) -> Home:
        """Copy the rest, landing and definitions last."""
        self.groups(len(self._groups))
        self.landing()
        shutil.copytree(self._from.config, self.home.config)
        return self.home

    def landing(self) -> None:
        """Copy what has landed; a file that was copied before stays as it was."""
        for path in sorted(self._from.landing("lab").iterdir()):
            if not (self.home.root / path.relative_to(self._from.root)).exists():
                self._take(path)

    def _take(self, path: Path) -> None:
        target = self.home.root / path.relative_to(self._from.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)

    def _listed(self, folders: Sequence[str]) -> Iterator[Path]:
        """The files, one after the other; a folder is listed when its turn comes, as ``cp`` does it."""
        for folder in folders:
            for log in sorted(Path(self._from.lake, folder).rglob("_delta_log")):
                yield from sorted(path for path in log.iterdir() if path.is_file())
                yield from sorted(path for path in log.parent.rglob("*.parquet") if "_delta_log" not in path.parts)


@contextmanager
def meanwhile(acts: Sequence[Callable[[], None]]) -> Iterator[None]:
    """``acts`` are called on each side of every write and commit of the steps inside."""
    append = ops.append

    def act() -> None:
        for one in acts:
            one()

    def appended(*args: Any) -> None:
        append(*args)
        act()

    with patch.object(faults, "reached", lambda point: act()), patch.object(ops, "append", appended):
        yield


def now_and_then(copy: Copy, seed: int) -> Callable[[], None]:
    """Copies some files, sometimes, at a pace that the seed draws."""
    rng = random.Random(seed)
    most = rng.choice([20, 40, 80])

    def act() -> None:
        if rng.random() < 0.1:
            copy.files(rng.randrange(most))

    return act


def restored(home: Home) -> list[str]:
    """Run the page's commands; returns what the first of them could not repair."""
    result = lakes.repaired(home)
    ports = Ports(LocalTasks(), FilesLake(home))
    ingest(home, "lab", DAYS, run_id=runs.new_run_id("ingest"), now=lakes.NOW, ports=ports)
    here = partial(run_here, ports=ports)
    run_plan(home, plan_range(home, DAYS), run_id=runs.new_run_id("backfill"), launch=here, say=lambda line: None)
    return result.left
