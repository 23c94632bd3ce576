"""Expressions of the pattern language in models: which events a model sees, and values computed of one event."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainlake.errors import DefinitionError, InputError
from chainlake.model_change.days.definitions import load_definition, parse_definition
from chainlake.model_change.library import monitor
from chainlake.model_change.rounds.reduce import reduce_rows
from chainlake.paths import PROJECT

#: New York changes its clocks on the second day, at 07:00 UTC.
START = datetime(2025, 3, 8, tzinfo=UTC)
ZONE = ZoneInfo("America/New_York")
MODEL = {
    "source": "s", "start": "2025-03-08", "nodes": ["a", "b"], "response": "y", "features": ["x"],
    "round": {"length": "10 min"}, "window": {"sliding": 12}, "eps": 0.4,
}  # fmt: skip


@cache
def events(seed: int, days: int = 3) -> list[dict]:
    """Readings of two keys at odd moments, each value missing now and then, the relation changing half-way."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(days * 288):
        for key in "ab":
            at = START + timedelta(minutes=5 * i, seconds=int(rng.integers(0, 300)), microseconds=int(rng.integers(9)))
            x = float(rng.normal())
            row = {"event_id": f"{key}{i}", "key": key, "ts": at, "x": x, "low": float(rng.integers(-1, 4)),
                   "y": (1.0 if i < days * 144 else 2.5) * x + 0.1 * float(rng.normal()),
                   "seen": int(rng.integers(0, 101)), "word": str(rng.choice(["BAC", "SPY", "BRK.A"])),
                   "up": bool(rng.random() < 0.5)}  # fmt: skip
            for name in ("x", "y", "low", "seen", "word", "up"):
                if rng.random() < 0.05:
                    row[name] = None
            found.append(row)
    return found


def local(row: dict) -> datetime:
    return row["ts"].astimezone(ZONE)


def known(*values: object) -> bool:
    return all(value is not None for value in values)


#: A condition, and the same of a row in plain Python.
CONDITIONS = {
    "seen >= 80": lambda r: known(r["seen"]) and r["seen"] >= 80,
    "NOT seen >= 80": lambda r: known(r["seen"]) and not r["seen"] >= 80,
    "Hour(ts, 'America/New_York') BETWEEN 10 AND 15": lambda r: 10 <= local(r).hour <= 15,
    "Hour(ts, 'America/New_York') * 60 + Minute(ts, 'America/New_York') NOT BETWEEN 90 AND 959": lambda r: not (
        90 <= local(r).hour * 60 + local(r).minute <= 959
    ),
    "Weekday(ts, 'America/New_York') <= 5 AND seen > 3": lambda r: (
        local(r).isoweekday() <= 5 and known(r["seen"]) and r["seen"] > 3
    ),
    "word LIKE 'B%' OR low > 1": lambda r: (
        known(r["word"]) and r["word"].startswith("B") or known(r["low"]) and r["low"] > 1
    ),
    "word NOT LIKE 'B%'": lambda r: known(r["word"]) and not r["word"].startswith("B"),
    "word IN {SPY, 'BRK.A'} AND NOT (low = 2 OR seen < 20)": lambda r: (
        known(r["word"], r["low"], r["seen"]) and r["word"] in ("SPY", "BRK.A") and r["low"] != 2 and r["seen"] >= 20
    ),
    "x IS NOT NULL AND up = TRUE": lambda r: known(r["x"]) and r["up"] is True,
    "CASE WHEN up = TRUE THEN seen ELSE 100 - seen END >= 50": lambda r: (
        known(r["seen"]) and (r["seen"] if r["up"] else 100 - r["seen"]) >= 50
    ),
    "key = 'a' OR Abs(x) / low > 0.5": lambda r: (
        r["key"] == "a" or known(r["x"], r["low"]) and r["low"] != 0 and abs(r["x"]) / r["low"] > 0.5
    ),
    "id MATCHES '7$' OR ts >= ts": lambda r: True,
}  # fmt: skip

#: A value, and the same of a row in plain Python; None where it is null.
VALUES = {
    "(x - low) / seen": lambda r: (
        (r["x"] - r["low"]) / r["seen"] if known(r["x"], r["low"], r["seen"]) and r["seen"] else None
    ),
    "-Abs(x) * 2": lambda r: -abs(r["x"]) * 2 if known(r["x"]) else None,
    "CASE WHEN word LIKE 'B%' THEN 1 WHEN up = TRUE THEN seen END": lambda r: (
        1 if known(r["word"]) and r["word"].startswith("B") else r["seen"] if r["up"] else None
    ),
    "Coalesce(low, x, 3)": lambda r: r["low"] if known(r["low"]) else r["x"] if known(r["x"]) else 3,
    "Hour(ts, 'America/New_York') + seen / 2": lambda r: local(r).hour + r["seen"] / 2 if known(r["seen"]) else None,
    "Length(word) - Sqrt(low)": lambda r: (
        len(r["word"]) - math.sqrt(r["low"]) if known(r["word"], r["low"]) and r["low"] >= 0 else None
    ),
    "Log(low)": lambda r: math.log(r["low"]) if known(r["low"]) and r["low"] > 0 else None,
}


def same(one, two) -> None:
    assert one.changes.equals(two.changes) and one.metrics.equals(two.metrics) and one.state == two.state


@pytest.mark.few(2)
@pytest.mark.parametrize("text", CONDITIONS)
def test_an_event_that_where_is_not_true_for_does_not_exist(text: str) -> None:
    rows = events(1)
    left = [row for row in rows if CONDITIONS[text](row)]
    assert left and (len(left) < len(rows) or "ts >= ts" in text)
    seen = monitor(parse_definition(MODEL | {"where": text}), rows, until=date(2025, 3, 11))
    same(seen, monitor(parse_definition(MODEL), left, until=date(2025, 3, 11)))
    assert len(seen.metrics)


@pytest.mark.few(1)
@pytest.mark.parametrize("text", VALUES)
@pytest.mark.parametrize("aggregate", ["last", pytest.param("mean", marks=pytest.mark.slow)])
def test_a_value_is_that_of_a_plain_loop_and_missing_where_it_is_null(text: str, aggregate: str) -> None:
    rows = events(2)
    plain = [row | {"value": VALUES[text](row)} for row in rows]
    assert any(row["value"] is None for row in plain) or "Coalesce" in text
    rounds = MODEL["round"] | {"aggregate": aggregate}
    config = parse_definition(MODEL | {"round": rounds, "features": [{"name": "value", "expression": text}]})
    column = parse_definition(MODEL | {"round": rounds, "features": ["value"]})
    got, wanted = reduce_rows(config, rows, "key"), reduce_rows(column, plain, "key")
    np.testing.assert_allclose(got[config.features[1].of], wanted["value"], rtol=1e-15)
    assert len(monitor(config, rows).changes) and config.feature_names == column.feature_names == ("constant", "value")


@pytest.mark.slow
def test_expressions_go_wherever_columns_go() -> None:
    rows = events(3)
    plain = [row | {"twice": None if row["x"] is None else 2 * row["x"]} for row in rows]

    def model(twice: dict) -> dict:
        return MODEL | {
            "response": {**twice, "transform": "lag 1"},
            "features": [{**twice, "key": "b"}, {**twice, "transform": ["diff", "lag 2"]},
                         {"polynomial": {**twice, "degree": 2, "scale": [-1, 1], "range": [-9, 9]}}],
            "nodes": [{"name": "n", "keys": ["a", "b"]}],
        }  # fmt: skip

    named = {"name": "twice", "expression": "2 * x"}
    one = monitor(parse_definition(model(named)), rows)
    two = monitor(parse_definition(model({"of": "twice"})), plain)
    same(one, two)
    names = parse_definition(model({"expression": "x*2"})).feature_names
    assert names == ("constant", "b.(x * 2)", "lag(diff(x * 2), 2)", "(x * 2)", "(x * 2)^2")
    threshold = {"kind": "threshold", "source": "s", "start": "2025-03-08", "nodes": ["a", "b"], "threshold": 0.5,
                 "round": {"length": "10 min"}}  # fmt: skip
    found = monitor(parse_definition(threshold | {"value": named, "where": "seen >= 30"}), rows).alerts
    left = [row for row in plain if row["seen"] is not None and row["seen"] >= 30]
    assert len(found) and found.equals(monitor(parse_definition(threshold | {"value": "twice"}), left).alerts)


@pytest.mark.slow
@settings(max_examples=15)
@given(
    seed=st.integers(0, 5),
    condition=st.sampled_from(sorted(CONDITIONS)),
    value=st.sampled_from(sorted(VALUES)),
    cuts=st.sets(st.integers(1, 3), max_size=3),
)
def test_any_cut_of_history_gives_the_same_rows(seed: int, condition: str, value: str, cuts: set[int]) -> None:
    rows = events(seed)
    config = parse_definition(MODEL | {"where": condition, "features": ["x", {"expression": value}]})
    end = date(2025, 3, 11)
    whole, result, changes, metrics = monitor(config, rows, until=end), None, [], []
    for until in [*(date(2025, 3, 8) + timedelta(days=cut) for cut in sorted(cuts - {3})), end]:
        result = monitor(config, rows, until=until, after=result)
        changes += result.changes.to_pylist()
        metrics += result.metrics.to_pylist()
    assert result is not None and result.state == whole.state
    assert changes == whole.changes.to_pylist() and metrics == whole.metrics.to_pylist()


def test_definitions_without_expressions_keep_their_hash() -> None:
    """As they were before there were any."""
    folder = PROJECT / "dags" / "config" / "models"
    assert load_definition(folder / "gas_array.yaml").definition_hash == "5c17ef332b0b13fc800ebf2a2c646143"
    assert load_definition(folder / "i5n_speed_profile.yaml").definition_hash == "62486c497ed30e5d275683aec175ab93"
    text = (
        "kind: threshold\nsource: road\nstart: 2025-10-01\nnodes: [s1, s2]\nvalue: velocity\nthreshold: 40\n"
        "missing_if_zero: vehicles\nweight: vehicles\nround: {length: 1 min}\n"
    )
    assert parse_definition(text, "t").definition_hash == "3fb7742f86452acb3740268400af35f1"


def test_the_hash_follows_what_an_expression_says_and_not_how_it_is_written() -> None:
    def of(**more: object) -> str:
        return parse_definition(MODEL | more).definition_hash

    assert of() != of(where="seen > 3") == of(where="seen>3") == of(where='# why\n  "seen" > 3') != of(where="seen > 4")
    one = of(features=[{"expression": "(x - low)/seen"}])
    assert one == of(features=[{"expression": "(x - low) / seen"}]) != of(features=[{"expression": "x - low / seen"}])
    assert one != of(features=[{"expression": "(x - low)/seen", "name": "share"}])


def test_what_expressions_give_belongs_to_the_version_of_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [parse_definition(MODEL), parse_definition(MODEL | {"where": "seen > 3"})]
    before = [model.definition_hash for model in models]
    monkeypatch.setattr("chainlake.cep.versions.ENGINE_VERSION", 1000)
    assert [model.definition_hash == old for model, old in zip(models, before, strict=True)] == [True, False]


TEXT = """\
source: traffic
start: 2025-10-01
nodes: [a, b, c]
response: speed
features:
  - flow
  - {name: spread, expression: (high - low) / close, transform: log}
  - polynomial: {expression: Abs(position), degree: 3, scale: [-1, 1]}
round: {length: 5 min}
window: {sliding: 12}
eps: 0.5
"""


#: Where an error is said to be, in the texts below.
HERE = "¦"


def refused(path, text: str) -> DefinitionError:
    """The error of a model's file, which must be at the mark in the text."""
    path.write_text(text.replace(HERE, ""))
    with pytest.raises(DefinitionError) as caught:
        load_definition(path)
    before = text[: text.index(HERE)]
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert (caught.value.file, caught.value.line, caught.value.column) == (str(path), *place), str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("where", "said", "hint"),
    [
        ("where: seen >= 80 AND Hour(ts, ¦'Mars') = 1", "no zone 'Mars'", ""),
        ("where: 'a > 1 AND ''x'' = ¦foo(s)'", "no function foo", "floor"),
        ('where: "a = 1 AND \\"b\\" \\\n  > ¦PREV(b.x)"', "only one", "lag N"),
        # A character by its number: the place is that of the whole text.
        ('where: ¦"a = \'\\u0041\' AND b > PREV(b.x)"', "only one", "lag N"),
        ("where: >-\n  a > 1 AND\n\n  ¦b.x > 1", "no event named b", "write x"),
        ("where: |\n  a > 1 AND # why\n  b > 2 AND ¦5", "a condition is expected", ""),
        ("where: a > 1 AND\n   b >¦", "not the end", ""),
        ("where: a > 1¦, b > 2", "should end before ','", "AND"),
        ("where: ¦a", "a condition is expected", ""),
        ("where: a = ¦NULL", "equals nothing", "IS NULL"),
        ("where: a ¦IN names", "no set names", ""),
        # What people write elsewhere, and attributes without the name of an event in what they are told.
        ("where: ¦Hour(ts) = 9", "hour takes 2 values", "Hour(ts, 'Europe/Berlin')"),
        ("where: a BETWEEN 1¦, 2", "AND is expected", "x BETWEEN 1 AND 2"),
        ("where: ¦LN(a) > 1", "no function ln", "Log(x)"),
        ("where: ¦LAG(a) > 1", "no function lag", "with transform: lag N"),
        ("where: a > 1 ¦&& b > 1", "no meaning here", "Write AND"),
        ("where: a > 1 ¦BETWEN 2", "should end before 'BETWEN'", "Did you mean BETWEEN?"),
        ("where: ¦seq = 1", "a value is expected, not 'SEQ'", '"seq"'),
        ("where: 1 < a ¦< 3", "cannot be chained", "1 < x AND x < 5"),
        ("where: a = ¦'b #c' AND b > 1", "no closing quote", "in double quotes"),
        ("where: a = 'x' AND a LIKE ¦x", "x is not a string", "single quotes"),
        ("¦where:", "'where' is missing", "string"),
        ("¦where: true", "not a string", "string"),
        ("¦where: [a > 1]", "not a string", "string"),
    ],
)  # fmt: skip
def test_errors_point_into_a_condition(tmp_path, where: str, said: str, hint: str) -> None:
    error = refused(tmp_path / "m.yaml", TEXT + where + "\n")
    assert error.key == "where" and said in error.what and hint in (error.hint or "")
    if not where.startswith(HERE):
        assert error.line is not None
        assert error.excerpt == (tmp_path / "m.yaml").read_text().split("\n")[error.line - 1]


@pytest.mark.parametrize(
    ("old", "new", "key", "said"),
    [
        ("(high - low) / close", "(high - low / close¦", "features.1.expression", "')' is expected"),
        ("(high - low) / close", "¦low > 3", "features.1.expression", "not a condition"),
        ("(high - low) / close", "¦7", "features.1.expression", "same number for every event"),
        ("(high - low) / close", "¦ts - ts", "features.1.expression", "this is a duration"),
        ("(high - low) / close", "low + ¦SUM(high + 1)", "features.1.expression", "SUM needs several events"),
        ("name: spread, ", "¦of: flow, ", "features.1.of", "exclude each other"),
        ("(high - low) / close", "Least(high, ¦low)", "features.1.low)", "the string of 'expression' ends at a comma"),
        ("name: spread, expression: (high - low) / close", "¦name: n, of: flow", "features.1.name", "only an"),
        ("Abs(position)", "\"¦Abs(position, 2)\"", "features.2.polynomial.expression", "abs takes 1 value, not 2"),
        ("response: speed", "response: {expression: speed *¦}", "response.expression", "not the end"),
    ],
)  # fmt: skip
def test_errors_point_into_a_value(tmp_path, old: str, new: str, key: str, said: str) -> None:
    error = refused(tmp_path / "m.yaml", TEXT.replace(old, new))
    assert error.key == key and said in error.what


def test_rows_that_do_not_fit_are_said() -> None:
    rows = events(4, days=1)
    with pytest.raises(InputError, match="no column 'lane'"):
        monitor(MODEL | {"where": "lane = 1"}, rows)
    with pytest.raises(DefinitionError, match="a number and a string have no order"):
        monitor(MODEL | {"where": "seen > 'x'"}, rows)
    with pytest.raises(DefinitionError, match="a number is expected, but this is a string"):
        monitor(MODEL | {"features": [{"expression": "word"}]}, rows)
    with pytest.raises(DefinitionError, match="MAX needs several events"):
        monitor(MODEL | {"where": "MAX(seen) > 3"}, rows)


@pytest.mark.slow
def test_a_list_that_one_event_holds_may_be_aggregated() -> None:
    rows = [row | {"lanes": None if i % 7 == 0 else [1.0 * (i % 5), 3.0][: i % 3]} for i, row in enumerate(events(5))]
    left = [row for row in rows if row["lanes"] and max(row["lanes"]) >= 3]
    assert 0 < len(left) < len(rows)
    same(monitor(MODEL | {"where": "MAX(lanes) >= 3"}, rows, until=date(2025, 3, 11)),
         monitor(MODEL, left, until=date(2025, 3, 11)))  # fmt: skip
    shares = {parse_definition(MODEL | {"where": f"PERCENTILE(lanes, {share}) > 1"}).where for share in (0.1, 0.9)}
    assert len(shares) == 2


def test_a_key_that_where_leaves_no_event_of_is_said() -> None:
    result = monitor(MODEL | {"where": "key != 'b'"}, events(6, days=1))
    (line,) = [line for line in result.warnings if "no event" in line]
    assert line.startswith("no event that 'where' is true for up to 2025-03-08 has the key 'b'")


@pytest.mark.parametrize(
    ("feature", "name"),
    [
        ({"expression": "Sqrt(0 - x * x - 1)"}, "sqrt("),
        ({"name": "share", "expression": "x / (seen - seen)"}, "share"),
        ({"name": "p", "expression": "0 - Abs(x)", "transform": "log"}, "log(p)"),
    ],
)
def test_what_never_has_a_value_is_said(feature: dict, name: str) -> None:
    """A model of it has no usable round, so no row of any table would tell."""
    result = monitor(MODEL | {"features": ["x", feature]}, events(6, days=1))
    assert not len(result.changes)
    (line,) = [line for line in result.warnings if "no value" in line]
    assert line.startswith(name) and "has no value in any of 144 rounds" in line
    sound = monitor(MODEL | {"features": ["x", {"expression": "Sqrt(x)"}]}, events(6, days=1))
    assert not [line for line in sound.warnings if "no value" in line]


#: One of each kind that uses x, all of whose nodes have to have it.
KINDS = {
    "linear": {},
    "threshold": {"kind": "threshold", "value": "x", "threshold": 0},
    "safe_zones": {"kind": "safe_zones", "values": ["x", "y"], "region": {"box": [[-1, 1], [None, None]]}},
    "shared_learning": {"kind": "shared_learning", "learning_rate": 0.01, "sync": {"static": 8}},
    "latent_faults": {"kind": "latent_faults", "counters": ["y", "x"]},
}
KEPT = {"linear": set(MODEL), "shared_learning": {"response", "features"}}


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_never_has_a_value_is_named(kind: str) -> None:
    """It has events, so its key is known; but no round is complete, and no row of any table would tell."""
    rows = [{**row, "key": key} for row in events(6, days=1) for key in {"a": "a", "b": "bc"}[row["key"]]]
    kept = {"source", "start", "round"} | KEPT.get(kind, set())
    model = {key: value for key, value in MODEL.items() if key in kept} | KINDS[kind] | {"nodes": ["a", "b", "c", "d"]}
    rows += [{**row, "key": "d"} for row in rows if row["key"] == "a"]
    dead = [row | ({"x": None} if row["key"] in "bd" else {}) for row in rows]
    result = monitor(model, dead)
    assert not len(result.found)
    (line,) = [line for line in result.warnings if "no value" in line]
    assert line.startswith("x has no value at 'b', 'd' in any of 144 rounds, so no round is used that needs them: ")
    later = [row | ({"x": 1.0} if row["key"] in "bd" and row["ts"].hour == 23 else {}) for row in dead]
    assert not [line for line in monitor(model, later).warnings if "no value" in line]
    # Nor is a node that takes no part yet, or one whose key no event has, which is said in other words.
    others = ["a", "c", "e"] + ([{"keys": ["b"], "from": "2025-06-01"}] if kind == "linear" else [])
    assert not [line for line in monitor(model | {"nodes": others}, dead).warnings if "no value" in line]
