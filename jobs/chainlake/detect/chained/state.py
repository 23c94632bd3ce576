"""The state of a pattern between two days: events used up by its published matches that later ones could bind."""

from __future__ import annotations

from datetime import date

from chainlake.catalog.patterns import CompiledPattern
from chainlake.cep.matches.consumed import Consumed, consuming_columns
from chainlake.cep.pattern import Pattern
from chainlake.days import day_start_us
from chainlake.lake.delta import tables
from chainlake.lake.records.chain import EMPTY
from chainlake.paths import Home


def state_at(pattern: Pattern, consumed: Consumed, day: date) -> Consumed:
    """The used-up events that a match of ``day`` or later could bind."""
    start = day_start_us(day)
    return consumed.before(start).since(start - pattern.reach_us)


def digest_of(state: Consumed) -> str:
    """Digest of a state; :data:`chainlake.lake.records.chain.EMPTY` for the empty one."""
    return state.digest() or EMPTY


def published_state(home: Home, compiled: CompiledPattern, day: date) -> Consumed:
    """The state at the start of a day, from the published matches of the days before it.

    The table is read at one version, whatever is committed in the meantime.

    Args:
        home: the installation.
        compiled: the pattern.
        day: the day.
    """
    pattern, table, start = compiled.pattern, compiled.table, compiled.definition.start
    policy = pattern.extras.policy
    if policy is None or start is None or not tables.exists(home, table.schema, table.name):
        return Consumed.none()
    end = day_start_us(day)
    # Matches of days before the start can still be there: they are withdrawn when those days are published.
    lo = end - pattern.reach_us if start == date.min else max(end - pattern.reach_us, day_start_us(start))
    if lo >= end:
        return Consumed.none()
    columns = ["decision_ts", *consuming_columns(policy, table.arrow())]
    rows = tables.arrow(home, table.schema, table.name, columns=columns, filters=tables.decided_in(lo, end))
    return state_at(pattern, Consumed.by(policy, rows), day)
