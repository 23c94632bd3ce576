"""Ids of matches: what is hashed is stated here in plain words, and both ways to compute it must agree with that."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest

from chainlake.cep.events.event_ids import packed
from chainlake.cep.matches import ids as ids_of
from chainlake.cep.matches.ids import match_ids
from chainlake.cep.search.compiled import machine

EVENTS = pa.array([hashlib.sha256(str(i).encode()).hexdigest()[:32] for i in range(300)])


def plain(pattern: str, bound: dict[str, list[str]]) -> str:
    """The pattern's name, then each name with its ids, by name."""
    parts = ["\x1f".join([name, *bound[name]]) for name in sorted(bound)]
    return hashlib.blake2b("\x1e".join([pattern, *parts]).encode(), digest_size=16).hexdigest()


@pytest.mark.parametrize(
    ("pattern", "names"),
    [("p", "a"), ("rise", "cab"), ("x" * 53, "ab"), ("x" * 54, "ab"), ("überlang" * 20, "abcdefgh")],
    ids=["one name", "three", "a full block", "one byte more", "many blocks"],
)
def test_machine_code_gives_what_hashlib_gives(pattern: str, names: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    rows = [(name, draw.integers(0, len(EVENTS), 500)) for name in names]
    texts = EVENTS.to_pylist()
    wanted = [plain(pattern, {name: [texts[bound[i]]] for name, bound in rows}) for i in range(500)]
    monkeypatch.setattr(ids_of, "_compiled", lambda *_: pytest.fail("few matches were compiled"))
    monkeypatch.setattr(machine, "loaded", lambda: False)
    monkeypatch.setattr(ids_of, "_hashed_so_far", [0])
    assert match_ids(pattern, EVENTS, rows).to_pylist() == wanted
    assert match_ids(pattern, packed(EVENTS), rows).to_pylist() == wanted
    monkeypatch.undo()
    monkeypatch.setattr(ids_of, "_hashed", lambda *_: pytest.fail("many matches were hashed one by one"))
    monkeypatch.setattr(ids_of, "WORTH_COMPILING", 1_500)
    monkeypatch.setattr(ids_of, "_hashed_so_far", [1_000])
    assert match_ids(pattern, EVENTS, rows).to_pylist() == wanted
    chunks = pa.chunked_array([EVENTS[:7], EVENTS[7:]])
    assert match_ids(pattern, chunks, rows).to_pylist() == wanted
    assert match_ids(pattern, packed(EVENTS), rows).to_pylist() == wanted
    later = [(name, bound % 200) for name, bound in rows]
    assert match_ids(pattern, EVENTS[100:], later).to_pylist() == [
        plain(pattern, {name: [texts[100 + bound[i]]] for name, bound in later}) for i in range(500)
    ]


def test_sets_and_ids_of_several_lengths_are_hashed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids_of, "WORTH_COMPILING", 1)
    monkeypatch.setattr(ids_of, "_compiled", lambda *_: pytest.fail("what it cannot do was compiled"))
    texts = EVENTS.to_pylist()
    found = match_ids("p", EVENTS, [("b", np.array([0, 2, 3]), np.array([4, 5, 6])), ("a", np.array([1, 2]))])
    wanted = [{"a": texts[1:2], "b": texts[4:6]}, {"a": texts[2:3], "b": texts[6:7]}]
    assert found.to_pylist() == [plain("p", bound) for bound in wanted]
    uneven = ["e1", "e10", "e2"]
    found = match_ids("p", pa.array(uneven), [("a", np.array([0, 1, 2]))])
    assert found.to_pylist() == [plain("p", {"a": [text]}) for text in uneven]
