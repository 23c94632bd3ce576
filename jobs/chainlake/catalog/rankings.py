"""The best matches of a pattern: their table, and their place in the schedule of days."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from chainlake.catalog.derived import Derived, definition_of
from chainlake.cep.pattern import Pattern
from chainlake.cep.ranking.days import owners, spans
from chainlake.days import day_number
from chainlake.digests import as_text
from chainlake.lake.records.defined.definitions import Definition
from chainlake.schemas.ranked import ranked_table

#: Raised by hand when the same matches can give other best ones than before.
VERSION = 1


def ranking_of(pattern: Pattern, definition: Definition) -> Derived | None:
    """The ranking of a pattern; None if its text wants all matches.

    Args:
        pattern: the pattern.
        definition: the pattern's definition.
    """
    ranking = pattern.extras.ranking
    if ranking is None:
        return None
    table, period = ranked_table(pattern.name, definition.source), ranking.rule.period
    # If a match's first event decides its period, its last event may come after the period's end.
    reach = pattern.decided_us if period.by_first else pattern.late_us

    @cache
    def reads(number: int) -> tuple[int, int]:
        lo, hi = spans(period, reach, np.array([number]))
        return int(lo[0]), int(hi[0])

    made = definition_of(
        "ranked",
        pattern,
        definition,
        table,
        [VERSION, as_text(ranking.rule)],
        late_us=definition.late_us,
        read_range=lambda day: reads(day_number(day)),
        owners=partial(owners, period, reach),
    )
    return Derived(table, made)
