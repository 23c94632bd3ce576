"""Patterns that use events up, day by day in memory: any history ends as one sequential evaluation of all events would.

A dictionary stands for the lake. What decides which days are gone through, searches them, and reads the state from
published rows is the product's.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from chainlake.cep.matches.consumed import Consumed
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.days import US_PER_DAY, Days, day_of_us, day_start_us
from chainlake.detect.chained.state import digest_of, state_at
from chainlake.detect.chained.walk import Leg, walk
from chainlake.detect.stage import Search
from chainlake.lake.records.chain import Chain, Link, Walk, left_out
from chainlake.run.tasks import LocalTasks
from chainlake.schemas.matches import matches_table
from chainlake.schemas.table import TIMESTAMP
from tests.steps.consuming import KINDS, Kind, Row, bound_ids, events_of
from tests.steps.history import FIRST, day

pytestmark = pytest.mark.slow

DAYS = 7
SCHEMA = pa.schema([
    ("event_id", pa.string()), ("type", pa.string()), ("sensor", pa.string()), ("ts", TIMESTAMP), ("seq", pa.int64()),
    ("x", pa.float64()),
])  # fmt: skip


@dataclass
class Events:
    """The events of all days, as tasks read them."""

    contents: Mapping[int, Sequence[Row]]
    schema: pa.Schema = SCHEMA

    @property
    def rows(self) -> Mapping[date, int]:
        return {day(number): len(rows) for number, rows in self.contents.items() if rows}

    def within(self, lo: int, hi: int) -> list[date]:
        return sorted(one for one in self.rows if day_start_us(one) < hi and one >= day_of_us(lo))

    def read(self, at: date, columns: Sequence[str], types: Iterable[str] | None, lo: int, hi: int) -> pa.Table:
        rows = pa.Table.from_pylist(list(self.contents[(at - FIRST).days]), schema=SCHEMA)
        ts = rows["ts"].cast(pa.int64())
        rows = rows.filter(pc.and_(pc.greater_equal(ts, lo), pc.less(ts, hi)))
        rows = rows if types is None else rows.filter(pc.is_in(rows["type"], pa.array(sorted(types))))
        return rows.select(list(columns))


@dataclass(frozen=True)
class RecordedDay:
    """A published day: of which events, and the states at its ends."""

    of: str
    link: Link


@dataclass
class Memory:
    """The days of one pattern."""

    kind: Kind
    folder: Path
    contents: dict[int, list[Row]] = field(default_factory=lambda: {number: [] for number in range(DAYS)})
    ready: set[int] = field(default_factory=set)
    recorded: dict[int, RecordedDay] = field(default_factory=dict)
    matches: dict[int, pa.Table] = field(default_factory=dict)
    computed: int = 0

    def __post_init__(self) -> None:
        columns = {f.name: f.type for f in SCHEMA if f.name != "event_id"}
        self.pattern = compile_pattern(f"PATTERN {self.kind.query}", name="p", columns=columns)
        self.table = matches_table(match_shape(self.pattern, key="sensor"))
        self.none = pa.schema([pa.field(f.name, f.type) for f in self.table.arrow()]).empty_table()

    def input(self, number: int) -> str:
        """All that the day reads."""
        reach = -(-self.pattern.reach_us // US_PER_DAY)
        return repr([self.contents[n] for n in range(max(0, number - reach), number + 1)])

    def anew(self, number: int) -> bool:
        """Whether there was no event that the day could go on from."""
        before = day_of_us(day_start_us(day(number)) - self.pattern.reach_us)
        return not any(rows for n, rows in self.contents.items() if before <= day(n) < day(number))

    def chain(self) -> Chain:
        now = [self.recorded.get(n) for n in range(DAYS)]
        return Chain(
            numbers=np.arange(DAYS),
            own=np.array([one is not None and one.of == self.input(n) for n, one in enumerate(now)]),
            refused=np.zeros(DAYS, bool),
            ready=np.array([n in self.ready for n in range(DAYS)]),
            anew=np.array([self.anew(n) for n in range(DAYS)]),
            state_in=np.array([one and one.link.state_in for one in now], object),
            state_out=np.array([one and one.link.state_out for one in now], object),
        )

    def read(self, number: int) -> Consumed:
        """The state at the start of a day, from the rows."""
        policy = self.pattern.extras.policy
        assert policy is not None
        rows = pa.concat_tables([self.none, *(rows for n, rows in self.matches.items() if n < number)])
        return state_at(self.pattern, Consumed.by(policy, rows), day(number))

    def kept(self, number: int, least: int) -> int:
        chain = self.chain()
        while number > least and not chain.anew[number]:
            left = chain.state_out[number - 1]
            if left is not None and digest_of(self.read(number)) == left:
                break
            number -= 1
            if number not in self.ready:
                raise LookupError(number)
        return number

    def run(self, first: int, end: int, rng: random.Random, dies: float = 0.1) -> None:
        """A run that looks at the days up to the last that was ever published, and can die between two of them."""
        last = max([end, *(n + 1 for n in self.recorded)])
        chain = self.chain()
        some = Chain(**{n: value[:last] for n, value in vars(chain).items()})
        way = Walk(some, first, self.kept, rng.choice([1, 1, 3, 30]))
        while (batch := way.next()) is not None:
            state = Consumed.none() if batch.anew else self.read(batch.begin)
            search = Search(self.pattern, self.table, None, str(self.folder))
            leg = Leg(search, Days(day(batch.begin), day(batch.end)), date.min, state)
            (walked,) = walk(LocalTasks(), Events(self.contents), "sensor", [leg])
            assert walked.found.failure is None
            links = {(at - FIRST).days: link for at, link in walked.links.items()}
            needed = way.finish_batch([links[n].state_out for n in range(batch.begin, batch.end)])
            wanted = {n: links[n] for n in range(batch.begin, batch.begin + needed)}
            before = "empty" if batch.anew else digest_of(state)
            assert not left_out(wanted, {}, before)
            for n in wanted:
                self.matches[n] = pq.read_table(walked.files[day(n)]) if day(n) in walked.files else self.none
                self.recorded[n] = RecordedDay(self.input(n), wanted[n])
                self.computed += 1
            if rng.random() < dies:
                return
            way.published(needed)

    def found(self) -> list[object]:
        return sorted(bound_ids(row, self.kind) for rows in self.matches.values() for row in rows.to_pylist())


@pytest.mark.parametrize("name", sorted(KINDS))
def test_any_history_ends_as_one_sequential_evaluation(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    skipped = 0
    for seed in range(8):
        rng = random.Random(f"{name} {seed}")
        lake, first = Memory(kind, tmp_path), True
        coming = sorted(range(DAYS), key=lambda number: number + rng.choice([0, 0, 0, 2.5]))
        while coming or rng.random() < 0.5:
            number = coming.pop(0) if coming and (first or rng.random() < 0.7) else rng.randrange(DAYS)
            first = False
            lake.contents[number] = events_of(rng, number, 7)
            lake.ready.add(number)
            try:
                lake.run(rng.choice([number, number, 0, rng.randrange(DAYS)]), DAYS, rng)
            except LookupError:
                pass
        before = lake.computed
        lake.ready = set(range(DAYS))
        lake.run(0, DAYS, rng, dies=0)
        events = [row for rows in lake.contents.values() for row in rows]
        assert lake.found() == kind.expected(events), seed
        links = [lake.recorded[n].link for n in range(DAYS)]
        assert [one.state_in for one in links[1:]] == [one.state_out for one in links[:-1]], seed
        skipped += DAYS - min(DAYS, lake.computed - before)
    assert skipped, "what was up to date was passed over"
