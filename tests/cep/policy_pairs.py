"""Random pairs of a pattern that chooses among its matches and a stream, in every mode, against the definition."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from chainlake.cep.library import as_dicts, from_dicts
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import UsageError

SHAPES = [
    ("SEQ(A a, B b)", "ab"),
    ("SEQ(A a, B b, C c)", "abc"),
    ("SEQ(A a, B b, A c)", "abc"),
    ("SEQ(A a, A b)", "ab"),
    ("SEQ(B a, A b, B c, C d)", "abcd"),
    ("SEQ(A a, NOT(C n), B b)", "ab"),
    ("SEQ(A a, B b, NOT(C n), A c)", "abc"),
    ("AND(A a, B b)", "ab"),
    ("SEQ(A a, AND(B b, C c))", "abc"),
    ("SEQ(A a, OR(B b, C c))", "abc"),
    ("ANY(2, A a, B b, C c)", "abc"),
    ("AND(OR(C a, A b), A c)", "abc"),
    ("A a", "a"),
]
MODES = ("auto", "S", "P", "B")


def query(rng: random.Random) -> tuple[str, str, tuple[str, ...]]:
    """The pattern without its selection, the selection, and its names."""
    shape, letters = rng.choice(SHAPES)
    names = tuple(letters)
    conditions = []
    for _ in range(rng.choice([0, 0, 1, 1, 2]) if len(names) > 1 and "OR(" not in shape and "ANY(" not in shape else 0):
        x, y = rng.sample(names, 2)
        conditions.append(
            rng.choice([f"{x}.x < {y}.x", f"{x}.k = {y}.k", f"{x}.x <= {y}.x + 1", f"{x}.x + {y}.x > 3", f"{x}.x > 1"])
        )
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    text = f"PATTERN {shape}{where} WITHIN {rng.choice([2, 4, 6, 100])}"
    odd = rng.random()
    if odd < 0.15:
        text += f", {rng.choice(['', 'GAP '])}{rng.randrange(2, 7)} EVENTS"
    elif odd < 0.25:
        text += " PAUSE 3"
    return text, _selection(rng, names), names


def _selection(rng: random.Random, names: Sequence[str]) -> str:
    kind = rng.random()
    if kind < 0.3:
        return f"CONTEXT {rng.choice(['unrestricted', 'recent', 'chronicle', 'continuous', 'cumulative'])}"
    if kind < 0.45:
        picks = rng.sample(names, rng.randrange(1, len(names) + 1))
        text = "PICK " + ", ".join(f"{rng.choice(['first', 'last'])} {name}" for name in picks)
    else:
        text = f"SELECT {rng.choice(['each', 'first', 'last', 'per_initiator'])}"
    used = rng.choice(["none", "all", "initiator", ", ".join(rng.sample(names, rng.randrange(1, len(names) + 1)))])
    return f"{text} CONSUME {used}" + (f" PER {rng.choice(['MATCH', 'TERMINATOR'])}" if used != "none" else "")


def stream(rng: random.Random) -> list[dict[str, Any]]:
    """Random events in any order, many of them at the same time, some with a place among these."""
    span, with_seq = rng.choice([6, 14, 30]), rng.random() < 0.5
    events = []
    for i in range(rng.randrange(4, 26)):
        attrs = {"x": rng.randrange(5), "k": rng.randrange(2)}
        event = {"id": f"e{i:02}", "type": rng.choice("AABBC"), "ts": rng.randrange(span), "attrs": attrs}
        events.append({**event, "seq": rng.randrange(3)} if with_seq else event)
    rng.shuffle(events)
    return events


class Events:
    """Events as a table, and their order.

    Args:
        listed: the events, in any order.
    """

    def __init__(self, listed: Sequence[dict[str, Any]]) -> None:
        ordered = sorted(listed, key=lambda event: (event["ts"], event.get("seq", 0), event["id"]))
        self.listed = listed
        self.rank = {event["id"]: number for number, event in enumerate(ordered)}
        self.times = [event["ts"] for event in ordered]
        self.table, self.ids = from_dicts(list(listed))


def rows(pattern: Pattern, events: Events, options: SearchOptions, statistics: Statistics, **how: Any) -> list[Any]:
    """What is published, by ranks."""
    found = []
    for batch in find(pattern, events.table, options=options, statistics=statistics, **how):
        for one in as_dicts(pattern, batch, events.ids):
            found.append({
                name: sorted(events.rank[i] for i in bound) if isinstance(bound, list) else events.rank[bound]
                for name, bound in one.items()
            })  # fmt: skip
    return found


class Pair:
    """A pattern and its streams.

    Args:
        seed: says which.
        streams: how many.
    """

    def __init__(self, seed: int, streams: int) -> None:
        self.rng = random.Random(seed)
        self.text, self.selection, self.names = query(self.rng)
        self.base = compile_pattern(self.text, strict_units=False)
        self.pattern = compile_pattern(f"{self.text} {self.selection}", strict_units=False)
        self.streams = [Events(stream(self.rng)) for _ in range(streams)]

    def matches(self, events: Events, used: Sequence[str] = ()) -> list[dict[str, int]]:
        """All matches by ranks, but for those with an event that is used up."""
        gone = {events.rank[name] for name in used}
        found = rows(self.base, events, SearchOptions(), Statistics(), backend="numpy")
        return [one for one in found if not gone & set(one.values())]

    def run(self, events: Events, mode: str, backend: str, used: Sequence[str]) -> Any:
        """The rows in a mode, in a random order of binding, and what the search says of it; None if it cannot be."""
        order = list(self.names)
        self.rng.shuffle(order)
        options = SearchOptions(mode=mode, used=used or None, block_rows=self.rng.choice([1, 3, 1000]))
        statistics = Statistics()
        wanted = order if self.rng.random() < 0.7 else None
        try:
            return rows(self.pattern, events, options, statistics, order=wanted, backend=backend), statistics.modes
        except UsageError as error:
            assert mode == "S" and "mode S is not possible" in str(error)
            return None
