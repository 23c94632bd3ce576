"""Every shipped pattern over the shipped data: the engine and plain loops find the same matches, in pinned numbers."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import chainlake as cl
from chainlake.cep.events.history import add_histories
from chainlake.cep.library import as_dicts, match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.days import day_of_us, day_start_us
from chainlake.definitions.source import load_source
from chainlake.paths import PROJECT
from tests.shipped.brute_force import PATTERNS, WAITS, as_ids, counts
from tests.shipped.shipped_data import SOURCES, by_key, shipped

pytestmark = pytest.mark.slow

FOLDER = PROJECT / "dags" / "config" / "patterns"
SOURCE = {name: load_source(FOLDER.parent / "sources" / f"{name}.yaml") for name in SOURCES}
NAMES = sorted(PATTERNS)
#: Patterns that need nothing but SEQ, WHERE and WITHIN.
PLAIN = ("bank_follows_market", "shakeout", "three_pushes", "breakdown", "queue_spillback", "gas_onset")

#: Matches per UTC day of their decision, as ``python -m tests.shipped.brute_force`` prints them.
COUNTS: dict[str, dict[str, int]] = {
    "bank_follows_market": {"2013-10-07": 3, "2013-10-08": 18, "2013-10-09": 15},
    "shakeout": {"2013-10-07": 9, "2013-10-08": 19, "2013-10-09": 50},
    "shakeout_pairs": {"2013-10-07": 5, "2013-10-08": 11, "2013-10-09": 22},
    "three_pushes": {"2013-10-07": 2, "2013-10-08": 4, "2013-10-09": 24},
    "echo": {"2013-10-08": 3, "2013-10-09": 7},
    "fall_not_recovered": {"2013-10-07": 40, "2013-10-08": 53, "2013-10-09": 65},
    "breakdown": {"2025-10-01": 5, "2025-10-02": 13, "2025-10-03": 12},
    "queue_spillback": {"2025-10-01": 5, "2025-10-02": 10, "2025-10-03": 37},
    "stuck": {"2025-10-01": 2, "2025-10-02": 26, "2025-10-03": 25, "2025-10-04": 22},
    "jam_holds": {"2025-10-01": 3, "2025-10-02": 10, "2025-10-03": 5},
    "jam_cleared": {"2025-10-01": 4, "2025-10-02": 16, "2025-10-03": 19, "2025-10-04": 16},
    "queue_tail": {"2025-10-01": 173, "2025-10-02": 42, "2025-10-03": 201, "2025-10-04": 91},
    "gas_onset": {"2015-08-25": 20, "2015-08-26": 26, "2015-08-27": 38},
    "gas_seen": {"2015-08-25": 9, "2015-08-26": 12, "2015-08-27": 30},
    "gas_stays": {"2015-08-25": 3, "2015-08-26": 8, "2015-08-27": 37},
    "sensors_agree": {"2015-08-25": 18, "2015-08-26": 12, "2015-08-27": 18},
    "air_changes": {"2015-08-26": 22, "2015-08-27": 9},
}


#: Patterns that say what one occurrence is: how many there are, and how far apart its matches are at most.
EPISODES = {
    "fall_not_recovered": (35, "down", "ticker", 15),
    "stuck": (3, "early", "detector", 15),
    "queue_tail": (23, "ahead", "detector", 15),
    "gas_onset": (15, "gas", "channel", 10),
}


#: Computed columns of matches.
MEASURES = ("severity", "seconds", "depth")
#: Patterns whose matches use events up, so that a day needs those of the days before.
CHAINED = ("shakeout_pairs", "jam_cleared")


def _rise(bottom: dict, top: dict) -> float | None:
    return top["high"] / bottom["low"] - 1 if top["high"] > bottom["low"] else None


def _braking(free: dict, slow: dict) -> float | None:
    fall = free["speed"] - slow["speed"]
    return 2 * min(fall / 60, 1) + min(free["flow"] / 1000, 1) if fall > 0 else None


def _drop(clean: dict, smelt: dict) -> float | None:
    return 1 - smelt["value"] / clean["value"] if smelt["value"] < clean["value"] * 0.9 else None


#: Ranked patterns: source, rows of a list, window in minutes, score of two events of one key, what no two rows share,
#: and what each value of has a list of its own, by week and not by day.
RANKED = {
    "fastest_rises": ("stock", 3, 15, _rise, "ticker", None),
    "hardest_brakings": ("traffic", 3, 5, _braking, "detector", None),
    "deepest_drops": ("sensor", 2, 3, _drop, "ts", "channel"),
}


def text(name: str) -> str:
    """The pattern file."""
    return (FOLDER / f"{name}.sase").read_text()


def table(source: str) -> pa.Table:
    """The shipped events in the form the library takes."""
    rows = shipped(source)
    columns = {name: pa.array(rows[name]) for name in rows.columns if name not in ("id", "ts")}
    columns["ts"] = pa.array(rows["ts"], pa.timestamp("us", tz="UTC"))
    return pa.table({"event_id": pa.array(rows["id"])} | columns)


def found(name: str, **options: object) -> list[tuple]:
    """What the engine finds, in the form of ``brute_force.as_ids``."""
    source = PATTERNS[name][0]
    events = add_histories(table(source), [SOURCE[source].key], SOURCE[source].derived)
    matches = match(text(name), events, **options)  # type: ignore[arg-type]
    return [as_tuple(one) for one in matches]


def as_tuple(one: dict) -> tuple:
    """A match without its measures."""
    bound = ((n, ids) for n, ids in one.items() if n not in MEASURES)
    return tuple(sorted((n, tuple(sorted(ids)) if isinstance(ids, list) else ids) for n, ids in bound))


def expected(name: str) -> set[tuple]:
    """What plain loops find."""
    source, loops = PATTERNS[name]
    return {as_ids(one) for one in loops(by_key(shipped(source), source))}


def micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.mark.parametrize("name", sorted(EPISODES))
def test_matches_of_one_occurrence_are_one_row(name: str) -> None:
    source, loops = PATTERNS[name]
    number, event, key, minutes = EPISODES[name]
    spans = sorted(
        (match[event][key], min(times), max(times))
        for match in loops(by_key(shipped(source), source))
        for times in [[one["ts"] for one in match.values()]]
    )
    rows: list[list] = []
    for of, start, end in spans:
        if rows and rows[-1][0] == of and start - rows[-1][2] <= minutes * 60_000_000:
            rows[-1][2:] = [max(rows[-1][2], end), rows[-1][3] + 1]
        else:
            rows.append([of, start, end, 1])
    found = list(cl.episodes(text(name), table(source), key=SOURCE[source].key))
    assert [[one["key"], *map(micros, (one["start"], one["end"])), one["matches"]] for one in found] == rows
    assert len(rows) == number < sum(COUNTS[name].values()) / 3


@pytest.mark.parametrize("name", sorted(RANKED))
def test_the_best_matches_are_those_that_plain_loops_rank(name: str) -> None:
    source, number, minutes, score, distinct, per = RANKED[name]
    zone, week = ZoneInfo(SOURCE[source].zone if per is None else "UTC"), per is not None
    lists: dict[tuple, list[tuple]] = {}
    for events in by_key(shipped(source), source).values():
        for at, first in enumerate(events):
            for second in events[at + 1 :]:
                if second["ts"] - first["ts"] > minutes * 60_000_000:
                    break
                value = score(first, second) if second["ts"] > first["ts"] else None
                if value is not None:
                    day = datetime.fromtimestamp(second["ts"] // 1_000_000, zone).date()
                    day -= timedelta(days=day.weekday() if week else 0)
                    lists.setdefault((day, first[per] if per else None), []).append((-value, first["ts"], second["ts"]))
                    lists[day, first[per] if per else None][-1] += (first[distinct], first["id"], second["id"])
    wanted = {}
    for place, rows in lists.items():
        seen: set = set()
        best = [row for row in sorted(rows) if row[3] not in seen and not seen.add(row[3])]  # type: ignore[func-returns-value]
        wanted[place] = [row[4:] for row in best[:number]]
    found: dict[tuple, list[tuple]] = {}
    names = [one.name for one in compile_pattern(text(name)).names]
    for one in match(text(name), table(source), key=SOURCE[source].key):
        day = one["scope_start"].astimezone(zone).date()
        found.setdefault((day, *one.get("per", [None])), []).append(tuple(one[n] for n in names))
    assert found == wanted and len(found) >= 3


def test_every_pattern_file_has_its_loops() -> None:
    assert NAMES == sorted(COUNTS)
    assert sorted(path.stem for path in FOLDER.glob("*.sase")) == sorted([*NAMES, *RANKED])


@pytest.mark.parametrize("name", NAMES)
def test_plain_loops_find_the_pinned_numbers(name: str) -> None:
    assert counts(name) == COUNTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_engine_finds_exactly_what_plain_loops_find(name: str) -> None:
    matches = found(name)
    assert len(matches) == len(set(matches)) == sum(COUNTS[name].values())
    assert set(matches) == expected(name)


@pytest.mark.parametrize("name", NAMES)
def test_any_order_of_evaluation_finds_the_same(name: str) -> None:
    names = [one.name for one in compile_pattern(text(name)).names]
    assert set(found(name, order=names[::-1])) == set(found(name, order=names)) == expected(name)


@pytest.mark.parametrize("name", sorted({*NAMES} - {*CHAINED}))
def test_days_share_the_matches_out(name: str) -> None:
    """Each UTC day, given only the events of its read range, finds the matches that decide on it and no others."""
    source = PATTERNS[name][0]
    rows = shipped(source)
    events, key = table(source), SOURCE[source].key
    pattern = compile_pattern(
        text(name), name=name, columns=SOURCE[source].pattern_columns(), series=SOURCE[source].series
    )
    assert bool(pattern.histories) == (name == "echo")
    first, last = day_of_us(int(rows["ts"].min())), day_of_us(int(rows["ts"].max()))
    per_day: Counter[str] = Counter()
    together: list[tuple] = []
    for offset in range((last - first).days + 2):
        day: date = first + timedelta(days=offset)
        lo, hi = day_start_us(day), day_start_us(day + timedelta(days=1))
        from_us, to_us = pattern.source_range(lo, hi)
        inside = events.filter(pa.array((rows["ts"] >= from_us) & (rows["ts"] < to_us)))
        inside = add_histories(inside, [key], pattern.histories)
        ids = inside["event_id"].to_pylist()
        for batch in find(pattern, inside, own=(lo, hi)):
            together += [as_tuple(one) for one in as_dicts(pattern, batch, ids)]
            per_day[day.isoformat()] += batch.n
    assert {day: count for day, count in per_day.items() if count} == COUNTS[name]
    assert len(together) == len(set(together))
    assert set(together) == expected(name)


def test_both_ways_of_the_alternative_and_the_wait_of_the_negation_show() -> None:
    assert {frozenset(name for name, _ in one) for one in found("air_changes")} == {
        frozenset({"dry", "humid"}), frozenset({"clean", "gas"}),
    }  # fmt: skip
    pattern = compile_pattern(text("jam_holds"))
    assert pattern.open_right and pattern.decision == "start+W"
    for batch in find(pattern, table("traffic")):
        assert (batch.decision_us == batch.start_us + WAITS["jam_holds"] * 60_000_000).all()


def test_companions_are_one_row_per_occurrence() -> None:
    contexts = {
        name: compile_pattern(text(name)).extras.policy for name in ("shakeout_pairs", "jam_cleared", "gas_seen")
    }
    assert {name for name, policy in contexts.items() if policy is not None and policy.consumes} == {*CHAINED}
    assert sum(COUNTS["shakeout_pairs"].values()) < sum(COUNTS["shakeout"].values()) / 2
    assert sum(COUNTS["gas_seen"].values()) < sum(COUNTS["gas_onset"].values())


def test_a_person_learns_what_each_pattern_means() -> None:
    for name in (*NAMES, *RANKED):
        assert "# What it means: " in text(name), name
        assert compile_pattern(text(name), name=name).description, name


def test_enough_patterns_need_only_sequences() -> None:
    kinds = Counter(PATTERNS[name][0] for name in PLAIN)
    assert kinds["stock"] >= 2 and kinds["traffic"] >= 2 and kinds["sensor"] >= 1
    for name in PLAIN:
        query = text(name).split("---")[2]
        assert "SEQ(" in query and "NOT(" not in query and "+ " not in query.split("WHERE")[0], name


def test_every_operator_has_a_pattern_that_finds_something() -> None:
    operators: dict[str, set[str]] = {}
    for name in NAMES:
        pattern = compile_pattern(text(name), name=name)
        if len(pattern.branches) > 1:
            operators.setdefault("OR", set()).add(name)
        for b in pattern.branches:
            if any(not b.ordered(n, m) for n in b.positive for m in b.positive if n != m):
                operators.setdefault("AND", set()).add(name)
            for negated in b.negated:
                operators.setdefault("NOT at the end" if b.open_right(negated) else "NOT within", set()).add(name)
            if any(clause.aggregated for clause in b.clauses):
                operators.setdefault("set with an aggregate", set()).add(name)
    assert operators == {
        "OR": {"air_changes"},
        "AND": {"queue_tail", "sensors_agree"},
        "NOT within": {"fall_not_recovered", "stuck"},
        "NOT at the end": {"jam_holds"},
        "set with an aggregate": {"gas_stays"},
    }
    assert all(sum(COUNTS[name].values()) > 0 for names in operators.values() for name in names)


def test_patterns_read_only_what_the_sources_give() -> None:
    """Compiled against the columns of the source files, as the jobs do it."""
    for name in NAMES:
        source = SOURCE[PATTERNS[name][0]]
        columns = source.pattern_columns()
        pattern = compile_pattern(text(name), name=name, columns=columns, series=source.series)
        assert pattern.source == source.name
        assert source.key == SOURCES[source.name][0]
        assert {one.type for one in pattern.names} == {SOURCES[source.name][1]}
