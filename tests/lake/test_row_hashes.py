"""Hashes of rows and checksums of days: functions of the values alone, and of all of them."""

from __future__ import annotations

import hashlib
import math
import random
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainlake.lake.delta.sums.checksums import Checksum, Sums, checksums, checksums_of_files, footer
from chainlake.lake.delta.sums.row_hashes import row_hashes
from chainlake.schemas.table import TIMESTAMP

pytestmark = pytest.mark.slow

EVENT = pa.struct([("event_id", pa.string()), ("ts", TIMESTAMP), ("x", pa.float64()), ("n", pa.int64())])
SCHEMA = pa.schema([
    ("id", pa.string()), ("ts", TIMESTAMP), ("x", pa.float64()), ("n", pa.int64()), ("b", pa.bool_()),
    ("d", pa.date32()), ("a", EVENT), ("many", pa.list_(pa.field("element", EVENT))),
    ("words", pa.list_(pa.field("element", pa.string()))),
])  # fmt: skip

few = settings(deadline=None, max_examples=60)

TEXTS = st.one_of(st.none(), st.text(max_size=20), st.sampled_from(["AIG", "BAC", "0123456789abcdef" * 2]))
FLOATS = st.one_of(st.none(), st.floats(), st.sampled_from([0.0, -0.0, math.nan]))
INTS = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
STAMPS = st.one_of(st.none(), st.datetimes(datetime(2025, 1, 1), datetime(2025, 1, 5), timezones=st.just(UTC)))
EVENTS = st.one_of(st.none(), st.fixed_dictionaries({"event_id": TEXTS, "ts": STAMPS, "x": FLOATS, "n": INTS}))
ROWS = st.fixed_dictionaries({
    "id": TEXTS, "ts": STAMPS, "x": FLOATS, "n": INTS, "b": st.one_of(st.none(), st.booleans()),
    "d": st.one_of(st.none(), st.dates(date(2025, 1, 1), date(2025, 1, 9))), "a": EVENTS,
    "many": st.one_of(st.none(), st.lists(EVENTS, max_size=4)),
    "words": st.one_of(st.none(), st.lists(TEXTS, max_size=3)),
})  # fmt: skip


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def plain(value: Any) -> Any:
    """A value as something that is equal exactly to what counts as equal."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple((name, plain(part)) for name, part in value.items())
    return tuple(map(plain, value)) if isinstance(value, list) else value


@few
@given(st.lists(ROWS, min_size=1, max_size=8))
def test_equal_rows_and_no_others_have_equal_hashes(rows: list[dict[str, Any]]) -> None:
    hashes = row_hashes(table(rows)).tolist()
    kinds = [plain(row) for row in rows]
    for one, hash_one in zip(kinds, hashes, strict=True):
        for other, hash_other in zip(kinds, hashes, strict=True):
            assert (one == other) == (hash_one == hash_other)


@few
@given(st.lists(ROWS, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_hash_of_a_row_depends_on_nothing_else(rows: list[dict[str, Any]], rng: random.Random) -> None:
    """Neither on other rows, nor on the order of columns, on slices, encodings or columns that are null."""
    whole = table(rows)
    wanted = row_hashes(whole)
    alone = np.concatenate([row_hashes(table([row])) for row in rows])
    names = rng.sample(whole.column_names, whole.num_columns)
    encoded = whole.set_column(0, "id", whole["id"].dictionary_encode())
    more = whole.append_column("later", pa.nulls(len(rows), pa.float64()))
    tail = pa.concat_tables([table(rows[::-1]), whole]).combine_chunks().slice(len(rows))
    for same in (alone, *map(row_hashes, (whole.select(names), encoded, more, tail))):
        assert same.tolist() == wanted.tolist()
    other = more.set_column(more.num_columns - 1, "later", pa.array([1.0] * len(rows)))
    assert row_hashes(other).tolist() != wanted.tolist()
    assert row_hashes(more, volatile=["later"]).tolist() == wanted.tolist()


def test_swapped_values_of_two_columns_or_elements_are_seen() -> None:
    rows = [{"x": 1.0, "a": {"x": 2.0}, "words": ["p", "q"]}, {"x": 2.0, "a": {"x": 1.0}, "words": ["q", "p"]}]
    full = [{**dict.fromkeys(SCHEMA.names), **row} for row in rows]
    assert len(set(row_hashes(table(full)).tolist())) == 2
    lists = [["p", "q"], ["q", "p"], ["p", "q", None]]
    assert len(set(row_hashes(table([{**full[0], "words": words} for words in lists])).tolist())) == 3


WORD = 2**64


def mixed(word: int) -> int:
    """A finisher of 64-bit words: MurmurHash3's, with the constants of splitmix64."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
    return word ^ (word >> 31)


def multiplier(path: str, number: int) -> int:
    """The odd number that splitmix64 gives a path of columns, from 1."""
    seed = int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "little")
    return mixed((seed + number * 0x9E3779B97F4A7C15) % WORD) | 1


def in_column(value: Any, kind: pa.DataType, path: str) -> int:
    """What a value adds to the sum of its row."""
    if value is None:
        return 0
    return (word(value, kind, path) * multiplier(path, 1) + multiplier(path, 2)) % WORD


def word(value: Any, kind: pa.DataType, path: str) -> int:
    """A value as 64 bits."""
    if pa.types.is_struct(kind):
        return mixed(sum(in_column(value[f.name], f.type, f"{path}.{f.name}") for f in kind) % WORD)
    if pa.types.is_list(kind):
        total = len(value) * 0x9E3779B97F4A7C15
        for at, one in enumerate(value, 1):
            total += in_column(one, kind.value_type, f"{path}[]") * (mixed(at * 0x9E3779B97F4A7C15 % WORD) | 1)
        return mixed(total % WORD)
    if isinstance(value, str):
        octets = value.encode()
        words = [int.from_bytes(octets[at : at + 8], "little") for at in range(0, len(octets), 8)]
        total = len(octets) * 0x9E3779B97F4A7C15
        return mixed((total + sum(one * multiplier("", number) for number, one in enumerate(words, 1))) % WORD)
    if isinstance(value, float):
        return int(np.array(np.nan if math.isnan(value) else value + 0.0).view(np.uint64))
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) % WORD
    return ((value - date(1970, 1, 1)).days if isinstance(value, date) else int(value)) % WORD


@few
@given(st.lists(ROWS, min_size=1, max_size=8))
def test_hash_is_that_of_a_plain_loop(rows: list[dict[str, Any]]) -> None:
    """Checksums are kept for years: another hash would make all of them wrong."""
    wanted = [mixed(sum(in_column(row[f.name], f.type, f.name) for f in SCHEMA) % WORD) for row in rows]
    assert row_hashes(table(rows)).tolist() == wanted


def _rows(count: int) -> list[dict[str, Any]]:
    rng = random.Random(7)
    begin = datetime(2025, 1, 1, tzinfo=UTC)
    return [
        {**dict.fromkeys(SCHEMA.names), "id": rng.choice("pqr"), "x": rng.random(),
         "ts": begin + timedelta(microseconds=rng.randrange(5 * 86_400_000_000))}
        for _ in range(count)
    ]  # fmt: skip


def test_checksums_of_owners_and_days_are_sums_over_their_rows() -> None:
    rows = _rows(300)
    wanted: dict[tuple[str, date], list[int]] = defaultdict(list)
    for row, found in zip(rows, row_hashes(table(rows)).tolist(), strict=True):
        wanted[row["id"], row["ts"].date()].append(found)
    found = checksums([table(rows[:100]), *table(rows[100:]).to_batches(max_chunksize=37)], "ts", "id")
    assert found.keys() == wanted.keys()
    for place, hashes in wanted.items():
        xor = 0
        for one in hashes:
            xor ^= one
        assert found[place] == Checksum(len(hashes), xor, sum(hashes) % 2**64)
        assert Checksum.of(str(found[place])) == found[place]


def test_a_row_in_another_ones_place_twice_over_is_seen() -> None:
    """The xor of a row and itself is nothing, whichever row it is."""
    base, p, q = ({**row, "ts": datetime(2025, 1, 1, tzinfo=UTC)} for row in _rows(3))
    (one,), (other,) = (checksums([table([base, row, row])], "ts").values() for row in (p, q))
    assert one.xor == other.xor and one != other


@pytest.mark.parametrize("told", [True, False], ids=["footer", "rows"])
def test_checksums_of_files_are_those_of_their_rows(tmp_path: Path, told: bool) -> None:
    rows = table(_rows(200))
    for number in (0, 1):
        part = rows.slice(number * 100, 100)
        sums = Sums("ts")
        sums.add(part)
        with pq.ParquetWriter(tmp_path / f"{number}.parquet", SCHEMA) as writer:
            writer.write_table(part)
            if told:
                writer.add_key_value_metadata(footer(sums))
    paths = [str(path) for path in sorted(tmp_path.glob("*.parquet"))]
    assert checksums_of_files(paths, SCHEMA.names, "ts") == checksums([rows], "ts")
