"""Neighbours and the largest matches by their definition: every stretch, every split, every pair of matches.

Queries are drawn as plain data, which is written in the language for the engine and read as it stands here.
"""

from __future__ import annotations

import itertools
import operator
from dataclasses import dataclass, field
from random import Random
from typing import Any

OPS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne}
Event = dict[str, Any]
#: Name to its events; a name without is left out.
Bound = dict[str, list[Event]]


@dataclass(frozen=True)
class Name:
    """An item of a sequence; ``role`` is bound, not, optional."""

    type: str
    name: str
    repeated: bool = False
    least: int = 1
    most: int | None = None
    role: str = "bound"

    def text(self) -> str:
        if self.role == "not":
            return f"NOT({self.type} {self.name})"
        sign = "?" if self.role == "optional" else "+" if self.repeated else ""
        if self.repeated and (self.least > 1 or self.most is not None):
            sign = f"{{{self.least},{'' if self.most is None else self.most}}}"
        return f"{self.type}{sign} {self.name}"


@dataclass(frozen=True)
class Test:
    """A condition: of each member (``x``), of a pair, or of an aggregate with a number."""

    kind: str
    names: tuple[str, ...]
    op: str
    number: int = 0

    def text(self) -> str:
        a, b = self.names[0], self.names[-1]
        if self.kind == "one":
            return f"{a}.x {self.op} {self.number}"
        if self.kind == "pair":
            return f"{a}.x {self.op} {b}.x"
        if self.kind == "count":
            return f"COUNT({a}) {self.op} {self.number}"
        if self.kind == "mixed":
            return f"MAX({a}.x) {self.op} {b}.x"
        return f"{self.kind.upper()}({a}.x) {self.op} {self.number}"

    def holds(self, bound: Bound) -> bool:
        a, b = bound[self.names[0]], bound[self.names[-1]]
        test = OPS[self.op]
        known = [e["x"] for e in a if e["x"] is not None]
        if self.kind == "count":
            return test(len(a), self.number)
        if self.kind in ("one", "pair"):
            others = [self.number] if self.kind == "one" else [e["x"] for e in b]
            pairs = itertools.product([e["x"] for e in a], others)
            if self.kind == "pair" and self.names[0] == self.names[1]:
                pairs = ((e["x"], e["x"]) for e in a)
            return all(p is not None and q is not None and test(p, q) for p, q in pairs)
        if not known:
            return False
        if self.kind == "mixed":
            return all(e["x"] is not None and test(max(known), e["x"]) for e in b)
        value = {"sum": sum(known), "max": max(known), "min": min(known), "avg": sum(known) / len(known)}[self.kind]
        return test(value, self.number)


@dataclass(frozen=True)
class Sequence:
    """One branch."""

    items: tuple[Name, ...]
    tests: tuple[Test, ...]
    strict: str


@dataclass(frozen=True)
class Query:
    """A query: branches of ``OR``, and the clauses behind them."""

    branches: tuple[Sequence, ...]
    within: int | None
    pause: int | None
    keep: str = ""
    longest: int | None = None

    def text(self, unit: str = "", lines: str = "") -> str:
        """The query in the language, its durations in a unit, with more lines of front matter."""
        parts = []
        for one in self.branches:
            words = {"": "SEQ", "stream": "SEQ STRICT ", "key": "SEQ STRICT OF KEY "}[one.strict]
            tests = " AND ".join(test.text() for test in one.tests)
            where = f" WHERE {tests}" if tests else ""
            parts.append(f"{words}({', '.join(item.text() for item in one.items)}){where}")
        body = parts[0] if len(parts) == 1 else f"OR({', '.join(parts)})"
        within = "" if self.within is None else f" WITHIN {self.within}{unit}"
        pause = "" if self.pause is None else f" PAUSE {self.pause}{unit}"
        lines += "" if self.longest is None else f"limits: {{longest: {self.longest} s}}\n"
        front = f"---\n{lines}---\n" if lines else ""
        return f"{front}PATTERN {body}{within}{pause} {self.keep}"

    def expanded(self) -> list[Sequence]:
        """Without optional items, in the order of branches."""
        found = []
        for one in self.branches:
            choices = [(True, False) if item.role == "optional" else (True,) for item in one.items]
            for chosen in itertools.product(*choices):
                items = tuple(item for item, there in zip(one.items, chosen, strict=True) if there)
                names = {item.name for item in items}
                found.append(Sequence(items, tuple(t for t in one.tests if set(t.names) <= names), one.strict))
        return found


def order(event: Event) -> tuple[int, int, str]:
    """The order of the stream."""
    return event["ts"], event.get("seq") or 0, event["id"]


def matches(query: Query, events: list[Event]) -> list[Bound]:
    """All matches, each once."""
    types = {i.type for b in query.branches for i in b.items if i.role != "not"}
    every = [m for b in query.expanded() for m in (_strict if b.strict else _loose)(b, query, types, events)]
    found: dict[Any, Bound] = {}
    for one in every:
        found.setdefault(_ids(one), one)
    kept = list(found.values())
    if query.keep:
        kept = [m for m in kept if not any(_larger(n, m, query.keep) for n in kept)]
    return kept


def _has(event: Event, item: Name) -> bool:
    return item.type in ("*", event["type"])


def _ids(bound: Bound) -> Any:
    return tuple(sorted((name, tuple(sorted(e["id"] for e in those))) for name, those in bound.items()))


def _larger(one: Bound, other: Bound, keep: str) -> bool:
    if keep == "OUTERMOST":
        a, b = ({e["id"] for those in m.values() for e in those} for m in (one, other))
        return a > b
    names = one.keys() | other.keys()
    a_of = {n: {e["id"] for e in one.get(n, [])} for n in names}
    b_of = {n: {e["id"] for e in other.get(n, [])} for n in names}
    return a_of != b_of and all(a_of[n] >= b_of[n] for n in names)


def _streams(branch: Sequence, types: set[str], events: list[Event]) -> list[tuple[list[Event], list[Event]]]:
    """The streams, each with all events that exist for it."""
    groups = [events]
    if branch.strict == "key":
        keys = {e["k"] for e in events} - {None}
        groups = [[e for e in events if e["k"] == key] for key in sorted(keys)]
    return [(sorted((e for e in group if "*" in types or e["type"] in types), key=order), group) for group in groups]


def _strict(branch: Sequence, query: Query, types: set[str], events: list[Event]) -> list[Bound]:
    found = []
    items = [item for item in branch.items if item.role != "not"]
    for stream, there in _streams(branch, types, events):
        for begin in range(len(stream)):
            for end in range(begin, len(stream)):
                stretch = stream[begin : end + 1]
                for sizes in _splits(len(stretch), items):
                    bound, at = {}, 0
                    for item, size in zip(items, sizes, strict=True):
                        bound[item.name] = stretch[at : at + size]
                        at += size
                    good = all(_has(e, i) for i in items for e in bound[i.name])
                    if good and _fits(bound, branch, query, there) and not _too_long(stretch, stream, query):
                        found.append(bound)
    return found


def _splits(size: int, items: list[Name]) -> list[tuple[int, ...]]:
    if not items:
        return [()] if size == 0 else []
    first, rest = items[0], items[1:]
    most = (first.most or size) if first.repeated else 1
    least = first.least if first.repeated else 1
    return [(n, *more) for n in range(least, min(most, size) + 1) for more in _splits(size - n, rest)]


def _too_long(stretch: list[Event], stream: list[Event], query: Query) -> bool:
    if query.longest is None or query.pause is None:
        return False
    last = stream.index(stretch[-1])
    first = last
    while first and stream[first]["ts"] - stream[first - 1]["ts"] <= query.pause:
        first -= 1
    if query.keep:
        while last + 1 < len(stream) and stream[last + 1]["ts"] - stream[last]["ts"] <= query.pause:
            last += 1
    return stream[last]["ts"] - stream[first]["ts"] > query.longest


def _loose(branch: Sequence, query: Query, types: set[str], events: list[Event]) -> list[Bound]:
    items = [item for item in branch.items if item.role != "not"]
    found: list[Bound] = []

    def extend(bound: Bound, number: int, after: int | None) -> None:
        if number == len(items):
            if _fits(bound, branch, query, events):
                found.append(dict(bound))
            return
        item = items[number]
        usable = [e for e in events if _has(e, item) and (after is None or e["ts"] > after)]
        most = len(usable) if item.repeated else 1
        for size in range(item.least if item.repeated else 1, min(most, item.most or most) + 1):
            for some in itertools.combinations(usable, size):
                extend({**bound, item.name: list(some)}, number + 1, max(e["ts"] for e in some))

    extend({}, 0, None)
    return found


def _fits(bound: Bound, branch: Sequence, query: Query, there: list[Event]) -> bool:
    every = [e for those in bound.values() for e in those]
    times = sorted(e["ts"] for e in every)
    if query.within is not None and times[-1] - times[0] > query.within:
        return False
    if query.pause is not None and any(b - a > query.pause for a, b in itertools.pairwise(times)):
        return False
    negated = {item.name for item in branch.items if item.role == "not"}
    if not all(test.holds(bound) for test in branch.tests if not negated & set(test.names)):
        return False
    return not any(_rejected(item, bound, branch, query, there) for item in branch.items if item.role == "not")


def _rejected(item: Name, bound: Bound, branch: Sequence, query: Query, there: list[Event]) -> bool:
    at = branch.items.index(item)
    before = [e["ts"] for i in branch.items[:at] if i.role != "not" for e in bound[i.name]]
    after = [e["ts"] for i in branch.items[at + 1 :] if i.role != "not" for e in bound[i.name]]
    every = [e for those in bound.values() for e in those]
    start, end = min(e["ts"] for e in every), max(e["ts"] for e in every)
    low, high = max(before) if before else None, min(after) if after else None
    for event in there:
        if not _has(event, item) or any(event is e for e in every):
            continue
        ts = event["ts"]
        inside = (ts > low if low is not None else ts >= end - query.within) and (
            ts < high if high is not None else ts <= start + query.within
        )
        if inside and all(t.holds({**bound, item.name: [event]}) for t in branch.tests if item.name in t.names):
            return True
    return False


# ---- drawing


@dataclass
class Draw:
    """Random queries and events.

    Args:
        random: the source of chance.
        loose: whether branches without STRICT are drawn, too.
    """

    random: Random
    loose: bool = False
    keys: tuple[Any, ...] = ("u", "v", None)
    names: itertools.count = field(default_factory=itertools.count)

    def events(self, most: int = 9) -> list[Event]:
        draw, found, ts = self.random, [], 0
        tied = draw.random() < 0.4
        ids = draw.sample(range(100), most)
        for number in range(draw.randrange(3, most + 1)):
            ts += draw.choice((0, 1, 1, 2, 3) if tied else (1, 1, 2, 4))
            found.append(
                {
                    "id": f"e{ids[number]:02}",
                    "type": draw.choice("AAAAABBC"),
                    "ts": ts,
                    "x": draw.choice((0, 1, 2, 3, None)),
                    "k": draw.choice(self.keys),
                    "seq": draw.choice((None, 1, 2, 3)) if tied else None,
                }
            )
        return found

    def query(self) -> Query:
        draw = self.random
        number = draw.choice((1, 1, 1, 2))
        within = draw.choice((None, 2, 4, 6, 9))
        pause = draw.choice((None, None, 1, 2, 3)) if within is not None else draw.choice((1, 2, 3))
        loose = self.loose and within is not None and pause is None
        keep = draw.choice(("", "MAXIMAL", "OUTERMOST", "MAXIMAL"))
        branches = tuple(self.branch(within, keep, loose) for _ in range(number))
        longest = draw.choice((None, 3, 6)) if within is None else None
        return Query(branches, within, pause, keep, longest)

    def branch(self, within: int | None, keep: str, loose: bool) -> Sequence:
        draw = self.random
        strict = draw.choice(("", "", "stream", "key")) if loose else draw.choice(("stream", "key"))
        items = []
        pool = draw.sample("abcdfg", 4)
        for name in pool[: draw.choice((1, 2, 2, 3, 3, 4))]:
            repeated = draw.random() < 0.5
            least = draw.choice((1, 1, 1, 2)) if repeated else 1
            most = draw.choice((None, None, None, 2, 3)) if repeated else None
            role = "optional" if not repeated and draw.random() < 0.15 else "bound"
            items.append(Name(draw.choice("AAAAAABB*"), name, repeated, least, most, role))
        if all(item.role == "optional" for item in items):
            items[0] = Name(items[0].type, items[0].name)
        bound = list(items)
        tests = []
        for _ in range(draw.choice((0, 1, 1, 2, 3))):
            tests.append(self.test(bound, aggregates=bool(strict) or not keep))
        if draw.random() < 0.35:
            inner = within is None or draw.random() < 0.6
            places = range(1, len(items)) if inner else range(len(items) + 1)
            sure = [p for p in places if within is not None or self._between(items, p)]
            if sure:
                items.insert(draw.choice(sure), Name(draw.choice("ABC*"), "n", role="not"))
                if draw.random() < 0.5:
                    other = draw.choice(bound).name
                    one = Test("pair", ("n", other), draw.choice(list(OPS)))
                    tests.append(draw.choice((one, Test("one", ("n",), draw.choice(list(OPS)), 1))))
        return Sequence(tuple(items), tuple(dict.fromkeys(tests)), strict)

    @staticmethod
    def _between(items: list[Name], place: int) -> bool:
        sides = (items[:place], items[place:])
        return all(any(item.role == "bound" for item in side) for side in sides)

    def test(self, items: list[Name], *, aggregates: bool) -> Test:
        draw = self.random
        op = draw.choice(list(OPS))
        sets = [item.name for item in items if item.repeated]
        a, b = draw.choice(items).name, draw.choice(items).name
        kind = draw.choice(("one", "one", "pair", "pair", "count", "sum", "max", "min", "avg", "mixed"))
        if kind in ("one", "pair") or not sets or not aggregates:
            return Test("one", (a,), op, draw.randrange(3)) if kind == "one" or a == b else Test("pair", (a, b), op)
        one = draw.choice(sets)
        if kind == "mixed":
            return Test("mixed", (one, b), op) if b != one else Test("max", (one,), op, draw.randrange(3))
        return Test(kind, (one,), op, draw.randrange(1, 5))
