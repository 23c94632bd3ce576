"""lint, its hints and the layout on runs, sets, measures and the small words."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from chainlake.cep.lint.report import Schema, laid_out, lint
from chainlake.cep.pattern import compile_pattern
from chainlake.errors import DefinitionError

HEAD = "---\nsource: doors\ndescription: d\n---\n"
COLUMNS = {"x": pa.float64(), "n": pa.int64(), "key": pa.string(), "text": pa.string()}


def found(query: str) -> list[str]:
    """Errors and warnings of a query, each with its place and hint, but the one about layout."""
    schema = Schema(COLUMNS, ("Open", "Heat", "Close"), (), "key")
    report = lint(HEAD + query, file="p.sase", schema=lambda _: schema)
    return [
        f"{one.line}:{one.column} {one.what} | {one.hint}"
        for one in (*report.errors, *report.warnings)
        if "layout" not in one.what
    ]


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("PATTERN SEQ(Open a, Heat b*) WITHIN 1 s",
         "5:27 '*' comes after the name b | It belongs after the type: Heat* b."),
        ("PATTERN SEQ(Open a, Heat b{2}) WITHIN 1 s",
         "5:27 '{' comes after the name b | The number belongs after the type: B{2,3} b."),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.x > 1 && b.x > 2 WITHIN 1 s",
         "5:43 the character '&' has no meaning here | Write AND."),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.x > 1 || b.x > 2 WITHIN 1 s",
         "5:43 the character '|' has no meaning here | Write OR."),
        ("PATTERN SEQ(Open a, Heat b) WHERE !a.x > 1 WITHIN 1 s",
         "5:35 the character '!' has no meaning here | Write NOT"),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.text =~ 'b' WITHIN 1 s",
         "5:43 the character '~' has no meaning here | Write MATCHES"),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.text = \"b\" WITHIN 1 s",
         "5:44 \"b\" is a name, and a value is expected | Strings take single quotes: 'b'."),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.n IN (1, 2) WITHIN 1 s", "5:42 a set is written in braces | IN {1, 2}"),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.x BETWEEN 1 WITHIN 1 s", "5:49 AND is expected after BETWEEN"),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.text LIKE 5 WITHIN 1 s",
         "5:47 a string in single quotes is expected after LIKE"),
        ("PATTERN Open a -> Heat b WITHIN 1 s",
         "5:16 WITHIN is expected, not '-' | A sequence is written SEQ(A a, B b)."),
        ("PATTERN Open a FOLLOWED Heat b WITHIN 1 s",
         "5:16 WITHIN is expected, not 'FOLLOWED' | A sequence is written SEQ"),
        ("SELECT * FROM events", "5:1 a query begins with PATTERN, not 'SELECT' | E.g. PATTERN SEQ("),
        ("PATTERN SEQ(Open a, SEQ STRICT (Heat b)) WITHIN 1 s", "5:21 STRICT belongs to the outermost SEQ"),
        ("PATTERN SEQ STRICT (Open a, AND(Heat b, Close c)) WITHIN 1 s", "5:29 AND cannot be used inside SEQ STRICT"),
        ("PATTERN SEQ(Open a, Heat{3,2} b) WITHIN 1 s", "5:25 {3,2} fits no set"),
        ("PATTERN SEQ(Open a, COLLECT(Heat* b)) WITHIN 1 s", "5:33 COLLECT already takes all events"),
        ("PATTERN SEQ(Open a, Heat b) PAUSE 5 s", "5:29 the window is missing | Write WITHIN before PAUSE."),
        ("PATTERN SEQ(Open a, Heat b) WITHIN 5 s MEASURES b.x - a.x AS a", "5:49 a is the event a already"),
        ("PATTERN SEQ(Open a, Heat b) WITHIN 5 s MEASURES b.y AS rise", "5:49 the events have no attribute y"),
        ("PATTERN SEQ(Open a, Heat? b) WHERE b.q = 1 WITHIN 5 s", "5:36 the events have no attribute q"),
        ("PATTERN COLLECT(Open a) WITHIN 5 s", "5:9 a branch needs a positive event"),
        ("PATERN SEQ(Open a, Heat b) WITHIN 1 s",
         "5:1 a query begins with PATTERN, not 'PATERN' | Did you mean PATTERN?"),
        ("PATTERN SEQ(Open a, Heat b) WHER a.x > 1 WITHIN 1 s",
         "5:29 WITHIN is expected, not 'WHER' | Did you mean WHERE?"),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.x > 1 WITHN 1 s",
         "5:43 WITHIN is expected, not 'WITHN' | Did you mean WITHIN?"),
        ("PATTERN SEQ(Open a, Heat b) WITHIN 1 s MAXMAL",
         "5:40 nothing may follow the window, but 'MAXMAL' does | Did you mean MAXIMAL?"),
        ("PATTERN SEQ(Open a, Heat b) WITHIN 1 minits", "5:38 'minits' is not a unit | Did you mean mins?"),
        ("PATTERN SEQ(Open a, Heat b) WHERE b.ts - a.ts < 1 wek WITHIN 1 s",
         "5:51 'wek' is not a unit | Did you mean week?"),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.x > 1 b.x > 2 WITHIN 1 s",
         "5:43 WITHIN is expected, not 'b' | Conditions are joined by AND and OR."),
        ("PATTERN SEQ(Open a, Heat bank) WHERE a.x > 1 bank.x > 2 WITHIN 1 s",
         "5:46 WITHIN is expected, not 'bank' | Conditions are joined by AND and OR."),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.x > 1,000 WITHIN 1 s",
         "5:42 WITHIN is expected, not ',' | Numbers have no sep"),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.x > 1_000 WITHIN 1 s",
         "5:42 '_000' is not a unit | Numbers have no separators"),
        ("PATTERN SEQ(Open a, Heat b) -- why\nWITHIN 1 s",
         "5:29 WITHIN is expected, not '-' | A comment begins with #"),
        ("PATTERN SEQ(Open a, Heat b) /* why */ WITHIN 1 s",
         "5:29 WITHIN is expected, not '/' | A comment begins with #"),
        ("PATTERN SEQ(Open AS a, Heat b) WITHIN 1 s",
         "5:21 ')' or ',' is expected inside SEQ, not 'a' | The name follows"),
        ("PATTERN SEQ(a: Open, Heat b) WITHIN 1 s",
         "5:14 the character ':' has no meaning here | The type comes before"),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.x <=> b.x WITHIN 1 s",
         "5:41 a value is expected, not '>' | Values are compared"),
        ("PATTERN SEQ(Open a, Heat b) WHERE EXISTS(a.x) WITHIN 1 s",
         "5:35 a condition is expected, not a value | a.x IS NULL"),
        ("PATTERN SEQ(Open a, Heat b) WITHIN 5 PAUSE 2 s", "5:29 the window needs a unit | Write WITHIN 5 s."),
        ("PATTERN SEQ(Open a, Heat b) WHERE Hour(a.ts, 'New York') = 9 WITHIN 1 s",
         "5:46 hour: there is no zone 'New York' | Did you mean America/New_York?"),
        ("PATTERN SEQ(Open a, Heat b) WHERE Hour(a.ts, 'Mars') = 9 WITHIN 1 s",
         "5:46 hour: there is no zone 'Mars' | Zones have names"),
        ("PATTERN SEQ(Open a, Heat b) WHERE Hour(a.x, 'UTC') = 9 WITHIN 1 s",
         "5:35 hour does not take a number, a string | Hour(a.ts, 'UTC')"),
        ("PATTERN SEQ(Open a, Heat b) WITHIN 1 s RANK BY MAX(a.x) TOP 3 PER DAY IN 'Amerika/New_York'",
         "5:67 there is no time zone 'Amerika/New_York' | Did you mean America/New_York?"),
        ("PATTERN SEQ(Open a, Heat b) WHERE Sqrt(a.x, 2) = 9 WITHIN 1 s", "5:35 sqrt takes 1 value, not 2"),
        ("PATTERN SEQ(Open a, Heat+ b) WHERE STDDEV(b.text) > 2 WITHIN 1 s",
         "5:36 STDDEV of a string is not defined | For strings, there are COUNT(DISTINCT b.x), FIRST"),
        ("PATTERN SEQ(NOT(Open a)) WITHIN 1 s",
         "5:9 a branch needs a positive event | Write NOT, COLLECT and UNTIL beside"),
        ("PATTERN OR(Open a) WITHIN 1 s", "5:9 OR needs at least two branches | OR(SEQ(A a, B b), C c)"),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.x > 1 MEASURES a.x AS y",
         "5:43 WITHIN is expected before MEASURES | The order is PATTERN, WHERE, WITHIN, PAUSE,"),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.x > 1 SELECT first WITHIN 1 s",
         "5:43 WITHIN is expected before SELECT | The order is PATTERN, WHERE, WITHIN, PAUSE,"),
        ("PATTERN SEQ(Open a, Heat b) WITHIN min 1",
         "5:40 nothing may follow the window, but '1' does | The number of a duration"),
        ("PATTERN SEQ(Open a, Heat b) WITHIN -1 s",
         "5:36 a duration is expected after WITHIN, not '-' | WITHIN 5 min."),
        ("PATTERN SEQ(Open a, Heat b) WITHIN 1 s ORDER BY a.x LIMIT 3",
         "5:40 nothing may follow the window, but 'ORDER' does | The best come first: RANK BY MAX(a.x) TOP 10"),
        ("PATTERN SEQ(Open a, Heat b) WHERE a.text > 5 WITHIN 1 s",
         "5:42 a string and a number have no order | Strings take"),
    ],
)  # fmt: skip
def test_habits_of_other_languages_get_a_hint(query: str, what: str) -> None:
    assert any(one.startswith(what) for one in found(query)), found(query)


def test_a_misspelt_window_is_told_once() -> None:
    """The window that could not be read is not said to be missing besides."""
    assert len(found("PATTERN SEQ(Open a, Heat b) WHERE a.x > 1 WITHN 1 s")) == 1


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("PATTERN SEQ STRICT (Open a, Heat b)\nWITHIN 1 s", "5:9 neighbours are events of all keys"),
        ("PATTERN SEQ(Open a, COLLECT(Heat b), COLLECT(Heat c))\nWHERE a.key = b.key AND b.x > 1 AND c.key = a.key\n"
         "WITHIN 1 s", "5:38 b and c are collected in the same place"),
        ("PATTERN SEQ(Open a, COLLECT(Heat b), Close c)\nWHERE a.key = c.key\nWITHIN 1 s",
         "5:21 b shares no condition with the other events, so all of its events are collected"),
        ("PATTERN SEQ(Open a, Heat b, UNTIL(Close c))\nWHERE a.key = b.key\nWITHIN 1 s",
         "5:29 c shares no condition with the other events, so any of its events rejects"),
        ("PATTERN Open a\nWHERE a.x > PREV(a.x)\nWITHIN 1 s", "6:13 PREV looks back over gaps as long as the window"),
        ("PATTERN SEQ(Open a, Heat b)\nWHERE a.key = b.key\nWITHIN 3 EVENTS",
         "7:8 a lake needs a duration beside a window in events"),
        ("PATTERN SEQ(Open a, Heat b)\nWHERE a.x = b.x\nWITHIN 1 s, 3 EVENTS OF KEY",
         "7:13 a lake counts the events of a key only if all events of a match have the same key"),
        ("PATTERN SEQ STRICT OF KEY (Open+ a)\nPAUSE 1 min", "6:1 a lake has to know how long a stretch"),
    ],
)  # fmt: skip
def test_warnings_of_what_is_probably_not_meant(query: str, what: str) -> None:
    assert [one for one in found(query) if one.startswith(what)] != [], found(query)


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ STRICT OF KEY (Open a, Heat+ b)\nWHERE b.x > PREV(b.x)\nWITHIN 1 h PAUSE 5 min MAXIMAL",
        "PATTERN SEQ(Open a, Heat? b, OR(Close c, Heat{2,} d))\nWHERE a.key = b.key AND a.key = c.key "
        "AND a.key = d.key\n"
        "WITHIN 5 min",
        "PATTERN SEQ(Open a, Heat b)\nWHERE a.key = b.key AND b.x BETWEEN 1 AND 5 AND b.text NOT LIKE 'x%'\n"
        "WITHIN 5 min\n"
        "MEASURES b.x - a.x AS rise, CASE WHEN b.x > 3 THEN 'high' ELSE 'low' END AS how",
        "PATTERN SEQ(Open a, * b)\nWHERE a.key = b.key\nWITHIN 5 min PAUSE 1 min OUTERMOST",
        "PATTERN SEQ(Open a, Heat b)\nWHERE a.key = b.key\nWITHIN 5 min CONTEXT recent",
        "PATTERN ANY(2, Open a, Heat b, Close c)\nWHERE a.key = b.key AND b.key = c.key AND a.key = c.key\n"
        "WITHIN 1 h PAUSE 2 min PICK first a, last b within 3 s from c\nMEASURES a.x AS x",
    ],
)
def test_what_is_meant_is_not_warned_of_and_laid_out_already(query: str) -> None:
    assert found(query) == []
    assert laid_out(HEAD + query + "\n") == HEAD + query + "\n"


MESSY = """pattern seq strict of key(A a,B+ b , B{2,3} c,*  x,collect?(D{2,} d),until( S s ),E? e, not(N n))
where b.x between 1 and  5 and c.y not like 'x%' and case when a.x>1 then 2 else 3 end > 1 and a.z is not null
and prev(b.x,2)>1 within 10 min pause 2 min maximal measures count(distinct c.k) as cs,a.x - -1 as y"""
NEAT = """PATTERN SEQ STRICT OF KEY (A a, B+ b, B{2,3} c, * x, COLLECT?(D{2,} d), UNTIL(S s), E? e, NOT(N n))
WHERE b.x BETWEEN 1 AND 5
  AND c.y NOT LIKE 'x%'
  AND CASE WHEN a.x > 1 THEN 2 ELSE 3 END > 1
  AND a.z IS NOT NULL
  AND PREV(b.x, 2) > 1
WITHIN 10 min PAUSE 2 min MAXIMAL
MEASURES COUNT(DISTINCT c.k) AS cs, a.x - -1 AS y
"""


def test_layout_of_new_words() -> None:
    assert laid_out(MESSY) == NEAT == laid_out(NEAT)


def test_layout_of_windows_in_events_and_consumption() -> None:
    messy = (
        "pattern any(2,A a,B b,C c) within 1 h,25 events of key , gap 3 events pick first a,last b within 3 s from c"
    )
    neat = "WITHIN 1 h, 25 EVENTS OF KEY, GAP 3 EVENTS PICK first a, last b within 3 s from c CONSUME a, b PER MATCH"
    found = laid_out(f"{messy} consume a,b per match measures a.x as x")
    assert found == f"PATTERN ANY(2, A a, B b, C c)\n{neat}\nMEASURES a.x AS x\n" == laid_out(found)


def test_new_words_stay_names_types_attributes_and_texts() -> None:
    text = (
        "PATTERN SEQ(collect collect, until until, pause strict)\n"
        "WHERE collect.maximal = until.pause AND until.like = between AND strict.measures IN {when, end}\n"
        "WITHIN 5 s\n"
    )
    assert laid_out(text) == text
    assert [name.name for name in compile_pattern(text).names] == ["collect", "until", "strict"]


def test_names_in_double_quotes_are_types_and_attributes_and_nothing_else() -> None:
    text = 'PATTERN SEQ("Größe (mm)" a, B b)\nWHERE a."order" = b."say ""x""" AND a.x = \'it\'\'s\'\nWITHIN 5 s\n'
    pattern = compile_pattern(text)
    assert pattern.event_types == {"Größe (mm)", "B"} and pattern.mentioned == {"order", 'say "x"', "x"}
    assert laid_out(text) == text
    for wrong in ('PATTERN A "a" WITHIN 5 s', 'PATTERN "A" WITHIN 5 s', 'PATTERN A a WHERE "a".x = 1 WITHIN 5 s'):
        with pytest.raises(DefinitionError):
            compile_pattern(wrong)


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("PATTERN (A B+ C) WITHIN 1 h", "SEQ STRICT OF KEY (T a, T+ b)"),
        ("PATTERN SEQ(A a, B b) DEFINE b AS b.x > a.x WITHIN 1 h", "Conditions come after WHERE"),
        ("PATTERN SEQ(A a, B b) WITHIN 1 h AFTER MATCH SKIP PAST LAST ROW", "MAXIMAL or OUTERMOST"),
        ("PATTERN every a=A -> b=B WITHIN 1 h", "The type comes first"),
        ("sequence by user with maxspan=1m [A] [B]", "SEQ(A a, B b) WHERE a.user = b.user"),
        ("PATTERN STRICT SEQ(A a, B b) WITHIN 1 h", "SEQ STRICT (A a, B b)"),
        ("PATTERN SEQ STRICT OF user (A a, B b) WITHIN 1 h", "--key COLUMN"),
        ("PATTERN SEQ(A a, B b{2,3}) WITHIN 1 h", "B{2,3} b"),
        ("PATTERN SEQ(A a, B+? b) WITHIN 1 h", "MAXIMAL keeps the longest"),
        ("PATTERN SEQ(A a, !B b, D d) WITHIN 1 h", "NOT(B b)"),
        ("PATTERN SEQ(A a | B b) WITHIN 1 h", "OR(A a, B b)"),
        ("PATTERN SEQ(A a, B b) WHERE a.größe > 1 WITHIN 1 h", 'a."größe"'),
        ("PATTERN SEQ(A a, B b) WITHIN 1 hour 30 min", "90 min"),
        ("PATTERN SEQ(A a, B b) WHERE a.x || b.x = 'x' WITHIN 1 h", "Strings cannot be concatenated"),
        ("PATTERN SEQ(A a, B b) WHERE a.name = 'it's' WITHIN 1 h", "'it''s'"),
        ("PATTERN SEQ(A a, B b) WHERE a.name ILIKE 'x%' WITHIN 1 h", "Lower(a.x) LIKE"),
        ("PATTERN SEQ(A a, B b) WHERE a.name MATCHES b.name WITHIN 1 h", "in single quotes, or name a parameter"),
        ("PATTERN SEQ(A a, B b) WHERE BETWEEN(a.x, 1, 2) WITHIN 1 h", "a.x BETWEEN 1 AND 2"),
        ("PATTERN SEQ(A a, B b) WHERE ISNULL(a.x) WITHIN 1 h", "a.x IS NULL"),
        ("PATTERN SEQ(A a, B b) WHERE CASE a.x WHEN 1 THEN 2 END = 2 WITHIN 1 h", "CASE WHEN a.x = 1 THEN"),
        ("PATTERN SEQ(A a, B b) WHERE IF(a.x > 1, 2, 3) = 2 WITHIN 1 h", "CASE WHEN a.x > 1 THEN 2 ELSE 3 END"),
        ("PATTERN SEQ(A a, B b) WITHIN 1 h MEASURES a.x > 3 AS big", "CASE WHEN a.x > 3 THEN TRUE"),
        ("PATTERN SEQ(A a, B b) WHERE a.ts > '2024-01-01' WITHIN 1 h", "Date(a.ts, 'UTC')"),
        ("PATTERN SEQ(A a, B b) WHERE SECONDS(b.ts - a.ts) > 3 s WITHIN 1 h", "leave the unit out"),
        ("PATTERN SEQ(A a, B b) WHERE SECONDS(b.ts) > 3 WITHIN 1 h", "SECONDS(b.ts - a.ts)"),
        ("PATTERN SEQ(A a, B b) WHERE HOUR(a.ts) = 3 WITHIN 1 h", "'Europe/Berlin'"),
        ("PATTERN SEQ(A a, B+ b) WHERE COUNT(*) > 1 WITHIN 1 h", "COUNT(b)"),
        ("PATTERN SEQ(A a, B b) WHERE PREV(x) > 1 WITHIN 1 h", "PREV(b.x, 1, 10 min)"),
        ("PATTERN SEQ(A a, B b) WHERE LAG(a.x) > 1 WITHIN 1 h", "PREV(b.x, 1, 10 min)"),
        ("PATTERN SEQ(A a, B b) WHERE NVL(a.x, 0) > 1 WITHIN 1 h", "Coalesce(x, y)"),
        ("PATTERN SEQ(A a, B+ b) WHERE STDEV(b.x) > 1 WITHIN 1 h", "STDDEV(b.x)"),
        (f"{HEAD}PATTERN SEQ(A a, B b)\nWHERE a.x > 1\n  AND LEAD(b.x) > 1\nWITHIN 1 h", "a name of its own"),
    ],
)  # fmt: skip
def test_what_is_written_here_instead(query: str, hint: str) -> None:
    """Of the library and of lint alike: the hint names the word of this language at the place of the other one's."""
    (found,) = (error for error in lint(query).errors[:1])
    assert hint in (found.hint or "")
    with pytest.raises(DefinitionError) as raised:
        compile_pattern(query)
    assert (raised.value.what, raised.value.line, raised.value.hint) == (found.what, found.line, found.hint)


def test_a_long_text_is_looked_through_as_fast_as_a_short_one() -> None:
    query = f"PATTERN SEQ(A a, B b) WHERE a.s = '{'PREV(x ' * 20_000}' AND {'x' * 50_000} ILIKE 'a' WITHIN 1 h"
    began = time.process_time()
    assert lint(query).errors[0].line == 1
    assert time.process_time() - began < 2


def test_a_hint_is_not_for_errors_elsewhere_in_a_query() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE a.s = 'PATTERN (x' AND c.x > 1 AND a.t LIKE 'NVL(%' WITHIN 1 h"
    (found,) = lint(query).errors
    assert (found.what, found.hint) == ("there is no event named c here", "Known here: a, b.")
