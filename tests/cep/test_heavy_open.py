"""While a search does not know what a function gives, nothing that depends on it is asked for, nor taken as known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainlake.cep.language.declared.function import Code
from chainlake.cep.library import match
from chainlake.cep.pattern import compile_pattern
from tests.cep.test_heavy import canonical
from tests.cep.test_heavy_asking import bound, of_seconds, run_of

FRONT = """---
functions: {gap: {call: 'n:gap'}, total: {call: 'n:total'}}
---
"""
#: What stands before WHERE, a condition and the same without calls.
ARGUMENTS = [
    ("total(Coalesce(gap(a.x, b.x), 0), b.x) > 9", "Coalesce(Abs(a.x - b.x), 0) + b.x > 9"),
    (
        "total(CASE WHEN gap(a.x, b.x) > 2 THEN a.x ELSE 0 END, b.x) > 9",
        "CASE WHEN Abs(a.x - b.x) > 2 THEN a.x ELSE 0 END + b.x > 9",
    ),
    (
        "total(CASE WHEN gap(a.x, b.x) IS NULL THEN 20 ELSE 0 END, gap(b.x, a.x)) > 4",
        "Abs(a.x - b.x) > 4",
    ),
    (
        "gap(CASE WHEN gap(total(a.x, b.x), b.x) > 3 THEN a.x ELSE 9 END, b.x) > 4",
        "CASE WHEN a.x > 3 THEN Abs(a.x - b.x) ELSE Abs(9 - b.x) END > 4",
    ),
]
#: What is asked only where something else has a value, and the same asked by one task.
ORDERED = {
    "a later side of OR": ("AND(A a, A b, A c)", "(gap(a.x, b.x) > 2 OR total(a.x, b.x) > 9)", ""),
    "a side of OR of other events": ("AND(A a, A b, A c)", "(gap(a.x, b.x) > 2 OR total(b.x, c.x) > 9)", ""),
    "a later condition": (
        "AND(A a, A b, A c)",
        "(gap(a.x, b.x) IS NULL OR total(a.x, b.x) < 9) AND gap(b.x, c.x) > 3",
        "",
    ),
    "a value in place of a missing one": (
        "AND(A a, A b)",
        "Coalesce(gap(a.x, b.x), 9) > 3 AND total(a.x, b.x) > 3",
        "",
    ),
    "a measure of what is rejected": (
        "SEQ(A a, NOT(A n), A b, A c)",
        "gap(n.x, a.x) > 4",
        "MEASURES total(a.x, b.x) AS m",
    ),
}


def points() -> list[dict[str, Any]]:
    """Events whose values are all different, so that each says which it is."""
    return [{"id": i, "type": "A", "ts": i, "attrs": {"x": i * 7 % 11 + i / 128}} for i in range(40)]


class Called:
    """Functions that note what they are called with."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[Any, ...]] = Counter()

    def gap(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        self.pairs.update(("gap", *pair) for pair in zip(one.tolist(), other.tolist(), strict=True))
        return np.abs(one - other)

    def total(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        self.pairs.update(("total", *pair) for pair in zip(one.tolist(), other.tolist(), strict=True))
        return one + other

    def rows(
        self,
        text: str,
        cuts: list[int],
        folder: Path,
        events: Sequence[dict[str, Any]] | None = None,
        front: str = FRONT,
    ) -> list[dict[str, Any]]:
        """What tasks find that own the times between cuts."""
        codes = {"gap": Code(self.gap), "total": Code(self.total)}
        pattern = compile_pattern(front + text, params=codes, strict_units=False)
        found, rows = run_of(pattern, of_seconds(points() if events is None else events), cuts, folder)
        assert found.failure is None
        return [bound(pattern, row) | ({"m": row["m"]} if "m" in row else {}) for row in rows]


@pytest.mark.parametrize(("call", "plain"), ARGUMENTS)
def test_a_function_is_not_asked_about_arguments_that_are_not_known_yet(call: str, plain: str, tmp_path: Path) -> None:
    query = "PATTERN AND(A a, A b, A c) WHERE {} AND c.x > b.x WITHIN 4"
    rows = Called().rows(query.format(call), [0, 10, 20, 40], tmp_path)
    wanted = [{name: str(one) for name, one in found.items()} for found in match(query.format(plain), points())]
    assert canonical(rows) == canonical(wanted) and rows


@pytest.mark.parametrize("case", ORDERED)
def test_tasks_ask_for_no_pair_that_one_task_would_not_need(case: str, tmp_path: Path) -> None:
    structure, condition, tail = ORDERED[case]
    text = f"PATTERN {structure} WHERE {condition} WITHIN 4 {tail}"
    alone, together = Called(), Called()
    wanted = alone.rows(text, [0, 40], tmp_path / "one")
    rows = together.rows(text, [0, 10, 20, 40], tmp_path / "three")
    assert canonical(rows) == canonical(wanted) and rows
    assert together.pairs.keys() <= alone.pairs.keys() and max(together.pairs.values()) == 1


@pytest.mark.parametrize("cuts", [[0, 40], [0, 10, 20, 40]])
def test_a_function_is_given_doubles_where_a_whole_number_exceeds_64_bits(cuts: list[int], tmp_path: Path) -> None:
    events = [{**one, "attrs": {"x": (i % 4) * 2**61}} for i, one in enumerate(points())]
    query = "PATTERN AND(A a, A b, A c) WHERE {} AND c.x > b.x WITHIN 4"
    rows = Called().rows(query.format("gap(a.x + b.x, b.x) > 3e18"), cuts, tmp_path, events)
    wanted = match(query.format("a.x > 3e18"), events)
    assert canonical(rows) == canonical([{name: str(one) for name, one in found.items()} for found in wanted]) and rows


@pytest.mark.parametrize("cuts", [[0, 40], [0, 10, 20, 40]])
@pytest.mark.parametrize(
    "condition",
    ["gap(a.x, b.y) > 2 AND gap(b.y, a.x) < 9", "gap(a.x, a.y) > 2 AND gap(a.y, a.x) < 9 AND a.x != b.x"],
)
def test_a_symmetric_call_is_made_once_though_it_is_written_in_both_ways(
    condition: str, cuts: list[int], tmp_path: Path
) -> None:
    events = [
        {**one, "attrs": {"x": one["attrs"]["x"], "y": (i if i % 2 else i + 0.5) * 3}} for i, one in enumerate(points())
    ]
    text = f"PATTERN AND(A a, A b, A c) WHERE {condition} AND c.x > b.x WITHIN 4"
    called = Called()
    rows = called.rows(text, cuts, tmp_path, events, FRONT.replace("'n:gap'", "'n:gap', symmetric: true"))
    plain = text.replace("gap(a.x, b.y)", "Abs(a.x - b.y)").replace("gap(b.y, a.x)", "Abs(a.x - b.y)")
    plain = plain.replace("gap(a.x, a.y)", "Abs(a.x - a.y)").replace("gap(a.y, a.x)", "Abs(a.x - a.y)")
    wanted = [{name: str(one) for name, one in found.items()} for found in match(plain, events)]
    assert canonical(rows) == canonical(wanted) and rows
    assert max(called.pairs.values()) == 1
