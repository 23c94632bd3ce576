"""Chained days: any history of late events, edits, failures and lost states ends as one sequential run would.

A toy chain in a dictionary in place of a lake: a day's row is a function of its events and of the state before it, and
the state forgets. What decides is the product's.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import date

import numpy as np
import pytest

from chainlake.lake.records.chain import EMPTY, Batch, Chain, Link, Outlook, Walk, chain_state, left_out

DAYS = 14


@dataclass(frozen=True)
class Row:
    """A published day: what of and what it gave."""

    of: tuple[int, int]
    state_in: str
    state_out: str
    value: int
    status: str = "done"


@dataclass
class Toy:
    """Events per day, and what was published; ``edit`` is the definition's number, which says when it starts."""

    rng: random.Random
    edit: int = 0
    quiet: bool = False
    events: list[int] = field(default_factory=list)
    ready: list[bool] = field(default_factory=lambda: [True] * DAYS)
    rows: dict[int, Row] = field(default_factory=dict)
    states: dict[int, str] = field(default_factory=dict)
    #: Days whose audit fails whatever they give, until they are mended.
    broken: set[int] = field(default_factory=set)
    computed: list[int] = field(default_factory=list)
    published: list[int] = field(default_factory=list)

    @classmethod
    def make(cls, seed: int) -> Toy:
        rng = random.Random(seed)
        made = cls(rng, quiet=rng.random() < 0.5)
        made.events = [rng.choice([0, 0, 0, 1, 2, 5]) for _ in range(DAYS)]
        return made

    def step(self, day: int, state: str) -> tuple[int, str]:
        """A day's value and the state after it: what is left of a level that falls, and what the edit adds."""
        if day < self.edit % 4:
            return 0, EMPTY
        level = 0 if state == EMPTY else int(state)
        value = 10 * level + self.events[day] + self.edit
        level = max(level - 2, self.events[day], 0)
        return value, str(level) if level else EMPTY

    def of(self, day: int) -> tuple[int, int]:
        return self.events[day] if day >= self.edit % 4 else -1, self.edit

    def anew(self, day: int) -> bool:
        """Nothing was seen before it, or, where that is asked for, nothing for two days, whatever the state then is."""
        first = max(self.edit % 4, next((n for n, found in enumerate(self.events) if found), DAYS))
        return day <= first or (self.quiet and not any(self.events[max(day - 2, self.edit % 4) : day]))

    def chain(self) -> Chain:
        """The chain as it is recorded, holes left out."""
        recorded = sorted(self.rows)
        rows = [self.rows[day] for day in recorded]
        now = [row.of == self.of(day) for day, row in zip(recorded, rows, strict=True)]
        same = [row.of[1] == self.edit and row.status == "done" for row in rows]
        sparse = Chain(
            numbers=np.array(recorded, dtype=np.int64),
            own=np.array([ok and row.status == "done" for ok, row in zip(now, rows, strict=True)], dtype=bool),
            refused=np.array([ok and row.status == "refused" for ok, row in zip(now, rows, strict=True)], dtype=bool),
            ready=np.array([self.ready[day] for day in recorded], dtype=bool),
            anew=np.array([self.anew(day) for day in recorded], dtype=bool),
            state_in=np.array([row.state_in for row in rows], dtype=object),
            state_out=np.array([r.state_out if ok else None for r, ok in zip(rows, same, strict=True)], dtype=object),
        )
        return sparse.dense(0, DAYS, lambda day: self.ready[day], self.anew)

    def kept(self, day: int, least: int) -> int:
        while day > least and not self.anew(day):
            row = self.rows.get(day - 1)
            live = row is not None and row.status == "done" and row.of[1] == self.edit
            if row is not None and live and self.states.get(day - 1) == row.state_out:
                return day
            day -= 1
            if not self.ready[day]:
                raise NotThere(day)
        return day

    def run(self, first: int, end: int, *, longest: int = 5, dies: float = 0.0, meanwhile: float = 0.0) -> None:
        """A run over ``[first, end)`` and what lies behind it; it can die between any two writes."""
        chain = self.chain()
        last = max([end, *(day + 1 for day in self.rows)])
        some = Chain(**{name: getattr(chain, name)[:last] for name in vars(chain)})
        walk, texts = Walk(some, first, self.kept, longest), {}
        try:
            while (batch := walk.next()) is not None:
                before = EMPTY if batch.anew else texts.get(batch.begin - 1, self.states.get(batch.begin - 1))
                assert before is not None
                links, values, of, state = {}, {}, {}, before
                for day in range(batch.begin, batch.end):
                    value, after = self.step(day, state)
                    links[day], values[day], of[day], state = Link(state, after), value, self.of(day), after
                    self.computed.append(day)
                count = walk.finish_batch([links[day].state_out for day in range(batch.begin, batch.end)])
                if self.rng.random() < meanwhile:
                    self.happens()
                    if self.rng.random() < 0.5:
                        # Another run goes through the same days.
                        self.run(first, end, longest=longest)
                done = self.publish(range(batch.begin, batch.begin + count), links, values, of, dies)
                texts[batch.begin + count - 1] = links[batch.begin + count - 1].state_out
                if done < count:
                    return
                walk.published(count)
        except (Died, NotThere):
            return

    def publish(self, days, links, values, of, dies) -> int:
        """Under the lock: the first days of all that belong together and pass."""
        before = None
        first = days[0]
        if self.anew(first):
            before = EMPTY
        elif first - 1 in self.rows:
            row = self.rows[first - 1]
            before = row.state_out if row.status == "done" and row.of[1] == self.edit else None
        wrong = {day: "audit" for day in days if day in self.broken}
        wrong |= {day: "moved" for day in days if of[day] != self.of(day)}
        out = left_out({day: links[day] for day in days}, wrong, before)
        done = [day for day in days if day not in out]
        for day, why in out.items():
            if why == "audit":
                self.rows[day] = Row(of[day], links[day].state_in, links[day].state_out, 0, "refused")
        for day in done:
            self.rows[day] = Row(of[day], links[day].state_in, links[day].state_out, values[day])
            self.published.append(day)
        if self.rng.random() < dies:
            raise Died
        for day in done:
            self.states[day] = links[day].state_out
        if self.rng.random() < dies:
            raise Died
        return len(done)

    def happens(self) -> None:
        """A late event, an edit, a day that an ingest is changing, a lost state, a bad day."""
        draw, day = self.rng.random(), self.rng.randrange(DAYS)
        if draw < 0.55:
            # Sometimes the first events of all come late, or are gone.
            self.events[day] = self.rng.choice([0, 0, 1, 2, 5])
        elif draw < 0.6:
            self.edit += 1
        elif draw < 0.72:
            self.ready[day] = not self.ready[day]
        elif draw < 0.85:
            self.states.pop(day, None)
        else:
            self.broken ^= {day}

    def settled(self) -> bool:
        chain = self.chain()
        found = chain_state(chain)
        return bool(chain.own.all() and not (found.moved | found.following | found.waiting).any())

    def to_do(self) -> list[int]:
        chain, found = self.chain(), chain_state(self.chain())
        mine = ~chain.own & ~chain.refused | found.moved
        return np.flatnonzero(mine & chain.ready & ~found.waiting & ~found.following).tolist()


class Died(Exception):
    pass


class NotThere(Exception):
    """The events of an earlier day are needed, and are not there."""


def sequential(toy: Toy) -> dict[int, tuple[int, str]]:
    """One run over all days from the beginning."""
    state, found = EMPTY, {}
    for day in range(DAYS):
        value, state = toy.step(day, EMPTY if toy.anew(day) else state)
        found[day] = value, state
    return found


def values(toy: Toy) -> dict[int, tuple[int, str]]:
    return {day: (row.value, row.state_out) for day, row in toy.rows.items()}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_any_history_ends_as_one_sequential_run(part):
    """Three thousand of them; whatever is up to date on the way is what a sequential run gives, too."""
    for seed in range(300 * part, 300 * part + 300):
        toy = Toy.make(seed)
        for _ in range(toy.rng.randrange(4, 14)):
            if toy.rng.random() < 0.5:
                toy.happens()
            else:
                first = toy.rng.randrange(DAYS)
                asked = first, toy.rng.randrange(first, DAYS) + 1
                toy.run(*asked, longest=toy.rng.choice([1, 2, 5, 20]), dies=0.1, meanwhile=0.1)
            chain, wanted = toy.chain(), sequential(toy)
            now = chain_state(chain)
            done = chain.own & ~(now.moved | now.following | now.waiting)
            for day in np.flatnonzero(done).tolist():
                assert values(toy)[day] == wanted[day], (seed, day)
        toy.broken, toy.ready = set(), [True] * DAYS
        for day in [day for day, row in toy.rows.items() if row.status == "refused"]:
            # What refused it is mended, and somebody has said so.
            toy.rows[day] = replace(toy.rows[day], of=(-1, -1))
        toy.run(0, DAYS)
        assert toy.settled(), seed
        assert values(toy) == sequential(toy), seed


@pytest.mark.slow
def test_a_late_event_is_followed_as_far_as_it_reaches_and_no_further():
    reached = []
    for seed in range(500):
        toy = Toy.make(seed)
        toy.run(0, DAYS)
        assert toy.settled() and len(toy.published) == DAYS
        before = values(toy)
        late = toy.rng.randrange(DAYS)
        toy.events[late] += toy.rng.choice([1, 3])
        affected = {late} | {day for day, found in sequential(toy).items() if found != before[day]}
        walk = Walk(toy.chain(), late, toy.kept, 20)
        outlook = walk.outlook()
        behind = next((day for day in range(late + 1, DAYS) if toy.anew(day)), DAYS)
        assert outlook.certain == (late,) and outlook.possible == tuple(range(late + 1, behind))
        toy.published.clear()
        toy.run(late, late + 1)
        assert toy.settled() and values(toy) == sequential(toy)
        # A day whose row is the same but whose state moved is there, too.
        assert affected <= set(toy.published) <= set(range(late, max(affected) + 2))
        reached.append(len(toy.published))
    assert min(reached) == 1 and sum(reached) < 3 * len(reached)


@pytest.mark.slow
def test_what_a_run_computes_was_seen_coming():
    seen = 0
    for seed in range(1500):
        toy = Toy.make(seed)
        for _ in range(8):
            toy.happens() if toy.rng.random() < 0.4 else toy.run(0, DAYS, longest=3, dies=0.2)
        asked = toy.to_do()
        if not asked:
            continue
        first = toy.rng.choice(asked)
        try:
            outlook = Walk(toy.chain(), first, toy.kept, 20).outlook()
        except NotThere:
            continue
        seen += 1
        before = dict(toy.rows)
        toy.run(first, DAYS, longest=toy.rng.choice([1, 4, 20]))
        recorded = {day for day in toy.rows if toy.rows[day] is not before.get(day)}
        assert recorded <= {*outlook.certain, *outlook.possible}, seed
        stopped = [day for day in recorded if toy.rows[day].status != "done"]
        if not stopped:
            assert set(outlook.certain) <= recorded, seed
    assert seen > 300


@pytest.mark.slow
def test_days_that_are_to_do_whatever_comes_before_them_are_computed():
    seen = 0
    for seed in range(1500):
        toy = Toy.make(seed)
        for _ in range(8):
            toy.happens() if toy.rng.random() < 0.5 else toy.run(0, DAYS, longest=3, dies=0.2)
        toy.broken, toy.ready = set(), [True] * DAYS
        for day in [day for day, row in toy.rows.items() if row.status == "refused"]:
            toy.rows[day] = replace(toy.rows[day], of=(-1, -1))
        found = np.flatnonzero(chain_state(toy.chain()).unfinished).tolist()
        toy.published.clear()
        toy.run(0, DAYS)
        assert set(found) <= set(toy.published), seed
        seen += len(found)
    assert seen > 1000


def chain_of(text: str, states: str = "", anew: str = "") -> Chain:
    """A letter per day: d done, s stale, f audit failed, o its events are not there; ``in:out`` per day."""
    n = len(text)
    pairs = [pair.split(":") for pair in states.split()] if states else [[str(i), str(i + 1)] for i in range(n)]
    pairs[0][0] = EMPTY if not states else pairs[0][0]
    return Chain(
        np.arange(n),
        own=np.array([c == "d" for c in text]),
        refused=np.array([c == "f" for c in text]),
        ready=np.array([c != "o" for c in text]),
        anew=np.array([c == "a" for c in anew.ljust(n, "-")]) if anew else np.arange(n) == 0,
        state_in=np.array([p[0] if c in "dfs" else None for p, c in zip(pairs, text, strict=True)], dtype=object),
        state_out=np.array([p[1] if c in "ds" else None for p, c in zip(pairs, text, strict=True)], dtype=object),
    )


@pytest.mark.parametrize(
    ("chain", "wanted", "cause"),
    [
        (chain_of("dddd"), "....", [0, 1, 2, 3]),
        (chain_of("dsdd"), "..??", [0, 1, 1, 1]),
        (chain_of("dsod"), "...w", [0, 1, 2, 2]),
        (chain_of("dfds"), "..ww", [0, 1, 1, 1]),
        (chain_of("ddd", "empty:1 7:2 2:3"), ".m?", [0, 1, 1]),
        (chain_of("dfd", "empty:1 7:2 2:3"), ".m?", [0, 1, 1]),
        (chain_of("dsfd"), "...w", [0, 1, 2, 2]),
        (chain_of("dodd", "empty:1 x:x empty:2 2:3", "a-a-"), "....", [0, 1, 2, 3]),
        (chain_of("sdd", "empty:1 1:2 5:6"), ".??", [0, 0, 0]),
    ],
)
def test_how_days_stand(chain, wanted, cause):
    found = chain_state(chain)
    letters = np.select([found.moved, found.following, found.waiting], ["m", "?", "w"], ".")
    assert "".join(letters) == wanted and found.cause.tolist() == cause


def test_a_day_that_is_done_is_not_to_do_for_certain_while_one_before_it_is():
    assert chain_state(chain_of("dod")).unfinished.tolist() == [False, True, False]
    assert chain_state(chain_of("sdd", "empty:1 1:2 5:6")).unfinished.tolist() == [True, False, False]
    assert chain_state(chain_of("ddd", "empty:1 7:2 2:3")).unfinished.tolist() == [False, True, False]


def test_no_state_crosses_a_hole_or_an_edit():
    full = chain_of("dddd")
    some = Chain(**{name: getattr(full, name)[[0, 1, 3]] for name in vars(full)})
    assert some.before.tolist() == [EMPTY, "1", None] and chain_state(some).moved.tolist() == [False, False, True]
    edited = replace(full, own=np.array([False] * 4), state_out=np.array([None] * 4, dtype=object))
    assert Walk(edited, 2, lambda day, least: 0, 9).outlook() == Outlook((0, 1, 2, 3), ())


def test_a_batch_is_no_longer_than_allowed_and_looks_further_as_it_has_to():
    n = 200
    chain = chain_of("d" + "s" + "d" * (n - 2))
    walk, seen = Walk(chain, 1, lambda day, least: day, 40), []
    while (batch := walk.next()) is not None:
        seen.append(batch.end - batch.begin)
        walk.published(walk.finish_batch(["other"] * seen[-1]))
    assert seen[:4] == [5, 9, 17, 33] and max(seen) == 40 and sum(seen) == n - 1
    # The state of no day is kept: all that goes on from the beginning, in batches.
    walk, seen = Walk(chain, 1, lambda day, least: 0, 1), []
    batch = walk.next()
    assert (batch.begin, batch.target, batch.end, batch.anew) == (0, 1, 1, True)


def test_a_run_stops_at_a_day_whose_audit_failed_unless_the_state_before_it_is_another_one():
    # Day 2 failed its audit on the state 2; day 1 is to do, and leaves that state or another one.
    for state, end in (("2", 2), ("x", 4)):
        walk = Walk(chain_of("dsfs"), 1, lambda day, least: day, 9)
        assert walk.next() == Batch(1, 1, 4, False)
        count = walk.finish_batch([state, "y", "z"])
        assert 1 + count == end
        walk.published(count)
        assert walk.next() is None
    # A day of which the events are not there stops it, too, but not a part of the chain that begins anew.
    walk = Walk(chain_of("dsos", anew="a--a"), 1, lambda day, least: day, 9)
    assert walk.next() == Batch(1, 1, 2, False)
    walk.published(walk.finish_batch(["2"]))
    assert walk.next() == Batch(3, 3, 4, True)


def test_the_first_day_that_is_wrong_ends_what_is_published():
    one, two, three = (date(2025, 3, day) for day in (1, 2, 3))
    links = {one: Link(EMPTY, "a"), two: Link("a", "b"), three: Link("b", "b")}
    assert left_out(links, {}, EMPTY) == {}
    found = left_out(links, {two: "its audit failed"}, EMPTY)
    assert found == {two: "its audit failed", three: "2025-03-02, on which it depends, was left out"}
    for before in ("a", None):
        found = left_out(links, {}, before)
        assert list(found) == [one, two, three] and "other than the one at the end of the day before" in found[one]
    found = left_out({**links, two: Link("c", "b")}, {}, EMPTY)
    assert list(found) == [two, three] and "other than the one at the end of the day before" in found[two]
