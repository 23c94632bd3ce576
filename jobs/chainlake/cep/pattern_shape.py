"""The shape of a pattern's match table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from chainlake.cep.matches.measures import measure_type
from chainlake.cep.pattern import Pattern
from chainlake.schemas.matches import MatchName, MatchShape
from chainlake.schemas.table import TIMESTAMP


def match_shape(
    pattern: Pattern, *, version: int = 1, key: str | None = None, types: Mapping[str, Any] | None = None
) -> MatchShape:
    """The shape of the pattern's match table.

    Args:
        pattern: the pattern.
        version: table version.
        key: the source's key column, carried by every name; None for tables without one.
        types: Arrow type of every column, default those that the pattern was compiled with; those not named are
            strings.
    """
    types = types if types is not None else pattern.types or {}
    names = []
    for name in pattern.names:
        if name.name in pattern.front.counted:
            continue
        fields = [("event_id", pa.string()), ("ts", TIMESTAMP), ("type", pa.string())]
        if key is not None:
            fields.append((key, types.get(key, pa.string())))
        fields += [(a, types.get(a, pa.string())) for a in name.attributes if a != key]
        names.append(MatchName(name.name, name.kleene, tuple(fields)))
    return MatchShape(
        pattern.name,
        version,
        pattern.source or "",
        tuple(names),
        pattern.front.counted,
        tuple((one.name, measure_type(one, types)) for one in pattern.extras.measures),
    )
