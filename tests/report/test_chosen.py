"""Which matches and days the page of a pattern shows."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from chainlake.days import Days
from chainlake.paths import Home
from chainlake.report.make import make_report
from tests.report import lab
from tests.report.conftest import pages
from tests.report.test_report import read

pytestmark = pytest.mark.slow

#: Every pair of readings of one detector that fall by half within half an hour; each detector's are one episode.
FALLS = """\
---
source: road
description: halved speeds
output: [speed, position]
---
PATTERN SEQ(Reading a, Reading b)
WHERE a.detector = b.detector AND b.speed <= a.speed * 0.5
WITHIN 30 min
MEASURES a.speed - b.speed AS severity
EPISODES BY b.detector PAUSE 1 h
"""


def test_the_best_matches_are_those_of_all_episodes_and_each_day_has_its_map(own: Home) -> None:
    (own.config / "patterns" / "falls.sase").write_text(FALLS)
    lab.land(own, "2025-03-03")
    lab.run(own, Days(lab.DAYS.start, lab.DAYS.end + timedelta(days=1)))
    make_report(own)
    page = read(pages(own)["patterns/falls.html"])
    cards = page.text[page.text.index("Its best matches") : page.text.index("On the road")]
    # On each day, one and the hostile detector fall by half; only theirs are episodes, and one has many matches.
    told = re.findall(r"top match of an episode of (\d+) matches, severity (\d+)", cards)
    by_detector = {
        detector: [(a - b) for at, a in enumerate(speeds) for b in speeds[at + 1 : at + 7] if b <= a * 0.5]
        for detector, speeds in lab.SPEEDS.items()
    }
    expected = [(str(len(falls)), str(max(falls))) for falls in by_detector.values() if falls for _ in range(3)]
    assert sorted(told) == sorted(expected) and len(expected) == 6
    road = page.text[page.text.index("On the road") :]
    many = sum(map(len, by_detector.values()))
    assert [day for day in re.findall(r"along the road on (\S+), with", road)] == [
        "2025-03-03", "2025-03-02", "2025-03-01"
    ]  # fmt: skip
    assert road.count(f"with {many} matches of falls") == 3 and f"2025-03-02: {many} matches" in road
    assert f"Matches of 3 days; most on 2025-03-01 and 2 other days: {many}." in page.text


def test_the_latest_matches_are_in_the_order_of_time(own: Home) -> None:
    page = read(pages(own)["patterns/jam.html"])
    cards = page.text[page.text.index("Its latest matches") : page.text.index("On the road")]
    ends = re.findall(r"(2025-03-\d\d \d\d:\d\d:\d\d) PST among the latest", cards)
    assert len(ends) == 6 and ends == sorted(ends, reverse=True)
