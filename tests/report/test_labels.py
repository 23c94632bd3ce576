"""Names of events on a curve: no two lie on one another, and none on the axis, as far as there is room."""

from __future__ import annotations

import itertools

import pytest

from chainlake.report.drawing.labels import Mark, Side, sides

#: Pixels of a card's plot, and of a name of five letters.
WIDE, HIGH, NAME, LINE = 250, 120, 40, 11
LENGTH = 1_000


def boxes(points: list[tuple[int, float]]) -> list[tuple[float, float]]:
    """Left end and middle line of each name, in pixels, of events at ``points`` on a curve from 0 to 1."""
    marks = [Mark(us, value, f"e{at}", "") for at, (us, value) in enumerate(points)]
    found = {}
    for side, some in sides(marks, [0.0, 1.0], LENGTH, HIGH).items():
        for one in some:
            assert one.value is not None
            x = one.us / LENGTH * WIDE + side.mark()["dx"]
            left = {"center": x - NAME / 2, "left": x, "right": x - NAME}[side.align]
            found[one.name] = (left, (1 - one.value) * HIGH + side.dy)
    return [found[mark.name] for mark in marks]


@pytest.mark.parametrize("times", [(400, 430, 460), (400, 430, 600), (400, 500, 600), (450, 450, 500)])
def test_names_meet_neither_one_another_nor_the_axis(times: tuple[int, ...]) -> None:
    for values in itertools.product((0.0, 0.1, 0.45, 0.55, 0.9, 1.0), repeat=3):
        named = boxes(list(zip(times, values, strict=True)))
        for _, y in named:
            assert -LINE <= y - LINE / 2 and y + LINE / 2 <= HIGH, values
        for (left, y), (other, line) in itertools.combinations(named, 2):
            assert abs(left - other) >= NAME - 3 or abs(y - line) >= LINE, values


def test_a_name_stands_over_a_low_event_and_under_a_high_one() -> None:
    low, high = Mark(300, 0.0, "low", ""), Mark(700, 1.0, "high", "")
    assert sides([low, high], [0.0, 1.0], LENGTH, HIGH) == {Side(False): [low], Side(True): [high]}
