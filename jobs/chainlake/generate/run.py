"""Generates a set of landing files: days of a source, streamed to disk block by block."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from chainlake.definitions.formats.format import EARLIEST, LATEST
from chainlake.errors import UsageError
from chainlake.generate.clock import Slots
from chainlake.generate.dirt import Columns, DayDirt, Line, with_dirt
from chainlake.generate.landing import GzipFile
from chainlake.generate.sensor import SensorReadings
from chainlake.generate.shape import Plan, Shape
from chainlake.generate.stock import StockBars
from chainlake.generate.ticks import FILE_NAME, ticks_of
from chainlake.generate.traffic import TrafficReadings
from chainlake.generate.truth import Truth, instant_text

SHAPES: dict[str, type[Shape]] = {"stock": StockBars, "traffic": TrafficReadings, "sensor": SensorReadings}
_COLUMNS = {
    "stock": Columns(time=1, key=0, number=5),
    "traffic": Columns(time=0, key=1, number=9),
    "sensor": Columns(time=0, key=1, number=2),
    "ticks": Columns(time=1, key=0, number=2),
}
_BLOCK_CELLS = 200_000
_TICK_KEYS = 50
#: The largest number of events per day, which makes a file of about 50 GB.
MOST_EVENTS = 1_000_000_000

#: A block of a day: rows, their times, and a function for the conflicting form of rows (None if none conflict).
Block = tuple[pa.Table, np.ndarray, Callable[[np.ndarray], pa.Table] | None]


class UnfitRecipe(UsageError):
    """What was asked for does not fit together, or is too much or too little."""

    @classmethod
    def source(cls, name: str, known: Iterable[str]) -> UnfitRecipe:
        """Files of this source cannot be generated."""
        return cls(f"there is no source '{name}' to generate", hint=f"Known: {', '.join(known)}.")

    @classmethod
    def ticks(cls) -> UnfitRecipe:
        """Ticks were asked for, but the source has none."""
        return cls("only stock has ticks")

    @classmethod
    def too_many_patterns(cls, most: int, source: str) -> UnfitRecipe:
        """A day has no room for that many planted matches."""
        return cls(f"a day has room for at most {most} matches of each pattern of {source}")

    @classmethod
    def counts(cls) -> UnfitRecipe:
        """A number is too small."""
        return cls("days and events per day must be at least 1, seed, dirt, patterns and changes at least 0")

    @classmethod
    def days(cls, earliest: date, latest: date) -> UnfitRecipe:
        """Ingest does not accept the days."""
        return cls(f"the days must be between {earliest} and {latest}, as ingest requires")

    @classmethod
    def too_many_events(cls, events: int, most: int) -> UnfitRecipe:
        """A day's file cannot hold that many events."""
        return cls(f"{events} events per day are more than {most}", hint="Write more days instead.")

    @classmethod
    def too_few_events(cls, least: int) -> UnfitRecipe:
        """There are too few events to plant anything."""
        return cls(
            f"patterns and changes can be planted from {least} events per day on",
            hint="Use --patterns 0 --changes 0 for fewer events.",
        )

    @classmethod
    def too_dirty(cls, dirt: int) -> UnfitRecipe:
        """There is no room for that many dirty rows."""
        return cls(f"{dirt} dirty rows of each kind need at least {dirt * 16} events per day")


@dataclass(frozen=True)
class Recipe:
    """What the files contain, apart from their days.

    Args:
        events_per_day: number of events in a day of 24 hours; by default that of the smallest full set of keys.
        seed: any non-negative integer.
        patterns: number of matches planted for each shipped pattern of the source and day.
        changes: number of changes of the planted relation per day.
        dirt: number of rows of each kind of dirt per day: exact duplicates, conflicting rows, bad rows, rows delivered
            a day late, and rows repeated at the start of the next day's file. Ticks get only bad and repeated rows.
        ticks: trades instead of minute bars (``stock`` only); nothing is planted into them.
        compress: smaller files, whose bytes depend on the version of zlib.
    """

    events_per_day: int | None = None
    seed: int = 0
    patterns: int = 1
    changes: int = 1
    dirt: int = 0
    ticks: bool = False
    compress: bool = False


DEFAULT = Recipe()


def generate(
    source: str,
    start: date,
    days: int,
    out: Path,
    recipe: Recipe = DEFAULT,
) -> dict[str, Any]:
    """Write landing files in the format of the shipped ones, and return the truth about them.

    The same arguments give the same bytes on every machine (unless ``recipe.compress``). The memory needed does not
    depend on the size.

    Args:
        source: ``stock``, ``traffic`` or ``sensor``.
        start: first local day.
        days: number of local days, with one file each.
        out: folder for the files, which is made if it does not exist.
        recipe: how many events there are, what is planted, and in which form.

    Returns:
        the truth, ready for JSON (see :class:`chainlake.generate.truth.Truth`).
    Raises:
        UsageError: the arguments do not fit together.
    """
    kind = SHAPES.get(source)
    if kind is None:
        raise UnfitRecipe.source(source, SHAPES)
    ticks, seed, dirt, patterns, changes = recipe.ticks, recipe.seed, recipe.dirt, recipe.patterns, recipe.changes
    if ticks and source != "stock":
        raise UnfitRecipe.ticks()
    if ticks:
        patterns = changes = 0
    smallest = kind.min_keys * kind.nominal
    events = smallest if recipe.events_per_day is None else recipe.events_per_day
    _check(start, days, events, (seed, dirt, patterns, changes), smallest if patterns or changes else 1)
    head: dict[str, Any] = {
        "source": source,
        "form": "ticks" if ticks else "readings",
        "from": start.isoformat(),
        "days": days,
        "events_per_day": events,
        "seed": seed,
    }
    dates = [start + timedelta(days=number) for number in range(days)]
    if ticks:
        keys = max(_TICK_KEYS, events // 100_000)
        truth = Truth(head | {"key": "ticker", "keys": keys})
        writer = _Writer(out, truth, _COLUMNS["ticks"], dirt, ("bad",), recipe.compress)
        for day in dates:
            blocks: Iterator[Block] = ((table, utc, None) for table, utc in ticks_of(day, events, keys, seed))
            writer.day(FILE_NAME.format(day), day, events, blocks, last=day == dates[-1])
        return truth.as_dict()
    keys, full = _keys(events, kind)
    shape = kind(seed, keys, full, patterns, changes)
    if patterns > shape.most_patterns():
        raise UnfitRecipe.too_many_patterns(shape.most_patterns(), source)
    truth = Truth(head | {"key": shape.key, "keys": keys, "relation": shape.relation | {"changes_per_day": changes}})
    writer = _Writer(out, truth, _COLUMNS[source], dirt, ("duplicate", "conflict", "bad", "late"), recipe.compress)
    for day in dates:
        slots = shape.slots(day)
        plan = shape.plan(slots)
        amount = events * len(slots) // shape.nominal
        _tell(truth, shape, slots.utc, plan)
        blocks = _blocks(shape, slots, plan, amount)
        writer.day(shape.file_name(day), day, amount, blocks, last=day == dates[-1])
    return truth.as_dict()


def _check(start: date, days: int, events: int, counts: Sequence[int], least: int) -> None:
    """Refuse arguments that do not fit together; ``counts`` are seed, dirt, patterns and changes."""
    if days < 1 or events < 1 or min(counts) < 0:
        raise UnfitRecipe.counts()
    if start < EARLIEST or days > (LATEST - start).days:
        raise UnfitRecipe.days(EARLIEST, LATEST)
    if events > MOST_EVENTS:
        raise UnfitRecipe.too_many_events(events, MOST_EVENTS)
    if events < least:
        raise UnfitRecipe.too_few_events(least)
    dirt = counts[1]
    if dirt * 16 > events:
        raise UnfitRecipe.too_dirty(dirt)


def _keys(events: int, kind: type[Shape]) -> tuple[int, int]:
    """The number of keys, and how many of them have an event in every slot."""
    full, rest = divmod(events, kind.nominal)
    if full < kind.min_keys:
        return kind.min_keys, 0
    return full + bool(rest), full


def _blocks(shape: Shape, slots: Slots, plan: Plan, amount: int) -> Iterator[Block]:
    """The events of a day in time order: exactly `amount`, spread as evenly as their number allows."""
    total = len(slots)
    if shape.full:
        per_key = np.full(shape.keys, total, dtype=np.int64)
        per_key[shape.full :] = amount - shape.full * total
    else:
        per_key = amount // shape.keys + (np.arange(shape.keys) < amount % shape.keys).astype(np.int64)
    names = pa.array(shape.key_names())
    step = max(_BLOCK_CELLS // shape.keys, 1)
    for lo in range(0, total, step):
        hi = min(lo + step, total)
        slot = np.arange(lo, hi, dtype=np.int64)[:, None]
        present = (slot + 1) * per_key // total > slot * per_key // total
        at, key = np.nonzero(present)
        grid = {name: values[at, key] for name, values in shape.block(slots, plan, lo, hi).items()}
        at = at + lo

        def conflicting(
            rows: np.ndarray, grid: dict[str, np.ndarray] = grid, at: np.ndarray = at, key: np.ndarray = key
        ) -> pa.Table:
            chosen = {name: values[rows] for name, values in grid.items()}
            return shape.table(shape.conflict(chosen), slots, at[rows], key[rows], names)

        yield shape.table(grid, slots, at, key, names), slots.utc[at], conflicting


def _tell(truth: Truth, shape: Shape, utc: np.ndarray, plan: Plan) -> None:
    """Add the day's planted matches and changes to the truth."""
    names = shape.key_names()

    def event(place: Any) -> Any:
        if isinstance(place, list):
            return [event(one) for one in place]
        key, slot = place
        return {"key": names[key], "ts": int(utc[slot]), "time": instant_text(int(utc[slot]))}

    for pattern, matches in plan.matches.items():
        planted = truth.patterns.setdefault(pattern, [])
        planted.extend({name: event(place) for name, place in match.items()} for match in matches)
    before = plan.before
    for slot, after in plan.changes:
        us = int(utc[slot])
        change = {
            "ts": us,
            "time": instant_text(us),
            "before": shape.relations[before],
            "after": shape.relations[after],
        }
        truth.changes.append(change)
        before = after


class _Writer:
    """Writes the files of days one after the other, and passes late and repeated rows from one day to the next."""

    def __init__(
        self, out: Path, truth: Truth, columns: Columns, dirt: int, kinds: tuple[str, ...], compress: bool
    ) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self.out = out
        self.truth = truth
        self.columns = columns
        self.dirt = dirt
        self.kinds = kinds
        self.compress = compress
        self.late: list[Line] = []
        self.tail: deque[Line] = deque(maxlen=dirt)

    def day(self, name: str, day: date, events: int, blocks: Iterator[Block], *, last: bool) -> None:
        """Write one file; the last file leaves no late rows for a later one."""
        kinds = tuple(kind for kind in self.kinds if not (last and kind == "late"))
        dirt = DayDirt(self.dirt, events, kinds if self.dirt else ())
        repeated, late = list(self.tail), self.late
        self.tail.clear()
        self.late = []
        rows, done = 0, 0
        with GzipFile(self.out / name, self.compress) as file:
            for table, utc, conflicting in blocks:
                if done == 0:
                    file.write(",".join(table.column_names).encode() + b"\n")
                    rows += self._more(file, repeated, "duplicates")
                self.truth.count("events", utc)
                if not self.dirt:
                    file.write(_csv(table))
                    rows += len(utc)
                else:
                    rows += self._block(file, name, rows, (table, utc, conflicting), done, dirt)
                done += len(utc)
            rows += self._more(file, late, None)
        self.truth.late += len(late)
        self.truth.files.append({"name": name, "date": day.isoformat(), "rows": rows})

    def _more(self, file: GzipFile, lines: list[Line], outcome: str | None) -> int:
        for line, _ in lines:
            file.write(line + b"\n")
        if outcome and lines:
            self.truth.count(outcome, np.array([moment for _, moment in lines], dtype=np.int64))
        return len(lines)

    def _block(self, file: GzipFile, name: str, before: int, block: Block, first: int, dirt: DayDirt) -> int:
        table, utc, conflicting = block
        numbers = np.array(dirt.contested(first, first + len(utc)), dtype=np.int64)
        others: dict[int, bytes] = {}
        if conflicting is not None and len(numbers):
            others = dict(zip(numbers.tolist(), _csv(conflicting(numbers - first)).splitlines(), strict=True))
        written = io.BytesIO()
        rows = 0
        for kind, line, moment in with_dirt(_csv(table).splitlines(), utc, first, dirt, others, self.columns):
            if kind == "late":
                self.late.append((line, moment))
                continue
            rows += 1
            written.write(line + b"\n")
            # A contested event is not repeated in the next file, since that could change which content wins.
            if kind == "event":
                self.tail.append((line, moment))
            elif kind == "conflict":
                self.truth.count("conflicts", np.array([moment]))
            elif kind == "duplicate":
                self.truth.count("duplicates", np.array([moment]))
            elif kind != "contested":
                # Line 1 is the header.
                self.truth.bad.append({"file": name, "line": before + rows + 1, "kind": kind})
        file.write(written.getvalue())
        return rows


def _csv(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pacsv.write_csv(table, sink, pacsv.WriteOptions(include_header=False, quoting_style="none"))
    return sink.getvalue()
