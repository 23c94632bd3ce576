"""What the gate knows of a pattern, read off compiled patterns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from chainlake.cep.pattern import compile_pattern
from chainlake.paths import PROJECT
from chainlake.quality import MatchRules
from chainlake.quality.matches.rules import rules_of

COLUMNS = {"type": pa.string(), "key": pa.string(), "ts": pa.timestamp("us", tz="UTC"), "v": pa.float64()}
MINUTE_US = 60_000_000


def rules(query: str) -> MatchRules:
    text = f"PATTERN {query}\nWHERE a.v > 0\nWITHIN 10 min\n"
    return rules_of(compile_pattern(text, name="p", columns=COLUMNS))


def branch(names: str, order: str) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    return frozenset(names.split()), frozenset((pair[0], pair[1]) for pair in order.split())


@pytest.mark.parametrize(
    ("query", "waits", "names", "branches"),
    [
        ("SEQ(A a, B b, C c)", False, "a b c", [branch("a b c", "ab ac bc")]),
        ("AND(A a, B b)", False, "a b", [branch("a b", "")]),
        ("SEQ(A a, AND(B b, C c), D d)", False, "a b c d", [branch("a b c d", "ab ac ad bd cd")]),
        ("OR(SEQ(A a, B b), SEQ(A a, C c, B b))", False, "a b c", [branch("a b", "ab"), branch("a b c", "ac ab cb")]),
        ("SEQ(A a, B b, NOT(C n))", True, "a b", [branch("a b", "ab")]),
        ("SEQ(NOT(C n), A a, B b)", False, "a b", [branch("a b", "ab")]),
        ("SEQ(A a, NOT(C n), B b)", False, "a b", [branch("a b", "ab")]),
        ("SEQ(A a, B+ b, C c)", False, "a b+ c", [branch("a b c", "ab ac bc")]),
    ],
)
def test_names_order_and_decision_come_from_the_pattern(
    query: str, waits: bool, names: str, branches: list[tuple[frozenset[str], frozenset[tuple[str, str]]]]
) -> None:
    known = rules(query)
    assert (known.pattern, known.window_us, known.waits) == ("p", 10 * MINUTE_US, waits)
    assert dict(known.names) == {name.rstrip("+"): name.endswith("+") for name in names.split()}
    assert set(known.branches) == set(branches)


def test_a_shipped_pattern_has_rules() -> None:
    from chainlake.definitions.source import load_source

    config = PROJECT / "dags" / "config"
    columns = load_source(config / "sources" / "stock.yaml").event_columns()
    text = (config / "patterns" / "fall_not_recovered.sase").read_text()
    known = rules_of(compile_pattern(text, name="fall_not_recovered", columns=columns))
    assert known == MatchRules(
        "fall_not_recovered", 10 * MINUTE_US, False, {"down": False, "later": False},
        ((frozenset({"down", "later"}), frozenset({("down", "later")})),), ("severity",),
    )  # fmt: skip


def test_neighbours_may_share_a_time_and_pauses_decide() -> None:
    text = "---\nlimits: {longest: 2 h}\n---\nPATTERN SEQ STRICT (A+ a, B b) PAUSE 5 min MAXIMAL"
    known = rules_of(compile_pattern(text, name="p"))
    assert (known.window_us, known.waits, known.pause_us) == (120 * MINUTE_US, False, 5 * MINUTE_US)
    assert known.neighbours == {0}
    bounded = rules_of(compile_pattern("PATTERN SEQ STRICT (A+ a) WITHIN 9 min PAUSE 5 min MAXIMAL", name="p"))
    assert (bounded.window_us, bounded.waits, bounded.pause_us) == (9 * MINUTE_US, True, 5 * MINUTE_US)
    later = rules_of(compile_pattern("PATTERN SEQ(A+ a, B? b) WITHIN 9 min OUTERMOST", name="p"))
    assert (later.waits, later.pause_us, later.neighbours) == (True, None, frozenset())
