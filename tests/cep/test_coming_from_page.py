"""The examples of docs/coming-from.md do what the page says, on both backends, in any order of rows."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from chainlake.cep.library import match
from chainlake.cep.lint.report import lint

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text(encoding="utf-8")
_BLOCKS = re.compile(
    r"```events ?(\S*)\n(.*?)^```\n```pattern\n(.*?)^```\n```matches\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
EXAMPLES = [(part.split("\n")[0], *blocks) for part in PAGE.split("\n### ")[1:] for blocks in _BLOCKS.findall(part)]
_NUMBERS = frozenset({"price", "code", "amount", "lat", "lon"})


def events_of(text: str) -> list[dict[str, Any]]:
    """The events of an example; an empty cell is a missing value."""
    return [
        {
            "id": row.pop("id"),
            "type": row.pop("type"),
            "ts": datetime.fromisoformat(row.pop("ts")),
            "attrs": {k: float(v) if k in _NUMBERS else v for k, v in row.items() if v},
        }
        for row in csv.DictReader(io.StringIO(text))
    ]


def canonical(found: Any) -> list[str]:
    """Matches in one order and spelling."""
    return sorted(json.dumps(one, sort_keys=True, default=lambda value: value.isoformat()) for one in found)


def test_every_part_of_the_page_is_an_example() -> None:
    assert len(EXAMPLES) == PAGE.count("```pattern") == PAGE.count("\n### ") >= 25
    for title, _, _, pattern, _ in EXAMPLES:
        assert len(pattern.splitlines()) <= 10, title
        assert lint(pattern).errors == (), title


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example[0])
def test_example(example: tuple[str, str, str, str, str], backend: str) -> None:
    title, option, text, pattern, matches = example
    events = events_of(text)
    random.Random(title).shuffle(events)
    key = option.removeprefix("key=") or None
    wanted = [json.loads(line) for line in matches.splitlines()]
    assert canonical(match(pattern, events, key=key, backend=backend)) == canonical(wanted)
