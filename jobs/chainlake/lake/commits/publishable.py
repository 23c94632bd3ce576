"""Which of the days that were computed may be published, decided under the lock of their table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from chainlake.lake.records import ops
from chainlake.lake.records.chain import EMPTY, Link, left_out
from chainlake.lake.records.defined.definitions import Definition
from chainlake.paths import Home

_ONE = timedelta(days=1)


@dataclass(frozen=True)
class Publishable:
    """The days of a definition that are published now, and why others are not.

    Args:
        ready: the days to publish.
        left_out: day → why it is not published.
        broken: day → why its audit failed; all of them are left out.
    """

    ready: list[date]
    left_out: dict[date, str]
    broken: dict[date, str]


@dataclass(frozen=True)
class DaysNow:
    """What days are computed from now.

    Args:
        fingerprints: by day; none if the definition changed.
        anew: for days that form a chain: whether a day starts from the empty state, whatever came before.
    """

    fingerprints: Mapping[date, str]
    anew: Callable[[date], bool]


def publishable(
    fingerprints: Mapping[date, str], audits: Mapping[date, str | None], now: Mapping[date, str]
) -> Publishable:
    """Which of some days that do not depend on each other may be published.

    Args:
        fingerprints: day → fingerprint that the computation started from; its keys are the days.
        audits: day → ``None`` if its audit passed, else the reason in one line.
        now: the fingerprints now.
    """
    ready: list[date] = []
    out: dict[date, str] = {}
    broken: dict[date, str] = {}
    for day in sorted(fingerprints):
        failed = audits.get(day)
        if now.get(day) != fingerprints[day]:
            out[day] = "its input or definition changed while it was computed"
        elif failed is not None:
            broken[day] = failed
            out[day] = f"its audit failed: {failed}"
        else:
            ready.append(day)
    return Publishable(ready, out, broken)


def chained(
    fingerprints: Mapping[date, str],
    audits: Mapping[date, str | None],
    links: Mapping[date, Link],
    now: DaysNow | None,
    left: str | None,
) -> Publishable:
    """Which of a chain's consecutive days may be published: those before the first that may not.

    Args:
        fingerprints, audits: as for :func:`publishable`.
        links: day → the digests of the states at its ends.
        now: what the days are computed from now; None if the definition changed.
        left: the state that the day before the first one left.
    """
    days = publishable(fingerprints, audits, now.fingerprints if now is not None else {})
    ordered = {day: links[day] for day in sorted(fingerprints)}
    before = EMPTY if now is not None and any(map(now.anew, list(ordered)[:1])) else left
    out = left_out(ordered, days.left_out, before)
    first = next(iter(out), None)
    # Whether later days fail their audits is not known until the states they start from are.
    broken = {day: why for day, why in days.broken.items() if day == first}
    return Publishable([day for day in ordered if day not in out], out, broken)


def states_left(home: Home, first: Mapping[Definition, date]) -> dict[str, str | None]:
    """The state that the day before each definition's first day left, by definition name.

    A state left under another hash or engine than today's is ``None``; a day that is not done has no entry.

    Args:
        home: the installation; the caller holds the lock of the table.
        first: the first day of each definition.
    """
    if not first:
        return {}
    before = {definition.name: (definition, day - _ONE) for definition, day in first.items()}
    days = [day for _, day in before.values()]
    rows = ops.current_table(
        home,
        "intervals",
        columns=["definition", "day", "status", "definition_hash", "engine_version", "state_out"],
        filters=[("definition", "in", list(before)), ("day", ">=", min(days)), ("day", "<=", max(days))],
    )
    found = {}
    for row in rows.to_pylist():
        definition, day = before[row["definition"]]
        made_by = row["definition_hash"], row["engine_version"]
        if row["day"] == day and row["status"] == "done":
            same = made_by == (definition.definition_hash, definition.engine_version)
            found[definition.name] = row["state_out"] if same else None
    return found
