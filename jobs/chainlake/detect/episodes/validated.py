"""The gate of episodes on what is already published (``chainlake validate``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from chainlake.catalog.episodes import CompiledEpisodes
from chainlake.catalog.patterns import CompiledPattern
from chainlake.days import Days
from chainlake.detect.derived import Gate, Judgement, validate_derived
from chainlake.detect.episodes.published import PublishedMatches
from chainlake.detect.episodes.run import episodes
from chainlake.lake.delta import tables
from chainlake.lake.records.staleness import inside
from chainlake.quality import Audit
from chainlake.quality.gates.episodes import audit_episodes
from chainlake.quality.published import Outcome


def validate_episodes(audit: Audit, patterns: Sequence[CompiledPattern], days: Days) -> Iterator[Outcome]:
    """Check that the published matches give the published episodes, pattern by pattern; no JVM.

    Args:
        audit: the application's audit.
        patterns: patterns of one source.
        days: the UTC days asked for.
    """

    def broken(one: Judgement, own: Sequence[date]) -> dict[date, str]:
        compiled = one.compiled
        assert compiled.episodes is not None and one.days.first is not None
        matches = PublishedMatches(audit.home, compiled, one.days.first)
        found: dict[date, str] = {}
        for batch in _batches(own):
            found |= _broken(audit, matches, compiled.episodes, batch)
        return found

    return validate_derived(audit, patterns, Gate(episodes, lambda judged: inside(judged.numbers, days), broken))


def _batches(days: Sequence[date]) -> Iterator[Days]:
    """Ascending days as ranges without gaps."""
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
