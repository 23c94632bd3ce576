"""The shape of a pattern's match table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from chainlake.cep.compiling.tail import Measure
from chainlake.cep.events.columns import is_whole
from chainlake.cep.language import ast
from chainlake.cep.pattern import Pattern
from chainlake.cep.ranking.rule import Rule
from chainlake.schemas.matches import MatchName, MatchShape
from chainlake.schemas.table import TIMESTAMP


def match_shape(
    pattern: Pattern, *, version: int = 1, key: str | None = None, types: Mapping[str, Any] | None = None
) -> MatchShape:
    """The shape of the pattern's match table.

    Args:
        pattern: the pattern.
        version: table version.
        key: the source's key column, carried by every name; None outside a lake, where ranks stand beside the matches.
        types: Arrow type of every column, default those that the pattern was compiled with; those not named are
            strings.
    """
    types = types if types is not None else pattern.types or {}
    names = []
    policy, ranking = pattern.extras.policy, pattern.extras.ranking
    # The rows alone must tell which of the events of one time is first, since that decides which events are used up and
    # which of two matches with equal scores is better.
    ordered = key is not None and (ranking is not None or policy is not None and policy.consumes)
    for name in pattern.names:
        if name.name in pattern.front.counted:
            continue
        fields = [("event_id", pa.string()), ("ts", TIMESTAMP), ("type", pa.string())]
        if key is not None:
            fields.append((key, types.get(key, pa.string())))
        fields += [("seq", pa.int64())] if ordered else []
        fields += [(a, types.get(a, pa.string())) for a in name.attributes if a not in dict(fields)]
        names.append(MatchName(name.name, name.kleene, tuple(fields)))
    return MatchShape(
        pattern.name,
        version,
        pattern.source or "",
        tuple(names),
        pattern.front.counted,
        tuple((one.name, measure_type(one, types)) for one in pattern.extras.measures),
        () if key is None or ranking is None else ranking_columns(ranking.rule),
    )


def measure_type(measure: Measure, types: Mapping[str, pa.DataType]) -> pa.DataType:
    """The type of a measure's column.

    Args:
        measure: the measure.
        types: of the events' attributes.

    Returns:
        text, boolean or timestamp; a whole number for counts and for attributes that are whole numbers; a double for
        all other numbers, and for durations, which are seconds.
    """
    if measure.kind == "string":
        return pa.string()
    if measure.kind == "bool":
        return pa.bool_()
    if measure.kind == "time":
        return TIMESTAMP
    whole = measure.kind == "number" and all(_is_whole(node, types) for node in measure.values)
    return pa.int64() if whole else pa.float64()


def _is_whole(node: ast.Node, types: Mapping[str, pa.DataType]) -> bool:
    match node:
        case ast.Aggregate(function, _, attr) if ast.AGGREGATES[function].numbers == "same":
            return attr is not None and is_whole(types.get(attr, pa.null()))
        case ast.Aggregate(function) | ast.ListAggregate(function):
            return ast.AGGREGATES[function].numbers == "whole"
        case ast.Ref(_, attr):
            return is_whole(types.get(attr, pa.null()))
        case ast.Literal(value):
            return isinstance(value, int)
        case ast.Case((), None):
            return True  # null in a branch that lacks the event
    return False


def ranking_columns(rule: Rule) -> tuple[tuple[str, pa.DataType, str], ...]:
    """The columns of a match table by which matches are compared: name, type and comment of each.

    Args:
        rule: the pattern's.
    """
    scores = [(f"score_{n + 1}", pa.float64(), "Number of the score; null if there is none.")
              for n in range(rule.scores[0].width)]  # fmt: skip
    criteria = [(f"criterion_{n + 1}", pa.float64(), f"Criterion {n + 1} as it is.") for n in range(rule.criteria)]
    return (
        ("per", pa.string(), "Values of FOR EACH as a JSON array."),
        ("distinct_on", pa.string(), "Values of DISTINCT ON as a JSON array."),
        *scores,
        *criteria,
    )
