"""Lint: every error of a file, warnings, and a layout that keeps meaning and comments."""

from __future__ import annotations

import operator
import random
from collections.abc import Mapping

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainlake.cep.language.layout import format_text
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.lint.observed import ObservedValues, unknown_values
from chainlake.cep.lint.report import Report, Schema, lint
from chainlake.cep.pattern import compile_pattern
from chainlake.definitions.errors import UnknownSource
from chainlake.errors import DefinitionError
from chainlake.paths import PROJECT
from tests.cep.strategies import queries, text_of
from tests.cep.test_errors import COLUMNS

SHIPPED = sorted((PROJECT / "dags" / "config" / "patterns").glob("*.sase"))
PAGE = PROJECT / "docs" / "language.md"


def schema(name: str) -> Schema:
    if name != "doors":
        raise UnknownSource.of(name, ["doors"], "sources")
    return Schema(COLUMNS, ("Open", "Heat", "Close"))


def found(text: str) -> Report:
    return lint(text, file="p.sase", schema=schema)


def places(errors: tuple[DefinitionError, ...]) -> list[tuple[int | None, int | None, str]]:
    return [(error.line, error.column, error.what) for error in errors]


HEAD = "---\nsource: doors\ndescription: a test\n---\n"

MANY = """# many mistakes
---
source: doors
sorce: x
description: many
params: {least: 1}
rates: {a: 1, zzz: 2}
output: [n, nil, up.x]
---
PATTERN SEQ(Open a, NOT(Close* c), Heat A)  # the star, the case
WHERE a.y > 1 AND a.x > 'text'
  AND zzz.x = 1
  AND (a.x > OR a.n = 2)                    # no value
  AND a.n >> 3 AND Foo(a.x) > least
  AND A.ts - a.ts < 5
  AND AVG(A.x) > 1
  AND a.text = "b" AND a.n = 1
WITHIN 5 parsec
"""


def test_all_errors_of_a_file_with_their_places() -> None:
    report = found(MANY)
    assert report.pattern is None and report.warnings == ()
    assert [(line, column, what.split(",")[0]) for line, column, what in places(report.errors)] == [
        (4, 1, "unknown key sorce in the front matter"),
        (7, 1, "rates: there is no positive event named zzz"),
        (8, 1, "output: the events have no attribute nil"),
        (8, 1, "output: there is no event named up"),
        (10, 30, "NOT takes no repeated event"),
        (10, 36, "the names a and A differ only in case"),
        (11, 7, "the events have no attribute y"),
        (11, 23, "a number and a string have no order"),
        (12, 7, "there is no event named zzz here"),
        (13, 14, "a value is expected"),
        (14, 12, "a value is expected"),
        (14, 20, "there is no function foo"),
        (15, 19, "a time difference is compared with a duration"),
        (16, 7, "AVG needs a repeated event"),
        (17, 16, '"b" is a name'),
        (18, 10, "'parsec' is not a unit"),
    ]
    lines = MANY.splitlines()
    for error in report.errors:
        assert error.excerpt == lines[(error.line or 0) - 1] and error.file == "p.sase"
    assert report.errors[0].hint == "Did you mean source?"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{HEAD}PATTERN SEQ(Open a, Heat b) WHERE a.x = b.x", [(5, 44, "WITHIN is expected")]),
        (f"{HEAD}PATTERN SEQ(Open a, Heat b)\nWHERE a.x = b.x\n", [(6, 15, "WITHIN is expected")]),
        (f"{HEAD}PATTERN SEQ(Open a, Heat b) WHERE a.x = b.y", [(5, 41, "no attribute y"), (5, 44, "WITHIN is exp")]),
        (f"{HEAD}PATTERN SEQ(Open a, Heat b) WHERE (a.x > 1 AND b.q = 1 WITHIN 1 s", [(5, 56, "')' is expected")]),
        (f"{HEAD}PATTERN SEQ(Open a Heat b) WHERE a.q > 1 WITHIN 1 s", [(5, 20, "',' is expected|')' or ','")]),
        (f"{HEAD}PATTERN OR(Open a WHERE a.q = 1, Heat b WHERE b.q = 1 AND b.x >) WITHIN 1 s",
         [(5, 25, "no attribute q"), (5, 47, "no attribute q"), (5, 64, "a value is expected")]),
        (f"{HEAD}PATTERN OR(Open a, Heat b) WHERE a.x > b.x AND a.q = 1 WITHIN 1 s",
         [(5, 38, "no branch can test it"), (5, 48, "no attribute q")]),
        ("---\nsource: nowhere\nparams: {p: {q: 1}}\n---\nPATTERN SEQ(Open a) WHERE a.x > p WITHIN h",
         [(2, 1, "there is no source 'nowhere'"), (3, 1, "p is neither a number")]),
        ("---\nsource: [\n---\nPATTERN SEQ(Open a) WHERE a.x > 'q' + WITHIN 1 s",
         [(3, 1, "the front matter is not YAML"), (4, 39, "a value is expected")]),
        ("---\nsource: doors\nPATTERN SEQ(Open a) WITHIN 1 s", [(1, 1, "the front matter has no end")]),
        (f"{HEAD}", [(5, 1, "a query begins with PATTERN")]),
        ("---\nsource: doors\nlimits: {kleene_members: 99}\nrates: {a: -1}\n---\nPATTERN Open a WITHIN 1 s",
         [(3, 1, "at most 40"), (4, 1, "must be a number that is not negative")]),
        (f"{HEAD}PATTERN SEQ(Open match_id, Heat a, Heat start_ts) WITHIN 1 s",
         [(5, 13, "match_id is a column"), (5, 36, "start_ts is a column")]),
    ],
)  # fmt: skip
def test_errors_behind_errors(text: str, expected: list[tuple[int, int, str]]) -> None:
    got = places(found(text).errors)
    assert [(line, column) for line, column, _ in got] == [(line, column) for line, column, _ in expected], got
    for (_, _, what), (_, _, part) in zip(got, expected, strict=True):
        assert any(one in what for one in part.split("|")), what


def compile_error(text: str, columns: Mapping[str, pa.DataType] | None) -> DefinitionError | None:
    try:
        compile_pattern(text, file="p.sase", columns=columns)
    except DefinitionError as error:
        return error
    return None


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(queries(), st.integers(0, 2**32))
def test_lint_finds_errors_if_and_only_if_the_compiler_does(query: tuple, seed: int) -> None:
    """Random patterns with a few characters dropped, doubled or exchanged."""
    columns = {**COLUMNS, "y": pa.float64(), "k": pa.string()}
    draw = random.Random(seed)
    letters = list(f"{text_of(query)} s")
    for _ in range(draw.randrange(4)):
        at = draw.randrange(len(letters))
        letters[at : at + draw.randrange(2)] = draw.choice(["", "(", ")", " ", "x", ".", "'", "AND ", "\n", "WHERE "])
    text = HEAD + "".join(letters)
    report = lint(text, file="p.sase", schema=lambda _: Schema(columns, None))
    error = compile_error(text, columns)
    assert (error is None) == (not report.errors)
    if error is not None and not error.what.startswith("there is no parameter"):
        assert (error.what, error.line, error.column) in [(e.what, e.line, e.column) for e in report.errors]


# ---- warnings

WARNED = [
    ("SEQ(Open a, Heat b) WITHIN 1 min", "5:21 b shares no condition"),
    ("SEQ(Open a, Heat b, Heat c) WHERE a.key = c.key WITHIN 1 min", "5:21 b shares no condition"),
    ("SEQ(Open a, NOT(Heat n), Heat b) WHERE a.key = b.key WITHIN 1 min", "5:21 any of its events rejects"),
    ("AND(SEQ(Open a, Heat b), SEQ(Open c, Heat d)) WHERE a.x = b.x AND c.x = d.x WITHIN 1 s", "5:38 c and d share"),
    ("SEQ(Open a, Trip b) WHERE a.key = b.key WITHIN 1 min", "5:21 no events of type Trip"),
    ("Open a WITHIN 25 h", "5:16 larger than a day"),
    ("Open a WHERE a.x > 1 AND a.n = 1 AND a.x > 1 WITHIN 1 s", "5:50 this condition is written twice"),
    ("OR(Open a WHERE a.x > 1, Open a WHERE a.x > 1) WITHIN 1 s", "5:34 this branch is written twice"),
    ("Open a WHERE FALSE WITHIN 1 s", "5:22 never true"),
    ("Open a WHERE 1 = 2 WITHIN 1 s", "5:24 mentions no event"),
    ("Open a WHERE a.x > 5 AND a.x < 3 WITHIN 1 s", "5:38 never true together"),
    ("Open a WHERE 5 = a.x AND a.x > 5 WITHIN 1 s", "5:38 never true together"),
    ("Open a WHERE a.text = red AND a.text = blue WITHIN 1 s", "5:46 never true together"),
    ("Open a WHERE a.text = 'NULL' WITHIN 1 s", "5:31 a missing value equals nothing"),
    ("Open a WHERE a.text IN {red, none} WITHIN 1 s", "5:38 a missing value equals nothing"),
    ("SEQ(Open a, Heat b) WHERE b.ts - a.ts > 1 min WITHIN 1 min", "5:47 never true"),
    ("SEQ(Open a, Heat b) WHERE b.ts - a.ts <= 60 s WITHIN 1 min", "5:47 always true"),
    ("SEQ(Open a, Heat b) WHERE 2 min <= b.ts - a.ts WITHIN 1 min", "5:41 never true"),
    ("SEQ(Open a, Heat b) WHERE a.ts < b.ts WITHIN 1 min", "5:40 SEQ makes this condition always true"),
    ("SEQ(Open a, Heat b) WHERE a.ts >= b.ts WITHIN 1 min", "5:40 SEQ makes this condition never true"),
    ("SEQ(Open a, Heat b) WHERE a.key = b.key WITHIN 0 s", "5:49 a window of 0"),
    ("SEQ(Open a, Heat b) WHERE a.key = b.key WITHIN 1 h, 0 EVENTS", "5:61 no two events are 0 events apart"),
    ("SEQ(Open a, Heat b) WHERE a.key = b.key WITHIN 1 h, GAP 0 EVENTS", "5:61 no two events are 0 events apart"),
    ("SEQ(Open a, Heat b) WHERE a.key = b.x WITHIN 1 min", "5:41 a string and a number are never equal"),
    ("Open a WHERE 5 != a.text WITHIN 1 s", "5:24 a number and a string are never equal, so this is true of all"),
    ("Open a WHERE a.x > 1 OR a.up = yes WITHIN 1 s", "5:38 a bool and a string are never equal"),
    ("Open a WHERE a.n IN {'1', '2'} WITHIN 1 s", "5:26 a number is looked up in a set that holds none"),
    ("Open a WHERE a.key NOT IN {1, 2} WITHIN 1 s", "5:32 a string is looked up in a set that holds none"),
    ("Open a WHERE a.text < '10' WITHIN 1 s", "5:31 letter by letter"),
    ("Open a WHERE '-.5' >= a.text WITHIN 1 s", "5:22 letter by letter"),
    ("Open a WITHIN 1 s RANK BY MAX(a.x) TOP 2 PER HOP 15 min STEP 1 h", "5:54 between two windows are in no list"),
]
FINE = [
    "SEQ(Open a, Heat b) WHERE a.key = b.key AND b.ts - a.ts >= 1 min WITHIN 1 min",
    "SEQ(Open a, NOT(Heat n), Heat b) WHERE a.key = b.key AND a.key = n.key AND n.x > 1 AND n.x < 0 WITHIN 1 d",
    "AND(Open a, Heat b) WHERE a.key = b.key AND a.x > 3 AND b.x < 3 AND a.x >= 4 WITHIN 0 s",
    "Open a WHERE a.x >= 5 AND a.x <= 5 AND (a.x > 6 OR TRUE) WITHIN 1 s",
    "Open a WITHIN 24 h",
    "Open a WITHIN 1 s RANK BY MAX(a.x) TOP 2 PER HOP 1 h STEP 1 h",
    "Open a WHERE a.n = 1.5 AND a.up = TRUE AND a.key != up AND a.n IN {1, one} AND a.id = '5' WITHIN 1 s",
]


@pytest.mark.parametrize(("query", "expected"), WARNED)
def test_warnings(query: str, expected: str) -> None:
    report = found(format_text(f"{HEAD}PATTERN {query}", len(HEAD)))
    one_line = found(f"{HEAD}PATTERN {query}")
    assert report.errors == () and report.pattern is not None
    place, _, part = expected.partition(" ")
    assert [part in warning.what for warning in report.warnings] == [True], report.warnings
    assert place in [f"{warning.line}:{warning.column}" for warning in one_line.warnings if part in warning.what]
    assert any("layout" in warning.what for warning in one_line.warnings)


@pytest.mark.parametrize(
    ("condition", "column", "what"),
    [
        ("a.x < 'text' AND a.x > 5", 38, "x is compared with a number here and with a string elsewhere"),
        ("a.x > 5 AND b.x != 'n/a'", 33, "x is compared with a string here and with a number elsewhere"),
        ("a.x IN {1, 'b'} AND b.y = 1", 21, "x is compared with a string here and with a number elsewhere"),
        ("a.x = 5 AND b.y = 'p'", None, None),
    ],
)
def test_an_attribute_that_no_source_knows_is_of_one_kind(condition: str, column: int | None, what: str | None) -> None:
    report = lint(f"PATTERN SEQ(A a, B b)\nWHERE a.k = b.k AND {condition}\nWITHIN 1 s\n")
    warned = [(w.column, w.what.removesuffix(", and no value is both")) for w in report.warnings if "both" in w.what]
    assert warned == ([(column, what)] if column else [])


OPS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}


@pytest.mark.slow
def test_each_condition_that_contradicts_an_earlier_one_is_named_once() -> None:
    draw = random.Random(1)
    reals = [half / 2 for half in range(-2, 9)]
    for _ in range(60):
        conditions = list(dict.fromkeys((draw.choice([*OPS]), draw.randrange(4)) for _ in range(6)))
        text = " AND ".join(f"a.x {op} {value}" for op, value in conditions)
        report = found(format_text(f"{HEAD}PATTERN Open a WHERE {text} WITHIN 1 s", len(HEAD)))
        possible = [{x for x in reals if OPS[op](x, value)} for op, value in conditions]
        expected = sum(any(not one & other for one in possible[:i]) for i, other in enumerate(possible))
        assert sum("never true together" in w.what for w in report.warnings) == expected, text


@pytest.mark.parametrize("query", FINE)
def test_no_warning_where_all_is_well(query: str) -> None:
    assert found(format_text(f"{HEAD}PATTERN {query}", len(HEAD))).warnings == ()


def test_warnings_of_the_front_matter() -> None:
    query = "PATTERN SEQ(Open a, Heat b)\nWHERE a.key = b.key AND a.x > low AND a.key IN good\nWITHIN w\n"
    front = "---\nsource: doors\nparams: {low: 1, w: 2 min, high: 3}\nsets: {good: [x], bad: [y]}\nrates: {a: 1}\n---\n"
    assert [(w.line, w.what.split(",")[0]) for w in found(front + query).warnings] == [
        (2, "the front matter has no description"), (3, "high is never used"), (4, "bad is never used"),
        (5, "rates leave out b"),
    ]  # fmt: skip
    bare = found("PATTERN Open a\nWITHIN 1 s\n").warnings
    assert len(bare) == 1 and "names no source: a lake needs one (detect, backfill, plan, status)" in bare[0].what


OBSERVED = ObservedValues("of x.csv", {"BAC", "IBM", "SPY"}, {"Open", "Heat"})
DOORS = "---\nsource: doors\ndescription: x\nparams: {who: BACK}\nsets: {good: [SPY, spy]}\n---\n"


@pytest.mark.parametrize(
    ("where", "whats"),
    [
        ("a.key = 'BACC'", [("the key 'BACC'", "'BAC'")]),
        ("'BACC' = a.key", [("the key 'BACC'", "'BAC'")]),
        ("a.key != BACC", [("the key 'BACC'", "'BAC'")]),
        ("a.key = who", [("the key 'BACK'", "'BAC'")]),
        ("a.key IN good", [("the key 'spy'", "'SPY'")]),
        ("a.key NOT IN {IBM, QQQ}", [("the key 'QQQ'", "There are BAC, IBM, SPY.")]),
        ("(a.x > 1 OR a.key = 'BACC')", [("the key 'BACC'", "'BAC'")]),
        ("NOT (a.key = 'BACC')", [("the key 'BACC'", "'BAC'")]),
        ("a.key = 'BACC' AND b.key = 'BACC'", [("the key 'BACC'", "'BAC'")]),
        ("a.key = 'IBM' AND b.key = 'BAC'", []),
        ("a.note = 'BACC' AND a.key > 'BACC' AND a.key = a.note", []),
    ],
)
def test_a_key_that_no_event_has_is_warned_of(where: str, whats: list[tuple[str, str]]) -> None:
    text = f"{DOORS}PATTERN SEQ(Open a, Heat b)\nWHERE {where} WITHIN 1 s\n"
    pattern = compile_pattern(text)
    told = unknown_values(pattern, SourceText(text, None), "key", OBSERVED)
    assert [one.what for one in told] == [f"no event of x.csv has {what}" for what, _ in whats]
    assert all(hint in (one.hint or "") and one.line == 8 for one, (_, hint) in zip(told, whats, strict=True))


def test_a_type_that_no_event_has_is_warned_of() -> None:
    text = f"{DOORS}PATTERN SEQ(Open a, Heath b, NOT(Shut n)) WITHIN 1 s\n"
    told = unknown_values(compile_pattern(text), SourceText(text, None), "key", OBSERVED)
    assert [(one.what, one.hint) for one in told] == [
        ("no event of x.csv has the type 'Heath'", "Did you mean 'Heat'?"),
        ("no event of x.csv has the type 'Shut'", "There are Heat, Open."),
    ]
    many = ObservedValues("of x", {f"k{n:03}" for n in range(300)}, {"Open", "Heath", "Shut"})
    text = f"{DOORS}PATTERN Open a WHERE a.key = 'zzz' WITHIN 1 s\n"
    (one,) = unknown_values(compile_pattern(text), SourceText(text, None), "key", many)
    assert one.hint is not None and one.hint.endswith("k009 and 290 more.")
