"""Events as sorted columns: whatever shape the table comes in, the same rows in the order of (ts, id)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from chainlake.cep.events.dataset import Dataset, Wanted

ROWS = [("b", "A", 5, 1.0), ("a", "A", 5, 2.0), ("d", "C", 6, 3.0), ("c", "B", 6, 4.0), ("e", "A", 7, None)]


def table(rows: list[tuple], types: str = "plain", ids: str = "plain", chunks: int = 1) -> pa.Table:
    """The rows as a table: types and ids as texts or as a dictionary, in some chunks."""

    def texts(values: list[str], how: str) -> pa.Array:
        found = pa.array(values, pa.string())
        if how == "dictionary":
            return found.dictionary_encode()
        if how == "doubled":  # a dictionary may hold a text twice
            indices = [2 * i + i % 2 for i in range(len(values))]
            return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), [v for v in values for _ in range(2)])
        return found

    made = pa.table({
        "event_id": texts([row[0] for row in rows], ids), "type": texts([row[1] for row in rows], types),
        "ts": pa.array([row[2] for row in rows], pa.int64()), "x": pa.array([row[3] for row in rows], pa.float64()),
    })  # fmt: skip
    size = -(-len(rows) // chunks)
    return pa.concat_tables([made.slice(at, size) for at in range(0, len(rows), size)]) if chunks > 1 else made


def seen(events: pa.Table, types: str = "ABC", **how) -> tuple:  # type: ignore[no-untyped-def]
    """Ids, times, values and the rows of each type."""
    data = Dataset(events, Wanted(types=types, attributes=["x"], words=(), **how))
    ids = events["event_id"].to_pylist()
    return (
        [ids[row] for row in data.rows],
        data.ts.tolist(),
        [None if x != x else x for x in data.columns["x"].values.tolist()],
        {kind: [ids[row] for row in data.rows_of(data.of_type(kind))] for kind in "ABCD"},
    )


@pytest.mark.parametrize("types", ["plain", "dictionary", "doubled"])
@pytest.mark.parametrize("ids", ["plain", "dictionary"])
@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [1, 0, 3, 2, 4], [4, 3, 2, 1, 0]])
def test_ties_are_in_the_order_of_ids_in_every_shape(types: str, ids: str, chunks: int, order: list[int]) -> None:
    events = table([ROWS[i] for i in order], types, ids, chunks)
    wanted = (
        ["a", "b", "c", "d", "e"], [5, 5, 6, 6, 7], [2.0, 1.0, 4.0, 3.0, None],
        {"A": ["a", "b", "e"], "B": ["c"], "C": ["d"], "D": []},
    )  # fmt: skip
    assert seen(events, by_id=True) == wanted


@pytest.mark.parametrize("types", ["plain", "dictionary", "doubled"])
def test_other_types_and_times_are_left_out(types: str) -> None:
    events = table(ROWS, types)
    assert seen(events, "AC", lo=5, hi=7)[0] == ["b", "a", "d"]
    assert seen(events, "B", by_id=True) == (["c"], [6], [4.0], {"A": [], "B": ["c"], "C": [], "D": []})
    assert seen(events, "D")[0] == []


def test_an_event_without_a_type_or_an_id_is_no_trouble() -> None:
    events = table(ROWS).set_column(1, "type", pa.array(["A", None, "C", "B", "A"]).dictionary_encode())
    assert seen(events)[0] == ["b", "d", "c", "e"]
    nameless = table(ROWS).set_column(0, "event_id", pa.array(["b", None, "d", "c", "e"]))
    assert seen(nameless, by_id=True)[0] == ["b", None, "c", "d", "e"]
