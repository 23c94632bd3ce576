"""The states of days in the report: one file tells of them all, and the style sheet says what their colours are."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import chainlake.report
from chainlake.lake.records.staleness import STATES
from chainlake.report.drawing import states
from chainlake.report.drawing.states import LEGEND, SHOWN

ASSETS = Path(chainlake.report.__file__).parent / "assets"


def test_every_state_is_shown_in_a_colour_for_the_light_and_one_for_the_dark() -> None:
    assert tuple(SHOWN) == STATES
    light, dark = re.findall(r":root \{(.*?)\}", (ASSETS / "report.css").read_text(), re.DOTALL)[:2]
    for one in SHOWN.values():
        assert all(re.search(rf"--{one.colour}: #[0-9a-f]{{6}};", part) for part in (light, dark)), one
    assert sorted(colour for colour, _ in LEGEND) == sorted({one.colour for one in SHOWN.values()})
    said = {word for _, text in LEGEND for word in re.split(r", | or ", text)}
    assert said == {state for state in STATES if state != "audit_failed"}


def test_the_grids_script_has_no_copy_of_the_states() -> None:
    script = (ASSETS / "report.js").read_text()
    of_no_colour = set(STATES) - {one.colour for one in SHOWN.values()}
    assert of_no_colour == {"suspect", "following", "audit_failed", "retired"}
    assert not [state for state in of_no_colour if state in script or states.words_of(state) in script]
    assert ["audit failed", "failed", 9, 0] in states.for_grid() and len(states.for_grid()) == len(STATES) + 1


def test_days_done_from_provisional_input_come_before_done_ones_and_are_hatched() -> None:
    *whole, provisional = states.for_grid()
    assert provisional == ["done from provisional input", "done", 2, 1] and not any(one[3] for one in whole)
    ranks = {str(one[0]): one[2] for one in whole}
    assert ranks["done"] < 2 < min(rank for name, rank in ranks.items() if name not in ("done", "retired"))


def test_days_are_counted_with_those_that_stand_as_they_do() -> None:
    every = np.array(STATES)
    bad, open_ = states.which_are(every, "bad"), states.which_are(every, "open")
    assert set(every[bad]) == {"suspect", "failed", "audit_failed"}
    assert set(every[open_]) == {"missing", "stale", "following", "waiting"}
    assert set(every[~(bad | open_)]) == {"done", "retired"}
