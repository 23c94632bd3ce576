"""Which matches are published, however they are found: by kernels that choose, from all matches, or in blocks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from chainlake.cep.explain.report import chosen_orders, explain
from chainlake.cep.library import from_dicts, match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.policy import Policy
from chainlake.cep.search.choosing.backend import decide
from chainlake.cep.search.compiled import machine
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.selection import apply
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import LimitExceeded, UsageError
from tests.cep import test_contexts
from tests.cep.interpreted import always_by_value, always_limited, load, no_compiler
from tests.cep.policy_pairs import MODES, Events, Pair, rows

#: Pairs of a pattern and a stream: so many patterns with so many streams each.
PATTERNS, STREAMS, PARTS = 100, 10, 5


@pytest.fixture
def small_blocks() -> Iterator[None]:
    """Blocks of a few matches, and kernels that are interpreted, each read once."""
    with no_compiler(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply, "MOST_MATCHES", 3)
        patch.setattr(apply, "_REDUCED", 4)
        patch.setattr(machine, "load", lru_cache(None)(load))
        yield


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.usefixtures("small_blocks")
def test_random_pairs_publish_what_an_evaluation_in_the_order_of_events_does(
    part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    published, modes = 0, set()
    for seed in range(part, PATTERNS, PARTS):
        pair = Pair(seed, STREAMS)
        monkeypatch.setattr(test_contexts, "NAMES", pair.names)
        policy = pair.pattern.extras.policy
        assert policy is not None
        for number, events in enumerate(pair.streams):
            used = [name for name in events.rank if pair.rng.random() < 0.15] if number % 4 == 0 else []
            fired, _ = test_contexts.sequential(pair.matches(events, used), events.times, policy)
            with (always_by_value, always_limited, nullcontext)[number % 3]():
                for mode, backend in ((MODES[number % 2], "compiled"), (MODES[2 + number % 2], "numpy")):
                    found = pair.run(events, mode, backend, used)
                    if found is not None:
                        assert found[0] == fired, (seed, number, pair.text, pair.selection, mode, backend)
                        modes.update(mode for mode, _ in found[1])
            published += len(fired)
    assert published > 500 and modes == {"S", "P", "B"}


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
def test_laws_of_contexts() -> None:
    text = "PATTERN SEQ(A a, B b, C c) WHERE a.x <= c.x WITHIN 5"
    tails = ["CONTEXT unrestricted", "CONTEXT recent", "CONTEXT chronicle", "CONTEXT continuous", "CONTEXT cumulative",
             "SELECT each CONSUME all PER MATCH", "SELECT first", "PICK last b, first a"]  # fmt: skip
    patterns = {tail: compile_pattern(f"{text} {tail}", strict_units=False) for tail in tails}
    core = compile_pattern(text, strict_units=False)
    some = 0
    for seed in range(12):
        rng = random.Random(seed)
        events = [
            {"id": f"e{i:02}", "type": rng.choice("ABC"), "ts": rng.randrange(16), "attrs": {"x": rng.randrange(4)}}
            for i in range(24)
        ]

        def found(pattern: Any, given: list[dict[str, Any]] = events) -> list[Any]:
            return rows(pattern, Events(given), SearchOptions(), Statistics(), backend="compiled")

        by_tail = {tail: found(pattern) for tail, pattern in patterns.items()}
        every = found(core)
        assert sorted(map(str, by_tail["CONTEXT unrestricted"])) == sorted(map(str, every))
        assert by_tail["CONTEXT chronicle"] == by_tail["SELECT each CONSUME all PER MATCH"]
        for tail in ("CONTEXT recent", "SELECT first", "PICK last b, first a"):
            assert all(row in every for row in by_tail[tail])
        for tail in ("CONTEXT chronicle", "CONTEXT cumulative"):
            flat = [rank for row in by_tail[tail] for bound in row.values() for rank in np.atleast_1d(bound).tolist()]
            assert len(flat) == len(set(flat))
        initiators = [row["a"] for row in by_tail["CONTEXT continuous"]]
        assert len(initiators) == len(set(initiators))
        rng.shuffle(events)
        assert all(found(pattern) == by_tail[tail] for tail, pattern in patterns.items())
        some += len(by_tail["CONTEXT chronicle"])
    assert some > 8


@pytest.mark.few(1)
@pytest.mark.parametrize("select", ["SELECT first", "CONTEXT recent", "SELECT per_initiator"])
@pytest.mark.usefixtures("small_blocks")
def test_owned_stretches_are_searched_apart(select: str) -> None:
    pattern = compile_pattern(f"PATTERN SEQ(A a, B b, C c) WHERE a.x <= c.x WITHIN 5 {select}", strict_units=False)
    for seed in range(8):
        rng = random.Random(seed)
        events = [
            {"id": f"e{i:02}", "type": rng.choice("ABC"), "ts": rng.randrange(16), "attrs": {"x": rng.randrange(4)}}
            for i in range(24)
        ]
        whole = rows(pattern, Events(events), SearchOptions(), Statistics(), backend="compiled")
        cuts = sorted({0, 16, *(rng.randrange(16) for _ in range(3))})
        parts: list[Any] = []
        for lo, hi in zip(cuts, cuts[1:], strict=False):
            parts += rows(pattern, Events(events), SearchOptions(), Statistics(), backend="compiled", own=(lo, hi))
        assert parts == whole, seed


def test_what_is_used_up_goes_on_where_an_earlier_search_ended() -> None:
    events = [{"id": str(i), "type": kind, "ts": i, "attrs": {}} for i, kind in enumerate("AABABB")]
    pattern = compile_pattern("PATTERN SEQ(A a, B b) WITHIN 9 CONTEXT chronicle", strict_units=False)
    whole = rows(pattern, Events(events), SearchOptions(), Statistics())
    assert whole == [{"a": 0, "b": 2}, {"a": 1, "b": 4}, {"a": 3, "b": 5}]
    first = rows(pattern, Events(events), SearchOptions(), Statistics(), own=(0, 3))
    used = [str(rank) for row in first for rank in row.values()]
    rest = rows(pattern, Events(events), SearchOptions(used=used), Statistics(), own=(3, 9))
    assert first + rest == whole


@pytest.mark.usefixtures("small_blocks")
def test_day_limits_count_what_is_published() -> None:
    events = [{"id": f"{i:03}", "type": kind, "ts": i, "attrs": {}} for i, kind in enumerate("A" * 30 + "BB")]
    head = "---\nlimits: {matches_per_day: 2}\n---\n"
    for tail in ("SELECT first", "CONTEXT recent", "CONTEXT chronicle"):
        pattern = compile_pattern(f"{head}PATTERN SEQ(A a, B b) WITHIN 99 {tail}", strict_units=False)
        for mode in ("S", "P"):
            assert len(rows(pattern, Events(events), SearchOptions(mode=mode), Statistics(), backend="compiled")) == 2
    with pytest.raises(LimitExceeded):
        list(match(f"{head}PATTERN SEQ(A a, B b) WITHIN 99", events))


def test_matches_that_are_not_wanted_are_dropped_while_they_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    monkeypatch.setattr(apply, "_REDUCED", 50)
    original = apply.Selection._published

    def watched(self: Any, batches: Any) -> Any:
        held.append(sum(batch.n for batch in batches))
        return original(self, batches)

    monkeypatch.setattr(apply.Selection, "_published", watched)
    events = [{"id": f"{i:03}", "type": kind, "ts": i, "attrs": {}} for i, kind in enumerate("AB" * 40)]
    pattern = compile_pattern("PATTERN AND(A a, B b) WITHIN 60 SELECT first", strict_units=False)
    found = rows(pattern, Events(events), SearchOptions(block_rows=20), Statistics(), backend="numpy")
    assert len(found) > 60 and len(held) > 5 and max(held) <= 2 * 79 + 20


CHOICES = [
    ("SEQ(A a, B b) WITHIN 5 CONTEXT recent", "S", "of each last event the best match, by the kernel"),
    ("SEQ(A a, B b) WITHIN 5 CONTEXT chronicle", "S", "one last event after another, by the kernel"),
    ("SEQ(A a, B b) WITHIN 5 CONSUME b", "S", "one last event after another, by the kernel"),
    ("SEQ(A a, B b) WITHIN 5 CONSUME a", "P", "every match of a last event is wanted"),
    ("SEQ(A a, B b) WITHIN 5 PICK first a", "P", "PICK compares all matches of a last event"),
    ("SEQ(A a, B b) WITHIN 5 CONTEXT unrestricted", "P", "all matches are wanted"),
    ("SEQ(A a, OR(B b, C c)) WITHIN 5 CONTEXT chronicle", "P", "matches of several branches use up the same events"),
    ("SEQ(A a, B b, UNTIL(C c)) WITHIN 5 SELECT first", "P", "UNTIL is tested on whole matches"),
    ("AND(A a, B b) WITHIN 5 CONTEXT chronicle", "P",
     "no sequence of two or more names says which event is the last one"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "mode", "why"), CHOICES)
@pytest.mark.usefixtures("small_blocks")
def test_how_matches_are_chosen_is_told(query: str, mode: str, why: str) -> None:
    pattern = compile_pattern(f"PATTERN {query}", strict_units=False)
    table = from_dicts([{"id": "1", "type": "A", "ts": 1, "attrs": {}}, {"id": "2", "type": "B", "ts": 2, "attrs": {}}])
    statistics = Statistics()
    list(find(pattern, table[0], backend="compiled", statistics=statistics))
    assert statistics.modes == [(mode, why)]


def test_modes_that_cannot_be_are_refused() -> None:
    table = from_dicts([{"id": "1", "type": "A", "ts": 1, "attrs": {}}])[0]
    chosen = compile_pattern("PATTERN AND(A a, B b) WITHIN 5 CONTEXT chronicle", strict_units=False)
    for pattern, options, what in (
        (chosen, SearchOptions(mode="S"), "mode S is not possible"),
        (chosen, SearchOptions(mode="X"), "the mode must be one of auto, S, P, B, not X"),
        (
            compile_pattern("PATTERN A a WITHIN 5", strict_units=False),
            SearchOptions(used=["1"]),
            "used events apply only to patterns that choose",
        ),
    ):
        with pytest.raises(UsageError, match=what):
            list(find(pattern, table, options=options))


@pytest.mark.parametrize("tail", ["SELECT first", "CONTEXT recent", "CONTEXT chronicle", "CONTEXT continuous",
                                  "CONTEXT cumulative", "SELECT last CONSUME b, c"])  # fmt: skip
def test_machine_code_chooses_as_the_plain_way_does(tail: str) -> None:
    text = f"PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 40 {tail}"
    pattern = compile_pattern(text, strict_units=False)
    rng = random.Random(tail)
    events = [
        {"id": f"e{i:04}", "type": rng.choice("AABC"), "ts": i // 2, "attrs": {"x": rng.random()}} for i in range(1500)
    ]
    plain = rows(pattern, Events(events), SearchOptions(mode="P"), Statistics(), backend="numpy")
    statistics = Statistics()
    assert rows(pattern, Events(events), SearchOptions(block_rows=64), statistics, backend="compiled") == plain
    assert statistics.modes[0][0] == "S" and len(plain) > 20


def test_policies_of_all_matches_are_not_chosen_among() -> None:
    pattern = compile_pattern("PATTERN SEQ(A a, B b) WITHIN 5 CONTEXT unrestricted", strict_units=False)
    assert pattern.extras.policy == Policy()


@pytest.mark.parametrize(
    ("query", "compiled", "line"),
    [
        ("SEQ(A a, B b) WITHIN 5 CONTEXT chronicle", True, "S: one last event after another, by the kernel"),
        ("AND(A a, B b) WITHIN 5 SELECT first", True,
         "P: all matches are found, then chosen among: no sequence of two or more names says which event is the last "
         "one"),
        ("SEQ(A a, B b) WITHIN 5 CONTEXT chronicle", False,
         "P: all matches are found, then chosen among: machine code was not worth it; of very many, in blocks of time "
         "(B)"),
    ],
)  # fmt: skip
def test_explain_says_how_matches_are_chosen(
    query: str, compiled: bool, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "chainlake.cep.explain.report.decide",
        lambda _, searched, estimate: decide("compiled" if compiled else "numpy", searched, estimate),
    )
    pattern = compile_pattern(f"PATTERN {query}", strict_units=False)
    events = Events([{"id": str(i), "type": kind, "ts": i, "attrs": {}} for i, kind in enumerate("AB")])
    lines = list(explain(pattern, chosen_orders(pattern, events=events.table)))
    assert f"  mode      {line}" in lines


@pytest.mark.usefixtures("small_blocks")
def test_four_names_gather_what_three_do_though_nothing_fits_at_first() -> None:
    kinds = ["B", "B", "C", "A", "B", "C"]
    events = [{"id": str(i), "type": kind, "ts": i, "attrs": {}} for i, kind in enumerate(kinds)]
    text = "PATTERN SEQ(B a, A b, B c, C d) WITHIN 9 PAUSE 5 CONTEXT cumulative"
    found = list(match(text, events, order=["d", "c", "b", "a"], backend="compiled"))
    assert found == [{"a": ["0", "1"], "b": ["3"], "c": ["4"], "d": ["5"]}]


@pytest.mark.parametrize(
    "structure", ["AND(OR(B p, A q), A r)", "AND(ANY(1, B p, A q), A r)", "OR(AND(B p, A r), AND(A q, A r))"]
)
@pytest.mark.parametrize("tail", ["SELECT first", "SELECT last", "CONTEXT chronicle", "RANK BY MAX(1) TOP 1 PER ALL"])
def test_of_equal_matches_the_order_in_which_names_are_written_decides(structure: str, tail: str) -> None:
    events = [{"id": number, "type": "A", "ts": number} for number in (1, 2)]
    (found,) = match(f"PATTERN {structure} WITHIN 4 {tail}", events)
    # q and r can change places: the events in time order are then q, r or r, q; and q is written before r.
    first, second = ("q", "r") if structure.index(" q") < structure.index(" r") else ("r", "q")
    assert (found[first], found[second]) == (1, 2)
