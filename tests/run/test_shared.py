"""Workers that do not see the folders of the process that asks for the work are found out before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from chainlake.paths import Home
from chainlake.run import shared
from chainlake.run.shared import NotShared, require_shared
from chainlake.run.tasks import LocalTasks

T, R = TypeVar("T"), TypeVar("R")


@dataclass(frozen=True)
class Elsewhere(LocalTasks):
    """Work of a machine on which the folders of the caller are others, but for those of ``shared``."""

    apart: Path = Path()
    of: str = ""

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        look: Any = work

        def there(folder: str) -> str:
            return f"{self.apart}/{Path(folder).name}" if folder == self.of else folder

        moved = replace(look, read=tuple(map(there, look.read)), answered=tuple(map(there, look.answered)))
        told = super().map(moved, items)
        # A worker tells the paths that it was given.
        return [
            replace(one, wrote=tuple(path.replace(str(self.apart), str(Path(self.of).parent)) for path in one.wrote))
            for one in told  # type: ignore[type-var]
        ]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_PAUSE_S", 0.0)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_workers_that_see_all_leave_nothing_behind(home: Home, scheme: str) -> None:
    (home.root / "landing").mkdir()
    home = replace(home, lake=f"{scheme}{home.lake}")
    require_shared(LocalTasks(), home)
    assert [path for path in home.root.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("place", ["lake", "staging", "landing"])
def test_a_worker_with_folders_of_its_own_is_named(home: Home, tmp_path: Path, place: str) -> None:
    (home.root / "landing").mkdir()
    folder = {"lake": home.lake, "staging": home.staging, "landing": str(home.root / "landing")}[place]
    with pytest.raises(
        NotShared, match=rf"the worker on \S+ does not see the files that this process has in .*{place}"
    ):
        require_shared(Elsewhere(apart=tmp_path / "apart", of=folder), home)
    assert [path for path in home.root.rglob("*") if path.is_file()] == []


def test_a_worker_that_reads_and_writes_elsewhere_is_named(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As over a mirror that goes one way: it sees what was written, and what it writes is not seen."""
    told = [shared._Answer("w1", (), (f"{home.lake}/never-there",))]
    monkeypatch.setattr(LocalTasks, "map", lambda self, work, items: told)
    with pytest.raises(NotShared, match=r"the worker on w1 .*, or the other way round; nothing was done"):
        require_shared(LocalTasks(), home)
