"""A small lake for the report: a road of three detectors, one of them with a name that tries to leave its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.ingest.step import ingest
from chainlake.lake.store.files import FilesLake
from chainlake.monitoring.step import monitor
from chainlake.paths import Home
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks

HOSTILE = "</script><script>alert(1)</script>"
DAYS = Days.parse("2025-03-01", "2025-03-03")
SOURCE = """\
description: Readings of three detectors.
key: detector
type: Reading
zone: America/Los_Angeles
attributes:
  position: {type: double, unit: mi}
  speed: {type: double, unit: mph}
  note: {type: string}
identity: unique
on_conflict: first
formats:
  - {name: csv, glob: '*.csv', header: [ts, detector], time: {column: ts, format: iso}}
"""
JAM = """\
---
# What it means: a detector that was free is slow within a quarter of an hour.
source: road
description: free traffic that <b>breaks</b> down
output: [speed]
---
PATTERN SEQ(Reading free, NOT(Reading better), Reading slow)
WHERE free.detector = slow.detector
  AND free.detector = better.detector
  AND free.speed >= 58
  AND better.speed > 70
  AND slow.speed <= free.speed * 0.5
WITHIN 15 min
"""
DROPS = """\
---
source: road
description: the deepest drops of a day
output: [speed]
---
PATTERN SEQ(Reading a, Reading b)
WHERE a.detector = b.detector AND b.speed < a.speed
WITHIN 5 min
RANK BY MAX(a.speed - b.speed)
TOP 2 PER DAY
"""
MODEL = """\
description: Mean speed of the road.
source: road
start: 2025-03-01
nodes: [one, two]
response: speed
features: []
round: {length: 5 min}
window: {sliding: 3}
eps: 5
detector: exact
"""
#: Speeds of each reading, five minutes apart from 12:00 UTC on, on both days.
SPEEDS = {
    "one": (60, 60, 61, 59, 25, 24, 23, 40, 60, 61),
    "two": (62,) * 10,
    HOSTILE: (60, 59, 60, 20, 20, 21, 60, 60, 61, 60),
}
PLACES = {"one": 10.0, "two": 11.5, HOSTILE: 12.0}


def lines(day: str) -> list[str]:
    """The lines of a day's file, the header first."""
    found = ["ts,detector,position,speed,note"]
    for at in range(10):
        for key, speeds in SPEEDS.items():
            found.append(f'{day}T{12 + at // 12}:{at % 12 * 5:02}:00,{key},{PLACES[key]},{speeds[at]},"{HOSTILE}"')
    return found


def land(home: Home, day: str) -> None:
    """Deliver the file of a day."""
    folder = home.landing("road")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{day}.csv").write_text("\n".join(lines(day)) + "\n")


def run(home: Home, days: Days) -> None:
    """Ingest, detect and monitor some days in this process."""
    ports = Ports(LocalTasks(), FilesLake(home))
    ingest(home, "road", days, run_id="made", ports=ports)
    detect(home, "road", days, run_id="made", ports=ports)
    monitor(home, "road", days, run_id="made", ports=ports)


def make(root: Path, base: Home) -> Home:
    """An installation with both days published."""
    home = replace(base, root=root, lake=str(root / "lake"), config=root / "config")
    for path, text in (
        ("sources/road.yaml", SOURCE),
        ("patterns/jam.sase", JAM),
        ("patterns/drops.sase", DROPS),
        ("models/mean.yaml", MODEL),
    ):
        file = home.config / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for day in DAYS:
        land(home, str(day))
    run(home, DAYS)
    return home
