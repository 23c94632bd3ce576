"""Episodes against a plain evaluation, over any cut into days."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.episodes.days import NOTHING_OPEN, Timing, digest, episodes_of_day, state_of, state_text
from chainlake.cep.episodes.merge import merged, of_matches
from chainlake.schemas.episodes import MOST_IDS

KEYS = {
    "text": (pa.string(), ["a", "b", "ä", None]),
    "whole": (pa.int64(), [1, 2**62 + 1, 2**62 + 2, None]),
    "double": (pa.float64(), [0.0, -0.0, 1.5, math.inf, math.nan, None]),
    "flag": (pa.bool_(), [True, False, None]),
}
SEVERITIES = {
    "double": (pa.float64(), [1.0, 2.0, -1.0, 0.0, -0.0, math.inf, -math.inf, math.nan, None]),
    "whole": (pa.int64(), [1, 2, 2**62 + 1, 2**62 + 2, None]),
    "none": (pa.float64(), [None]),
}

Match = dict[str, Any]


def history(draw: random.Random, kinds: tuple[str, str], window: int, *, many: bool = False) -> list[Match]:
    """Matches that last at most a window and are decided between their end and a window after their start."""
    span, most = (20, 3 * MOST_IDS) if many else draw.choice([(30, 8), (120, 16)])
    found = []
    for number in range(most if many else draw.randrange(1, most)):
        start = draw.randrange(span)
        end = start + draw.randrange(window + 1)
        found.append({
            "key": draw.choice(KEYS[kinds[0]][1][: 1 if many else None]), "start": start, "end": end,
            "severity": draw.choice(SEVERITIES[kinds[1]][1]),
            "id": f"{draw.randrange(10**6):06}-{number}", "decided": draw.randrange(end, start + window + 1),
        })  # fmt: skip
    return found


def same_key(value: Any) -> Any:
    return "missing" if value is None or value != value else (isinstance(value, bool), value)


def plain(matches: list[Match], pause: int) -> list[dict[str, Any]]:
    """By definition: grow each group from one match until nothing more is near it."""
    left, found = list(matches), []
    while left:
        group = [left.pop(0)]
        while near := [
            m for m in left
            if same_key(m["key"]) == same_key(group[0]["key"])
            and any(m["start"] - g["end"] <= pause and g["start"] - m["end"] <= pause for g in group)
        ]:  # fmt: skip
            group += near
            taken = {m["id"] for m in near}
            left = [m for m in left if m["id"] not in taken]
        listed = sorted(group, key=lambda m: (m["start"], m["id"]))
        known = [m for m in listed if m["severity"] is not None and m["severity"] == m["severity"]]
        top = max(known, key=lambda m: m["severity"]) if known else listed[0]
        key = group[0]["key"]
        found.append({
            "key": None if same_key(key) == "missing" else key, "start": listed[0]["start"],
            "end": max(m["end"] for m in group), "matches": len(group),
            "severity": top["severity"] if known else None, "top_start": top["start"], "top_match": top["id"],
            "members": [{"start": m["start"], "match_id": m["id"]} for m in listed[:MOST_IDS]],
        })  # fmt: skip
    return found


def table(matches: list[Match], kinds: tuple[str, str]) -> pa.Table:
    return of_matches(
        pa.array([m["key"] for m in matches], KEYS[kinds[0]][0], from_pandas=False),
        np.array([m["start"] for m in matches], np.int64),
        np.array([m["end"] for m in matches], np.int64),
        pa.array([m["severity"] for m in matches], SEVERITIES[kinds[1]][0], from_pandas=False),
        pa.array([m["id"] for m in matches], pa.string()),
    )


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (str(row["key"] if row["key"] != 0 else 0), row["start"]))


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(10))
def test_episodes_are_those_by_definition_however_days_are_cut(seed: int) -> None:
    draw = random.Random(seed)
    seen = {"several": 0, "long": 0, "waited": 0, "through": 0}
    for number in range(120):
        kinds = draw.choice(list(KEYS)), draw.choice(list(SEVERITIES))
        types = KEYS[kinds[0]][0], SEVERITIES[kinds[1]][0]
        timing = Timing(draw.choice([0, 1, 4, 15]), draw.choice([0, 3, 12]))
        matches = history(draw, kinds, timing.wait, many=number == 0)
        expected = ordered(plain(matches, timing.pause))
        seen["several"] += sum(row["matches"] > 1 for row in expected)
        seen["long"] += sum(row["matches"] > MOST_IDS for row in expected)

        last = max(row["end"] for row in expected) + timing.late + 1
        ends = sorted({*(draw.randrange(1, last + 1) for _ in range(draw.randrange(5))), last})
        found, state, begin = [], "[]", 0
        for end in ends:
            today = [m for m in matches if begin <= m["decided"] < end]
            draw.shuffle(today)
            before = None if digest(state) == NOTHING_OPEN else state_of(state, *types)
            day = episodes_of_day(timing, before, [table(today, kinds)], end)
            decided = day.decided.to_pylist()
            assert all(begin <= row["end"] + timing.late < end for row in decided)
            seen["waited"] += sum(row["end"] + timing.pause < begin for row in decided)
            seen["through"] += before is not None and len(day.open) > 0
            found += decided
            state, begin = state_text(day.open), end
            if end == ends[0]:
                known = plain([m for m in matches if m["decided"] < end], timing.pause)
                assert ordered(day.open.to_pylist()) == ordered([r for r in known if r["end"] + timing.late >= end])
        assert digest(state) == NOTHING_OPEN
        assert ordered(found) == expected
    assert min(seen.values()) > 0, f"histories of nothing prove nothing: {seen}"


def test_deciding_at_the_end_and_a_pause_would_be_too_early() -> None:
    """A match that begins before the pause is over may be decided a window later, and joins what went before."""
    kinds = "text", "none"
    first = {"key": "a", "start": 0, "end": 1, "severity": None, "id": "1", "decided": 1}
    late = {"key": "a", "start": 3, "end": 4, "severity": None, "id": "2", "decided": 13}
    early = [row for cut in ([first], [late]) for row in merged(table(cut, kinds), 2).to_pylist()]
    assert len(early) == 2
    timing = Timing(2, 10)
    today = episodes_of_day(timing, None, [table([first], kinds)], 10)
    assert (len(today.decided), len(today.open)) == (0, 1)
    whole = episodes_of_day(timing, today.open, [table([late], kinds)], 17)
    assert [(row["start"], row["end"], row["matches"]) for row in whole.decided.to_pylist()] == [(0, 4, 2)]


@pytest.mark.slow
def test_equal_states_are_the_same_bytes_whatever_led_to_them() -> None:
    kinds = "double", "double"
    draw = random.Random(7)
    for _ in range(50):
        matches = history(draw, kinds, 12)
        timing = Timing(4, 12)
        whole = state_text(episodes_of_day(timing, None, [table(matches, kinds)], 0).open)
        cut = draw.randrange(len(matches) + 1)
        before = episodes_of_day(timing, None, [table(matches[:cut], kinds)], 0).open
        kept = state_of(state_text(before), pa.float64(), pa.float64())
        assert state_text(kept) == state_text(before)
        assert state_text(episodes_of_day(timing, kept, [table(matches[cut:], kinds)], 0).open) == whole
    assert state_text(episodes_of_day(timing, None, [table([], kinds)], 0).open) == "[]"
