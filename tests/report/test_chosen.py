"""Which matches and days the page of a pattern shows."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from chainlake.days import Days
from chainlake.paths import Home
from chainlake.report.make import make_report
from chainlake.report.reading import Match, spread
from tests.report import lab
from tests.report.conftest import pages
from tests.report.test_report import read

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


@pytest.mark.slow
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


def test_matches_are_drawn_in_the_order_in_which_they_are_looked_at() -> None:
    # The second and third overlap the first; with the others apart, one of them is needed to make six.
    spans = [("a", 90, 99), ("b", 88, 95), ("c", 87, 94), ("d", 70, 75), ("e", 60, 65), ("f", 50, 55), ("g", 40, 45)]
    every = [Match(name, start, end, end) for name, start, end in spans]
    assert [one.id for one in spread(every)] == ["a", "b", "d", "e", "f", "g"]
    assert [one.id for one in spread([*every, Match("h", 1, 2, 2)])] == ["a", "d", "e", "f", "g", "h"]
    assert spread([]) == []
