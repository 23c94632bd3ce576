"""The gate of rankings on what is already published (``chainlake validate``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.catalog.patterns import CompiledPattern
from chainlake.days import Days, instant
from chainlake.detect.derived import Gate, Judgement, validate_derived
from chainlake.detect.rankings.run import BATCH, published_matches, ranking, touched
from chainlake.lake.delta import tables
from chainlake.lake.records.defined.matched import PeriodDays
from chainlake.quality import Audit
from chainlake.quality.gates.rankings import audit_rankings
from chainlake.quality.published import Outcome
from chainlake.schemas.ranked import DAY_COLUMN


def validate_rankings(audit: Audit, patterns: Sequence[CompiledPattern], days: Days) -> Iterator[Outcome]:
    """Check that the published matches give the published rankings, pattern by pattern; no JVM.

    Args:
        audit: the application's audit.
        patterns: patterns of one source.
        days: the UTC days asked for; periods that can hold their matches are looked at.
    """

    def broken(one: Judgement, own: Sequence[date]) -> dict[date, str]:
        found: dict[date, str] = {}
        for first in range(0, len(own), BATCH):
            found |= _broken(audit, one, own[first : first + BATCH])
        return found

    return validate_derived(audit, patterns, Gate(ranking, lambda judged: touched(judged, days), broken))


def _broken(audit: Audit, one: Judgement, days: Sequence[date]) -> dict[date, str]:
    compiled, matched = one.compiled, one.days
    assert compiled.ranking is not None and isinstance(matched, PeriodDays)
    table = compiled.ranking.table
    lo, hi = map(instant, Days(days[0], Days.one(days[-1]).end).micros())
    begun = [(DAY_COLUMN, ">=", lo), (DAY_COLUMN, "<", hi)]
    rows = tables.arrow(audit.home, table.schema, table.name, filters=begun)
    mine = pc.is_in(pc.cast(rows[DAY_COLUMN], pa.date32(), safe=False), value_set=pa.array(days))
    matches = published_matches(audit.home, compiled, matched, days)
    return audit_rankings(audit, compiled.pattern, rows.filter(mine), matches, days).broken
