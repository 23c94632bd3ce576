"""The gate of episodes on what is already published (``python -m jobs validate``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

import numpy as np

from chainlake.catalog.episodes import CompiledEpisodes
from chainlake.catalog.patterns import CompiledPattern
from chainlake.days import Days
from chainlake.detect.episodes.published import PublishedMatches
from chainlake.lake.delta import tables
from chainlake.lake.records.event_days import EventDays
from chainlake.lake.records.staleness import judge
from chainlake.quality import Audit
from chainlake.quality.gates.episodes import audit_episodes
from chainlake.quality.published import Outcome


def validate_episodes(audit: Audit, patterns: Sequence[CompiledPattern], days: Days) -> Iterator[Outcome]:
    """Whether the published matches give the published episodes, pattern by pattern; no JVM.

    Days that are to be made again are left out: their matches have changed since.

    Args:
        audit: the application's audit.
        patterns: of one source.
        days: the UTC days asked for.
    """
    for compiled in patterns:
        episodes = compiled.episodes
        if episodes is None or not tables.exists(audit.home, episodes.table.schema, episodes.table.name):
            continue
        (judged,) = judge(audit.home, [episodes.definition])
        done = [judged.day(int(at)) for at in np.flatnonzero(judged.state == "done")]
        own = [day for day in done if day in days]
        first = EventDays.load(audit.home, episodes.definition.source).first
        if not own or first is None:
            continue
        matches = PublishedMatches(audit.home, compiled, first)
        broken: dict[date, str] = {}
        for stretch in _stretches(own):
            broken |= _broken(audit, matches, episodes, stretch)
        yield Outcome(episodes.definition.name, tuple(own), broken)


def _stretches(days: Sequence[date]) -> Iterator[Days]:
    """Ascending days as ranges without a gap."""
    begin = 0
    for at in range(1, len(days) + 1):
        if at == len(days) or days[at] != Days.one(days[at - 1]).end:
            yield Days(days[begin], Days.one(days[at - 1]).end)
            begin = at


def _broken(audit: Audit, matches: PublishedMatches, episodes: CompiledEpisodes, days: Days) -> dict[date, str]:
    rows = tables.arrow(
        audit.home, episodes.table.schema, episodes.table.name, filters=tables.decided_in(*days.micros())
    )
    open_, end = matches.open_at(days.start), days.micros()[1]
    verdict = audit_episodes(audit, episodes.table, rows, matches.of(open_.since, end), days, episodes.timing)
    return verdict.broken
