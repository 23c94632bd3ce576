"""Events are a pure function of the set of landed files: any order of arrival, any kill, the same tables."""

from __future__ import annotations

import random

import pytest

from chainlake.lake import faults
from chainlake.lake.upkeep.same import same_tables
from tests.ingest.test_step import A1, A2, B1, bars

pytestmark = pytest.mark.slow

POINTS = [
    f"ingest.{write}.{side}"
    for write in ("raw", "changing", "events", "quarantine", "files", "final")
    for side in ("before", "after")
]
#: An overlap, a conflict, a correction that moves a row to another day, a file that comes late, dirt.
FILES = {
    "bars_20250101.csv": bars("2025-01-01", A1, B1),
    "part_bars_20250101.csv": bars("2025-01-01", B1, ("10:00:00", "AIG", 99.0, 1)),
    "bars_20250101_r2.csv": bars("2025-01-01", A2, ("10:00:00", "AIG", 1.0, 1)) + "2025-01-02 00:30:00,AIG,1.0,1\n",
    "bars_20250102.csv": bars("2025-01-02", A1, A2) + "dirt\n",
    "copy/bars_20250102.csv": bars("2025-01-02", A1, A2) + "dirt\n",
    "bars_20250104.csv": bars("2025-01-04", ("10:00:00", "AIG", 3.0, 1), ("10:00:00", "AIG", 4.0, 1)),
}


class Killed(BaseException):
    """Stands for the end of the process."""


def test_any_order_of_arrival_gives_the_same_tables(lake):
    for name, content in FILES.items():
        lake.land("bars", name, content)
    lake.ingest("bars", "2025-01-01", "2025-01-06")
    names = list(FILES)
    random.Random(20).shuffle(names)
    other = lake.other("shuffled")
    for name in names:
        other.land("bars", name, FILES[name])
        other.ingest("bars", "2025-01-01", "2025-01-06")
    assert same_tables(lake.home, other.home) == []
    # The comparison compares something.
    other.land("bars", "bars_20250105.csv", bars("2025-01-05", A1))
    other.ingest("bars", "2025-01-01", "2025-01-06")
    assert same_tables(lake.home, other.home) != []


def test_killed_at_every_write_the_retry_comes_to_the_same_tables(lake, monkeypatch):
    other = lake.other("clean")
    names = list(FILES)
    for name in names:
        other.land("bars", name, FILES[name])
    other.ingest("bars", "2025-01-01", "2025-01-06")
    for name in names[:3]:
        lake.land("bars", name, FILES[name])
    for at, point in enumerate(POINTS):
        if at == len(POINTS) // 2:
            for name in names[3:]:
                lake.land("bars", name, FILES[name])

        def kill(here, wanted=point):
            if here == wanted:
                raise Killed(here)

        with monkeypatch.context() as patch:
            patch.setattr(faults, "reached", kill)
            with pytest.raises(Killed):
                lake.ingest("bars", "2025-01-01", "2025-01-06")
    lake.ingest("bars", "2025-01-01", "2025-01-06")
    assert same_tables(lake.home, other.home) == []
    assert {d: r["checksum"] for d, r in lake.days("bars").items()} == {
        d: r["checksum"] for d, r in other.days("bars").items()
    }
