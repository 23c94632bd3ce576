"""Small histories of a pattern that uses events up, and what it must give, written from the definition."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from chainlake.cep.policy import PickRule, Policy
from chainlake.lake.delta import tables
from chainlake.paths import Home
from tests.cep.test_contexts import sequential
from tests.steps.history import FIRST, day

HOUR = timedelta(hours=1)
Row = dict[str, Any]
Bound = dict[str, Row]

SOURCE = """\
key: sensor
type: {column: kind}
zone: UTC
attributes:
  x: {type: double}
identity: unique
on_conflict: first
formats:
  - {name: csv, glob: '*.csv', header: [ts, kind, sensor, x], time: {column: ts, format: '%Y-%m-%dT%H:%M:%S'},
     map: {x: x}}
"""


@dataclass(frozen=True)
class Kind:
    """A pattern and its plain meaning.

    Args:
        query: the pattern.
        types: name → event type.
        window: its window.
        fits: whether some events, by name, are a match apart from types and window.
        policy: which matches it wants.
    """

    query: str
    types: dict[str, str]
    window: timedelta
    fits: Callable[[Bound], bool]
    policy: Policy

    def text(self, more: str = "") -> str:
        """The pattern file."""
        return f"---\nsource: lab\n{more}---\nPATTERN {self.query}\n"

    def expected(self, events: Sequence[Row], start: datetime | None = None) -> list[list[tuple[str, tuple[str, ...]]]]:
        """Its matches by the definition, each as names with the ids of their events.

        Args:
            events: all events.
            start: no match is decided before.
        """
        ordered = sorted(events, key=lambda row: (row["ts"], row["seq"], row["event_id"]))
        found = []
        for ranks in itertools.permutations(range(len(ordered)), len(self.types)):
            match = dict(zip(self.types, ranks, strict=True))
            bound = {name: ordered[rank] for name, rank in match.items()}
            times = [row["ts"] for row in bound.values()]
            if max(times) - min(times) > self.window or (start is not None and max(times) < start):
                continue
            if all(bound[n]["type"] == kind for n, kind in self.types.items()) and self.fits(bound):
                found.append(match)
        micros = [(row["ts"] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) for row in ordered]
        fired, _ = sequential(found, micros, self.policy)
        return sorted(
            sorted((n, tuple(ordered[r]["event_id"] for r in ([at] if isinstance(at, int) else at)))
                   for n, at in one.items())
            for one in fired
        )  # fmt: skip


def _after(one: Row, other: Row) -> bool:
    return bool(one["ts"] > other["ts"])


def _same(bound: Bound) -> bool:
    return len({row["sensor"] for row in bound.values()}) == 1


AB, ABC = {"a": "A", "b": "B"}, {"a": "A", "b": "B", "c": "C"}
KINDS = {
    "chronicle": Kind(
        "SEQ(A a, B b) WITHIN 30 h CONTEXT chronicle", AB, 30 * HOUR, lambda m: _after(m["b"], m["a"]),
        Policy("first", "all"),
    ),
    "own": Kind(
        "SEQ(A a, A b) WITHIN 50 h CONTEXT chronicle", {"a": "A", "b": "A"}, 50 * HOUR,
        lambda m: _after(m["b"], m["a"]), Policy("first", "all"),
    ),
    "continuous": Kind(
        "SEQ(A a, B b) WHERE b.x > a.x WITHIN 26 h CONTEXT continuous", AB, 26 * HOUR,
        lambda m: _after(m["b"], m["a"]) and m["b"]["x"] > m["a"]["x"], Policy("per_initiator", "initiator", True),
    ),
    "cumulative": Kind(
        "AND(A a, B b) WITHIN 20 h CONTEXT cumulative", AB, 20 * HOUR, lambda m: True, Policy("accumulate", "all")
    ),
    "keyed": Kind(
        "SEQ(A a, B b, C c) WHERE a.sensor = b.sensor AND b.sensor = c.sensor WITHIN 60 h SELECT last CONSUME a", ABC,
        60 * HOUR, lambda m: _after(m["b"], m["a"]) and _after(m["c"], m["b"]) and _same(m), Policy("last", ("a",)),
    ),
    "each": Kind(
        "AND(A a, SEQ(B b, C c)) WITHIN 22 h CONSUME b, c", ABC, 22 * HOUR, lambda m: _after(m["c"], m["b"]),
        Policy("each", ("b", "c")),
    ),
    "initiator": Kind(
        "AND(A a, B b) WITHIN 30 h SELECT first CONSUME initiator PER TERMINATOR", AB, 30 * HOUR, lambda m: True,
        Policy("first", "initiator", True),
    ),
    "picked": Kind(
        "SEQ(A a, B b) WITHIN 30 h PICK last a CONSUME a", AB, 30 * HOUR, lambda m: _after(m["b"], m["a"]),
        Policy("pick", ("a",), False, (PickRule("a", True),)),
    ),
}  # fmt: skip


def events_of(rng: random.Random, number: int, most: int = 5) -> list[Row]:
    """Some events of a day, some of them at the same time."""
    rows = []
    for _ in range(rng.choice([0, 1, 3, most, most])):
        ts = datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC)
        ts += timedelta(days=number, hours=rng.choice([0, 0, 3, 8, 12, 20, 23, 23]))
        kind, sensor, seq = rng.choice("AABBC"), rng.choice("kl"), rng.choice([0, 0, 1])
        event_id = hashlib.md5(f"{kind} {sensor} {ts} {seq}".encode()).hexdigest()
        if event_id in {row["event_id"] for row in rows}:
            continue
        rows.append({"event_id": event_id, "type": kind, "sensor": sensor, "ts": ts, "seq": seq,
                     "x": round(rng.gauss(0, 1), 2), "event_date": day(number)})  # fmt: skip
    return rows


def bound_ids(row: Row, kind: Kind) -> list[tuple[str, tuple[str, ...]]]:
    """A row of the match table in the form of :meth:`Kind.expected`."""
    bound = {n: row[n] if isinstance(row[n], list) else [row[n]] for n in kind.types if row[n] is not None}
    rows = {n: sorted(some, key=lambda r: (r["ts"], r["seq"], r["event_id"])) for n, some in bound.items()}
    return sorted((n, tuple(r["event_id"] for r in some)) for n, some in rows.items())


def published(home: Home, name: str, kind: Kind) -> list[list[tuple[str, tuple[str, ...]]]]:
    """The matches in the lake, in that form."""
    if not tables.exists(home, "matches", name):
        return []
    return sorted(bound_ids(row, kind) for row in tables.arrow(home, "matches", name).to_pylist())
