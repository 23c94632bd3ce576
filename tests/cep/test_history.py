"""History columns: the values are those of a plain loop, whatever the order of the rows."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainlake.cep.events.history import add_histories
from chainlake.cep.library import match
from chainlake.cep.pattern import compile_pattern
from chainlake.definitions.derived import History, Series, parse_history
from chainlake.errors import DefinitionError, InputError, UsageError
from tests.cep.series_rows import DAY, rows_of_series, table_of_series
from tests.cep.sources import with_plant


def plain(rows: list[dict[str, Any]], one: History) -> dict[str, list[float] | None]:
    """Event id to its history, from the definition."""
    found: dict[str, list[float] | None] = {}
    for row in rows:
        place = (row["ts"], row["type"], row["seq"], row["event_id"])
        before = sorted(
            ((r["ts"], r["type"], r["seq"], r["event_id"]), r["x"])
            for r in rows
            if r["key"] == row["key"] and r["key"] is not None and r["x"] is not None
            and (r["ts"], r["type"], r["seq"], r["event_id"]) <= place
        )  # fmt: skip
        last = before[-one.count :]
        times = [at[0] for at, _ in last] + [row["ts"]]
        gaps = [after - earlier for earlier, after in zip(times, times[1:], strict=False)]
        good = len(last) == one.count and max(gaps) <= one.max_gap_us
        found[row["event_id"]] = [x for _, x in last] if good else None
    return found


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[dict[str, Any]], History]:
    rows = draw(rows_of_series(st.integers(0, 2), st.sampled_from([None, 1.0, 2.0, 3.0, 4.0])))
    return rows, History("h", "x", draw(st.integers(1, 4)), draw(st.integers(0, 4)))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(histories(), st.randoms(use_true_random=False))
def test_values_are_those_of_a_plain_loop(drawn: tuple[list[dict[str, Any]], History], rng: random.Random) -> None:
    rows, one = drawn
    wanted = plain(rows, one)
    rng.shuffle(rows)
    found = add_histories(table_of_series(rows, pa.float64()), ["key"], [one])
    assert found["event_id"].to_pylist() == [row["event_id"] for row in rows]
    assert dict(zip(found["event_id"].to_pylist(), found["h"].to_pylist(), strict=True)) == wanted


def test_a_whole_second_is_a_tick_where_times_are_numbers() -> None:
    rows = table_of_series([], pa.float64())
    columns = {"event_id": ["a", "b"], "type": ["A", "A"], "ts": [10, 12], "key": ["p", "p"], "x": [1.0, 2.0]}
    two = [History("h", "x", 2, 2_000_000), History("g", "x", 2, 1_999_999)]
    found = add_histories(pa.table(columns), ["key"], two)
    assert found["h"].to_pylist() == [None, [1.0, 2.0]] and found["g"].to_pylist() == [None, None]
    assert add_histories(rows, ["key"], [History("h", "x", 2, 1)])["h"].to_pylist() == []


def test_what_is_wrong_is_said() -> None:
    events = pa.table({"event_id": ["a"], "type": ["A"], "ts": [1], "key": ["p"], "name": ["x"]})
    with pytest.raises(InputError, match="no column price"):
        add_histories(events, ["key"], [History("h", "price", 2, 1)])
    with pytest.raises(InputError, match="a history needs numbers"):
        add_histories(events, ["key"], [History("h", "name", 2, 1)])
    assert parse_history("h", "history(price, 0, 5 min)") is None
    assert parse_history("h", "history(price, 5, 5 years)") is None
    assert parse_history("h", " history( price,5,1.5 h ) ") == History("h", "price", 5, 5_400_000_000)


QUERY = "PATTERN SEQ(A a, A b) WHERE a.k = p AND b.k = q AND Corr(a.last3, b.last3) > 0.9 WITHIN 10 s"


def test_corr_over_histories_from_the_library() -> None:
    values = {"p": [1, 2, 3, 9, 2], "q": [5, 7, 9, 4, 8]}
    events = [
        {"id": f"{k}{i}", "type": "A", "ts": 2 * i + (k == "q"), "attrs": {"k": k, "x": x}}
        for k, column in values.items()
        for i, x in enumerate(column)
    ]
    found = list(match(QUERY, events, key="k", derived={"last3": "history(x, 3, 2 s)"}))
    # p2 = (1, 2, 3), p3 = (2, 3, 9), p4 = (3, 9, 2); q2 = (5, 7, 9), q3 = (7, 9, 4), q4 = (9, 4, 8)
    assert found == [{"a": "p2", "b": "q2"}]
    assert list(match(QUERY, events, key="k", derived={"last3": "history(x, 3, 1 s)"})) == []
    with pytest.raises(UsageError, match="need a key"):
        list(match(QUERY, events, derived={"last3": "history(x, 3, 2 s)"}))
    with pytest.raises(UsageError, match="last3 is not understood"):
        list(match(QUERY, events, key="k", derived={"last3": "history(x)"}))


def test_a_pattern_reads_as_far_back_as_its_histories_and_their_definition_counts() -> None:
    columns = {"k": pa.string(), "x": pa.float64(), "last3": pa.list_(pa.float64()), "other": pa.list_(pa.float64())}
    three = (History("last3", "x", 3, 60_000_000), History("other", "x", 50, DAY))
    text = QUERY.replace("10 s", "10 min")
    pattern = compile_pattern(text, columns=columns, series=Series("k", three))
    assert [one.name for one in pattern.histories] == ["last3"]
    assert pattern.read_range(DAY, 2 * DAY) == (DAY - 600_000_000, 2 * DAY)
    assert pattern.source_range(DAY, 2 * DAY) == (DAY - 600_000_000 - 180_000_000, 2 * DAY)
    other = compile_pattern(text, columns=columns, series=Series("k", (History("last3", "x", 3, 61_000_000),)))
    assert other.definition_hash != pattern.definition_hash
    unused = compile_pattern(text, columns=columns, series=Series("k", three[:1]))
    assert unused.definition_hash == pattern.definition_hash
    # Derived values are never stored: not because the query mentions them, nor on request.
    assert [name.attributes for name in pattern.names] == [("k",), ("k",)]
    with pytest.raises(DefinitionError, match="derived and never stored"):
        compile_pattern(f"---\noutput: [last3]\n---\n{text}", columns=columns, series=Series("k", three))


def test_match_on_landed_files_adds_the_histories_of_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    from chainlake.cli.main import main

    with_plant(tmp_path, monkeypatch, "derived: {last3: 'history(x, 3, 2 s)'}\n")
    values = {"p": [1, 2, 3, 9, 2], "q": [5, 7, 9, 4, 8]}
    start = int(datetime(2024, 1, 1, 23, 59, 56, tzinfo=UTC).timestamp())
    lines = [f"{k},{start + 2 * i + (k == 'q')},{x}" for k, column in values.items() for i, x in enumerate(column)]
    (tmp_path / "a.csv").write_text("k,t,x\n" + "\n".join(lines) + "\n")
    assert main(["match", QUERY, str(tmp_path / "a.csv"), "--source", "plant"]) == 0
    assert capsys.readouterr().out == '{"a": "a.csv:4", "b": "a.csv:9"}\n'
