"""Functions are what a line of Python says, for one event and for several, in every backend."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from chainlake.cep.automata.simulate import simulate
from chainlake.cep.conditions.computed import add_computed
from chainlake.cep.library import as_dicts, from_dicts, match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import DefinitionError, InputError
from tests.cep.test_differential import canonical

START = datetime(2025, 3, 29, 22, tzinfo=UTC)
NAN = float("nan")
X = [
    None,
    NAN,
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    -2.5,
    2.675,
    1.005,
    0.49999999999999994,
    1e308,
    -1e308,
    1e-320,
    7.0,
    4503599627370497.5,
]
N = [None, 0, 1, -1, 5, -7, 15, -25, 2**53 + 1, -(2**62), 2**63 - 1, -(2**63)]
S = [None, "", "abc", "ABC", "aB%", "a_c", "äÖ", "z\n\\"]  # fmt: skip


def events(seed: int = 5, n: int = 90) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    rows = []
    for i in range(n):
        attrs = {
            "x": draw.choice(X),
            "y": draw.choice([*X, 2.0, 3.0]),
            "n": draw.choice(N),
            "m": draw.choice(N),
            "s": draw.choice(S),
            "r": draw.choice(S),
            "flag": draw.choice([True, False, None]),
            "at": draw.choice([None, START + timedelta(minutes=17 * draw.randrange(-3000, 3000))]),
            "none": None,
        }
        ts = START + timedelta(milliseconds=250 * i + draw.randrange(200))
        rows.append({"id": f"e{i:02}", "type": "AB"[i % 2], "ts": ts, "attrs": attrs})
    return rows


def strict(of: Callable[..., Any]) -> Callable[..., Any]:
    """Null if any argument is null; null outside the domain of a function."""

    def call(*args: Any) -> Any:
        if any(arg is None for arg in args):
            return None
        try:
            found = of(*args)
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        return None if isinstance(found, complex) or found != found else found

    return call


def finite(of: Callable[..., Any]) -> Callable[..., Any]:
    """The same; null, too, where that is no finite number."""
    return lambda *args: None if (found := strict(of)(*args)) is not None and math.isinf(found) else found


def whole(to: Callable[[float], int], x: float) -> float:
    return x if math.isinf(x) else float(to(x))


def rounded(x: float | int, digits: int) -> float | int:
    if isinstance(x, int):
        unit = 10 ** max(0, -digits)
        size = (abs(x) + unit // 2) // unit * unit
        return -size if x < 0 else size
    scaled = x * 10.0**digits if digits >= 0 else x / 10.0**-digits
    if not math.isfinite(scaled):
        return x
    near = float(math.trunc(scaled))
    if abs(scaled - near) >= 0.5:
        near += math.copysign(1.0, scaled)
    found = near / 10.0**digits if digits >= 0 else near * 10.0**-digits
    return found if math.isfinite(found) else x


def remainder(x: float | int, y: float | int) -> float | int:
    if isinstance(x, int) and isinstance(y, int):
        return -(abs(x) % abs(y)) if x < 0 else abs(x) % abs(y)
    return math.fmod(x, y)


def fits(text: str, pattern: str) -> bool:
    parts = re.findall(r"\\.|.", pattern, re.S)
    return bool(re.fullmatch("".join({"%": ".*", "_": "."}.get(p) or re.escape(p[-1]) for p in parts), text, re.S))


def local(at: datetime, zone: str) -> datetime:
    return at.astimezone(ZoneInfo(zone))


def _float(of: Callable[..., Any]) -> Callable[..., Any]:
    return finite(lambda *args: of(*map(float, args)))


#: An expression, of which P is the first event and Q the second, and what it is of their attributes.
VALUES: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "Lower(P.s)": lambda p, q: strict(str.lower)(p["s"]),
    "Upper(Coalesce(P.s, Q.r))": lambda p, q: strict(str.upper)(p["s"] if p["s"] is not None else q["r"]),
    "Length(P.s) + Length(Q.r)": lambda p, q: strict(lambda s, r: len(s) + len(r))(p["s"], q["r"]),
    "Round(P.x)": lambda p, q: strict(lambda x: rounded(x, 0))(p["x"]),
    "Round(P.x / Q.y, 2)": lambda p, q: strict(lambda x, y: rounded(x / y, 2))(p["x"], q["y"]),
    "Round(P.x + Q.y, -1)": lambda p, q: strict(lambda x, y: rounded(x + y, -1))(p["x"], q["y"]),
    "Round(P.n, -1)": lambda p, q: strict(lambda n: rounded(n, -1))(p["n"] if abs(p["n"] or 0) < 2**62 else None),
    "Floor(P.x - Q.y)": lambda p, q: strict(lambda x, y: whole(math.floor, x - y))(p["x"], q["y"]),
    "Ceil(P.x * Q.y)": lambda p, q: strict(lambda x, y: whole(math.ceil, x * y))(p["x"], q["y"]),
    "Floor(P.n)": lambda p, q: p["n"],
    "Sqrt(P.x + Q.y)": lambda p, q: finite(lambda x, y: math.sqrt(x + y))(p["x"], q["y"]),
    "Sqrt(P.n - Q.n)": lambda p, q: strict(lambda x, y: math.sqrt(float(x - y)))(p["n"], q["n"]),
    "Power(P.x, Q.y)": lambda p, q: _float(lambda x, y: x**y)(p["x"], q["y"]),
    "Mod(P.x, Q.y)": lambda p, q: finite(remainder)(p["x"], q["y"]),
    "Mod(P.n, Q.m)": lambda p, q: strict(remainder)(p["n"], q["m"]),
    "Mod(P.n, Q.y)": lambda p, q: _float(remainder)(p["n"], q["y"]),
    "Least(P.x, Q.y, 3)": lambda p, q: strict(lambda *of: min(map(float, of)))(p["x"], q["y"], 3),
    "Greatest(P.n, Q.m)": lambda p, q: strict(max)(p["n"], q["m"]),
    "Least(P.n, Q.y)": lambda p, q: _float(min)(p["n"], q["y"]),
    "Greatest(P.s, Q.r)": lambda p, q: strict(max)(p["s"], q["r"]),
    "Coalesce(P.x, Q.y, 1.5)": lambda p, q: next(v for v in (p["x"], q["y"], 1.5) if v is not None),
    "Coalesce(P.n, Q.m)": lambda p, q: p["n"] if p["n"] is not None else q["m"],
    "Coalesce(P.none, Q.flag)": lambda p, q: q["flag"],
    "P.n / 1 - Q.m / 1": lambda p, q: strict(lambda n, m: float(n) - float(m))(p["n"], q["m"]),
    "Abs(P.x - Q.y)": lambda p, q: strict(lambda x, y: abs(x - y))(p["x"], q["y"]),
    "Hour(P.at, 'Europe/Berlin')": lambda p, q: strict(lambda at: local(at, "Europe/Berlin").hour)(p["at"]),
    "Minute(P.at, 'Asia/Kathmandu')": lambda p, q: strict(lambda at: local(at, "Asia/Kathmandu").minute)(p["at"]),
    "Weekday(P.at, 'America/New_York')": lambda p, q: strict(
        lambda at: local(at, "America/New_York").isoweekday()
    )(p["at"]),
    "Date(P.at, 'Pacific/Auckland')": lambda p, q: strict(
        lambda at: local(at, "Pacific/Auckland").date().isoformat()
    )(p["at"]),
    "Date(Coalesce(P.at, Q.at), 'UTC')": lambda p, q: strict(lambda at: at.date().isoformat())(p["at"] or q["at"]),
    "SECONDS(Q.at - P.at)": lambda p, q: strict(lambda a, b: (b - a) / timedelta(seconds=1))(p["at"], q["at"]),
    "CASE WHEN P.x > Q.y THEN P.n WHEN NOT P.x > 0 THEN 7 END": lambda p, q: (
        p["n"] if strict(lambda x, y: x > y)(p["x"], q["y"]) else 7 if strict(lambda x: not x > 0)(p["x"]) else None
    ),
    "CASE WHEN P.s LIKE 'a%' OR NOT (Q.r IS NULL AND P.flag = TRUE) THEN P.s ELSE 'else' END": lambda p, q: (
        p["s"]
        if strict(lambda s: fits(s, "a%"))(p["s"]) or q["r"] is not None or p["flag"] is False
        else "else"
    ),
    "CASE WHEN Length(P.s) IN {0, 3} THEN Q.y ELSE P.n END": lambda p, q: (
        q["y"] if strict(len)(p["s"]) in (0, 3) else None if p["n"] is None else float(p["n"])
    ),
}  # fmt: skip


def named(expression: str, first: str, second: str) -> str:
    return re.sub(r"\bP\.", f"{first}.", re.sub(r"\bQ\.", f"{second}.", expression))


def known(row: dict[str, Any]) -> dict[str, Any]:
    """NaN is null."""
    return {name: None if value != value else value for name, value in row["attrs"].items()}


def pairs(rows: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    a, b = ([row for row in rows if row["type"] == kind] for kind in "AB")
    return [(p, q) for p in a for q in b if p["ts"] < q["ts"] <= p["ts"] + timedelta(seconds=5)]


@pytest.mark.parametrize("expression", VALUES)
@pytest.mark.parametrize("single", [True, False])
def test_values(expression: str, single: bool) -> None:
    if expression == "Sqrt(P.n - Q.n)" and single:
        return
    rows, of = events(), VALUES[expression]
    if expression == "Round(P.n, -1)":
        rows = [row for row in rows if abs(row["attrs"]["n"] or 0) < 2**62]
    if single:
        text = f"PATTERN A a WITHIN 1 s MEASURES {named(expression, 'a', 'a')} AS v"
        wanted = {(row["id"],): of(known(row), known(row)) for row in rows if row["type"] == "A"}
    else:
        text = f"PATTERN SEQ(A a, B b) WITHIN 5 s MEASURES {named(expression, 'a', 'b')} AS v"
        wanted = {(p["id"], q["id"]): of(known(p), known(q)) for p, q in pairs(rows)}
    found = {tuple(m[name] for name in ("a", "b") if name in m): m.get("v") for m in match(text, rows)}
    assert {key: value for key, value in found.items() if value is not None} == {
        key: value for key, value in wanted.items() if value is not None
    }
    assert len({value is None for value in wanted.values()}) > 1 or "Coalesce" in expression or "'else'" in expression


@pytest.mark.few(2)
@pytest.mark.parametrize("expression", [e for e in VALUES if not e.startswith(("Lower", "Upper"))])
def test_conditions_in_every_backend(expression: str) -> None:
    rows, of = events(seed=8, n=60), VALUES[expression]
    if expression == "Round(P.n, -1)":
        rows = [row for row in rows if abs(row["attrs"]["n"] or 0) < 2**62]
    table, ids = from_dicts(rows)
    results = {(p["id"], q["id"]): of(known(p), known(q)) for p, q in pairs(rows)}
    values = sorted({v for v in results.values() if v is not None})
    tests: list[tuple[str, Callable[[Any], bool]]] = [("{} IS NULL", lambda v: v is None)]
    if not isinstance(values[0], bool):
        middle = values[len(values) // 2]
        tests += [
            ("{} <= :m", lambda v: v is not None and v <= middle),
            ("{} != :m", lambda v: v not in (None, middle)),
        ]
    else:
        middle = True
        tests += [("{} != :m", lambda v: v is False)]
    for test, holds in tests:
        where = test.format(named(expression, "a", "b")).replace(":m", "limit")
        text = f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 5 s"
        pattern = compile_pattern(
            text, params={"limit": middle}, columns={f.name: f.type for f in table.schema if f.name != "event_id"}
        )
        wanted = sorted(key for key, value in results.items() if holds(value))
        for backend in ("numpy", "compiled"):
            statistics = Statistics()
            found = [m for b in find(pattern, table, backend=backend, statistics=statistics)
                     for m in as_dicts(pattern, b, ids)]  # fmt: skip
            assert sorted((m["a"], m["b"]) for m in found) == wanted, (where, backend, statistics.backends)
        assert canonical(list(simulate(pattern, table).matches(pattern, ids))) == canonical(found)


@pytest.mark.parametrize(
    "condition",
    [
        "Round(b.x / a.y, 2) > 1", "Floor(b.x - a.x) = 0", "Ceil(b.x - a.x) = 1", "Sqrt(Abs(a.x * b.x)) < 3",
        "Least(a.x, b.y, 3) = a.x", "Greatest(a.n, b.x) > 2", "SECONDS(b.ts - a.ts) > 3", "Mod(a.x, b.y) = 0.5",
    ],
)  # fmt: skip
def test_numbers_are_machine_code(condition: str) -> None:
    table, _ = from_dicts(events())
    pattern = compile_pattern(f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 5 s")
    statistics = Statistics()
    list(find(pattern, table, backend="compiled", statistics=statistics))
    assert [backend for backend, _ in statistics.backends] == ["compiled"], statistics.backends


@pytest.mark.parametrize(
    "pattern", ["", "%", "a%", "%c", "_b_", "a\\_c", "aB\\%", "%\n\\\\", "ä_", "A.C", "[abc]%", "___", "(a)"]
)
@pytest.mark.parametrize("value", ["a.s", "Coalesce(a.none, b.s)"])
def test_like(pattern: str, value: str) -> None:
    rows = events(n=40)
    for word in ("LIKE", "NOT LIKE"):
        text = f"PATTERN SEQ(A a, B b) WHERE {value} {word} wanted WITHIN 5 s"
        found = {(m["a"], m["b"]) for m in match(text, rows, {"wanted": pattern})}
        wanted = set()
        for p, q in pairs(rows):
            s = (p if value == "a.s" else q)["attrs"]["s"]
            if s is not None and fits(s, pattern) == (word == "LIKE"):
                wanted.add((p["id"], q["id"]))
        assert found == wanted


def test_expressions_are_searched_for_anywhere() -> None:
    rows = events(n=40)
    found = {m["a"] for m in match("PATTERN A a WHERE a.s MATCHES '(?i)^a.' WITHIN 1 s", rows)}
    assert found == {row["id"] for row in rows if row["type"] == "A" and re.match("(?i)a.", row["attrs"]["s"] or "")}
    assert found


def test_durations_keep_their_kind() -> None:
    rows = events(n=20)
    text = "PATTERN SEQ(A a, B b) WHERE Least(b.ts - a.ts, 1 s) < 700 ms AND Coalesce(a.none, b.ts) > a.ts WITHIN 5 s"
    wanted = {(p["id"], q["id"]) for p, q in pairs(rows) if q["ts"] - p["ts"] < timedelta(milliseconds=700)}
    for backend in ("numpy", "compiled"):
        assert {(m["a"], m["b"]) for m in match(text, rows, backend=backend)} == wanted
    text = "PATTERN A a WHERE Greatest(a.at - a.ts, 1 min) > 1 min WITHIN 5 s"
    wanted_one = {r["id"] for r in rows if r["type"] == "A" and r["attrs"]["at"] is not None
                  and r["attrs"]["at"] - r["ts"] > timedelta(minutes=1)}  # fmt: skip
    assert {m["a"] for m in match(text, rows)} == wanted_one


def test_texts_are_compared_by_their_letters_also_where_they_are_computed() -> None:
    rows = events(n=40)
    for text, holds in {
        "Lower(a.s) < Lower(b.r)": lambda p, q: strict(lambda s, r: s.lower() < r.lower())(p["s"], q["r"]),
        "Upper(Coalesce(a.s, b.r)) >= b.r": lambda p, q: strict(lambda s, r: s.upper() >= r)(
            p["s"] if p["s"] is not None else q["r"], q["r"]
        ),
        "Least(Lower(Coalesce(a.s, b.s)), b.r, 'b') = b.r": lambda p, q: strict(
            lambda s, r: min(s.lower(), r, "b") == r
        )(p["s"] if p["s"] is not None else q["s"], q["r"]),
    }.items():
        pattern = compile_pattern(f"PATTERN SEQ(A a, B b) WHERE {text} WITHIN 5 s")
        table, ids = from_dicts(rows)
        found = [m for b in find(pattern, table) for m in as_dicts(pattern, b, ids)]
        assert {(m["a"], m["b"]) for m in found} == {
            (p["id"], q["id"]) for p, q in pairs(rows) if holds(known(p), known(q))
        }
        assert canonical(list(simulate(pattern, table).matches(pattern, ids))) == canonical(found)


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_a_sum_of_whole_numbers_is_null_where_either_is(backend: str) -> None:
    rows = [{**row, "attrs": {"n": n}} for row, n in zip(events(n=24), [None, 1, 2, None, 5] * 5, strict=False)]
    wanted = {(p["id"], q["id"]) for p, q in pairs(rows) if None in (p["attrs"]["n"], q["attrs"]["n"])}
    found = {
        (m["a"], m["b"])
        for m in match("PATTERN SEQ(A a, B b) WHERE a.n + b.n IS NULL WITHIN 5 s", rows, backend=backend)
    }
    assert found == wanted
    found = {
        (m["a"], m["b"])
        for m in match("PATTERN SEQ(A a, B b) WHERE a.n + b.n IS NOT NULL WITHIN 5 s", rows, backend=backend)
    }
    assert found == {(p["id"], q["id"]) for p, q in pairs(rows)} - wanted


@pytest.mark.parametrize(
    ("condition", "what"),
    [
        ("a.s LIKE 'a\\b'", "a backslash must be followed by"),
        ("a.s LIKE 'a\\'", "a backslash must be followed by"),
        ("a.s MATCHES '(a'", "MATCHES cannot use '(a'"),
        ("a.s MATCHES '(?=a)'", "MATCHES cannot use"),
        ("a.s MATCHES given", "MATCHES cannot use 'x('"),
        ("CASE WHEN a.s MATCHES '[' THEN 1 END = 1", "MATCHES cannot use '['"),
        ("a.x LIKE 'a'", "LIKE takes a string, not a number"),
        ("Hour(a.ts, 'Mars') = 1", "there is no zone 'Mars'"),
        ("Hour(a.ts, a.s) = 1", "a zone is a string"),
        ("Hour(a.ts) = 1", "hour takes 2 values, not 1"),
        ("Date(a.x, 'UTC') = 'a'", "date does not take a number"),
        ("Round(a.x, 1.5) = 1", "the number of digits must be a whole number"),
        ("Round(a.x, 16) = 1", "the number of digits must be a whole number from -15 to 15"),
        ("Round(a.x, 1, 2) = 1", "round takes 1 to 2 values, not 3"),
        ("Least(a.x) = 1", "least takes 2 to 20 values, not 1"),
        ("Least(a.x, a.s) = 1", "least does not take a number, a string"),
        ("Greatest(a.flag, a.flag) = TRUE", "greatest does not take a bool"),
        ("Coalesce(a.x, a.at) = 1", "coalesce does not take a number, a time"),
        ("SECONDS(a.x) > 1", "seconds does not take a number"),
        ("Sqrt(a.s) > 1", "sqrt does not take a string"),
        ("Lower(a.x) = 'a'", "lower does not take a number"),
        ("CASE WHEN a.x > 1 THEN 1 ELSE 'a' END = 1", "CASE gives a number or a string"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(condition: str, what: str) -> None:
    table, _ = from_dicts(events())
    columns = {f.name: f.type for f in table.schema if f.name != "event_id"}
    with pytest.raises(DefinitionError) as error:
        compile_pattern(f"PATTERN A a WHERE {condition} WITHIN 1 s", columns=columns, params={"given": "x("})
    assert what in error.value.what and error.value.line == 1


def test_whole_numbers_that_no_column_holds_are_said() -> None:
    rows = [{"id": 1, "type": "A", "ts": 0, "attrs": {"n": 2**63 - 1}}]
    with pytest.raises(InputError, match="beyond 64 bits"):
        list(match("PATTERN A a WHERE Round(a.n, -1) > 1 WITHIN 1", rows))


def test_a_pattern_without_functions_computes_nothing() -> None:
    pattern = compile_pattern("PATTERN SEQ(A a, B b) WHERE b.x > a.x AND Abs(a.x) > 1 WITHIN 1 s")
    assert pattern.extras.computed == () and pattern.searched is pattern.mentioned


@pytest.mark.parametrize(
    "expression", [*VALUES, "AVG(P.h)", "COUNT(P.h)", "FIRST(P.h)", "P.s LIKE 'a%'", "Date(P.at, 'UTC')"]
)
def test_columns_have_one_type_whatever_the_events_are(expression: str) -> None:
    """Chunks of events are put together, and some of them are empty or hold nothing but nulls."""
    table, _ = from_dicts([row for row in events() if abs(row["attrs"]["n"] or 0) < 2**62])
    table = table.append_column("h", pa.array([[1.0, 2.0]] * len(table)))
    where = named(expression, "a", "a") + ("" if "LIKE 'a%'" in expression[-9:] else " IS NULL")
    columns = {f.name: f.type for f in table.schema if f.name != "event_id"}
    computed = compile_pattern(f"PATTERN A a WHERE {where} WITHIN 1 s", columns=columns).extras.computed
    nulls = {f.name: pa.nulls(3, f.type) for f in table.schema if f.name not in ("event_id", "type", "ts")}
    nothing = pa.table({**table.slice(0, 3).select(["event_id", "type", "ts"]).to_pydict(), **nulls}).cast(table.schema)
    whole = add_computed(table, computed, None)
    for part in (table.slice(0, 0), table.slice(0, 1), nothing):
        assert add_computed(part, computed, None).schema.equals(whole.schema)
