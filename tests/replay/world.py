"""The little world that a seed makes: a source, patterns and a model with their edits, and every file ever delivered.

Everything here is a function of the random generator, and nothing knows of the lake.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

FIRST = date(2025, 3, 1)
#: Days that files are delivered for; windows reach beyond the last.
DAYS = 5
#: Every step is asked for days of this interval only: all days on which something can decide.
SPAN = (FIRST, FIRST + timedelta(days=DAYS + 2))
SOURCE = "lab"
MODEL = "slope"
KEYS = ("k1", "k2")
TYPES = "ABCD"
_HOURS = 4

_SOURCE = """\
description: The simulator's only source.
key: sensor
type: {{column: kind}}
zone: UTC
attributes:
  x: {{type: double, description: cause}}
  y: {{type: double, description: effect}}
identity: {identity}
on_conflict: {on_conflict}
path: 'lab_(?P<date>\\d{{8}})(?:_r(?P<revision>\\d+))?'
{replaces}expect: ['lab_{{date:%Y%m%d}}*']
lag: 1 d
formats:
  - glob: '*lab_*'
    time: {{column: ts, format: iso}}
    map: {{x: {{column: x, scale: {scale}}}}}
"""

_MODEL = """\
source: lab
start: {start}
nodes: [k1, k2]
response: y
features: [x]
round: {{length: 4 h, aggregate: mean}}
window: {{sliding: {window}}}
eps: {eps}
"""

#: Pattern → its texts; an edit moves to another one. One per operator, and two with open negations.
PATTERNS: dict[str, tuple[tuple[str, str], ...]] = {
    "seq": (
        ("", "SEQ(A a, B b) WHERE b.x > a.x WITHIN 16 h"),
        ("", "SEQ(A a, B b) WHERE b.x > a.x WITHIN 30 h"),
        ("output: [y]\n", "SEQ(A a, B b) WHERE b.x > a.x WITHIN 16 h"),
    ),
    "and_": (("", "AND(A a, B b) WITHIN 12 h"), ("", "AND(A a, B b) WHERE a.x > 0 WITHIN 20 h")),
    "linked": (
        ("", "SEQ(A a, AND(B b, C c)) WHERE a.sensor = b.sensor AND a.sensor = c.sensor WITHIN 30 h"),
        ("", "SEQ(A a, AND(B b, C c)) WHERE a.sensor = b.sensor AND a.sensor = c.sensor AND b.y > 0 WITHIN 30 h"),
    ),
    "or_not": (
        ("", "OR(SEQ(A a, B b), SEQ(A a, B b, NOT(C c))) WITHIN 16 h"),
        ("", "OR(SEQ(A a, B b), SEQ(A a, B b, NOT(C c))) WITHIN 28 h"),
        ("", "OR(SEQ(A a, B b) WHERE a.x > 0, SEQ(A a, B b, NOT(C c))) WITHIN 28 h"),
    ),
    "kleene": (
        ("", "SEQ(A a, B* b, C c) WHERE b.x > a.x WITHIN 20 h"),
        ("", "SEQ(A a, B b, C c) WHERE b.x > a.x WITHIN 20 h"),
        ("", "SEQ(A a, B* b, C c) WHERE b.x > a.x WITHIN 14 h"),
    ),
    "not_mid": (
        ("", "SEQ(A a, NOT(B b), C c) WITHIN 24 h"),
        ("", "SEQ(A a, NOT(B b), C c) WHERE b.x > a.x WITHIN 24 h"),
    ),
    "not_both": (
        ("", "SEQ(NOT(B b), A a, C c, NOT(D d)) WITHIN 20 h"),
        ("", "SEQ(NOT(B b), A a, C c, NOT(D d)) WITHIN 26 h"),
        ("", "SEQ(NOT(B b), A a, C c, NOT(D d)) WHERE d.x > c.x WITHIN 20 h"),
    ),
    "not_and": (
        ("", "AND(A a, B b, NOT(C c)) WITHIN 12 h"),
        ("", "AND(A a, B b, NOT(C c)) WITHIN 18 h"),
        ("", "AND(A a, B b, NOT(C c)) WHERE c.sensor = a.sensor WITHIN 18 h"),
    ),
    "sets": (
        ("", "SEQ(A a, COLLECT(B b), C c) WHERE b.x > a.x WITHIN 20 h MEASURES COUNT(b) AS n, MAX(b.x) AS most"),
        ("", "SEQ(A a, C c, COLLECT?(B b)) WITHIN 14 h MEASURES COUNT(b) AS n, c.ts - a.ts AS took"),
        ("output: [COUNT(b)]\n", "SEQ(COLLECT(B{1,3} b), A a, C c) WITHIN 14 h"),
    ),
    "neighbours": (
        ("", "SEQ STRICT OF KEY (A a, B+ b) WHERE b.x > PREV(b.x, 1, 12 h) WITHIN 20 h MAXIMAL"),
        ("", "SEQ STRICT (A a, NOT(D d), B+ b) WITHIN 24 h OUTERMOST"),
        ("", "SEQ STRICT OF KEY (A+ a, B{1,2} b) WITHIN 20 h"),
    ),
    "sessions": (
        ("limits: {longest: 4 d}\n", "SEQ STRICT OF KEY (*+ e) PAUSE 8 h MAXIMAL MEASURES COUNT(e) AS n"),
        ("limits: {longest: 2 d}\n", "SEQ STRICT OF KEY (*+ e) PAUSE 6 h MAXIMAL MEASURES COUNT(e) AS n"),
        ("", "SEQ STRICT OF KEY (*+ e) WITHIN 20 h PAUSE 8 h MAXIMAL"),
    ),
    "until_": (
        ("", "SEQ(A a, B? b, C c, UNTIL(D d)) WHERE d.sensor = a.sensor WITHIN 20 h PAUSE 12 h"),
        ("", "SEQ(A a, OR(B b, D d), C c) WITHIN 18 h"),
        ("", "SEQ(A a, B? b, C c) WITHIN 16 h MAXIMAL"),
    ),
    "one_each": (
        ("", "SEQ(A a, B b) WITHIN 16 h SELECT first"),
        ("", "SEQ(A a, B b) WITHIN 16 h CONTEXT recent MEASURES b.x - a.x AS rise"),
        ("", "AND(A a, B b, C c) WITHIN 12 h PICK last a, first b"),
    ),
    "used_up": (
        ("", "SEQ(A a, B b) WITHIN 30 h CONTEXT chronicle"),
        ("", "SEQ(A a, B b) WHERE a.sensor = b.sensor WITHIN 20 h CONTEXT continuous"),
        ("start: 2025-03-03\n", "SEQ(A a, B b) WITHIN 30 h CONTEXT chronicle"),
        ("", "AND(A a, B b) WITHIN 26 h CONTEXT cumulative"),
    ),
    "used_by_name": (
        ("", "SEQ(A a, AND(B b, C c)) WITHIN 40 h SELECT last CONSUME a, b"),
        ("", "OR(SEQ(A a, B b), SEQ(B b, C c)) WITHIN 26 h CONTEXT chronicle MEASURES b.x AS x"),
    ),
    "counted": (
        ("", "SEQ(A a, B b) WITHIN 5 EVENTS, 26 h"),
        ("", "SEQ(A a, B b, C c) WHERE a.sensor = b.sensor AND b.sensor = c.sensor WITHIN 6 EVENTS OF KEY, 26 h"),
        ("", "AND(A a, B b) WITHIN GAP 3 EVENTS, 30 h CONTEXT chronicle"),
    ),
    "stretches": (
        ("", "SEQ(A a, B b) WHERE a.sensor = b.sensor WITHIN 12 h MEASURES b.x - a.x AS severity "
             "EPISODES BY sensor PAUSE 6 h"),
        ("", "SEQ(A a, B b) WHERE a.sensor = b.sensor WITHIN 12 h MEASURES b.x - a.x AS severity "
             "EPISODES BY sensor PAUSE 11 h"),
        ("", "SEQ(A a, NOT(B b)) WHERE a.sensor = b.sensor WITHIN 14 h EPISODES BY a.sensor PAUSE 10 h"),
    ),
    "used_stretches": (
        ("", "SEQ(A a, B b) WITHIN 12 h CONTEXT chronicle EPISODES BY a.sensor PAUSE 8 h"),
        ("", "AND(A a, B b) WITHIN 10 h CONTEXT continuous EPISODES BY b.sensor PAUSE 4 h"),
    ),
    "ranked": (
        ("", "SEQ(A a, B b) WITHIN 12 h RANK BY MAX(b.x - a.x) TOP 3 PER WEEK"),
        ("", "SEQ(A a, B b) WITHIN 12 h RANK BY MIN(b.x), MAX(a.x) COMBINE lex TOP 3 PER WEEK"),
        ("", "SEQ(A a, B b) WITHIN 30 d RANK BY MAX(b.x + a.x) TOP 3 PER WEEK"),
        ("", "SEQ(A a, B b) WITHIN 12 h RANK BY MAX(b.x - a.x) TOP 2 PER DAY IN 'Asia/Tokyo' FOR EACH b.sensor"),
        ("", "SEQ(A a, NOT(B b)) WHERE a.sensor = b.sensor WITHIN 14 h RANK BY MAX(a.x) TOP 3 WITH TIES PER ALL"),
    ),
    "functions": (
        ("", "SEQ(A a, B b) WHERE Hour(a.ts, 'Europe/Berlin') >= 6 AND CASE WHEN b.x > 0 THEN b.x ELSE -b.x END > a.x "
             "WITHIN 16 h"),
        ("", "SEQ(A a, B b) WHERE b.x > PREV(b.x, 2, 10 h) AND a.sensor LIKE 'k%' WITHIN 16 h"),
    ),
}  # fmt: skip

MODELS = (
    {"start": FIRST, "window": 4, "eps": 0.4},
    {"start": FIRST, "window": 4, "eps": 0.9},
    {"start": FIRST + timedelta(days=2), "window": 5, "eps": 0.4},
)

_COMPANION = "source: lab\nround: {{length: 4 h, aggregate: mean}}\nstart: {start}\n"
#: Models of the other kinds, of which every seed that has a model has one; an edit moves to another text.
COMPANIONS = {
    "zones": (
        "kind: safe_zones\nnodes: [k1, k2]\nvalues: [x, y]\nregion: {{box: [[-0.6, 0.6], [null, 1.5]]}}\n"
        "design: {{rounds: 10, every: 2, method: multipliers}}\n",
        "kind: safe_zones\nnodes: [k1, k2]\nvalues: [x]\nregion: {{box: [[-0.6, 0.4]]}}\n",
    ),
    "learners": (
        "kind: shared_learning\nnodes: [k1, k2]\nresponse: y\nfeatures: [x]\nlearning_rate: 0.2\n"
        "sync: {{dynamic: 0.3, every: 2}}\n",
        "kind: shared_learning\nnodes: [k1, k2]\nresponse: y\nfeatures: [x]\nlearning_rate: 0.2\n"
        "loss: logistic\nsync: {{static: 3}}\n",
    ),
    "faults": (
        "kind: latent_faults\nnodes: [k1, k2, {{name: both, keys: [k1, k2]}}]\ncounters: [x, y]\nalpha: 0.5\n"
        "window: {{sliding: 9}}\nnormalise: {{low: 0.6, high: 1.6}}\n",
        "kind: latent_faults\nnodes: [k1, k2, {{name: both, keys: [k1, k2]}}]\ncounters: [x, y]\nalpha: 0.5\n",
    ),
    "means": (
        "kind: threshold\nnodes: [k1, k2]\nvalue: x\nthreshold: 0.1\n",
        "kind: threshold\nnodes: [k1, {{name: both, keys: [k1, k2]}}]\nvalue: y\nthreshold: 0\nmax_carry: 2\n",
    ),
}


def companion(seed: int) -> str:
    """The name of the model of another kind that a seed has."""
    return sorted(COMPANIONS)[seed % len(COMPANIONS)]


def companion_text(name: str, variant: int) -> str:
    """Its file."""
    return (_COMPANION + COMPANIONS[name][variant % 2]).format(start=MODELS[variant]["start"])


def pattern_text(name: str, variant: int) -> str:
    """A pattern file."""
    front, query = PATTERNS[name][variant]
    return f"---\nsource: {SOURCE}\n{front}---\nPATTERN {query}\n"


def model_text(variant: int) -> str:
    """A model file."""
    return _MODEL.format(**MODELS[variant])


@dataclass(frozen=True)
class SourceKind:
    """How the seed's source resolves its rows; ``scale`` is what an edit changes."""

    identity: str
    on_conflict: str
    replaces: bool

    def text(self, scale: int) -> str:
        """The source file."""
        replaces = "replaces: [file_date]\n" if self.replaces else ""
        return _SOURCE.format(identity=self.identity, on_conflict=self.on_conflict, replaces=replaces, scale=scale)


@dataclass(frozen=True)
class Delivery:
    """A file that lands: its path under landing, its content, and what it is for the log."""

    path: str
    content: str
    what: str


Row = tuple[datetime, str, str, float, float]


def source_kind(rng: random.Random) -> SourceKind:
    """A random kind of source."""
    return SourceKind(
        rng.choice(["unique", "unique", "multiset"]),
        rng.choice(["first", "latest", "quarantine_all"]),
        rng.random() < 0.8,
    )


def deliveries(rng: random.Random) -> list[Delivery]:
    """Everything that is ever delivered, in the order of arrival: mostly by day, some of it late."""
    found: list[tuple[float, Delivery]] = []
    for number in range(DAYS):
        day = FIRST + timedelta(days=number)
        name = f"lab_{day:%Y%m%d}"
        rows = _rows(rng, number)
        if rng.random() < 0.5:
            # A row of the next day in this day's file.
            rows.append(_row(rng, number + 1, 0, rng.choice(KEYS)))
        found.append((number + _lateness(rng), Delivery(f"{name}.csv", _csv(rows), "base")))
        for extra in _extras(rng, number, name, rows):
            found.append((number + rng.uniform(0.1, 3.0), extra))
    return [delivery for _, delivery in sorted(found, key=lambda pair: pair[0])]


def _extras(rng: random.Random, number: int, name: str, rows: Sequence[Row]) -> list[Delivery]:
    some = rng.sample(list(rows), max(1, len(rows) // 2))
    changed = [(ts, kind, key, round(x + 5, 3), y) for ts, kind, key, x, y in some]
    corrected = list(rows)
    at = rng.randrange(len(corrected))
    ts, *rest = corrected[at]
    away = timedelta(days=rng.choice([-1, 1]) if number else 1)
    corrected[at] = (ts + away, *rest)
    del corrected[rng.randrange(len(corrected))]
    kinds = {
        "copy": Delivery(f"copy/{name}.csv", _csv(rows), "the same file twice"),
        "overlap": Delivery(f"b_{name}.csv", _csv([*some, _row(rng, number, 7, KEYS[0])]), "overlapping file"),
        "conflict": Delivery(f"c_{name}.csv", _csv(changed), "conflicting file"),
        "corrected": Delivery(f"{name}_r2.csv", _csv(corrected), "correction, a row moves to another day"),
        "overwritten": Delivery(f"{name}.csv", _csv(corrected[1:]), "path overwritten"),
        "dirt": Delivery(f"d_{name}.csv", _csv(some[:1]) + "no row at all\n", "dirt"),
        # A day that loses its last row must lose its events.
        "emptied": Delivery(f"{name}.csv", _csv([]), "path overwritten by nothing"),
        "moved": Delivery(f"{name}_r3.csv", _csv([(ts + away, *rest) for ts, *rest in rows]), "all rows moved"),
    }
    return [kinds[kind] for kind in rng.sample(sorted(kinds), rng.choice([0, 1, 1, 2, 3]))]


def _lateness(rng: random.Random) -> float:
    return rng.uniform(0.0, 0.1) if rng.random() < 0.75 else rng.uniform(1.0, 3.5)


def _rows(rng: random.Random, number: int) -> list[Row]:
    return [_row(rng, number, slot, key) for slot in range(24 // _HOURS) for key in KEYS if rng.random() < 0.95]


def _row(rng: random.Random, number: int, slot: int, key: str) -> Row:
    midnight = datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC) + timedelta(days=number)
    ts = midnight + timedelta(hours=slot * _HOURS % 24, minutes=rng.choice([0, 0, 30, 61]))
    x = round(rng.gauss(0, 1), 3)
    slope = 1.0 if number < 2 else 2.5
    return ts, rng.choice(TYPES), key, x, round(slope * x + rng.gauss(0, 0.05), 3)


def _csv(rows: Sequence[Row]) -> str:
    lines = [f"{ts:%Y-%m-%dT%H:%M:%S},{kind},{key},{x},{y}\n" for ts, kind, key, x, y in rows]
    return "ts,kind,sensor,x,y\n" + "".join(lines)
