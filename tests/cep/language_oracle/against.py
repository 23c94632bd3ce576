"""The product against the definition on one pair: both backends, any binding order, shuffled rows, cuts of history."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

from chainlake.cep.library import as_dicts, from_dicts
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.definitions.derived import Series
from chainlake.errors import DefinitionError
from tests.cep.language_oracle.generate import Pair
from tests.cep.language_oracle.matches import rounded
from tests.cep.language_oracle.model import Event, ordinary
from tests.cep.language_oracle.text import text_of
from tests.cep.strategies import Random


def canonical(found: Iterable[dict[str, Any]]) -> list[str]:
    """Matches as sorted texts, duplicates kept."""
    return sorted(json.dumps(m, sort_keys=True) for m in found)


def pattern_of(pair: Pair) -> Pattern:
    """The product's pattern of a pair."""
    return compile_pattern(text_of(pair.query), strict_units=False, series=Series(pair.key, ()))


def search(pair: Pair, pattern: Pattern, events: list[Event], **how: Any) -> list[dict[str, Any]]:
    """What the product finds in events."""
    table, ids = from_dicts(events)
    names = [name for name, _ in pair.query.measures]
    found = [m for batch in find(pattern, table, **how) for m in as_dicts(pattern, batch, ids)]
    return [m | {name: rounded(m[name]) for name in names} for m in found]


def difference(pair: Pair, backends: tuple[str, ...] = ("numpy",), cuts: bool = True) -> str | None:
    """How the product differs from the definition on a pair, or None.

    Args:
        pair: the pair.
        backends: each searches the whole history once.
        cuts: search it in stretches, too.

    Raises:
        DefinitionError: the product refuses the query.
    """
    pick = Random(f"how {pair.seed}")
    pattern = pattern_of(pair)
    names = {item.name for branch in pair.query.branches for item in ordinary(branch.structure)}
    wanted = canonical(pair.wanted)
    runs = []
    for backend in backends:
        order = pick.one((None, pick.shuffled(sorted(names))))
        options = SearchOptions(block_rows=pick.one((1, 2, 5, 1000)))
        events = pick.shuffled(pair.events)
        found = search(pair, pattern, events, order=order, backend=backend, options=options)
        runs.append((f"{backend}, order {order}", canonical(found)))
    if cuts:
        bounds = [-100, *sorted(pick.one(range(-3, 18)) for _ in range(pick.one((1, 1, 2, 3)))), 100]
        runs.append((f"cuts {bounds}", canonical(in_cuts(pair, pattern, bounds, backends[0]))))
    for how, found in runs:
        if found != wanted:
            return told(pair, how, found)
    return None


def in_cuts(pair: Pair, pattern: Pattern, bounds: list[int], backend: str) -> list[dict[str, Any]]:
    """What is found in stretches of history, each of which has only the events that it must read."""
    union = []
    for own in itertools.pairwise(bounds):
        lo, hi = pattern.source_range(*own)
        union += search(pair, pattern, [e for e in pair.events if lo <= e["ts"] < hi], own=own, backend=backend)
    return union


def told(pair: Pair, how: str, found: list[str]) -> str:
    """A difference for people."""
    wanted = canonical(pair.wanted)
    missing = [m for m in wanted if m not in found]
    extra = [m for m in found if m not in wanted or found.count(m) > 1]
    rows = "\n".join(
        f"    {json.dumps(e)}" for e in sorted(pair.events, key=lambda e: (e["ts"], e.get("seq", 0), e["id"]))
    )
    return (
        f"seed {pair.seed}, key {pair.key}, {how}\n  {text_of(pair.query)}\n{rows}\n  missing {missing or 'none'}"
        f"\n  not expected {extra or 'none'}"
    )


def unknown_yet(error: DefinitionError) -> bool:
    """Whether a query was refused for a word that the product does not know."""
    return "cannot be searched for" in error.what or "there is no function" in error.what
