"""Small appends by delta-rs: for exactly one version, with the turn that fences off Spark's late commits."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from chainlake.errors import AuditFailed, InfrastructureError
from chainlake.lake.delta import tables
from chainlake.paths import Home
from tests.lake.appending import append_arrow
from tests.lake.things import THINGS, thing, things


def _append(home: Home, base: int, *rows: dict) -> int:
    return append_arrow(home, THINGS, things(list(rows)), app="test", base_version=base, mark=f"mark {base}")


def _ids(home: Home) -> list[str]:
    return sorted(tables.arrow(home, "matches", "things")["id"].to_pylist())


def test_an_append_makes_the_next_version_and_records_turn_and_mark(home: Home) -> None:
    tables.ensure_table(home, THINGS)
    assert _append(home, 0, thing("a"), thing("b")) == 1
    delta = DeltaTable(home.table("matches", "things"))
    assert (delta.version(), delta.transaction_version("test")) == (1, 1)
    assert delta.history(1)[0]["userMetadata"] == "mark 0"
    assert _ids(home) == ["a", "b"]


def test_an_append_whose_version_is_taken_fails_and_writes_nothing(home: Home) -> None:
    tables.ensure_table(home, THINGS)
    _append(home, 0, thing("a"))
    with pytest.raises(InfrastructureError, match="another writer"):
        append_arrow(home, THINGS, things([thing("late")]), app="test", base_version=0, mark="late")
    assert _ids(home) == ["a"]


def test_an_append_of_nothing_is_a_commit_that_takes_the_turn(home: Home) -> None:
    tables.ensure_table(home, THINGS)
    assert _append(home, 0) == 1
    assert DeltaTable(home.table("matches", "things")).transaction_version("test") == 1
    assert _ids(home) == []


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        ({"price": -1.0}, "price_positive"),
        ({"id": "much too long"}, "id_is_short"),
        ({"id": None}, "NOT NULL constraint violated for column: id"),
    ],
)
def test_a_row_that_breaks_a_rule_is_refused_with_all_others(home: Home, broken: dict, rule: str) -> None:
    tables.ensure_table(home, THINGS)
    with pytest.raises(AuditFailed, match=rule):
        _append(home, 0, thing("a"), {**thing("b"), **broken})
    assert tables.version(home, "matches", "things") == 0 and _ids(home) == []
    assert list(Path(home.table("matches", "things")).glob("*.parquet")) == []


def test_pages_of_small_appends_have_checksums(home: Home) -> None:
    """A flipped bit of a page is refused and not taken for another value."""
    tables.ensure_table(home, THINGS)
    _append(home, 0, *(thing(f"{n}", n, price=n + 0.5) for n in range(500)))
    (path,) = Path(home.table("matches", "things")).glob("*.parquet")
    footer = pq.read_metadata(path).row_group(0)
    (column,) = (footer.column(n) for n in range(footer.num_columns) if footer.column(n).path_in_schema == "price")
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError, match="CRC checksum verification failed"):
        tables.arrow(home, "matches", "things")
