"""A word of COMBINE is a line of one table: parser, scores and strategies ask it."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from chainlake.cep.library import match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.ranking.kinds import COMBINES, Combining
from chainlake.cep.search.bounding.strategy import strategies
from chainlake.errors import DefinitionError

QUERY = "PATTERN SEQ(A a, B b) WITHIN 6\nRANK BY MAX(a.x), MAX(b.x) COMBINE hypot TOP 3 PER ALL"


def test_another_word_joins_the_numbers_of_a_match(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DefinitionError):
        compile_pattern(QUERY, strict_units=False)
    monkeypatch.setitem(COMBINES, "hypot", Combining(np.hypot))
    draw = random.Random(5)
    events: list[dict[str, Any]] = [
        {"id": f"e{n}", "type": draw.choice("AB"), "ts": 3 * n, "attrs": {"x": draw.uniform(-9, 9)}} for n in range(60)
    ]
    pairs = [
        (a, b) for a in events for b in events if (a["type"], b["type"]) == ("A", "B") if 0 < b["ts"] - a["ts"] <= 6
    ]
    best = sorted(pairs, key=lambda pair: -math.hypot(*(one["attrs"]["x"] for one in pair)))[:3]
    for backend in ("numpy", "compiled"):
        found = list(match(QUERY, events, backend=backend))
        assert [(row["a"], row["b"]) for row in found] == [(a["id"], b["id"]) for a, b in best]
    refused = strategies(compile_pattern(QUERY, strict_units=False)).why_not
    assert refused == dict.fromkeys("BC", "scores of COMBINE hypot have no bounds")
