"""COLLECT, UNTIL, PAUSE, sizes and * against the definition: random patterns, both backends, every cut of history."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from chainlake.cep.automata.simulate import simulate, unfit_for
from chainlake.cep.explain.near_misses import near_misses
from chainlake.cep.library import as_dicts, from_dicts, match
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.plan.steps import make_plan
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from chainlake.cli.inputs.event_files import with_type
from chainlake.detect.division.cut import slice_of
from chainlake.errors import DefinitionError, InputError, LimitExceeded
from tests.cep.distributed import distributed
from tests.cep.interpreted import no_compiler
from tests.cep.sets_by_definition import by_definition, leaves, query, stream, text_of
from tests.cep.strategies import Random


def canonical(matches: Any) -> list[str]:
    """Matches as sorted texts, duplicates kept."""
    return sorted(json.dumps(m, sort_keys=True) for m in matches)


def compiled(made: tuple) -> Pattern | None:
    """A random query as the product takes it; None where it refuses one for a reason that such queries may have."""
    try:
        return compile_pattern(text_of(made), strict_units=False)
    except DefinitionError as error:
        words = ("may mention one", "needs names of different branches", "needs a repeated event", "duplicate name")
        assert any(word in error.what for word in words), (text_of(made), error)
        return None


def pairs(seed: int, streams: int = 5) -> Any:
    """A random query as compiled, and some streams with their matches; nothing if the language refuses it."""
    pick = Random(f"sets {seed}")
    made = query(pick)
    pattern = compiled(made)
    if pattern is None:
        return
    for _ in range(streams):
        events = stream(pick)
        yield pick, pattern, events, canonical(by_definition(made, events)), text_of(made)


def found(pattern: Pattern, events: list[dict], backend: str, **how: Any) -> list[dict]:
    table, ids = from_dicts(events)
    options = SearchOptions(block_rows=how.pop("block_rows", 1 << 17))
    return [m for b in find(pattern, table, backend=backend, options=options, **how) for m in as_dicts(pattern, b, ids)]


def check(seeds: range) -> tuple[int, int]:
    """How many pairs of pattern and stream there were, and how many of them had matches."""
    tried = with_matches = 0
    for seed in seeds:
        for pick, pattern, events, wanted, text in pairs(seed):
            order = pick.shuffled([name for b in pattern.branches for name in b.positive])
            order = list(dict.fromkeys(order))
            rooms = pick.one((1, 3, 1 << 17))
            why = (seed, text, events)
            assert canonical(found(pattern, events, "numpy", order=order, block_rows=rooms)) == wanted, why
            with no_compiler():
                assert canonical(found(pattern, events, "compiled", block_rows=rooms)) == wanted, why
            tried += 1
            with_matches += bool(wanted)
    return tried, with_matches


@pytest.mark.slow
def test_random_patterns_have_the_matches_of_the_definition() -> None:
    tried, with_matches = check(range(12))
    assert tried > 30 and with_matches > 6, (tried, with_matches)


@pytest.mark.slow
def test_hundreds_of_random_patterns_have_the_matches_of_the_definition() -> None:
    check(range(1000, 1120))


@pytest.mark.slow
def test_any_cut_of_history_gives_the_same_union() -> None:
    """Each piece has the events of its read range only."""
    cut = 0
    for seed in range(5000, 5150):
        for pick, pattern, events, wanted, text in pairs(seed, 3):
            bounds = [-100, *sorted(pick.one(range(-2, 18)) for _ in range(pick.one((1, 2, 3)))), 100]
            union: list[dict] = []
            for own in itertools.pairwise(bounds):
                lo, hi = pattern.read_range(*own)
                union += found(pattern, [e for e in events if lo <= e["ts"] < hi], "numpy", own=own)
            assert canonical(union) == wanted, (seed, text, bounds, events)
            cut += bool(wanted)
    assert cut > 50


A, B = ("EVENT", "A", "a", None, False), ("EVENT", "B", "b", (1, None), False)
SETS = ("COLLECT", "B", "b", None, False), ("COLLECT", "B", "c", None, False)


def over(function: str, op: str, number: float) -> tuple:
    return "cmp", op, ("agg", function, "b", "x"), ("lit", number)


#: What one branch collects another binds: the second has matches that the first does not have.
ROLES: dict[str, tuple] = {
    "wider than the window": ([("AND", [A, B]), ("AND", [A, SETS[0]])], [], 2, None),
    "beyond the pause": ([("AND", [A, B]), ("AND", [A, SETS[0]])], [], 6, 1),
    "events in two sets": ([("AND", [A, B, ("EVENT", "B", "c", (1, None), False)]), ("AND", [A, *SETS])], [], 4, None),
    "the whole set or some": ([("SEQ", [A, SETS[0]]), ("SEQ", [A, B])], [], 5, None),
    "until": ([("AND", [A, B, ("UNTIL", "C", "s")]), ("AND", [A, B])], [], 5, None),
    "one or the whole set": ([("SEQ", [A, ("EVENT", "B", "b", None, False)]), ("SEQ", [A, SETS[0]])], [], 5, None),
    "an own type": ([("SEQ", [A, B]), ("SEQ", [A, ("EVENT", "*", "b", (1, 2), False)])], [], 5, None),
}
#: One query for each aggregate.
OVER = {
    name: ([("SEQ", [A, SETS[0]])], [one], 7, None)
    for name, one in {
        "FIRST": over("FIRST", ">=", 1), "LAST": over("LAST", ">=", 1), "DISTINCT": over("DISTINCT", "=", 2),
        "STDDEV": over("STDDEV", ">", 0.75), "MEDIAN": over("MEDIAN", ">=", 1),
        "null": ("null", ("agg", "SUM", "b", "x"), True),
        "PERCENTILE": over("PERCENTILE 0.3", "<=", 0.6), "FIRST of all": ("cmp", "=", over("FIRST", "=", 0)[2],
        over("LAST", "=", 0)[2]),
    }.items()
}  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("made", [*ROLES.values(), *OVER.values()], ids=[*ROLES, *OVER])
def test_queries_on_random_streams(made: tuple) -> None:
    pick, with_matches = Random(text_of(made)), 0
    pattern = compile_pattern(text_of(made), strict_units=False)
    for _ in range(25):
        events = stream(pick, 9, "ABBB" if made in OVER.values() else "AABBC")
        wanted = canonical(by_definition(made, events))
        assert canonical(found(pattern, events, "numpy")) == wanted, events
        with no_compiler():
            assert canonical(found(pattern, events, "compiled", block_rows=2)) == wanted, events
        with_matches += bool(wanted)
    assert 1 < with_matches < 25


CASES = json.loads((Path(__file__).parent.parent / "cases" / "set-cases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_handed_case(case: dict, backend: str) -> None:
    with no_compiler():
        for events in (case["events"], case["events"][::-1]):
            assert canonical(match(case["pattern"], events, backend=backend)) == canonical(case["expected"])


# ---- sizes


def row(kind: str, number: int, ts: int) -> dict:
    return {"id": f"{kind}{number}", "type": kind, "ts": ts, "attrs": {"x": number}}


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_two_of_two_hundred_events(backend: str) -> None:
    """In numbers: 200 · 199 / 2."""
    events = [row("A", 0, 0), *(row("B", n, 1 + n // 2) for n in range(200))]
    with no_compiler():
        sets = [tuple(m["b"]) for m in match("PATTERN SEQ(A a, B{2} b) WITHIN 1000", events, backend=backend)]
    assert len(sets) == len(set(sets)) == 19_900 and {len(one) for one in sets} == {2}


@pytest.mark.parametrize("size", ["{1}", "{2}", "{3,}", "{2,4}", "{6}", "{7}", "{5,9}"])
def test_sets_of_a_size_are_those_of_the_condition_and_as_many_are_tried(size: str) -> None:
    events = [row("B", n, n // 2) for n in range(9)] + [row("A", 0, 2)]
    least, most = re.fullmatch(r"{(\d+)(?:,(\d*))?}", size).groups()  # type: ignore[union-attr]
    most = least if most is None else most or 99
    query = "PATTERN AND(A a, B{} b){} WITHIN 3"
    wanted = canonical(match(query.format("+", f" WHERE COUNT(b) >= {least} AND COUNT(b) <= {most}"), events))
    counted = []
    with no_compiler():
        for backend, rooms in (("numpy", 1), ("numpy", 1 << 17), ("compiled", 3)):
            statistics = Statistics()
            pattern = compile_pattern(query.format(size, ""), strict_units=False)
            assert canonical(found(pattern, events, backend, block_rows=rooms, statistics=statistics)) == wanted
            counted.append(statistics.evaluations)
    outcome = simulate(pattern, from_dicts(events)[0])
    assert canonical(outcome.matches(pattern, from_dicts(events)[1])) == wanted
    # Besides the sets it binds one event of A.
    assert set(counted) == {len(wanted) + 1} == {outcome.costs.evaluations}


def test_so_many_sets_are_made_as_of_kleene_members_events_and_no_more() -> None:
    """2^6 - 1 = 63 sets of any size: of pairs, 11 events make 55 and 12 make 66."""
    text = "---\nlimits: {kleene_members: 6}\n---\nPATTERN SEQ(A a, B{2} b) WITHIN 50"
    pattern = compile_pattern(text, strict_units=False)
    events = [row("A", 0, 0), *(row("B", n, 1 + n) for n in range(12))]
    for backend in ("numpy", "compiled"):
        with no_compiler():
            assert len(found(pattern, events[:-1], backend)) == 55
            for block_rows in (1, 1 << 17):
                with pytest.raises(LimitExceeded, match="12 events of one window .* made from at most 11"):
                    found(pattern, events, backend, block_rows=block_rows)
    with pytest.raises(LimitExceeded):
        simulate(pattern, from_dicts(events)[0])


# ---- limits of sets


def test_the_members_of_a_set_are_limited_where_a_match_has_them() -> None:
    text = "---\nlimits: {{set_members: 3}}\n---\nPATTERN SEQ(A a, COLLECT(B{} b), C c){} WITHIN 50"
    events = [row("A", 0, 0), *(row("B", n, 1 + n) for n in range(4)), row("C", 0, 9), row("C", 1, 4)]

    def outcome(size: str = "", where: str = "", shown: list[dict] = events, **how: Any) -> Any:
        try:
            return len(found(compile_pattern(text.format(size, where), strict_units=False), shown, "numpy", **how))
        except LimitExceeded as error:
            assert error.key == "set_members" and "4 events of b" in str(error)
            return "limit"

    assert outcome() == "limit" == outcome(shown=events[::-1]) == outcome(block_rows=1)
    # Only the match that has the large set is over the limit, and only where it is decided.
    assert outcome(own=(0, 9)) == 1 and outcome(own=(9, 20)) == "limit"
    # A size that is asked for keeps large sets out; another condition does not.
    assert outcome("{1,3}") == outcome(where=" WHERE COUNT(b) < 4") == 1
    assert outcome(where=" WHERE b.x < 3") == 2
    assert outcome(where=" WHERE MAX(b.x) < 3") == "limit"
    assert outcome(where=" WHERE c.x = 1") == 1


@pytest.mark.slow
def test_a_thousand_matches_of_wide_sets_are_found_in_little_memory() -> None:
    """A million members, four thousand at a time."""
    events = [row("B", n, n) for n in range(1000)] + [row("C", n, 1000) for n in range(1000)]
    pattern = compile_pattern("PATTERN SEQ(COLLECT(B b), C c) WHERE SUM(b.x) = 499500 WITHIN 1000", strict_units=False)
    table, _ = from_dicts(events)
    sizes = [b.n for b in find(pattern, table, options=SearchOptions(block_rows=4000))]
    assert sum(sizes) == 1000 and max(sizes) <= 5


# ---- in the steps


def with_key(made: tuple) -> tuple:
    """The query with equalities of k between all names."""
    structures, conditions, window, pause = made
    names = list(dict.fromkeys(leaf[2] for structure in structures for leaf in leaves(structure)))
    first = next(leaf[2] for leaf in leaves(structures[0]) if leaf[0] == "EVENT" and not leaf[4])
    same = [("cmp", "=", ("ref", first, "k"), ("ref", name, "k")) for name in names if name != first]
    return structures, [*conditions, *same], window, pause


@pytest.mark.slow
def test_slices_pieces_and_keys_do_not_show() -> None:
    keyed = with_matches = 0
    for seed in range(7000, 7250):
        pick = Random(f"steps {seed}")
        made = with_key(query(pick)) if pick.one((True, False)) else query(pick)
        pattern = compiled(made)
        if pattern is None:
            continue
        events = stream(pick)
        wanted = canonical(by_definition(made, events))
        table, _ = from_dicts(events)
        if "k" not in table.column_names:
            continue
        bounds = [-100, *sorted({pick.one(range(-2, 16)) for _ in range(2)}), 100]
        cut = [slice_of(pattern, own) for own in itertools.pairwise(bounds)]
        rows, errors = distributed(
            pattern, table, cut, batch_rows=pick.one((1, 3)), piece_rows=pick.one((1, 4)), keys=pick.one((1, 2))
        )
        assert rows == wanted and not errors, (seed, text_of(made), events, cut)
        keyed += pattern.partition_key is not None
        with_matches += bool(wanted)
    assert keyed > 20 and with_matches > 20


def test_a_key_divides_the_work_only_if_collected_names_and_until_have_it() -> None:
    def key(structure: str, where: str) -> str | None:
        return compile_pattern(f"PATTERN {structure} WHERE a.k = c.k{where} WITHIN 5", strict_units=False).partition_key

    for other in ("COLLECT(B b)", "COLLECT?(B b)", "UNTIL(B b)"):
        assert key(f"SEQ(A a, {other}, C c)", "") is None
        assert key(f"SEQ(A a, {other}, C c)", " AND b.k = c.k") == "k"
        assert key(f"SEQ(A a, {other}, C c)", " AND (b.k = c.k OR b.x > 1)") is None


def test_engines_in_event_order_say_what_they_do_not_know() -> None:
    def reason(text: str) -> str | None:
        return unfit_for("chain", compile_pattern(f"PATTERN {text}", strict_units=False))

    for text, word in (
        ("SEQ(A a, COLLECT(B b)) WITHIN 5", "COLLECT"), ("SEQ(A a, B b, UNTIL(C c)) WITHIN 5", "UNTIL"),
        ("AND(A a, B b) WITHIN 5 PAUSE 2", "PAUSE"), ("SEQ(A a, B+ b) WITHIN 5 PAUSE 2", "PAUSE"),
    ):  # fmt: skip
        assert word in str(reason(text))
    assert reason("SEQ(A a, * b) WITHIN 5 PAUSE 2") is None
    events = [row("A", 0, 0), row("C", 1, 2), row("B", 2, 4), row("A", 3, 1)]
    pattern = compile_pattern("PATTERN SEQ(A a, * b) WITHIN 5 PAUSE 2", strict_units=False)
    table, ids = from_dicts(events)
    outcome = canonical(simulate(pattern, table).matches(pattern, ids))
    assert outcome == canonical(found(pattern, events, "numpy")) and len(outcome) == 3


def test_near_misses_count_the_matches_that_have_their_sets() -> None:
    events = [row("A", 0, 0), row("C", 0, 1), row("B", 0, 2), row("C", 1, 3)]
    pattern = compile_pattern("PATTERN SEQ(A a, COLLECT(B b), C c) WITHIN 5", strict_units=False)
    (report,) = near_misses(pattern, from_dicts(events)[0], [make_plan(pattern.branches[0], ("a", "c"))], (-9, 99))
    assert report.matches == 1 and (report.stages[-1].entered, report.stages[-1].left) == (2, 1)
    assert [miss.count for miss in report.stages[-1].misses.values()] == [1]


def test_any_type_of_a_file_without_types() -> None:
    events = pa.table({"event_id": ["1", "2"], "ts": pa.array([0, 1])})
    assert with_type(events, compile_pattern("PATTERN * x WITHIN 1", strict_units=False))["type"].to_pylist() == [
        "event", "event",
    ]  # fmt: skip
    mixed = compile_pattern("PATTERN SEQ(A a, * x) WITHIN 1", strict_units=False)
    assert with_type(events, mixed)["type"].to_pylist() == ["A", "A"]


def test_places_of_equal_times_are_whole_numbers() -> None:
    text = "PATTERN SEQ(A a, COLLECT(B b)) WHERE FIRST(b.x) = 1 WITHIN 5"
    events = [row("A", 0, 0), row("B", 1, 1) | {"seq": 2}, row("B", 2, 1) | {"seq": 1}]
    assert list(match(text, events)) == []
    assert list(match(text.replace("FIRST", "LAST"), events)) == [{"a": "A0", "b": ["B1", "B2"]}]
    assert compile_pattern(text, strict_units=False).columns_needed == {"event_id", "type", "ts", "seq", "x"}
    with pytest.raises(InputError, match="seq"):
        list(match(text, [one | {"seq": "x"} for one in events]))


def test_any_match_of_a_repeated_event_in_shares() -> None:
    times = sorted(random.Random(3).sample(range(60), 14))
    events = [{"id": n, "type": "P", "ts": ts, "attrs": {}} for n, ts in enumerate(times)]
    found = [tuple(one["p"]) for one in match("PATTERN SEQ(P+ p) WITHIN 19", events)]
    assert len(found) == len(set(found)) == 167
    assert [sum(one[0] % 4 == share for one in found) for share in range(4)] == [42, 57, 32, 36]
    ten = [{"id": n, "type": "P", "ts": n, "attrs": {}} for n in range(10)]
    assert len(list(match("PATTERN SEQ(P+ p) WITHIN 20", ten))) == 1_023
