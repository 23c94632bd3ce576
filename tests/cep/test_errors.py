"""One test per compile-time error: the message, and the place it points to."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from chainlake.cep.library import match
from chainlake.cep.pattern import compile_pattern
from chainlake.errors import DefinitionError, InputError, UsageError

COLUMNS = {
    "type": pa.string(),
    "key": pa.string(),
    "ts": pa.timestamp("us", tz="UTC"),
    "x": pa.float64(),
    "n": pa.int64(),
    "up": pa.bool_(),
    "text": pa.string(),
    "history": pa.list_(pa.float64()),
    "seen": pa.timestamp("us", tz="UTC"),
}


def test_a_text_or_a_parameter_may_be_called_null() -> None:
    for query in ("a.text = 'NULL'", "a.text IN {'null'}", "a.text = null"):
        text = f"---\nparams: {{null: nothing}}\n---\nPATTERN A a WHERE {query} WITHIN 1 s"
        compile_pattern(text, columns=COLUMNS)
    assert "IS NOT NULL, or 'Null' in quotes" in (error_of("PATTERN A a WHERE a.text = Null WITHIN 1 s").hint or "")


def error_of(text: str, **options: object) -> DefinitionError:
    options = {"columns": COLUMNS, "file": "p.sase", **options}
    with pytest.raises(DefinitionError) as found:
        compile_pattern(text, **options)  # type: ignore[arg-type]
    assert found.value.exit_code == 3
    return found.value


@pytest.mark.parametrize(
    ("text", "what", "column"),
    [
        # structure (1.3)
        ("PATTERN SEQ(A a, B a) WITHIN 1 s", "duplicate name a in a branch", 18),
        ("PATTERN SEQ(NOT(A a), NOT(B b)) WITHIN 1 s", "needs a positive event", 9),
        ("PATTERN NOT(A a) WITHIN 1 s", "needs a positive event", 9),
        ("PATTERN SEQ(A a, NOT(B* b)) WITHIN 1 s", "NOT takes no repeated event", 23),
        ("PATTERN SEQ(A a, NOT(SEQ(B b, C c))) WITHIN 1 s", "NOT takes one event", 22),
        ("PATTERN SEQ(A a)", "WITHIN is expected", 17),
        ("PATTERN SEQ(A a) WITHIN １ s", "is not a digit here", 25),
        ("PATTERN OR(A a) WITHIN 1 s", "at least two branches", 9),
        ("PATTERN SEQ(A a, OR(B b)) WITHIN 1 s", "at least two alternatives", 18),
        (f"PATTERN SEQ(A a) WHERE {'(' * 3000}a.x > 1{')' * 3000} WITHIN 1 s", "nested more than 50 levels", 75),
        (f"PATTERN SEQ(A a) WHERE {'NOT ' * 3000}a.x > 1 WITHIN 1 s", "nested more than 50 levels", 228),
        (f"PATTERN SEQ(A a) WHERE {'-' * 3000}a.x > 1 WITHIN 1 s", "nested more than 50 levels", 75),
        (f"PATTERN SEQ(A a) WHERE a.x{' + 1' * 3000} > 1 WITHIN 1 s", "more than 150 operators in a row", 628),
        (f"PATTERN {'SEQ(AND(' * 200}A a", "nested more than 50 levels", 209),
        (f"PATTERN SEQ(A a) WHERE {'Abs(' * 3000}a.x", "nested more than 50 levels", 227),
        ("PATTERN SEQ(A a) WITHIN 1e400 s", "this number is too large", 25),
        ("PATTERN SEQ(A a) WHERE a.x < 1e999 WITHIN 1 s", "this number is too large", 30),
        # comparisons with NULL
        ("PATTERN SEQ(A a) WHERE a.text = NULL WITHIN 1 s", "a missing value equals nothing", 33),
        ("PATTERN SEQ(A a) WHERE Null != a.text WITHIN 1 s", "a missing value equals nothing", 24),
        ("PATTERN SEQ(A a) WHERE a.text IN {red, null} WITHIN 1 s", "a missing value equals nothing", 40),
        ("PATTERN SEQ(A a) WHERE a.x < NULL WITHIN 1 s", "a missing value equals nothing", 30),
        ("PATTERN SEQ(A a) WHERE a.x + NULL > 1 WITHIN 1 s", "a missing value equals nothing", 30),
        # names, functions, units, sets, parameters
        ("PATTERN SEQ(A a) WHERE z.x > 1 WITHIN 1 s", "no event named z", 24),
        ("PATTERN SEQ(A a) WHERE Foo(a.x) > 1 WITHIN 1 s", "no function foo", 24),
        ("PATTERN SEQ(A a) WHERE Corr(a.history) > 1 WITHIN 1 s", "takes 2 values, not 1", 24),
        ("PATTERN SEQ(A a) WITHIN 1 parsec", "'parsec' is not a unit", 27),
        ("PATTERN SEQ(A a) WHERE a.ts - a.ts < 1 parsec WITHIN 1 s", "'parsec' is not a unit", 40),
        ("PATTERN SEQ(A a) WHERE a.key IN Banks WITHIN 1 s", "no set Banks", 30),
        ("PATTERN SEQ(A a) WITHIN h", "no parameter h", 18),
        ("PATTERN SEQ(A a) WHERE a.x > T WITHIN 1 s", "no parameter T", 30),
        ("PATTERN SEQ(A a) WHERE a.x = T + 1 WITHIN 1 s", "no parameter T", 30),
        ("PATTERN SEQ(A a, B b) WHERE a.key = b WITHIN 1 s", "'b' is an event name", 37),
        ("PATTERN SEQ(A a, B b) WHERE a.key IN {b} WITHIN 1 s", "'b' is an event name", 39),
        # clauses
        ("PATTERN SEQ(A a, NOT(B b), NOT(C c)) WHERE b.x > c.x WITHIN 1 s", "one negated event only", 48),
        ("PATTERN SEQ(A a, B b) WHERE AVG(b.x) > 1 WITHIN 1 s", "AVG needs a repeated event", 29),
        ("PATTERN SEQ(A a, NOT(B b)) WHERE COUNT(b) > 1 WITHIN 1 s", "COUNT needs a repeated event", 34),
        ("PATTERN OR(A a, B b) WHERE a.x > b.x WITHIN 1 s", "no branch can test it", 32),
        # kinds
        ("PATTERN SEQ(A a) WHERE a.nix > 1 WITHIN 1 s", "no attribute nix", 24),
        ("PATTERN SEQ(A a) WHERE a.text > 1 WITHIN 1 s", "a string and a number have no order", 31),
        ("PATTERN SEQ(A a) WHERE a.up > TRUE WITHIN 1 s", "two bool values have no order", 29),
        ("PATTERN SEQ(A a) WHERE a.text + 1 = 2 WITHIN 1 s", "takes numbers, not a string", 31),
        ("PATTERN SEQ(A a) WHERE -a.text = 2 WITHIN 1 s", "a string has no negative", 24),
        ("PATTERN SEQ(A a, B b) WHERE a.history = b.history WITHIN 1 s", "lists cannot be compared", 39),
        ("PATTERN SEQ(A a) WHERE a.history IN {1} WITHIN 1 s", "a list cannot be looked up", 34),
        ("PATTERN SEQ(A a) WHERE Corr(a.x, a.history) > 1 WITHIN 1 s", "corr does not take a number", 24),
        ("PATTERN SEQ(A* a) WHERE SUM(a.text) > 1 WITHIN 1 s", "SUM of a string", 25),
        ("PATTERN SEQ(A a) WHERE a.event_id = 'x' WITHIN 1 s", "event_id is a fixed column", 24),
        # durations carry a unit
        ("PATTERN SEQ(A a) WITHIN 1", "the window needs a unit", 18),
        ("PATTERN SEQ(A a, B b) WHERE b.ts - a.ts <= 2 WITHIN 1 s", "not a bare number", 41),
        ("PATTERN SEQ(A a, B b) WHERE b.ts - 2 <= a.ts WITHIN 1 s", "not defined for a time and a number", 34),
        ("PATTERN SEQ(A a, B b) WHERE b.ts + a.ts = a.ts WITHIN 1 s", "not defined for a time and a time", 34),
        ("PATTERN SEQ(A a, B b) WHERE b.ts <= 2 s WITHIN 1 s", "a time cannot be compared with a duration", 34),
        ("PATTERN SEQ(A a) WHERE a.x < 2 s WITHIN 1 s", "not a bare number", 28),
        # names
        ("PATTERN SEQ(A a, B A) WITHIN 1 s", "differ only in case", 18),
        ("PATTERN OR(A a, B A) WITHIN 1 s", "differ only in case", 17),
        ("PATTERN SEQ(A start_ts) WITHIN 1 s", "start_ts is a column of every match table", 13),
        ("PATTERN SEQ(A Match_Id) WITHIN 1 s", "Match_Id is a column of every match table", 13),
        ("PATTERN SEQ(A _op) WITHIN 1 s", "the column _op marks the changes of a match table", 13),
        # syntax
        ("SEQ(A a) WITHIN 1 s", "a query begins with PATTERN", 1),
        ("PATTERN SEQ(A a WITHIN 1 s", "')' or ',' is expected inside SEQ", 17),
        ("PATTERN SEQ(A a, ) WITHIN 1 s", "an event type is expected", 18),
        ("PATTERN SEQ(A in) WITHIN 1 s", "')' or ',' is expected", 15),
        ("PATTERN SEQ(A a) WHERE a.x WITHIN 1 s", "a condition is expected", 24),
        ("PATTERN SEQ(A a) WHERE (a.x > 1) + 1 > 2 WITHIN 1 s", "a value is expected", 24),
        ("PATTERN SEQ(A a) WHERE 1 < a.x < 3 WITHIN 1 s", "cannot be chained", 32),
        ("PATTERN SEQ(A a) WHERE a.x > WITHIN 1 s", "a value is expected", 30),
        ("PATTERN SEQ(A a) WHERE a.key = 'x WITHIN 1 s", "no closing quote", 32),
        ('PATTERN SEQ(A a) WHERE a.key = "x" WITHIN 1 s', "is a name, and a value is expected", 32),
        ("PATTERN SEQ(A* a) WHERE AVG(a) > 1 WITHIN 1 s", "AVG needs an attribute", 25),
        ("PATTERN SEQ(A a) WHERE a.key IN {a.x} WITHIN 1 s", "'}' or ',' is expected in a set", 35),
        ("PATTERN SEQ(A a) WITHIN 1 s WHERE a.x > 1", "WHERE does not belong here", 29),
        ("PATTERN SEQ(A a) WITHIN 'x'", "a duration is expected", 25),
    ],
)
def test_error_says_what_and_where(text: str, what: str, column: int) -> None:
    error = error_of(text)
    assert what in error.what, error.what
    assert (error.line, error.column) == (1, column)
    assert error.file == "p.sase" and error.excerpt == text
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_place_counts_lines_of_the_file_front_matter_included() -> None:
    text = "# meaning\n---\nsource: stock\n---\nPATTERN SEQ(A a, # first\n  B b)\nWHERE a.x <\n  c.x\nWITHIN 1 s\n"
    error = error_of(text)
    assert (error.line, error.column, error.excerpt) == (8, 3, "  c.x")
    assert "p.sase:8:3: there is no event named c here\n      c.x\n      ^" in str(error)


@pytest.mark.parametrize(
    ("front", "what", "line"),
    [
        ("sourc: stock", "unknown key sourc", 2),
        ("source: [a]", "source must be a string", 2),
        ("source: a\nsource: b", "duplicate key source", 3),
        ("a: [", "not YAML", 3),
        ("just text", "a list of 'key: value' lines", 2),
        ("params: [1]", "params must be a map", 2),
        ("params: {p: {q: 1}}", "p is neither a number nor a string", 2),
        ("params: {p: .nan}", "p is not a finite number", 2),
        ("params: {p: null}", "p is neither a number", 2),
        ("sets: {s: 1}", "s must be a list", 2),
        ("sets: {s: [1]}\nparams: {s: 1}", "s is both a parameter and a set", 2),
        ("rates: {a: x}", "the rate of a must be a number", 2),
        ("rates: {z: 1}", "no positive event named z", 2),
        ("output: x", "output must be a list", 2),
        ("output: [nix]", "no attribute nix", 2),
        ("output: [z.x]", "no event named z", 2),
        ("limits: {members: 1}", "unknown limit members", 2),
        ("limits: {kleene_members: 0}", "a whole number of at least 1", 2),
        ("limits: {kleene_members: 41}", "at most 40", 2),
    ],
)
def test_front_matter_errors(front: str, what: str, line: int) -> None:
    error = error_of(f"---\n{front}\n---\nPATTERN SEQ(A a) WITHIN 1 s")
    assert what in error.what and error.line == line, (error.what, error.line)


def test_a_byte_order_mark_is_named() -> None:
    error = error_of("\ufeff---\nsource: stock\n---\nPATTERN SEQ(A a) WITHIN 1 s")
    assert (error.line, error.column, error.hint) == (1, 1, "Save the file as UTF-8 without a byte order mark.")


def test_front_matter_without_end() -> None:
    assert "has no end" in error_of("---\nsource: a\nPATTERN SEQ(A a) WITHIN 1 s").what


def test_a_pattern_cannot_be_called_all() -> None:
    assert "cannot be named all" in error_of("PATTERN SEQ(A a) WITHIN 1 s", name="all").what


def test_parameters_of_the_wrong_form() -> None:
    text = "PATTERN SEQ(A a) WHERE a.x > p WITHIN 1 s"
    assert "p is a set, not a value" in error_of(text, params={"p": [1]}).what
    assert "one value, not a set" in error_of("PATTERN SEQ(A a) WHERE a.x IN p WITHIN 1 s", params={"p": 1}).what
    assert "neither a number" in error_of(text, params={"p": None}).what
    assert "h is not a duration" in error_of("PATTERN SEQ(A a) WITHIN h s", params={"h": "x"}).what
    assert "h is not a duration" in error_of("PATTERN SEQ(A a) WITHIN h s", params={"h": -1}).what
    assert "there is no parameter q" in error_of("PATTERN SEQ(A a) WHERE a.ts - a.ts < q s WITHIN 1 s").what


def test_too_many_clauses() -> None:
    where = " OR ".join(f"(a.x > {i} AND a.n > {i})" for i in range(13))
    assert "more than 4096 clauses" in error_of(f"PATTERN SEQ(A a) WHERE {where} WITHIN 1 s").what


def test_kinds_are_checked_on_the_events_when_columns_were_not_known() -> None:
    events = [{"id": "1", "type": "A", "ts": 1, "attrs": {"x": "text"}}]
    with pytest.raises(DefinitionError, match="have no order"):
        list(match("PATTERN SEQ(A a) WHERE a.x > 1 WITHIN 1", events))
    assert list(match("PATTERN SEQ(A a) WHERE a.x = 1 WITHIN 1", events)) == []
    assert list(match("PATTERN SEQ(A a) WHERE a.x != 1 WITHIN 1", events)) == [{"a": "1"}]
    assert list(match("PATTERN SEQ(A a) WHERE a.x IN {1, text} WITHIN 1", events)) == [{"a": "1"}]


@pytest.mark.parametrize(
    ("events", "what"),
    [
        (None, "events must be dicts or an Arrow table, not NoneType"),
        ("abc", "not str"),
        ({"id": 1, "type": "A", "ts": 1}, "not dict"),
        ([{"id": 1, "type": "A", "ts": 1}, 5], "event 2 is not a dict, but int"),
        ([None], "event 1 is not a dict, but NoneType"),
        ([{"id": 1, "type": "A", "ts": 1, "attrs": [1]}], "the attrs of event 1 are not a dict, but list"),
        ([{"id": 1, "type": "A", "ts": 1, "attrs": {1: 1}}], "an attribute is called 1"),
        ([{"id": 1, "type": "A", "ts": 1, "attrs": {"x": 1j}}], "x holds values of different kinds"),
        ([{"id": "\ud800", "type": "A", "ts": 1}], r"id holds a string that is not Unicode: '\\ud800' \(key id\)"),
        ([{"id": 1, "type": "A\udfff", "ts": 1}], r"type holds a string that is not Unicode: 'A\\udfff'"),
        (
            [{"id": 1, "type": "A", "ts": 1, "attrs": {"x": "\ud800"}}],
            r"x holds a string that is not Unicode: '\\ud800'",
        ),
        ([{"id": 1, "type": "A", "ts": 1, "attrs": {"x": ["\ud800"]}}], "x holds a string that is not Unicode"),
        ([{"id": 1, "type": "A", "ts": 1, "attrs": {"\ud800": 1}}], r"an attribute is called '\\ud800'"),
    ],
)
def test_events_of_the_wrong_form(events: Any, what: str) -> None:
    with pytest.raises(InputError, match=what) as found:
        list(match("PATTERN SEQ(A a) WITHIN 1", events))
    str(found.value).encode()  # it can be printed
    with pytest.raises(UsageError, match="the pattern must be a string, not int"):
        list(match(5, events))  # type: ignore[arg-type]


def test_events_that_cannot_be_used() -> None:
    def events(**second: object) -> list[dict]:
        return [{"id": "1", "type": "A", "ts": 1, "attrs": {"x": 1}}, {"type": "A", "ts": 2, "attrs": {}, **second}]

    text = "PATTERN SEQ(A a) WITHIN 1"
    assert list(match(text, [*events(id="2"), *events(id="2")])) == [{"a": "1"}, {"a": "2"}]
    for bad, what in [
        (events(id="1"), "two different events have the id 1"),
        (events(id=None), "has no id"),
        (events(id="2", ts=None), "has no ts"),
        (events(id="2", ts=1.5), "ts must be whole numbers"),
        (events(id="2", attrs={"x": "y"}), "different kinds"),
        (events(id="2", attrs={"ts": 1}), "an attribute cannot be called ts"),
    ]:
        with pytest.raises(InputError, match=what):
            list(match(text, bad))
    with pytest.raises(UsageError, match="is not an order of"):
        list(match(text, events(id="2"), order=["a", "a"]))
    with pytest.raises(UsageError, match="has no positive name b, which the order lists"):
        list(match(text, events(id="2"), order=["a", "b"]))
    for order in (["a", 5], 5):
        with pytest.raises(UsageError, match="a sequence of names"):
            match(text, events(id="2"), order=order)
    for params in ([1], "x", {1: 2}):
        with pytest.raises(UsageError, match="a mapping of names to values, not"):
            match(text, events(id="2"), params=params)


def test_a_word_is_looked_for_in_the_query_alone() -> None:
    """Where an error has no token of its own, it stands at a word: not at one of the front matter or a comment."""
    text = "---\ndescription: STRICT neighbours\n---\n# not STRICT\nPATTERN SEQ STRICT OF KEY (A a, B b)\nWITHIN 9"
    with pytest.raises(DefinitionError, match="needs a key") as caught:
        list(match(text, [{"id": "1", "type": "A", "ts": 1}]))
    assert (caught.value.line, caught.value.column) == (5, 13)
