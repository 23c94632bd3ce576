"""The truth file says what is in the files: planted matches, changes of the relation, dirt. Checked by plain loops."""

from __future__ import annotations

import gzip
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from chainlake.generate import Recipe, generate
from tests.shipped.brute_force import PATTERNS, as_ids
from tests.shipped.shipped_data import by_key, read

pytestmark = pytest.mark.slow

DAY = date(2024, 3, 9)
MOST = {"stock": 7, "traffic": 2, "sensor": 17}


def planted(truth: dict, pattern: str) -> set:
    """The planted matches of a pattern in the form of ``brute_force.as_ids``."""

    def event(told: dict) -> dict:
        return {"id": f"{told['key']}@{told['ts']}"}

    matches = truth["patterns"].get(pattern, [])
    return {
        as_ids({n: [event(e) for e in told] if isinstance(told, list) else event(told) for n, told in match.items()})
        for match in matches
    }


@pytest.mark.parametrize(
    ("source", "events"), [("stock", None), ("stock", 9_001), ("traffic", None), ("traffic", 9_001), ("sensor", None)]
)
def test_planted_matches_are_found(source: str, events: int | None, tmp_path: Path) -> None:
    """Three days, the second with a change of the clocks: every planted match is one by the plain loops."""
    for seed in (0, 5, 2**40 + 1):
        folder = tmp_path / str(seed)
        truth = generate(
            source, DAY, 3, folder, Recipe(seed=seed, patterns=MOST[source], changes=2, events_per_day=events)
        )
        rows = by_key(read(source, folder), source)
        for pattern, (of, loops) in PATTERNS.items():
            if of == source and pattern in truth["patterns"]:
                expected = planted(truth, pattern)
                assert len(expected) == 3 * MOST[source], pattern
                found = {as_ids(match) for match in loops(rows)}
                assert expected <= found, pattern
                if source == "stock" or pattern == "stuck":
                    # Here nothing around a planted match is one too, so the truth is complete.
                    assert expected == found, pattern


@pytest.mark.parametrize("source", ["stock", "traffic", "sensor"])
def test_without_planted_matches_there_is_none(source: str, tmp_path: Path) -> None:
    for seed in (0, 5):
        truth = generate(source, DAY, 2, tmp_path / str(seed), Recipe(seed=seed, patterns=0, changes=3))
        rows = by_key(read(source, tmp_path / str(seed)), source)
        assert truth["patterns"] == {}
        assert not [name for name, (of, loops) in PATTERNS.items() if of == source and any(loops(rows))]


def design(source: str, folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Times, features and response of the planted relation, read from the files; one row per observation."""
    rows = read(source, folder)
    if source == "traffic":
        rows = rows[rows.position <= 109.631]
        x = (rows.position.to_numpy() - 106.141) / 3.49
        names = ["1", "x", "x^2", "x^3", "x^4"]
        return rows.ts.to_numpy(), np.vander(x, 5, increasing=True), rows.speed.to_numpy(), names
    column, key, response, features = {
        "stock": ("close", "ticker", "IBM", ["SPY"]),
        "sensor": ("value", "channel", "R1", ["temp", "humidity"]),
    }[source]
    wide = rows.pivot(index="ts", columns=key, values=column).dropna(subset=[response, *features])
    ones = np.ones(len(wide))
    names = ["1"] + [f"{column} of {name}" for name in features]
    return wide.index.to_numpy(), np.column_stack([ones, wide[features]]), wide[response].to_numpy(), names


@pytest.mark.parametrize("source", ["stock", "traffic", "sensor"])
def test_the_relation_changes_when_the_truth_says_so(source: str, tmp_path: Path) -> None:
    """Least squares between two told changes give the told coefficients; across a change they fit far worse."""
    truth = generate(source, DAY, 4, tmp_path, Recipe(seed=6, patterns=0, changes=2))
    times, x, y, names = design(source, tmp_path)
    assert len(truth["changes"]) == 8
    borders = [change["ts"] for change in truth["changes"]] + [int(times.max()) + 1]
    noise = {"stock": 0.03, "traffic": 1.2, "sensor": 0.012}[source]
    for number, change in enumerate(truth["changes"]):
        inside = (times >= borders[number]) & (times < borders[number + 1])
        told = np.array([change["after"][name] for name in names])
        assert np.abs(y[inside] - x[inside] @ told).max() <= noise
        fitted = np.linalg.lstsq(x[inside], y[inside], rcond=None)[0]
        assert np.allclose(x[inside] @ fitted, x[inside] @ told, atol=noise)
        before = np.array([change["before"][name] for name in names])
        assert np.abs(y[inside] - x[inside] @ before).max() > 3 * noise
        if number:
            assert change["before"] == truth["changes"][number - 1]["after"]


LAYOUT = {
    "stock": ("America/New_York", "%Y-%m-%d %H:%M:%S", 1, 0, [2, 3, 4, 5, 6], 7),
    "traffic": ("America/Los_Angeles", "%m/%d/%Y %H:%M:%S", 0, 1, [4, 7, 8, 9], 10),
    "sensor": ("America/Los_Angeles", "%Y-%m-%dT%H:%M:%S", 0, 1, [2, 3], 5),
}


def parse(source: str, line: str) -> tuple[str, str, str] | None:
    """(key, UTC day, whole line) of a good row, None for a bad one."""
    zone, time_format, time_at, key_at, numbers, width = LAYOUT[source]
    cells = line.split(",")
    if len(cells) != width or not cells[key_at]:
        return None
    try:
        moment = datetime.strptime(cells[time_at], time_format).replace(tzinfo=ZoneInfo(zone))
        for number in numbers:
            float(cells[number])
    except ValueError:
        return None
    return f"{cells[key_at]} {cells[time_at]}", moment.astimezone(UTC).date().isoformat(), line


@pytest.mark.parametrize(("source", "dirt"), [("stock", 30), ("stock", 240), ("traffic", 30), ("sensor", 30)])
def test_dirt_is_counted_exactly(source: str, dirt: int, tmp_path: Path) -> None:
    start = date(2024, 6, 3)
    truth = generate(source, start, 3, tmp_path, Recipe(seed=8, dirt=dirt))
    clean = generate(source, start, 3, tmp_path / "clean", Recipe(seed=8))
    contents: dict[str, Counter[str]] = {}
    days: dict[str, Counter[str]] = {}
    bad: list[tuple[str, int]] = []
    late = 0
    for file in truth["files"]:
        lines = gzip.decompress((tmp_path / file["name"]).read_bytes()).decode().splitlines()
        assert len(lines) - 1 == file["rows"]
        moments = []
        for number, line in enumerate(lines[1:], 2):
            row = parse(source, line)
            if row is None:
                bad.append((file["name"], number))
                continue
            key, day, text = row
            moments.append(text.split(",")[LAYOUT[source][2]])
            seen = contents.setdefault(key, Counter())
            if not seen:
                outcome = "events"
            else:
                outcome = "duplicates" if text in seen else "conflicts"
            seen[text] += 1
            days.setdefault(day, Counter())[outcome] += 1
        local = pd.to_datetime(pd.Series(moments), format=LAYOUT[source][1]).dt.date.astype(str)
        late += int((local.to_numpy()[dirt:] != file["date"]).sum())
    assert bad == [(row["file"], row["line"]) for row in truth["bad_rows"]]
    assert {row["kind"] for row in truth["bad_rows"]} == {"number", "time", "columns", "key"}
    assert late == truth["totals"]["late"] == 2 * dirt
    assert {day: dict(counts) for day, counts in days.items()} == {
        day: {name: count for name, count in counts.items() if count} for day, counts in truth["utc_days"].items()
    }
    totals = truth["totals"]
    assert (totals["duplicates"], totals["conflicts"], totals["bad"]) == (3 * dirt + 2 * dirt, 3 * dirt, 3 * dirt)
    assert totals["rows"] == totals["events"] + totals["duplicates"] + totals["conflicts"] + totals["bad"]
    assert totals["events"] == clean["totals"]["events"] == len(contents)
    originals = set()
    for file in clean["files"]:
        originals |= set(gzip.decompress((tmp_path / "clean" / file["name"]).read_bytes()).decode().splitlines()[1:])
    # What wins a conflict does not depend on a repetition in a later file.
    assert all(seen.total() == 2 for seen in contents.values() if len(seen) > 1)
    firsts = {next(iter(seen)) for seen in contents.values()}
    # The first delivered content of every event is the clean one: with `on_conflict: first` the dirt leaves no trace.
    assert firsts == originals


def test_repeated_ticks_are_the_end_of_the_day_before(tmp_path: Path) -> None:
    truth = generate("stock", date(2024, 6, 3), 2, tmp_path, Recipe(seed=8, ticks=True, events_per_day=3_000, dirt=12))
    first, second = (gzip.decompress((tmp_path / file["name"]).read_bytes()).splitlines() for file in truth["files"])
    bad = {row["line"] for row in truth["bad_rows"] if row["file"] == truth["files"][0]["name"]}
    good = [line for number, line in enumerate(first, 1) if number not in bad]
    assert second[1:13] == good[-12:]
    assert truth["totals"] == {"events": 6_000, "duplicates": 12, "conflicts": 0, "bad": 24, "rows": 6_036, "late": 0}
