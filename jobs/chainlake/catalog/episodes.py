"""The episodes of a pattern: their table, and their place in the schedule of days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from chainlake.catalog.derived import Derived, definition_of
from chainlake.cep.episodes.days import Timing
from chainlake.cep.pattern import Pattern
from chainlake.days import Days
from chainlake.lake.records.defined.definitions import Definition
from chainlake.schemas.episodes import episodes_table

#: Raised by hand when the same matches can give other episodes than before.
VERSION = 1


@dataclass(frozen=True)
class CompiledEpisodes(Derived):
    """The episodes of a pattern.

    Args:
        timing: when they are decided.
    """

    timing: Timing


def episodes_of(pattern: Pattern, definition: Definition) -> CompiledEpisodes | None:
    """The episodes of a pattern; None if its text does not declare any.

    Args:
        pattern: the pattern.
        definition: the pattern's definition.
    """
    rule = pattern.extras.episodes
    if rule is None:
        return None
    timing = Timing(rule.pause, pattern.decided_us)
    table = episodes_table(pattern.name, definition.source)
    identity = [VERSION, rule.attr, rule.names, rule.severe, timing.pause, timing.wait]
    made = definition_of(
        "episodes",
        pattern,
        definition,
        table,
        identity,
        late_us=timing.late,
        # It reads the matches that are decided on the day; episodes open before the day are in the state.
        read_range=lambda day: Days.one(day).micros(),
        start=date.min,
        memory_us=timing.late,
    )
    return CompiledEpisodes(table, made, timing)
