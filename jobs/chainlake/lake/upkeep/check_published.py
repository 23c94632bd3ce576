"""Whether the tables of matches, models and alerts hold what ``ops.intervals`` says was published, day by day."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import Days
from chainlake.lake.delta.sums.checksums import Checksum, Place, Sums
from chainlake.lake.delta.where import delta_literal
from chainlake.lake.upkeep import recorded
from chainlake.lake.upkeep.check_table import Inspected
from chainlake.lake.upkeep.contents import Contents
from chainlake.lake.upkeep.findings import Finding, Fix, PublishedDay, SurplusRows, UnrecordedDay
from chainlake.lake.upkeep.recorded import RecordedDay
from chainlake.schemas import ranked
from chainlake.schemas.models import FINDINGS, METRICS, SHARED, STATE
from chainlake.schemas.table import Table
from chainlake.words import counted

#: Tables of all models, in the order of the parts of ``rows_checksum`` after the first.
_OF_MODELS: tuple[Table, ...] = (METRICS, STATE)
_KEYS = {table.path_name: table.key for table in SHARED}
_MATCH_KEY = ("match_id", "decision_ts")
#: Schema → kind of the definitions that have their own table there.
_KINDS = {"matches": "pattern", "episodes": "episodes", "ranked": "ranked"}
_OF_PATTERNS = {"episodes": ("first_match", "decision_ts"), "ranked": ranked.KEY}
_FIRST: dict[str, Table] = {table.path_name: table for table in FINDINGS}


@dataclass(frozen=True)
class Expected:
    """What a table should hold for a day of a definition: the number of rows, and their checksum if it was kept."""

    definition: str
    rows: int | None
    sums: Checksum | None
    settled: bool


def check_matches(inspected: Inspected, days: recorded.Days, within: Days | None) -> list[Finding]:
    """Compare a table of matches, episodes or rankings with what was recorded for it.

    Args:
        inspected: the table.
        days: what was recorded.
        within: only these days; all if ``None``.
    """
    wanted = {
        ("", day): Expected(name, one.rows, one.sums[0] if one.sums else None, one.settled)
        for (name, day), one in days.items()
    }
    day_column = ranked.DAY_COLUMN if inspected.schema == "ranked" else "decision_ts"
    return _compared(inspected, wanted, Sums(day_column), within)


def check_models(
    tables: Mapping[str, Inspected],
    published: Mapping[str, recorded.Days],
    within: Days | None,
    only: Collection[str] | None = None,
) -> list[Finding]:
    """Compare the tables of models and monitors with what was recorded for them.

    Args:
        tables: the tables by ``schema.name``; those that are gone have no contents.
        published: table name → what was recorded for it.
        within: only these days; all if ``None``.
        only: names of models and monitors; all if ``None``.
    """
    found: list[Finding] = []
    everywhere = {key: one for name in _FIRST for key, one in published.get(name, {}).items()}
    for name, table in _FIRST.items():
        wanted = {(_owner(key), day): _part(key, one, 0) for (key, day), one in published.get(name, {}).items()}
        sums = Sums(table.day_column, table.key[0], table.volatile)
        found += _compared(tables[name], wanted, sums, within, only=only)
    for number, table in enumerate(_OF_MODELS, 1):
        wanted = {(_owner(key), day): _part(key, one, number) for (key, day), one in everywhere.items()}
        sums = Sums(table.day_column, table.key[0], table.volatile)
        cached = _valid_states(everywhere) if table is STATE else None
        found += _compared(tables[table.path_name], wanted, sums, within, only=only, cached=cached)
    return found


def _valid_states(days: recorded.Days) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """A filter that keeps the states that were last published; one left by an attempt that died is never used."""
    valid = {(_owner(name), day, one.state_out) for (name, day), one in days.items()}

    def keep(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = (batch.column(name).to_pylist() for name in ("model", "day", "fingerprint"))
        return batch.filter(pa.array([place in valid for place in zip(*columns, strict=True)], pa.bool_()))

    return keep


def _owner(definition: str) -> str:
    return definition.partition("/")[2]


def _part(definition: str, one: RecordedDay, number: int) -> Expected:
    if one.sums is not None and number < len(one.sums):
        return Expected(definition, one.sums[number].rows, one.sums[number], one.settled)
    return Expected(definition, one.rows if number == 0 else None, None, one.settled)


def _compared(
    inspected: Inspected,
    wanted: Mapping[Place, Expected],
    sums: Sums,
    within: Days | None,
    *,
    only: Collection[str] | None = None,
    cached: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
) -> list[Finding]:
    """Compare every owner and day that is in the table or should be.

    Args:
        inspected: the table.
        wanted: what it should hold.
        sums: empty sums, to which its rows are added.
        within: only these days.
        only: only these owners.
        cached: given if the table is a cache, whose rows may be absent; only rows that it keeps can be wrong.
    """
    if only is not None:
        wanted = {place: one for place, one in wanted.items() if place[0] in only}
    if inspected.contents is None:
        return [] if inspected.findings or cached else _gone(inspected, wanted, within)
    where = None if within is None else _span(inspected.contents, sums.day_column, within)
    for batch in inspected.contents.batches(where=where):
        sums.add(batch if cached is None else cached(batch))
    findings: list[Finding] = []
    broken: dict[Place, str] = {}
    unsummed: list[tuple[str, date]] = []
    for place in sorted(wanted.keys() | sums.of.keys()):
        if (within is not None and place[1] not in within) or (only is not None and place[0] not in only):
            continue
        there, expected = sums.of.get(place, Checksum()), wanted.get(place)
        if expected is None:
            findings.append(_strange(inspected, sums, place, bool(wanted)))
        elif expected.settled and (there.rows or cached is None):
            why = _difference(expected, there)
            if why is not None:
                broken[place] = why
            elif expected.sums is None and expected.rows:
                unsummed.append((expected.definition, place[1]))
    repeated = _repeated(inspected, sums, broken)
    for place, why in broken.items():
        name = wanted[place].definition
        fixes: list[Fix] = [PublishedDay(name, place[1])]
        if place in repeated:
            fixes.append(SurplusRows(inspected.schema, inspected.name, _where(sums, place)))
            why = f"{why}; keys repeat"
        findings.append(Finding(inspected.path_name, f"{name} {place[1]}: {why}", fixes=tuple(fixes)))
    return [*findings, *_only_counted(inspected, unsummed)]


def _repeated(inspected: Inspected, sums: Sums, places: Collection[Place]) -> set[Place]:
    """The ones among ``places`` where rows share a key; a difference by key would leave all such rows."""
    if not places or inspected.contents is None:
        return set()
    key = list(_OF_PATTERNS.get(inspected.schema) or _KEYS.get(inspected.path_name, _MATCH_KEY))
    columns = list(dict.fromkeys([*key, sums.day_column, *([sums.owner_column] if sums.owner_column else [])]))
    seen: dict[Place, set[tuple[object, ...]]] = {place: set() for place in places}
    found: set[Place] = set()
    for batch in inspected.contents.batches(columns=columns):
        days = pc.cast(batch.column(sums.day_column), pa.date32(), safe=False).to_pylist()
        owners = batch.column(sums.owner_column).to_pylist() if sums.owner_column else [""] * len(batch)
        at = [n for n, place in enumerate(zip(owners, days, strict=True)) if place in seen]
        some = batch.take(pa.array(at, pa.int64()))
        values = zip(*(some.column(name).to_pylist() for name in key), strict=True)
        for n, value in zip(at, values, strict=True):
            place = owners[n], days[n]
            if value in seen[place]:
                found.add(place)
            seen[place].add(value)
    return found


def _where(sums: Sums, place: Place) -> str:
    """The rows of an owner's day, as SQL."""
    owner, day = place
    text = f"CAST({sums.day_column} AS DATE) = '{day}'"
    return f"{text} AND {sums.owner_column} = {delta_literal(owner)}" if sums.owner_column else text


def _gone(inspected: Inspected, wanted: Mapping[Place, Expected], within: Days | None) -> list[Finding]:
    """One finding per definition that has rows in a table that does not exist."""
    lost: dict[str, list[date]] = {}
    for (_, day), expected in sorted(wanted.items()):
        if expected.rows and (within is None or day in within):
            lost.setdefault(expected.definition, []).append(day)
    return [
        Finding(
            inspected.path_name,
            f"the table is gone, but {name} has published {counted(len(days), 'day')} with rows to it, from {days[0]}",
            fixes=tuple(PublishedDay(name, day) for day in days),
        )
        for name, days in lost.items()
    ]


def _difference(expected: Expected, there: Checksum) -> str | None:
    if expected.rows is not None and expected.rows != there.rows:
        return f"{counted(expected.rows, 'row')} published, {there.rows} in the table"
    if expected.sums is not None and expected.sums != there:
        return f"{counted(there.rows, 'row')}, as published, but with other values"
    return None


def _strange(inspected: Inspected, sums: Sums, place: Place, known: bool) -> Finding:
    (owner, day), there = place, sums.of[place]
    whose = f" of {owner}" if owner else ""
    what = f"{day}: {counted(there.rows, 'row')}{whose} on a day that was never published"
    # If nothing at all is recorded for the table, it is the records that are gone.
    name = f"{_KINDS.get(inspected.schema, 'model')}/{owner or inspected.name.partition('/')[0]}"
    fix = SurplusRows(inspected.schema, inspected.name, _where(sums, place)) if known else UnrecordedDay(name, day)
    return Finding(inspected.path_name, what, fixes=(fix,))


def _only_counted(inspected: Inspected, places: Iterable[tuple[str, date]]) -> list[Finding]:
    days: dict[str, list[date]] = {}
    for definition, day in places:
        days.setdefault(definition, []).append(day)
    return [
        Finding(
            inspected.path_name,
            f"{definition}: the rows of {counted(len(of), 'day')} from {min(of)} were only counted, since they were "
            "published before checksums were kept",
            damage=False,
        )
        for definition, of in days.items()
    ]


def _span(contents: Contents, column: str, within: Days) -> object:
    """A filter for the rows of some days, which skips row groups without any."""
    import pyarrow.dataset as ds

    kind = contents.schema.field(column).type
    limits = within.micros() if pa.types.is_timestamp(kind) else (within.start, within.end)
    low, high = (pa.scalar(limit, pa.int64()).cast(kind) if isinstance(limit, int) else limit for limit in limits)
    return (ds.field(column) >= low) & (ds.field(column) < high)
