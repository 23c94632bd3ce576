"""Measures of matches from their files against plain loops, for names of any kind; and what is taken from them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainlake.lake.sql.duck import connected
from chainlake.paths import Home
from chainlake.quality import MatchFiles, MatchRules
from chainlake.quality.matches.files import Matches
from chainlake.quality.matches.gate import three_rows
from chainlake.quality.matches.measures import column_of
from chainlake.schemas.matches import FIXED_COLUMNS, MatchName, MatchShape, matches_table
from chainlake.schemas.table import TIMESTAMP

FIELDS = (("event_id", pa.string()), ("ts", TIMESTAMP), ("type", pa.string()), ("x", pa.float64()))
T0 = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = 60_000_000


def rules(names: dict[str, bool], *branches: tuple[str, list[str]], waits: bool = False) -> MatchRules:
    """Branches as the names they bind and the pairs they order, all of one letter."""
    orders = ((frozenset(bound), frozenset((p[0], p[1]) for p in pairs)) for bound, pairs in branches)
    return MatchRules("p", 10 * MINUTE, waits, names, tuple(orders))


#: Sequences, conjunctions, branches that lack names, repetitions, a lone name, matches that wait.
SHAPES = {
    "sequence": rules({"a": False, "b": False, "c": False}, ("abc", ["ab", "bc", "ac"])),
    "conjunction": rules({"a": False, "b": False}, ("ab", [])),
    "branches": rules({"a": False, "b": False, "c": False}, ("ab", ["ab"]), ("ac", []), ("abc", ["ab", "ac", "bc"])),
    "repetition": rules({"a": False, "b": True, "c": False}, ("ab", ["ab"]), ("abc", ["ab", "bc", "ac"])),
    "repetitions": rules({"a": True, "b": True}, ("ab", ["ab"])),
    "lone": rules({"a": False}, ("a", []), waits=True),
    "lone repetition": rules({"a": True}, ("a", [])),
}
SHAPES |= {
    "neighbours": replace(SHAPES["repetition"], neighbours=frozenset({1}), pause_us=MINUTE // 4),
    "neighbours in a window": replace(SHAPES["lone"], window_us=MINUTE // 2, pause_us=MINUTE // 4),
}


def time_of(us: int) -> datetime:
    return T0 + timedelta(microseconds=us)


def rows_of(shape: MatchRules, seed: int, count: int = 300, events: int = 40) -> list[dict[str, Any]]:
    """Rows of all sorts around midnight: names unbound, arrays empty, fields null, ids twice, times in any order."""
    draw = random.Random(seed)

    def event() -> dict[str, Any] | None:
        ts = draw.choice([None, *(time_of(draw.randrange(-MINUTE, MINUTE)) for _ in range(20))])
        name = draw.choice([None, *(f"e{draw.randrange(events)}" for _ in range(20))])
        return {"event_id": name, "ts": ts, "type": "A", "x": draw.random()}

    def bound(kleene: bool) -> Any:
        if draw.random() < 0.15:
            return None
        return [event() for _ in range(draw.randrange(4))] if kleene else event()

    def maybe(value: Any) -> Any:
        return None if draw.random() < 0.03 else value

    def row(number: int) -> dict[str, Any]:
        times = sorted(draw.randrange(-MINUTE, MINUTE) for _ in range(3))
        named = zip(("start_ts", "end_ts", "decision_ts"), map(time_of, times), strict=True)
        fixed = {"match_id": f"{number:032x}", **dict(named)}
        return {name: maybe(value) for name, value in fixed.items()} | {n: bound(k) for n, k in shape.names.items()}

    return [row(number) for number in range(count)]


def table_of(shape: MatchRules, plain: list[dict[str, Any]]) -> pa.Table:
    names = tuple(MatchName(name, kleene, FIELDS) for name, kleene in shape.names.items())
    table = matches_table(MatchShape("p", 1, "s", names)).arrow()
    return pa.Table.from_pylist(plain, schema=pa.schema([pa.field(f.name, f.type) for f in table]))


@pytest.fixture
def con(home: Home) -> Iterator[duckdb.DuckDBPyConnection]:
    with connected(home, 2) as opened:
        yield opened


def written(folder: Path, shape: MatchRules, plain: list[dict[str, Any]]) -> MatchFiles:
    """The rows in two files, whose names have wildcards, and the events e0 to e39."""
    folder.mkdir(exist_ok=True)
    table = table_of(shape, plain)
    half = len(table) // 2
    paths = [folder / f"staged [{part}]*.parquet" for part in (0, 1)]
    for path, part in zip(paths, (table.slice(0, half), table.slice(half)), strict=True):
        pq.write_table(part, path)
    pq.write_table(pa.table({"event_id": [f"e{n}" for n in range(40)]}), folder / "events.parquet")
    return MatchFiles(list(map(str, paths)), [str(folder / "events.parquet")])


def all_rows(matches: Matches) -> list[dict[str, Any]]:
    return matches.rows(None, "false", 10**6).to_pylist()


def measured_plainly(shape: MatchRules, row: dict[str, Any], copies: int = 1) -> dict[str, Any]:
    """The measures of a row, one by one, from what they mean; every event but e0 to e39 is unknown."""
    events = {n: (row[n] or []) if kleene else [row[n]] * (row[n] is not None) for n, kleene in shape.names.items()}
    ids = [e["event_id"] for found in events.values() for e in found]

    def us(time: datetime | None) -> int | None:
        return None if time is None else (time - T0) // timedelta(microseconds=1)

    def minus(left: int | None, right: int | None) -> int | None:
        return None if left is None or right is None else left - right

    def end(which: Any, names: Any) -> int | None:
        return which((t for n in names for e in events[n] if (t := us(e["ts"])) is not None), default=None)

    def gap(bound: frozenset[str], order: frozenset[tuple[str, str]]) -> int | None:
        if any(bool(events[n]) != (n in bound) for n in shape.names):
            return None
        between = [minus(end(min, later), end(max, earlier)) for earlier, later in order]
        if (bound, order) in {shape.branches[number] for number in shape.neighbours}:
            between = [None if one is None else one + 1 for one in between]
        return min((g for g in between if g is not None), default=None) if order else shape.window_us + 1

    fits = any(all(bool(events[n]) == (n in bound) for n in shape.names) for bound, _ in shape.branches)
    gaps = [g for branch in shape.branches if (g := gap(*branch)) is not None]
    start, stop, decision = (us(row[name]) for name in ("start_ts", "end_ts", "decision_ts"))
    decided = (None if start is None else start + shape.window_us) if shape.waits else stop
    off = minus(decision, decided)
    if shape.pause_us is not None and decision is not None:
        windows = [] if start is None else [start + shape.window_us]
        ends = [] if stop is None else [stop + shape.pause_us]
        low = min(windows + ends if shape.waits else ends, default=decision)
        high = max((one if shape.waits else one + shape.pause_us for one in windows), default=decision)
        off = decision - low if decision < low else decision - high if decision > high else 0
    return {
        **{name: row[name] for name in FIXED_COLUMNS},
        **{column_of(name): len(found) for name, found in events.items()},
        "decision_day": None if row["decision_ts"] is None else str(row["decision_ts"].date()),
        "span_us": minus(stop, start),
        "start_off_us": minus(start, end(min, events)),
        "end_off_us": minus(stop, end(max, events)),
        "decision_off_us": off,
        "null_event_ids": ids.count(None),
        "repeated_events": len(ids) - len(set(ids)),
        "names_fit": fits,
        "order_gap_us": max(gaps, default=None),
        "copies": copies,
        "used_up_events": 0,
        "unknown_event": min((i for i in ids if i is not None and int(i[1:]) >= 40), default=None),
    }


def by_id(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Rows whose columns may come in any order, and whose UTC has several names, to be compared."""

    def plain(value: Any) -> str:
        return value.isoformat() if isinstance(value, datetime) else str(value)

    return sorted((str(r["match_id"]), str(sorted((name, plain(value)) for name, value in r.items()))) for r in rows)


@pytest.mark.few(1)
@pytest.mark.parametrize("odd", [False, True], ids=["", "copies and unknown events"])
@pytest.mark.parametrize("name", SHAPES)
def test_measures_are_what_they_mean(con: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, odd: bool) -> None:
    """Of rows of all sorts; the extremes of a day are those of its rows."""
    shape = SHAPES[name]
    plain = rows_of(shape, list(SHAPES).index(name), events=60 if odd else 40)
    if odd:
        plain += [dict(row) for row in plain[::50]] + [dict(plain[0])]
    keys = Counter((row["match_id"], row["decision_ts"]) for row in plain)
    # Two rows without an id and a decision have one key, too.
    if not odd:
        plain = [row for row in plain if keys[row["match_id"], row["decision_ts"]] == 1]
    wanted = [measured_plainly(shape, row, keys[row["match_id"], row["decision_ts"]]) for row in plain]
    assert odd == any(row["copies"] > 1 for row in wanted) == any(row["unknown_event"] for row in wanted)
    matches = written(tmp_path, shape, plain).read_by(con, shape)
    assert by_id(all_rows(matches)) == by_id(wanted)
    frame = three_rows(*matches.aggregated())
    for day in {row["decision_day"] for row in wanted}:
        mine = frame[frame["decision_day"].isna() if day is None else frame["decision_day"] == day]
        assert len(mine) == 3
        for column in frame.columns:
            values = [row[column] for row in wanted if row["decision_day"] == day]
            there = [value for value in values if value is not None]
            assert mine[column].isna().any() == (len(there) < len(values)), column
            if column in ("decision_day", "match_id", "unknown_event") or not there:
                continue
            known = mine[column].dropna()
            low, high = (min(there), max(there))
            if isinstance(low, datetime):
                low, high = low.replace(tzinfo=None), high.replace(tzinfo=None)
            assert (known.min(), known.max()) == (low, high), column


def test_rows_of_a_day_come_with_the_broken_ones_first(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    shape = SHAPES["sequence"]
    matches = written(tmp_path, shape, rows_of(shape, 3)).read_by(con, shape)
    rows = all_rows(matches)
    mine = [row for row in rows if row["decision_day"] == "1970-01-01"]
    broken = [row for row in mine if row["null_event_ids"]]
    assert 3 < len(broken) < len(mine) - 3 and len(mine) < len(rows) - 3
    found = matches.rows("1970-01-01", "null_event_ids > 0", len(broken) + 3).to_pylist()
    assert by_id(found[: len(broken)]) == by_id(broken)
    assert len(found) == len(broken) + 3 and all(row in mine for row in found)


@pytest.mark.slow
def test_matches_without_files_have_the_columns_of_their_table(con: duckdb.DuckDBPyConnection) -> None:
    for shape in SHAPES.values():
        matches = MatchFiles([], []).read_by(con, shape)
        assert matches.columns == [*FIXED_COLUMNS, *shape.names] and not all_rows(matches)


def test_events_without_files_are_all_unknown(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    shape = SHAPES["lone"]
    files = written(tmp_path, shape, rows_of(shape, 1))
    rows = all_rows(MatchFiles(files.matches, []).read_by(con, shape))
    assert {row["unknown_event"] is None for row in rows if row["null_event_ids"] == 0 and row["a bound"]} == {False}
