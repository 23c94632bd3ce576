"""Expressions of one event without its name: their normal form is read as what it was made of."""

from __future__ import annotations

import pyarrow as pa
import pytest

from chainlake.cep.expressions import condition, value
from chainlake.errors import DefinitionError, InputError

EVENTS = pa.table({
    "ts": [1, 2, 3, 4], "x": [1.5, -2.0, None, 8.0], "end": [2, 4, 0, None], "NULL": [1, None, 3, 4],
    "odd name": [1.0, 2.0, 3.0, 4.0], "s": ["it's", "B%", None, "b"], "l": [[1.0, 2.0], [], None, [5.0]],
})  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "x - -5 * (end - 2e-7)", "-(-x)", 'x / "odd name"', '"NULL" + 1', "(x - end) - (end - x)", "x - (end - x)",
        "CASE WHEN end > 5 THEN x WHEN s = 'it''s' OR NOT x > 1 THEN 1 ELSE end END", "Greatest(x, end, 0.1) / 3",
        "Seconds(ts - ts + 1500 ms)", "SUM(l) + COUNT(DISTINCT l) - PERCENTILE(l, 0.25)", "Abs(x)*2",
    ],
)  # fmt: skip
def test_a_value_is_that_of_its_normal_form(text: str) -> None:
    first = value(text)
    second = value(first.text)
    assert second.text == first.text and second.stored == first.stored
    assert str(first.numbers(EVENTS)) == str(second.numbers(EVENTS))


@pytest.mark.parametrize(
    "text",
    [
        "x > 1 AND (end = 4 OR s LIKE 'B\\%') OR NOT (x < 0)", "s NOT IN {it, 'B%', 3} AND x BETWEEN -3 AND 2",
        "NOT x NOT BETWEEN 0 AND 2", '"NULL" IS NOT NULL', "s MATCHES '^[Bb]' OR MAX(l) >= 5", "ts - ts < 2 min",
        "TRUE", "end IN {2, 4} AND TRUE", "CASE WHEN x > 1 THEN 'a' END = 'a'",
    ],
)  # fmt: skip
def test_a_condition_is_that_of_its_normal_form(text: str) -> None:
    first = condition(text)
    second = condition(first.text)
    assert second.text == first.text and second.stored == first.stored
    assert first.holds(EVENTS).tolist() == second.holds(EVENTS).tolist()


def test_what_a_table_has_not_or_cannot_be_used_is_said() -> None:
    with pytest.raises(DefinitionError, match=r"1:5: the events have no attribute y\b"):
        value("x + y").numbers(EVENTS)
    with pytest.raises(DefinitionError, match="quotes: 'BAC'"):
        condition("s = BAC").holds(EVENTS)
    with pytest.raises((DefinitionError, InputError)):
        condition("x = 1").holds(pa.table({"ts": [1], "x": [{"deep": 1}]}))


def test_no_events_are_no_rows() -> None:
    none = EVENTS.slice(0, 0)
    assert len(value("x + end").numbers(none)) == len(condition("s LIKE 'a%' AND x > 1").holds(none)) == 0


@pytest.mark.parametrize("name", ["seq", "Where", "in", "NOT", "true", "case", "max", "prev", "s", "null", "ts2"])
def test_an_attribute_may_be_called_as_a_word_of_the_language_is(name: str) -> None:
    events = pa.table({"ts": [1, 2], name: [1.0, 2.0]})
    first = value(f'"{name}" * 2')
    assert list(value(first.text).numbers(events)) == list(first.numbers(events)) == [2.0, 4.0]
    assert list(condition(f'"{name}" > 1 AND "{name}" < 5').holds(events)) == [False, True]


def test_a_history_is_said_to_be_one() -> None:
    """A source has it for patterns; a model would have to read earlier events."""
    with pytest.raises(DefinitionError, match="last5 is a history") as caught:
        condition("AVG(last5) > x").check({"x": pa.float64()}, ["last5"])
    assert caught.value.column == 1 and "lag N" in (caught.value.hint or "")
