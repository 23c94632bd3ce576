"""Limits fail loudly, name the fact, and do not depend on slicing or on what else is in the table."""

from __future__ import annotations

import itertools

import pytest

from chainlake.cep import compile_pattern, find, match
from chainlake.cep.library import from_dicts
from chainlake.errors import LimitExceeded


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


def test_matches_per_day() -> None:
    day = 86_400
    rows = events(*(("A", i) for i in range(3)), *(("A", day + i) for i in range(4)))
    query = "PATTERN A a WITHIN 0"
    assert len(list(match(f"---\nlimits: {{matches_per_day: 4}}\n---\n{query}", rows))) == 7
    with pytest.raises(LimitExceeded, match="more than 3 matches on day 1970-01-02") as found:
        list(match(f"---\nlimits: {{matches_per_day: 3}}\n---\n{query}", rows))
    assert found.value.key == "matches_per_day"
