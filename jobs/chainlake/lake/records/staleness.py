"""What is done, missing, stale or failed: from ``ops`` alone, no JVM (docs/semantics.md).

Ten years of a hundred patterns are 365,000 (definition, day) pairs, so the logs are read once and all pairs are judged
column by column. Patterns that read the same number of days share their fingerprints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

import numpy as np
import pyarrow as pa

from chainlake.days import Days, day_number, day_of
from chainlake.lake.delta import tables
from chainlake.lake.records.chain import chain_state
from chainlake.lake.records.chained import Place, chain_of
from chainlake.lake.records.defined.definitions import Definition
from chainlake.lake.records.defined.fingerprints import event_states, fingerprints
from chainlake.lake.records.defined.wanted import days_of, names_of, wanted_days
from chainlake.lake.records.event_days import CHANGING, COMPUTABLE, EventDays, waiting_for
from chainlake.lake.records.intervals import Intervals
from chainlake.lake.records.late_files import UNKNOWN, LateFiles
from chainlake.lake.records.lost import lost_days
from chainlake.paths import Home
from chainlake.terminal import one_line

#: The state of a day of a definition: see :class:`StatusRow`.
State = Literal["done", "suspect", "missing", "stale", "following", "failed", "audit_failed", "waiting", "retired"]
#: All states, in the order in which they are counted and asked for.
STATES: tuple[State, ...] = get_args(State)
#: States that ask for a computation, if the day's events are complete or provisional.
TO_DO: tuple[State, ...] = ("missing", "stale", "failed")
#: How many files that are not there are named; of the rest only the number is given.
_NAMED = 3


@dataclass(frozen=True)
class ToDo:
    """A day of a definition to compute: ``state`` is ``missing``, ``stale`` or ``failed``, ``why`` one line."""

    definition: str
    day: date
    state: State
    why: str


@dataclass(frozen=True)
class StatusRow:
    """A day of a definition.

    Args:
        definition: ``pattern/NAME`` or ``model/NAME``.
        day: UTC day.
        state: ``done``, ``missing``, ``stale``, ``failed``, ``audit_failed``, ``waiting`` or ``retired``; a chained day
            can also be ``following``: up to date by itself, but an earlier day is to do, after which it may not be; for
            ``chainlake status`` a day can also be ``suspect``.
        why: one line, empty for ``done`` unless its input is provisional.
        provisional: not all expected files of the day had arrived when it was last ingested.
        ready: the day's events are complete or provisional, so that it can be computed.
        rows: rows of the day when it was last published, which are in the table whatever the state; ``None`` if never.
        version: version of the table that holds them.
    """

    definition: str
    day: date
    state: State
    why: str
    provisional: bool
    ready: bool
    rows: int | None
    version: int | None


def to_do(
    home: Home, definitions: Sequence[Definition], days: Days | None = None, *, asked: Days | None = None
) -> list[ToDo]:
    """The days to compute, by definition and day.

    Args:
        home: the installation.
        definitions: patterns and models.
        days: only these days; all if not given.
        asked: days that were asked for explicitly: they are to do even if the source has no events there.
    """
    found = []
    for judged in judge(home, definitions, days, asked):
        for at in np.flatnonzero(judged.ready & np.isin(judged.state, TO_DO)).tolist():
            found.append(ToDo(judged.definition.name, judged.day(at), judged.state_at(at), judged.why(at)))
    return found


def status_rows(home: Home, definitions: Sequence[Definition], days: Days | None = None) -> list[StatusRow]:
    """Every definition and day that is done, to do or waiting, by definition and day."""
    return [judged.row(at) for judged in judge(home, definitions, days) for at in range(len(judged.numbers))]


class Judged:
    """The days of one definition, one array per property.

    Args:
        definition: the pattern or model.
        events: days of its source.
        numbers: its days, as days since 1970-01-01, ascending.
        at: row of ``intervals`` per day, -1 if there is none.
        intervals: the current rows of ``ops.intervals``.
        files: gives the files of the source; called only if a day's events changed.
        gone: whether a table (``schema.name``) does not exist.
    """

    #: What is not there of the input of provisional days, as far as it is known.
    absent: Mapping[date, Sequence[str]] = MappingProxyType({})
    #: Whether days are shown as recorded, even done ones with a reason; see ``chainlake.lake.records.recorded``.
    unjudged = False
    _suspected = ""

    def __init__(
        self,
        definition: Definition,
        events: EventDays,
        numbers: np.ndarray,
        at: np.ndarray,
        intervals: Intervals,
        files: Callable[[], LateFiles],
        gone: Callable[[str], bool],
    ) -> None:
        self.name = definition.name
        self.definition = definition
        self.numbers = numbers
        self._files = files
        self._at = at
        self._intervals = intervals
        self._event_status = event_states(events, numbers)
        self.ready = np.isin(self._event_status, COMPUTABLE)
        self.provisional = self._event_status == "provisional"
        wanted = (
            (UNKNOWN, "input_fingerprint", fingerprints(definition, events, numbers)),
            ("its definition changed", "definition_hash", definition.definition_hash),
            ("the engine changed", "engine_version", definition.engine_version),
            (f"migrating to {definition.table_name}", "table_name", definition.table_name),
        )
        has = at >= 0
        self._moved = [(text, has & (intervals.columns[name][at] != value)) for text, name, value in wanted]
        status = intervals.columns["status"][at]
        here = (status == "done") & (intervals.columns["table_name"][at] == definition.table_name)
        self._moved += lost_days(definition, self.rows(np.arange(len(at))), here, gone)
        moved = np.logical_or.reduce([differs for _, differs in self._moved])
        self.state = np.select(
            [
                ~has & self.ready,
                ~has,
                status == "failed",
                ~moved & np.isin(status, ("done", "audit_failed")),
            ],
            [np.full(len(at), "missing"), np.full(len(at), "waiting"), status.astype(str), status.astype(str)],
            "stale",
        )
        #: What the days of a chain depend on before them; None if the definition has no chain.
        self.place: Place | None = None
        if definition.chained:
            chain = chain_of(definition, events, numbers, self.ready, ~moved, intervals, at)
            found = chain_state(chain)
            self._moved.append(("the state at the end of the day before has changed", found.moved))
            words = [found.waiting, found.following, found.moved]
            self.state = np.select(words, ["waiting", "following", "stale"], self.state)
            self.place = Place.of(chain, found, self.state, self._event_status)

    def keep(self, some: np.ndarray) -> None:
        """Keep only the days whose flag in ``some`` is set."""
        for name in ("numbers", "ready", "provisional", "state", "_at", "_event_status"):
            setattr(self, name, getattr(self, name)[some])
        self._moved = [(text, differs[some]) for text, differs in self._moved]
        self.place = None if self.place is None else self.place.kept(some)

    def suspect(self, why: str) -> None:
        """Show the done days as ``suspect``, because their table is not as the last publication left it."""
        self.state = np.where(self.state == "done", "suspect", self.state)
        self._suspected = why

    def day(self, position: int) -> date:
        """The day at ``position``."""
        return day_of(int(self.numbers[position]))

    def state_at(self, position: int) -> State:
        """The state at ``position``."""
        return cast(State, str(self.state[position]))

    def why(self, position: int) -> str:
        """The reason for the state at ``position``, and what its input lacks, one line; empty for ``done`` and all."""
        return ", ".join(filter(None, (self._why(position), self.lacks(position))))

    def lacks(self, position: int) -> str:
        """What the input at ``position`` lacks, one line; empty if it is not provisional."""
        if not self.provisional[position]:
            return ""
        absent = self.absent.get(self.day(position), ())
        more = f" and {len(absent) - _NAMED} more" if len(absent) > _NAMED else ""
        return f"provisional input{', without ' * bool(absent)}{', '.join(map(one_line, absent[:_NAMED]))}{more}"

    def _why(self, position: int) -> str:
        state = self.state_at(position)
        if state == "suspect":
            return self._suspected
        waiting = waiting_for(str(self._event_status[position]))
        if self.place is not None and self.place.behind[position]:
            return self.place.why(position)
        if state in ("missing", "waiting", "done"):
            return {"missing": "never computed", "waiting": waiting, "done": ""}[state]
        if state == "stale":
            moved = [text for text, differs in self._moved[1:] if differs[position]]
            if self._moved[0][1][position]:
                moved.insert(0, self._late[position])
            back = self._intervals.columns["status"][self._at[position]] == "retired"
            text = ", ".join(moved) or ("it was retired" if back else "publishing was interrupted")
        else:
            text = self._intervals.columns["reason"][self._at[position]] or str(state).replace("_", " ")
        return text if self.ready[position] else f"{text}; {waiting}"

    @cached_property
    def _late(self) -> np.ndarray:
        """For each day that is stale because its events changed, what changed them; empty for all others."""
        found = np.full(len(self.numbers), "", dtype=object)
        changed = np.flatnonzero(self._moved[0][1] & (self.state == "stale")).tolist()
        for at in changed:
            reads = self.definition.read_range(self.day(at))
            if self.definition.of is not None:
                found[at] = "its matches changed"
                continue
            found[at] = self._files().since(int(self._intervals.written_us[self._at[at]]), *reads)
        return found

    def alike(self, positions: np.ndarray) -> np.ndarray:
        """For each position, whether its day comes right after the one before, with the same state and reason."""
        lacks = np.array([self.lacks(at) for at in range(len(self.numbers))], dtype=object)
        columns = [self.state, lacks, self._event_status, self._late]
        columns += [differs for _, differs in self._moved]
        columns += [] if self.place is None else [self.place.behind, self.place.cause]
        same: np.ndarray = np.diff(self.numbers[positions], prepend=-1) == 1
        same &= np.isin(self.state[positions], ("done", "suspect", "missing", "waiting", "stale", "following"))
        for column in columns:
            same[1:] &= column[positions[1:]] == column[positions[:-1]]
        same[:1] = False
        return same

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Number of published rows at each position, whatever its state; 0 if nothing was ever published."""
        found = self._published("rows")[positions]
        return np.array([value or 0 for value in found], dtype=np.int64)

    def recorded(self, name: str) -> np.ndarray:
        """A column of ``ops.intervals``, one value per day; None if a day has no row."""
        found: np.ndarray = self._intervals.columns[name][self._at]
        return found

    def unrecorded_since(self, us: int) -> np.ndarray:
        """A flag per day that is to do and of which nothing was recorded since a moment, in microseconds since 1970; an
        attempt that was publishing the day then did not come to record its end."""
        before = self._intervals.written_us[self._at] < us
        found: np.ndarray = np.isin(self.state, TO_DO) & (before | (self.recorded("status") == "publishing"))
        return found

    @property
    def changing(self) -> np.ndarray:
        """A flag per day whose events an ingest has begun to change and not yet finished."""
        found: np.ndarray = self._event_status == CHANGING
        return found

    @property
    def by_input_alone(self) -> np.ndarray:
        """A flag per day that is to do only because its input is another one; if the old one comes back, it is done."""
        return self._alone(0)

    @property
    def by_state_alone(self) -> np.ndarray:
        """The same for the state that a day of a chain continues from."""
        return np.zeros(len(self.numbers), bool) if self.place is None else self._alone(len(self._moved) - 1)

    def _alone(self, reason: int) -> np.ndarray:
        others = [differs for number, (_, differs) in enumerate(self._moved) if number != reason]
        _, mine = self._moved[reason]
        finished = np.isin(self.recorded("status"), ("done", "audit_failed"))
        found: np.ndarray = mine & ~np.logical_or.reduce(others) & finished
        return found

    def _published(self, name: str) -> np.ndarray:
        """``rows`` or ``published_version`` as last published, one value per day; None if it never was."""
        found: np.ndarray = self._intervals.published[name][self._at]
        return found

    def row(self, position: int) -> StatusRow:
        """Everything about the day at ``position``."""
        rows, version = (_whole(self._published(name)[position]) for name in ("rows", "published_version"))
        return StatusRow(
            self.name,
            self.day(position),
            self.state_at(position),
            self.why(position),
            bool(self.provisional[position]),
            bool(self.ready[position]),
            rows,
            version,
        )

    def table(self, positions: np.ndarray) -> pa.Table:
        """The :class:`StatusRow` of every position, as a table with the columns of :data:`STATUS`."""
        whys = np.full(len(positions), "", dtype=object)
        plain = (self.state[positions] == "done") & ~self.provisional[positions]
        for n in np.flatnonzero(~plain | self.unjudged).tolist():
            whys[n] = self.why(int(positions[n]))
        values = {
            "definition": pa.array([self.name] * len(positions), pa.string()),
            "day": pa.array(self.numbers[positions].astype(np.int32)).cast(pa.date32()),
            "state": pa.array(self.state[positions].tolist(), pa.string()),
            "why": pa.array(whys, pa.string()),
            "provisional": pa.array(self.provisional[positions]),
            "ready": pa.array(self.ready[positions]),
            "rows": pa.array(self._published("rows")[positions], pa.int64()),
            "version": pa.array(self._published("published_version")[positions], pa.int64()),
        }
        return pa.table(values, schema=STATUS)


#: The columns of ``ops.status``: :class:`StatusRow`, one row per definition and day.
STATUS = pa.schema(
    [
        ("definition", pa.string()), ("day", pa.date32()), ("state", pa.string()), ("why", pa.string()),
        ("provisional", pa.bool_()), ("ready", pa.bool_()), ("rows", pa.int64()), ("version", pa.int64()),
    ]
)  # fmt: skip


def judge(
    home: Home,
    definitions: Sequence[Definition],
    days: Days | None = None,
    asked: Days | None = None,
    intervals: Intervals | None = None,
    events: Mapping[str, EventDays] | None = None,
) -> Iterator[Judged]:
    """Judge every definition; arguments as for :func:`to_do`, ``intervals`` and ``events`` if they were read before."""
    if not definitions:
        return
    intervals = intervals or Intervals(home, names_of(definitions))
    files = {source: _once(home, source) for source in {d.source for d in definitions}}
    events = events or {source: EventDays.load(home, source) for source in {d.source for d in definitions}}
    gone = lru_cache(maxsize=None)(lambda name: not tables.exists(home, *name.split(".", 1)))
    for definition in sorted(definitions, key=lambda d: d.name):
        part = intervals.of(definition.name)
        mine = intervals.numbers[part]
        source = days_of(definition, events[definition.source], intervals)
        numbers = wanted_days(definition, source, asked)
        if not np.array_equal(numbers, mine):
            numbers = np.union1d(numbers, mine).astype(np.int64)
        if days is not None and not definition.chained:
            numbers = numbers[inside(numbers, days)]
        found = np.searchsorted(mine, numbers)
        at = np.where(np.isin(numbers, mine), found + part.start, -1)
        one = Judged(definition, source, numbers, at, intervals, files[definition.source], gone)
        if days is not None and definition.chained:
            # The state of a chained day depends on all days before it.
            one.keep(inside(numbers, days))
        yield one


def _once(home: Home, source: str) -> Callable[[], LateFiles]:
    """The files of a source, read when first asked for."""
    return lru_cache(maxsize=1)(lambda: LateFiles(home, source))


def inside(numbers: np.ndarray, days: Days) -> np.ndarray:
    """Which of some days, as days since 1970-01-01, are among ``days``."""
    result: np.ndarray = (numbers >= day_number(days.start)) & (numbers < day_number(days.end))
    return result


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)
