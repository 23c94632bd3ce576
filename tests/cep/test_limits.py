"""Limits fail loudly, name the fact, and do not depend on slicing or on what else is in the table."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from chainlake.cep.explain.near_misses import near_misses
from chainlake.cep.library import from_dicts, match
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.plan.steps import make_plan
from chainlake.cep.search.find import find
from chainlake.cep.search.keys import parts_by_key
from chainlake.errors import LimitExceeded
from tests.cep.distributed import distributed
from tests.cep.interpreted import no_compiler
from tests.cep.test_matcher import slices


def events(*parts: tuple[str, int]) -> list[dict]:
    return [{"id": f"{kind}{i}", "type": kind, "ts": ts, "attrs": {}} for i, (kind, ts) in enumerate(parts)]


TWENTY_FIVE = events(("A", 0), *(("B", 1 + i) for i in range(25)), ("C", 30))


def test_twenty_five_members_with_the_default_limit_of_twenty() -> None:
    with pytest.raises(LimitExceeded, match="25 events of one window are usable for b") as found:
        list(match("PATTERN SEQ(A a, B* b, C c) WITHIN 60", TWENTY_FIVE))
    assert found.value.exit_code == 3 and found.value.key == "kleene_members"


def test_the_limit_can_be_raised_and_lowered() -> None:
    ten = TWENTY_FIVE[:11] + TWENTY_FIVE[-1:]
    query = "PATTERN SEQ(A a, B* b, C c) WITHIN 60"
    assert len(list(match(f"---\nlimits: {{kleene_members: 10}}\n---\n{query}", ten))) == 2**10 - 1
    with pytest.raises(LimitExceeded):
        list(match(f"---\nlimits: {{kleene_members: 9}}\n---\n{query}", ten))


def test_members_of_different_windows_do_not_add_up() -> None:
    spread = events(*(("B", 10 * i) for i in range(50)))
    assert len(list(match("PATTERN B* b WITHIN 9", spread))) == 50
    with pytest.raises(LimitExceeded):
        list(match("PATTERN B* b WITHIN 200", spread))


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("n", [3, 4])
def test_two_sets_fail_alike_in_either_order(order: str, n: int) -> None:
    text = "---\nlimits: {kleene_members: 3}\n---\nPATTERN SEQ(A* a, B* b) WITHIN 20"
    some = events(*(("A", i) for i in range(n)), ("B", 10))
    if n == 3:
        assert len(list(match(text, some, order=list(order)))) == 7
    else:
        with pytest.raises(LimitExceeded, match="4 events of one window are usable for a"):
            list(match(text, some, order=list(order)))


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize(("at", "structure", "fails"), [
    (25, "SEQ(A* a, B* b)", False), (20, "SEQ(A* a, B* b)", True), (3, "SEQ(A* a, B* b)", False),
    (20, "SEQ(B* b, A* a)", False), (3, "AND(A* a, B* b)", True), (25, "AND(A* a, B* b)", False),
])  # fmt: skip
def test_a_large_set_counts_only_with_a_partner(order: str, at: int, structure: str, fails: bool) -> None:
    text = f"---\nlimits: {{kleene_members: 3}}\n---\nPATTERN {structure} WITHIN 20"
    some = events(*(("A", i) for i in (1, 2, 3, 4)), ("B", at))
    if fails:
        with pytest.raises(LimitExceeded, match="4 events of one window are usable for a"):
            list(match(text, some, order=list(order)))
    else:
        assert isinstance(list(match(text, some, order=list(order))), list)


def test_a_large_set_without_a_partner_is_not_even_tried() -> None:
    some = events(*(("A", i) for i in range(60)), ("B", 65))
    found = list(match("PATTERN SEQ(A* a, B* b) WITHIN 10", some, order=["a", "b"]))
    assert len(found) == 2**5 - 1


def test_only_the_slice_that_owns_the_large_set_fails() -> None:
    pattern = compile_pattern(
        "---\nlimits: {kleene_members: 3}\n---\nPATTERN SEQ(A a, B* b) WITHIN 100", strict_units=False
    )
    rows = events(("A", 0), ("B", 10), ("B", 20), ("B", 30), ("B", 40))
    failed, found = [], 0
    for own in itertools.pairwise([0, 15, 25, 35, 45, 200]):
        lo, hi = pattern.read_range(*own)
        table, _ = from_dicts([e for e in rows if lo <= e["ts"] < hi])
        try:
            found += sum(batch.n for batch in find(pattern, table, own=own))
        except LimitExceeded:
            failed.append(own)
    assert failed == [(35, 45)] and found == 2**3 - 1


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize("keep", ["MAXIMAL", "OUTERMOST"])
@pytest.mark.parametrize(("at", "fails"), [
    ((12, 13, 14, 15), False),  # all that they make ends before any match of this slice begins
    ((17, 18, 19, 21), True),  # of the slice before, and compared with what begins at 21
    ((22, 23, 24, 25), True),
])  # fmt: skip
def test_sets_that_are_not_compared_do_not_count(at: tuple[int, ...], fails: bool, keep: str, backend: str) -> None:
    text = f"---\nlimits: {{kleene_members: 3}}\n---\nPATTERN A* a WITHIN 10 {keep}"
    pattern, own = compile_pattern(text, strict_units=False), (30, 60)
    lo, hi = pattern.read_range(*own)
    table, _ = from_dicts([e for e in events(*(("A", ts) for ts in (*at, 40))) if lo <= e["ts"] < hi])
    if fails:
        with pytest.raises(LimitExceeded, match="4 events of one window are usable for a"):
            list(find(pattern, table, own=own, backend=backend))
    else:
        assert [batch.start_us.tolist() for batch in find(pattern, table, own=own, backend=backend)] == [[40]]


def test_matches_per_day() -> None:
    day = 86_400
    rows = events(*(("A", i) for i in range(3)), *(("A", day + i) for i in range(4)))
    query = "PATTERN A a WITHIN 0"
    assert len(list(match(f"---\nlimits: {{matches_per_day: 4}}\n---\n{query}", rows))) == 7
    with pytest.raises(LimitExceeded, match="more than 3 matches on day 1970-01-02") as found:
        list(match(f"---\nlimits: {{matches_per_day: 3}}\n---\n{query}", rows))
    assert found.value.key == "matches_per_day"


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize("own", [None, (5, 22)])
@pytest.mark.parametrize("query", ["A a, B b", "A a, B b, NOT(C c)", "A a, B* b"])
def test_matches_are_decided_in_the_span_that_says_their_days(
    query: str, own: tuple[int, int] | None, backend: str
) -> None:
    pattern = compile_pattern(f"PATTERN SEQ({query}) WITHIN 10", strict_units=False)
    rows = events(*(("AB"[i % 2], 2 * i) for i in range(20)))
    lo, hi = (0, 99) if own is None else pattern.read_range(*own)
    table, _ = from_dicts([e for e in rows if lo <= e["ts"] < hi])
    batches = list(find(pattern, table, own=own, backend=backend))
    assert batches
    for batch in batches:
        first, last = batch.within
        assert first <= batch.decision_us.min() <= batch.decision_us.max() <= last
        assert (first >= own[0] and last < own[1]) if own else last - first <= 38


KEYED = "---\nlimits: {kleene_members: 3}\n---\nPATTERN SEQ(A* a, B* b) WHERE a.k = b.k WITHIN 100"
#: Values of a column that conditions take for different, and two that they take for one.
KEYS = {
    "texts": (pa.array(["x", "y", "z"]), None),
    "a dictionary": (pa.array(["x", "y", "z"]).dictionary_encode(), None),
    "a dictionary with an entry given twice": (
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3]), pa.array(["x", "y", "z", "x"])), (0, 3)),
    "whole numbers": (pa.array([0, -1, 2**60]), None),
    "doubles": (pa.array([0.0, 1.5, -0.0]), (0, 2)),
    "truth": (pa.array([True, False]), None),
    "days": (pa.array([0, 1, 20000], pa.date32()), None),
    "times": (pa.array([0, 999, 1000], pa.timestamp("ns")), (0, 1)),
    "times before 1970": (pa.array([-1, -1000, 0], pa.timestamp("ns")), (0, 1)),
    "durations": (pa.array([0, 999, 1000], pa.duration("ns")), (0, 1)),
    "with nulls": (pa.array(["x", None, "y"]), None),
}  # fmt: skip


def keyed(values: pa.Array, a: list[int], b: list[int]) -> pa.Table:
    """Events A and B, in this order, whose keys are the values at the given positions."""
    n = len(a) + len(b)
    return pa.table({
        "event_id": [f"e{i:03}" for i in range(n)], "type": ["A"] * len(a) + ["B"] * len(b), "ts": list(range(n)),
        "k": values.take(pa.array([*a, *b])),
    })  # fmt: skip


def found(pattern: Pattern, table: pa.Table, backend: str) -> list[tuple]:
    """All matches, as the rows of their sets."""
    return sorted(
        tuple(
            (name, tuple(rows[offsets[i] : offsets[i + 1]])) for name, (offsets, rows) in sorted(batch.kleene.items())
        )
        for batch in find(pattern, table, backend=backend)
        for i in range(batch.n)
    )


@pytest.mark.few(5)
@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize("kind", KEYS)
def test_members_are_counted_key_by_key_wherever_a_pattern_is_searched(kind: str, backend: str) -> None:
    values, alike = KEYS[kind]
    pattern = compile_pattern(KEYED, strict_units=False)
    assert pattern.partition_key == "k"
    every = [i for i in range(len(values)) if alike is None or i != alike[1]]
    table = keyed(values, every * 3, every)
    known = [i for i in every if values[i].is_valid]
    with no_compiler():
        assert len(found(pattern, table, backend)) == 7 * len(known)
        # The steps give a task the events of all keys.
        rows, errors = distributed(pattern, table, slices(pattern, []), batch_rows=99, piece_rows=99)
        assert len(rows) == 7 * len(known) and not errors
        assert [report.matches for report in near(pattern, table)] == [7 * len(known)]
        crowded = keyed(values, [*every * 3, known[0]], every)
        with pytest.raises(LimitExceeded, match="4 events of one window are usable for a"):
            found(pattern, crowded, backend)
        with pytest.raises(LimitExceeded, match="4 events of one window are usable for a"):
            near(pattern, crowded)
        if alike is not None:
            one, other = alike
            assert found(pattern, keyed(values, [one, other], [other]), backend) == found(
                pattern, keyed(values, [one, one], [one]), backend
            )
            with pytest.raises(LimitExceeded, match="4 events of one window are usable for a"):
                found(
                    pattern, keyed(values, [one, one, other, other, ({0, 1, 2} - {one, other}).pop()], [other]), backend
                )


def near(pattern: Pattern, table: pa.Table) -> list:
    plans = [make_plan(branch, ("a", "b")) for branch in pattern.branches]
    return near_misses(pattern, table, plans, (0, 1000))


def test_more_keys_than_times_can_tell_apart_are_searched_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chainlake.cep.events.clock.MOST_TICKS", 500)
    pattern = compile_pattern(KEYED.replace("3}", "20}"), strict_units=False)
    table = keyed(pa.array([f"k{i}" for i in range(6)]), [*range(6)] * 2, [*range(6)])
    with no_compiler():
        assert parts_by_key(pattern, table).max() + 1 < 6
        assert len(found(pattern, table, "numpy")) == len(found(pattern, table, "compiled")) == 6 * 3


@pytest.mark.parametrize(
    "text",
    ["PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 9", "PATTERN SEQ(A* a, B b) WITHIN 9", "PATTERN A* a WITHIN 9"],
)
def test_without_sets_or_a_key_nothing_is_counted_apart(text: str) -> None:
    table = keyed(pa.array(["x", "y"]), [0, 1], [0, 1])
    assert parts_by_key(compile_pattern(text, strict_units=False), table) is None
    assert parts_by_key(compile_pattern(KEYED, strict_units=False), table.drop(["k"])) is None
    assert parts_by_key(compile_pattern(KEYED, strict_units=False), table).tolist() == [1, 2, 1, 2]
