"""Random events of a few series, for tests of what is computed of the events before."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

DAY = 86_400_000_000


@st.composite
def rows_of_series(
    draw: st.DrawFn, seq: st.SearchStrategy[int | None], x: st.SearchStrategy[float | int | None]
) -> list[dict[str, Any]]:
    """Up to 14 events around midnight, some of them at one time, some without a key."""
    return [
        {
            "event_id": f"e{draw(st.integers(0, 9))}{number}",
            "type": draw(st.sampled_from("AB")),
            "key": draw(st.sampled_from(["p", "p", "q", None])),
            "ts": DAY + draw(st.sampled_from([-3, -2, -1, 0, 1, 2, 5])),
            "seq": draw(seq),
            "x": draw(x),
        }
        for number in range(draw(st.integers(0, 14)))
    ]


def table_of_series(rows: list[dict[str, Any]], x: pa.DataType) -> pa.Table:
    """These events as a table."""
    kinds = {"event_id": pa.string(), "type": pa.string(), "key": pa.string(), "seq": pa.int64(), "x": x}
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()}
    columns["ts"] = pa.array([row["ts"] for row in rows], pa.timestamp("us", tz="UTC"))
    return pa.table(columns)
