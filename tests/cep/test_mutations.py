"""Pattern texts that somebody mistyped: each gives a result or a typed error with its place, and soon."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chainlake.cep.library import match
from chainlake.cep.lint.report import lint
from chainlake.errors import DefinitionError, LimitExceeded
from tests.cep.test_language_page import EXAMPLES
from tests.spent import within

SHIPPED = Path(__file__).parents[2] / "dags" / "config" / "patterns"
TEXTS = [text for text, _ in EXAMPLES] + [file.read_text(encoding="utf-8") for file in sorted(SHIPPED.glob("*.sase"))]
TOKENS = re.compile(r"\s+|\w+|'[^'\n]*'|.", re.DOTALL)
ODD = [
    "(", ")", "((((", "{", "}", "'", "''", '"', ",", ".", "-", "+", "*", "/", "<", ">=", "!=", "=", "#", "---", ":",
    "∈", "AND", "OR", "NOT", "IN", "IS", "NULL", "IS NULL", "SEQ", "PATTERN", "WHERE", "WITHIN", "TRUE", "AVG",
    "COUNT(", "Corr(", "Abs(", "min", "5", "0.5", "1e308", "1e400", "9" * 400, "9" * 25, "-5 min", "1e300 d", "é",
    "ñame", "価格", "\u00a0", "\u200b", "\u2028", "\u202e", "\x00", "\x0b", "\x0c", "\r", "\t", "\ud800", "😀", "“x”",
    "≤", "a.b.c", "ts", "(" * 300, "NOT " * 300, "a.x + " * 300, "x" * 100_000, "{" + "1," * 5000 + "1}",
    "[" * 500, "&a *a", "!!python/name:x",
]  # fmt: skip
START = datetime(2025, 1, 1, tzinfo=UTC)
EVENTS = [
    {
        "id": n,
        "type": ("Open", "Heat", "Close", "Alarm", "Bar")[n % 5],
        "ts": START + timedelta(seconds=10 * n),
        "attrs": {"door": "north", "temp": float(n), "user": None, "close": n, "open": n, "ticker": "AIG", "volume": n},
    }
    for n in range(12)
]


def mutated(seed: int) -> str:
    """A text with one to three parts left out, doubled, exchanged or put in."""
    pick = random.Random(seed)
    parts = TOKENS.findall(pick.choice(TEXTS))
    for _ in range(pick.randint(1, 3)):
        at = pick.randrange(len(parts))
        match pick.randrange(5):
            case 0:
                del parts[at : at + pick.randint(1, 3)]
            case 1:
                parts.insert(at, parts[pick.randrange(len(parts))])
            case 2:
                other = pick.randrange(len(parts))
                parts[at], parts[other] = parts[other], parts[at]
            case 3:
                parts[at] = pick.choice(ODD)
            case _:
                parts.insert(at, pick.choice(ODD))
        parts = parts or [" "]
    return "".join(parts)


def outcome(text: str) -> None:
    """Look a text through and match it; an error names its place."""
    report = lint(text)
    for error in (*report.errors, *report.warnings):
        str(error)
    try:
        list(match(text, EVENTS, key="door"))
    except LimitExceeded:
        return
    except DefinitionError as error:
        assert error.line is not None and error.column is not None, error
        assert error.what and str(error)
        assert report.errors or "attribute" in error.what or report.pattern is not None, error


@pytest.mark.parametrize("block", [pytest.param(n, marks=pytest.mark.slow if n > 3 else ()) for n in range(10)])
def test_mistyped_patterns(block: int) -> None:
    for seed in range(40 * block, 40 * block + 40):
        text = mutated(seed)
        # A second on a machine at rest; a busy one counts more CPU time for the same work.
        with within(3):
            outcome(text)
