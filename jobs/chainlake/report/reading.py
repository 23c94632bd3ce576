"""Reads what pages show from the lake: matches worth drawing, their events, and the events around them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.catalog.patterns import CompiledPattern
from chainlake.cep.events.history import add_histories
from chainlake.days import Days, day_of_us, instant, us_of
from chainlake.definitions.source import Source
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.lake.records.defined.registered import registered_table
from chainlake.lake.records.staleness import Judged
from chainlake.paths import Home
from chainlake.report.showing import number
from chainlake.schemas.matches import FIXED_COLUMNS

#: How many matches of a pattern are drawn.
DRAWN = 6
#: How many of the latest rows are considered for that.
_LOOKED_AT = 200_000
#: How many keys a match is called by.
_CALLED = 3
#: About how many events are kept in memory from one match to the next.
_KEPT = 400_000
_MINUTE_US = 60_000_000
_TIME = pa.timestamp("us", tz="UTC")
_ONE = timedelta(days=1)


@dataclass(frozen=True)
class Event:
    """An event that a match binds, with its row in the events table.

    Args:
        name: the name that it is bound to.
        us: its time, microseconds.
        key: key of its series.
        row: all its columns; only those in the match table if it is no longer in the events table.
        file: the file it came from; None if that is no longer known.
        line: its line in that file.
    """

    name: str
    us: int
    key: str
    row: Mapping[str, Any]
    file: str | None = None
    line: int | None = None

    @property
    def event_id(self) -> str:
        """Its id."""
        return str(self.row["event_id"])


@dataclass(frozen=True)
class Match:
    """A match as pages show it.

    Args:
        id: its id.
        start_us, end_us, decided_us: its times, microseconds.
        why: why it was chosen to be drawn.
        events: the events that it binds, in time order.
        numbers: its other columns: measures, and numbers of events.
    """

    id: str
    start_us: int
    end_us: int
    decided_us: int
    why: str = ""
    events: tuple[Event, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def day(self) -> date:
        """The UTC day to which it belongs."""
        return day_of_us(self.decided_us)

    @property
    def keys(self) -> list[str]:
        """The different keys of its events, in time order."""
        return list(dict.fromkeys(one.key for one in self.events))

    @property
    def series(self) -> str:
        """The first of these keys, as a match is called by them, and a sign that there are more."""
        return ", ".join(self.keys[:_CALLED]) + (", …" if len(self.keys) > _CALLED else "")

    def bound(self) -> dict[str, list[Event]]:
        """Its events by name."""
        found: dict[str, list[Event]] = {}
        for one in self.events:
            found.setdefault(one.name, []).append(one)
        return found


class SourceReader:
    """The tables of one source. Days of events that were read are kept for the next match as long as they are small.

    Args:
        home: the installation.
        source: the source.
    """

    def __init__(self, home: Home, source: Source) -> None:
        self.home, self.source = home, source
        self._days: dict[date, pa.Table] = {}

    @cached_property
    def paths(self) -> dict[str, str]:
        """Path of each landed file, by the id of its content."""
        rows = ops.current_table(
            self.home, "files", columns=["file_id", "path"], filters=[("source", "=", self.source.name)]
        )
        return dict(zip(rows["file_id"].to_pylist(), rows["path"].to_pylist(), strict=True))

    @cached_property
    def _sizes(self) -> dict[date, int]:
        rows = ops.current(self.home, "event_days", source=self.source.name)
        return {row["day"]: row["rows"] or 0 for row in rows}

    def events_on(self, days: Days) -> int:
        """How many events the days hold."""
        return sum(many for day, many in self._sizes.items() if day in days)

    def events(self, span: tuple[int, int], columns: Collection[str], keys: Collection[str] | None = None) -> pa.Table:
        """The events of a time range, in time order.

        Args:
            span: microseconds, half-open.
            columns: columns of the events table.
            keys: only events of these series; None: of all.
        """
        lo, hi = span
        days = Days(day_of_us(lo), day_of_us(hi - 1) + _ONE)
        wanted = list(dict.fromkeys([*columns, "ts", self.source.key]))
        asked = (pc.field("ts") >= pa.scalar(instant(lo), _TIME)) & (pc.field("ts") < pa.scalar(instant(hi), _TIME))
        if keys is not None:
            asked = asked & pc.field(self.source.key).isin(sorted(keys))
        found = self._of_days(days, asked)
        return found.select(wanted).sort_by([("ts", "ascending"), (self.source.key, "ascending")])

    def _of_days(self, days: Days, asked: pc.Expression) -> pa.Table:
        """The events of some days for which a condition holds."""
        if self.events_on(days) > _KEPT:
            of_days = (pc.field("event_date") >= days.start) & (pc.field("event_date") < days.end)
            return tables.arrow(self.home, "events", self.source.name, filters=of_days & asked)
        known = [day for day in days if self._sizes.get(day)]
        missing = [day for day in known if day not in self._days]
        if missing:
            if sum(len(one) for one in self._days.values()) > _KEPT:
                self._days.clear()
                missing = known
            read = tables.arrow(self.home, "events", self.source.name, filters=[("event_date", "in", missing)])
            for day in missing:
                self._days[day] = read.filter(pc.field("event_date") == day)
        if not known:
            return tables.arrow_schema(self.home, "events", self.source.name).empty_table()
        return pa.concat_tables([self._days[day] for day in known]).filter(asked)

    def needed(self, compiled: CompiledPattern, span: tuple[int, int]) -> pa.Table:
        """The events, with their histories, that a search for the matches decided in ``span`` reads."""
        pattern, histories = compiled.pattern, compiled.pattern.histories
        columns = {"event_id", "type", "seq", *(one.of for one in histories)}
        columns |= pattern.columns_needed - {one.name for one in histories} - {"id"}
        found = self.events(pattern.source_range(*span), columns)
        return add_histories(found, [self.source.key], histories) if histories else found

    def by_id(self, wanted: Mapping[str, int]) -> dict[str, dict[str, Any]]:
        """Whole rows of events, by id.

        Args:
            wanted: id → time of the event, microseconds.
        """
        if not wanted:
            return {}
        found = [
            self._of_days(
                Days.one(day), pc.field("event_id").isin([one for one, us in wanted.items() if day_of_us(us) == day])
            )
            for day in sorted({day_of_us(us) for us in wanted.values()})
        ]
        return {row["event_id"]: row for row in pa.concat_tables(found).to_pylist()}


def chosen(
    lake: SourceReader, compiled: CompiledPattern, judged: Judged, derived: Sequence[Judged] = ()
) -> list[Match]:
    """The matches of a pattern that its page draws: the best if it has a ranking or episodes, else the latest.

    Args:
        lake: the tables.
        compiled: the pattern.
        judged: its days.
        derived: the days of its episodes.
    """
    name = compiled.pattern.name
    table = registered_table(lake.home, name)
    if not tables.exists(lake.home, "matches", table):
        return []
    if compiled.ranking is not None and tables.exists(lake.home, "ranked", name):
        picked = _ranked(lake, name)
    elif compiled.episodes is not None and tables.exists(lake.home, "episodes", name):
        picked = _of_episodes(lake, name, next(one for one in derived if one.name == f"episodes/{name}"))
    else:
        picked = _latest(lake, table, judged)
    return whole(lake, table, picked)


def _ranked(lake: SourceReader, name: str) -> list[Match]:
    """The best matches of the last period, rank by rank."""
    columns = ["scope_kind", "scope_start", "per", "rank", "score", "match_id", "decision_ts", "start_ts", "end_ts"]
    rows = tables.arrow(lake.home, "ranked", name, columns=columns)
    if not len(rows):
        return []
    last = max(rows["scope_start"].to_pylist())
    best = [row for row in rows.to_pylist() if row["scope_start"] == last]
    best.sort(key=lambda row: (row["rank"], row["per"]))
    found = []
    for row in best[:DRAWN]:
        period = (
            "all matches" if row["scope_kind"] == "all" else f"the {row['scope_kind']} from {last:%Y-%m-%d %H:%M} UTC"
        )
        of = "" if row["per"] in ("[]", None) else f" for {row['per'].strip('[]')}"
        found.append(_match(row, f"rank {row['rank']} of {period}{of}, score {number(row['score'])}"))
    return found


def _of_episodes(lake: SourceReader, name: str, episodes: Judged) -> list[Match]:
    """The top matches of the most severe episodes, or of the latest if none is severe."""
    days = _last_days(episodes, _LOOKED_AT)
    if days is None:
        return []
    columns = ["start_ts", "end_ts", "decision_ts", "matches", "top_match", "severity"]
    rows = tables.arrow(lake.home, "episodes", name, columns=columns, filters=tables.decided_in(*days.micros()))
    order = [("severity", "descending"), ("end_ts", "descending"), ("top_match", "ascending")]
    found = []
    for row in rows.sort_by(order).slice(0, DRAWN).to_pylist():  # Arrow puts rows without a severity last
        how = "" if row["severity"] is None else f", severity {number(row['severity'])}"
        many = f"{row['matches']:,} match{'' if row['matches'] == 1 else 'es'}"
        why = f"top match of an episode of {many}{how}"
        found.append(_match({**row, "match_id": row["top_match"]}, why))
    return found


def _latest(lake: SourceReader, table: str, judged: Judged) -> list[Match]:
    """The latest matches, the last one first."""
    days = _last_days(judged)
    if days is None:
        return []
    lo, hi = days.micros()
    columns = ["match_id", "decision_ts", "start_ts", "end_ts"]
    rows = tables.arrow(lake.home, "matches", table, columns=columns, filters=tables.decided_in(lo, hi))
    order = [("decision_ts", "descending"), ("start_ts", "descending"), ("match_id", "ascending")]
    return spread([_match(row, "among the latest") for row in rows.sort_by(order).slice(0, _LOOKED_AT).to_pylist()])


def spread(every: Sequence[Match]) -> list[Match]:
    """As many matches as are drawn, in the order given: those that do not overlap, and others where these are too few.

    Args:
        every: the matches, those to be preferred first.
    """
    apart: list[Match] = []
    for one in every:
        if len(apart) == DRAWN:
            break
        if all(one.end_us < other.start_us or one.start_us > other.end_us for other in apart):
            apart.append(one)
    known = {one.id for one in apart}
    rest = [one.id for one in every if one.id not in known]
    known.update(rest[: DRAWN - len(apart)])
    return [one for one in every if one.id in known]


def latest_ends(lake: SourceReader, name: str, judged: Judged, days: int) -> list[int]:
    """The times at which the matches of the last UTC days with matches end, microseconds, to the minute.

    Args:
        lake: the tables.
        name: the pattern.
        judged: its days.
        days: how many days.
    """
    have = np.flatnonzero(judged.rows(np.arange(len(judged.numbers))) > 0)[-days:].tolist()
    wanted = [Days.one(judged.day(at)).micros() for at in have]
    table = registered_table(lake.home, name)
    found: set[int] = set()
    for lo, hi in wanted:
        ends = tables.arrow(lake.home, "matches", table, columns=["end_ts"], filters=tables.decided_in(lo, hi))
        minutes = ends["end_ts"].cast(pa.int64()).to_numpy() // _MINUTE_US * _MINUTE_US
        found.update(np.unique(minutes).tolist())
    return sorted(found)


def _last_days(judged: Judged, least: int = DRAWN) -> Days | None:
    """The last days that together have at least as many rows as asked for, or all days with rows."""
    rows = judged.rows(np.arange(len(judged.numbers)))
    have = np.flatnonzero(rows > 0)
    if not len(have):
        return None
    first = last = int(have[-1])
    total = 0
    for at in have[::-1].tolist():
        first, total = at, total + int(rows[at])
        if total >= least:
            break
    return Days(judged.day(first), judged.day(last) + _ONE)


def _match(row: Mapping[str, Any], why: str) -> Match:
    return Match(str(row["match_id"]), us_of(row["start_ts"]), us_of(row["end_ts"]), us_of(row["decision_ts"]), why)


def whole(lake: SourceReader, table: str, picked: Sequence[Match]) -> list[Match]:
    """Matches with all their events and numbers, in the order given."""
    if not picked:
        return []
    # If episodes were chosen, the decision time is the episode's, so these bounds are only rough.
    span = (min(one.start_us for one in picked), max(max(one.end_us, one.decided_us) for one in picked) + 1)
    wanted = [("match_id", "in", [one.id for one in picked]), *tables.decided_in(*span)]
    rows = {row["match_id"]: row for row in tables.arrow(lake.home, "matches", table, filters=wanted).to_pylist()}
    bound = {one: list(_bound(row)) for one, row in rows.items()}
    ids = {struct["event_id"]: us_of(struct["ts"]) for parts in bound.values() for _, struct in parts}
    events = lake.by_id(ids)
    found = []
    for one in picked:
        if one.id in rows:
            row = rows[one.id]
            parts = [_event(lake, name, struct, events) for name, struct in bound[one.id]]
            values = {name: value for name, value in row.items() if name not in FIXED_COLUMNS and not _is_bound(value)}
            ordered = tuple(sorted(parts, key=lambda part: (part.us, part.name)))
            found.append(
                Match(
                    one.id,
                    us_of(row["start_ts"]),
                    us_of(row["end_ts"]),
                    us_of(row["decision_ts"]),
                    one.why,
                    ordered,
                    values,
                )
            )
    return found


def _is_bound(value: Any) -> bool:
    one = value[0] if isinstance(value, list) and value else value
    return isinstance(one, dict) and "event_id" in one


def _bound(row: Mapping[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    for name, value in row.items():
        if _is_bound(value):
            for struct in value if isinstance(value, list) else [value]:
                yield name, struct


def _event(lake: SourceReader, name: str, struct: dict[str, Any], events: Mapping[str, dict[str, Any]]) -> Event:
    row = events.get(struct["event_id"], struct)
    file = lake.paths.get(row.get("file_id") or "")
    return Event(name, us_of(row["ts"]), str(row[lake.source.key]), row, file, row.get("line"))
