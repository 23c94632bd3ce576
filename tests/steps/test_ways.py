"""The way of a run through days that go on from one another, where what was left between them is another one's."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from chainlake.days import day_number
from chainlake.detect.chained.segment_run import MatchesMoved, NothingBefore, SegmentRun
from chainlake.detect.chained.segments import Segment
from chainlake.lake.records.chain import EMPTY, Chain
from chainlake.lake.records.defined.definitions import Definition
from chainlake.run.chains import ChainBroken

FIRST = day_number(date(2025, 3, 1))


def definition(name: str) -> Definition:
    """A definition whose days form a chain."""
    return Definition(name, "lab", "hash", 1, "matches.x", 0, lambda day: (0, 0), start=date(2025, 3, 1))


def segment(*, ready: str = "yyyyy", recorded: int = 3) -> Segment:
    """Five days: three are done, and the others follow them; a letter says of each whether its events are final."""
    done = np.arange(5) < 3
    left = np.array(["one", "two", "three", None, None], dtype=object)
    before = np.array([EMPTY, "one", "two", None, None], dtype=object)
    flags = np.array([letter == "y" for letter in ready])
    chain = Chain(FIRST + np.arange(5), done, np.zeros(5, bool), flags, np.arange(5) == 0, before, left)
    return Segment(chain, (FIRST + 3, FIRST + 4), FIRST + 3, frozenset(range(FIRST + 3 - recorded, FIRST + 3)))


def way(part: Segment, kept: dict[int, str], name: str = "pattern/x") -> SegmentRun[str]:
    """A way whose state at the start of a day is its digest."""
    return SegmentRun(part, definition(name), lambda day: kept.get(day_number(day), "other"), str, 30)


@pytest.mark.parametrize("name", ["pattern/x", "episodes/x"])
def test_a_moved_state_stops_either_kind_of_chain_with_the_code_for_trying_again(name: str) -> None:
    """Another run is publishing: that is neither the input's fault nor the user's, for matches and episodes alike."""
    kept = {FIRST + 3: "three"}
    on = way(segment(), kept, name)
    batch = on.next()
    assert batch is not None and (batch.begin, on.before(batch)) == (FIRST + 3, "three")
    on.finish_batch(["four", "five"])
    on.published(1)
    batch = on.next()
    assert batch is not None and batch.begin == FIRST + 4
    with pytest.raises(MatchesMoved, match=f"{name} cannot continue to 2025-03-05") as error:
        on.before(batch)
    assert error.value.exit_code == 5


def test_a_state_that_was_handed_over_is_not_read_again() -> None:
    """What a run has computed is gone on from, whatever else is asked for meanwhile."""
    on = way(segment(), {FIRST + 3: "three"})
    assert on.next() is not None
    on.finish_batch(["four", "five"])
    on.published(1, "in memory")
    assert on.state(FIRST + 3) == "three" and on.state(FIRST + 4) == "in memory"


def test_a_day_that_keeps_no_state_is_gone_back_from() -> None:
    """The nearest day before, at whose start the state is kept, or the chain begins."""
    batch = way(segment(), {FIRST + 2: "two"}).next()
    assert batch is not None and (batch.begin, batch.target) == (FIRST + 2, FIRST + 3)
    batch = way(segment(), {}).next()
    assert batch is not None and (batch.begin, batch.anew) == (FIRST, True)


def test_a_day_of_another_definition_is_not_gone_back_to() -> None:
    """It was never computed with the file of today; the whole batch has to be asked for."""
    with pytest.raises(NothingBefore, match="2025-03-02, which 2025-03-03 continues from") as error:
        way(segment(recorded=1), {}).next()
    assert error.value.exit_code == 4 and "backfill 2025-03-01 2025-03-04 --patterns x" in str(error.value)


def test_a_day_whose_events_are_not_final_is_not_gone_back_to() -> None:
    """Its file is to be taken first."""
    with pytest.raises(ChainBroken, match="pattern/x cannot continue from 2025-03-02") as error:
        way(segment(ready="ynyyy"), {}).next()
    assert "ingest lab 2025-03-02 2025-03-03" in str(error.value)
