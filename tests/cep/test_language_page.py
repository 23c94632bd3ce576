"""The examples of docs/language.md do what the page says."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import datetime
from pathlib import Path

import pytest

import chainlake as cl
from chainlake.cep import match

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLES = [(text, after) for (kind, text), (_, after) in zip(BLOCKS, BLOCKS[1:], strict=False)
            if kind in ("pattern", "file")]  # fmt: skip


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


def test_every_example_has_its_matches() -> None:
    assert len(EXAMPLES) == sum(kind == "matches" for kind, _ in BLOCKS) >= 10


@pytest.mark.parametrize("text, matches", EXAMPLES)
def test_example(text: str, matches: str) -> None:
    derived = dict(re.findall(r"(\w+): (.*)", next(text for kind, text in BLOCKS if kind == "derived")))
    events = page_events()
    found = sorted(json.dumps(m, sort_keys=True) for m in match(text, events, key="door", derived=derived))
    assert found == sorted(json.dumps(json.loads(line), sort_keys=True) for line in matches.splitlines())


def test_example_of_episodes() -> None:
    kinds = [kind for kind, _ in BLOCKS]
    at = kinds.index("episodes")
    found = [json.loads(json.dumps(one, default=str)) for one in cl.episodes(BLOCKS[at - 2][1], page_events())]
    assert found == [json.loads(line) for line in BLOCKS[at][1].splitlines()]
    assert kinds.count("episodes") == 1


@pytest.mark.parametrize("condition", ["o.temp > 0", "NOT o.temp > 0", "o.temp NOT IN {1}", "o.temp / 0 = 1"])
def test_unknown_selects_nothing(condition: str) -> None:
    assert list(match(f"PATTERN Open o WHERE {condition} WITHIN 1 s", page_events())) == []
