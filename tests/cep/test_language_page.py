"""The examples of docs/language.md do what the page says."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import chainlake as cl
from chainlake.cep.language.ast import AGGREGATES
from chainlake.cep.language.front_matter import read_front_matter
from chainlake.cep.language.functions import known
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.library import match

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLES = [(text, after) for (kind, text), (_, after) in zip(BLOCKS, BLOCKS[1:], strict=False)
            if kind in ("pattern", "file")]  # fmt: skip


QUERIES = "\n".join(text for text, _ in EXAMPLES)
#: Every construct of the page, as an expression that finds it in a query.
CONSTRUCTS = [
    *(rf"\b{word}\(" for word in ("SEQ", "AND", "OR", "NOT", "ANY", "COLLECT", "UNTIL")),
    r"COLLECT\?\(", r"[A-Z]\w+\* ", r"[A-Z]\w+\+ ", r"[A-Z]\w+\? ", r"\{2\}", r"\{1\}", r"\{2,\}|\{2,5\}",
    r"\(\* x|, \* x", r"\*\+ e", "SEQ STRICT ", "OF KEY", "MAXIMAL", "OUTERMOST", "PAUSE", "WITHIN", "MEASURES .* AS ",
    " IN ", " IN doors", "IS NULL", "IS NOT NULL", " LIKE ", " MATCHES ", " BETWEEN ",
    "CASE WHEN .* ELSE .* END", r"PREV\(",
    *(f"CONTEXT {name}" for name in ("unrestricted", "recent", "chronicle", "continuous", "cumulative")),
    *(f"SELECT {name}" for name in ("each", "last", "per_initiator")), "PICK first .*, last .* within", "CONSUME all",
    "CONSUME initiator", "CONSUME [a-c]", "PER MATCH", "PER TERMINATOR", r"\d EVENTS", r"GAP \d EVENTS OF KEY",
    *(rf"{name}\(" for name in AGGREGATES), r"COUNT\(DISTINCT ",
]  # fmt: skip


def page_events() -> list[dict]:
    """The events of the page; an empty cell is a missing value."""
    rows = csv.DictReader(io.StringIO(next(text for kind, text in BLOCKS if kind == "events")))
    return [
        {
            "id": row.pop("id"),
            "type": row.pop("type"),
            "ts": datetime.fromisoformat(row.pop("ts")),
            "attrs": {k: float(v) if k == "temp" else v for k, v in row.items() if v},
        }
        for row in rows
    ]


def functions_of(text: str) -> dict[str, Callable[..., Any]]:
    """The functions that an example declares, from the page's Python."""
    code: dict[str, Any] = {}
    exec("\n".join(block for kind, block in BLOCKS if kind == "python"), code)  # noqa: S102 - the page's own
    declared = read_front_matter(SourceText(text))[0].functions.values()
    return {one.name: code[one.function] for one in declared}


def test_every_example_has_its_matches() -> None:
    assert len(EXAMPLES) == sum(kind == "matches" for kind, _ in BLOCKS) >= 10


@pytest.mark.parametrize("function", known())
def test_every_function_has_an_example(function: str) -> None:
    assert re.search(rf"\b{function}\(", QUERIES, re.IGNORECASE)


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_every_construct_has_an_example(construct: str) -> None:
    assert re.search(construct, QUERIES)


@pytest.mark.parametrize("text, matches", EXAMPLES)
def test_example(text: str, matches: str) -> None:
    derived = dict(re.findall(r"(\w+): (.*)", next(text for kind, text in BLOCKS if kind == "derived")))
    events = page_events()
    matches_found = match(text, events, key="door", derived=derived, functions=functions_of(text))
    found = sorted(json.dumps(m, sort_keys=True, default=str) for m in matches_found)
    assert found == sorted(json.dumps(json.loads(line), sort_keys=True) for line in matches.splitlines())


def test_without_a_quantum_scores_that_should_be_equal_do_not_tie() -> None:
    text = next(text for text, _ in EXAMPLES if "QUANTUM 0.001" in text)
    [best] = match(text.replace(" QUANTUM 0.001", ""), page_events(), key="door")
    assert (best["one"], best["score"]) == ("e3", 4.4 - 4.7) and 4.4 - 4.1 != 4.7 - 4.4


def test_example_of_episodes() -> None:
    kinds = [kind for kind, _ in BLOCKS]
    at = kinds.index("episodes")
    found = [json.loads(json.dumps(one, default=str)) for one in cl.episodes(BLOCKS[at - 2][1], page_events())]
    assert found == [json.loads(line) for line in BLOCKS[at][1].splitlines()]
    assert kinds.count("episodes") == 1


@pytest.mark.parametrize("condition", ["o.temp > 0", "NOT o.temp > 0", "o.temp NOT IN {1}", "o.temp / 0 = 1"])
def test_unknown_selects_nothing(condition: str) -> None:
    assert list(match(f"PATTERN Open o WHERE {condition} WITHIN 1 s", page_events())) == []
