"""SQL on match tables: which events are bound, in what order matches are published, and which events they use up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from chainlake.errors import DefinitionError
from chainlake.lake.sql.flat import FLAT, flat_select
from chainlake.lake.sql.scan import literal, quoted
from chainlake.paths import Home

if TYPE_CHECKING:
    from chainlake.cep.policy import Policy

#: The views of a match table whose events carry ``seq``: its rows in the order in which they are published, and the
#: events that they use up.
ORDERED, CONSUMED = "_ordered", "_consumed"


def view_of(name: str) -> tuple[str, str] | None:
    """The table and the kind of view that a name stands for; None if it stands for none."""
    lower = name.lower()
    return next(((name[: -len(kind)], kind) for kind in (ORDERED, CONSUMED, FLAT) if lower.endswith(kind)), None)


def view_select(home: Home, pattern: str, schema: pa.Schema, rows: str, kind: str) -> str | None:
    """The SELECT of a view of a match table; None if the table has no such view.

    Args:
        home: the installation.
        pattern: name of the pattern.
        schema: the schema of its match table.
        rows: the table, as SQL.
        kind: :data:`ORDERED`, :data:`CONSUMED` or ``flat.FLAT``.
    """
    if kind == FLAT:
        return flat_select(rows, schema)
    names = _names(schema)
    if not names:
        return None
    if kind == ORDERED:
        order = ordered_select(rows, names)
        return (
            f"SELECT o.place AS publish_order, m.* FROM {rows} AS m JOIN ({order}) AS o USING (match_id, decision_ts) "
            "ORDER BY publish_order"
        )
    policy = _policy(home, pattern)
    return None if policy is None or not policy.consumes else consumed_select(rows, names, policy.consume)


def _names(schema: pa.Schema) -> dict[str, bool]:
    """Each name of bound events → whether its column is an array; empty if the events of any name lack ``seq``."""
    found = {}
    for field in schema:
        array = pa.types.is_list(field.type) or pa.types.is_large_list(field.type)
        kind = field.type.value_type if array else field.type
        if pa.types.is_struct(kind):
            if kind.get_field_index("seq") < 0:
                return {}
            found[field.name] = array
    return found


def _policy(home: Home, pattern: str) -> Policy | None:
    """The policy of a pattern's file: which matches it wants; None if the file is missing or broken."""
    from chainlake.cep.pattern import compile_pattern

    file = home.config / "patterns" / f"{pattern}.sase"
    try:
        return compile_pattern(file.read_text(encoding="utf-8"), name=pattern).extras.policy
    except (OSError, DefinitionError):
        return None


def bound_select(rows: str, names: Mapping[str, bool]) -> str:
    """Every bound event of every match: ``match_id, decision_ts, name, ts, seq, event_id``.

    Args:
        rows: a match table whose events have ``seq``, as SQL.
        names: positive name → whether its column is an array.
    """
    parts = [
        f"SELECT match_id, decision_ts, {literal(name)} AS name, e.ts AS ts, coalesce(e.seq, 0) AS seq, "
        f"e.event_id AS event_id FROM (SELECT match_id, decision_ts, "
        f"{'unnest(' + quoted(name) + ')' if array else quoted(name)} AS e FROM {rows}) WHERE e IS NOT NULL"
        for name, array in names.items()
    ]
    return " UNION ALL ".join(parts)


def consumed_select(rows: str, names: Mapping[str, bool], consume: str | Sequence[str]) -> str:
    """Every event that a match uses up: ``match_id, decision_ts, name, ts, seq, event_id``.

    Args:
        rows, names: as for :func:`bound_select`.
        consume: ``all``, ``initiator``, or the names whose events are used up.
    """
    if not isinstance(consume, str):
        return bound_select(rows, {name: array for name, array in names.items() if name in consume})
    bound = bound_select(rows, names)
    if consume == "initiator":
        first = "row_number() OVER (PARTITION BY match_id, decision_ts ORDER BY ts, seq, event_id) = 1"
        return f"SELECT * FROM ({bound}) QUALIFY {first}"
    return bound


def ordered_select(rows: str, names: Mapping[str, bool]) -> str:
    """The place of each match in the order in which they are published: ``match_id, decision_ts, place, terminator``.

    Matches are ordered by their last event, then by the others in order of time, then by the names in that order;
    events are ordered by (ts, seq, event_id).

    Args:
        rows, names: as for :func:`bound_select`, with the names in the order of their declaration.
    """
    number = "CASE name " + " ".join(f"WHEN {literal(name)} THEN {n}" for n, name in enumerate(names)) + " END"
    event = "{'ts': ts, 'seq': seq, 'event_id': event_id}"
    keyed = (
        f"SELECT match_id, decision_ts, list({event} ORDER BY ts, seq, event_id) AS events, "
        f"list({number} ORDER BY ts, seq, event_id) AS numbers FROM ({bound_select(rows, names)}) "
        "GROUP BY match_id, decision_ts"
    )
    place = "row_number() OVER (ORDER BY events[-1], events[:-2], numbers)"
    return f"SELECT match_id, decision_ts, {place} AS place, events[-1].event_id AS terminator FROM ({keyed})"
