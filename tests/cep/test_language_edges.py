"""Edges of the language: missing values, quotes, negative durations, characters of other scripts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from chainlake.cep.automata.simulate import unfit_for
from chainlake.cep.library import match
from chainlake.cep.lint.report import laid_out, lint
from chainlake.cep.pattern import compile_pattern
from chainlake.errors import DefinitionError
from tests.run_cases import ENGINES, pattern_case

CASES = json.loads((Path(__file__).parents[1] / "cases" / "null-cases.json").read_text(encoding="utf-8"))
START = datetime(2025, 1, 1, tzinfo=UTC)
EVENTS = [{"id": n, "type": "A", "ts": START + timedelta(minutes=n), "attrs": {"x": n, "k": "p"}} for n in range(4)]


@pytest.mark.few(30)
@pytest.mark.parametrize("engine", [one for one in ENGINES if one not in ("spark", "compiled")])
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_missing_values_and_quotes_in_every_engine(case: dict[str, Any], engine: str) -> None:
    pattern = compile_pattern(case["pattern"], strict_units=False)
    if engine in ("eager", "chain", "tree") and unfit_for(engine, pattern):
        return
    assert pattern_case(case, engine=engine, all_orders=engine != "tree").differences == []


def test_layout_writes_tests_for_null_in_capitals_and_leaves_names_alone() -> None:
    text = "PATTERN SEQ(is null, B b) WHERE null.x is not null and null.y = 'it''s' or b.x Is Null WITHIN 1 s"
    wanted = "PATTERN SEQ(is null, B b)\nWHERE null.x IS NOT NULL AND null.y = 'it''s' OR b.x IS NULL\nWITHIN 1 s\n"
    assert laid_out(text) == wanted and laid_out(wanted) == wanted


def test_a_quote_in_a_string_makes_another_definition() -> None:
    hashes = {
        compile_pattern(f"PATTERN A a WHERE a.k = {text} WITHIN 1 s").definition_hash
        for text in ("'it''s'", "'its'", "'it'''", "''''", "''")
    }
    assert len(hashes) == 5


@pytest.mark.parametrize(
    ("query", "d", "found"),
    [
        ("PATTERN SEQ(A a, A b) WITHIN d", "1 min", [(0, 1), (1, 2), (2, 3)]),
        ("PATTERN SEQ(A a, A b) WHERE a.ts - b.ts = d WITHIN 5 min", "-2 min", [(0, 2), (1, 3)]),
        ("PATTERN SEQ(A a, A b) WHERE a.ts - b.ts = -2 min WITHIN 5 min", "0 s", [(0, 2), (1, 3)]),
        ("PATTERN SEQ(A a, A b) WHERE b.ts + d <= a.ts WITHIN 5 min", "-1 min", [(0, 1), (1, 2), (2, 3)]),
        ("PATTERN SEQ(A a, A b) WHERE b.ts + d min <= a.ts WITHIN 5 min", -1, [(0, 1), (1, 2), (2, 3)]),
        ("PATTERN SEQ(A a, A b) WHERE Abs(a.ts - b.ts) >= -d WITHIN 5 min", "-3 min", [(0, 3)]),
        ("PATTERN SEQ(A a, A b) WHERE d > b.ts - a.ts WITHIN 5 min", "90 s", [(0, 1), (1, 2), (2, 3)]),
        ("PATTERN SEQ(A a, A b) WHERE a.k = d WITHIN 5 min", "1 min", []),
    ],
)
def test_a_parameter_that_is_a_duration(query: str, d: Any, found: list[tuple[int, int]]) -> None:
    assert [tuple(m.values()) for m in match(query, EVENTS, {"d": d})] == found


@pytest.mark.parametrize("d", ["-5 min", "-0.001 ms", -5, "1e999999999 min", "5", "1/0 s", "--5 s"])
def test_a_window_that_is_none(d: Any) -> None:
    with pytest.raises(DefinitionError) as error:
        compile_pattern(f"PATTERN SEQ(A a, A b) WITHIN d{'' if isinstance(d, str) else ' min'}", params={"d": d})
    assert (error.value.line, error.value.column) == (1, 23)


@pytest.mark.parametrize(
    ("query", "column", "what", "hint"),
    [
        ("PATTERN A ärger WITHIN 1 s", 11, "the character 'ä' (U+00E4) cannot be part of a name", "A to Z"),
        ("PATTERN A naïve WITHIN 1 s", 13, "the character 'ï' (U+00EF) cannot be part of a name", "A to Z"),
        ("PATTERN A a WHERE a.温度 > 1 WITHIN 1 s", 21, "the character '温' (U+6E29)", "single quotes"),
        ("PATTERN A a WHERE a.x\u00a0> 1 WITHIN 1 s", 22, "the character '\\xa0' has no meaning", "ordinary space"),
        ("PATTERN A a WHERE a.x ≥ 1 WITHIN 1 s", 23, "the character '≥' (U+2265)", "Write >=."),
        ("PATTERN A a WHERE a.x = −1 WITHIN 1 s", 25, "the character '−' (U+2212)", "Minus is written -."),
        ("PATTERN A a WHERE a.x = ‘p’ WITHIN 1 s", 25, "the character '‘' (U+2018)", "single quotes"),
        ("PATTERN A a WHERE a.x IS 5 WITHIN 1 s", 26, "NULL or NOT NULL is expected after IS, not '5'", "="),
        ("PATTERN A a # \u2028\nWHERE a.x ≠ 1 WITHIN 1 s", 11, "the character '≠' (U+2260)", "Write !=."),
    ],
)
def test_characters_of_other_scripts(query: str, column: int, what: str, hint: str) -> None:
    with pytest.raises(DefinitionError) as error:
        compile_pattern(query)
    assert error.value.column == column and what in error.value.what and hint in str(error.value.hint)
    lines = str(error.value).splitlines()
    assert lines[2].index("^") == column + 3 and lines[1][4:].rstrip() == query.split("\n")[-1].replace("\u00a0", " ")


def test_lint_says_how_to_ask_for_a_missing_value() -> None:
    warnings = lint("PATTERN A a WHERE a.k = 'null' WITHIN 1 s").warnings
    assert [w.hint for w in warnings if "an ordinary string" in w.what] == ["Use IS NULL to test for a missing value."]
