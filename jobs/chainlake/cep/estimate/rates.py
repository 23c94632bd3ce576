"""How often events arrive that a name can be bound to, estimated from the counts of ingest.

Ingest counts events per type and key. A name's own conditions on type and key pick from these counts; its other
conditions are counted by the kernel on the events themselves (docs/automata.md#binding-order).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from chainlake.cep.conditions.evaluate import Candidates, View
from chainlake.cep.events.dataset import Dataset, Wanted
from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Clause
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.steps import routing


def stated_rates(pattern: Pattern, key: str, rates: Iterable[Mapping[str, object]]) -> dict[str, float]:
    """Events per positive name that pass its conditions on type and key alone.

    Args:
        pattern: the pattern.
        key: the source's key column.
        rates: rows of ``ops.rates`` of the read range, with ``type``, ``key`` and ``events``.

    Returns:
        the number of events by name, the largest over the branches that have the name.
    """
    total: dict[tuple[str, str], int] = {}
    for row in rates:
        series = (str(row["type"]), str(row["key"]))
        total[series] = total.get(series, 0) + int(str(row["events"]))
    counts = np.array(list(total.values()), dtype=np.float64)
    series_table = pa.table(
        {
            "event_id": pa.array([f"{number}" for number in range(len(total))], pa.string()),
            "type": pa.array([kind for kind, _ in total], pa.string()),
            "ts": pa.array(range(len(total)), pa.int64()),
            key: pa.array([name for _, name in total], pa.string()),
        }
    )
    attributes = {key, "type"} & pattern.searched
    data = Dataset(series_table, Wanted(pattern.event_types, attributes, pattern.words, strict=pattern.strict))
    found: dict[str, float] = {}
    for branch in pattern.branches:
        for name, clauses in routing(branch).items():
            if name not in branch.positive:
                continue
            candidates = Candidates(data, data.of_type(branch.types[name]))
            keep = np.ones(len(candidates), bool)
            everything = View.of_all(data, name, candidates)
            for clause in clauses:
                if _attributes(clause) <= {key, "type"}:
                    keep &= everything.holds(clause, frozenset())
            rate = float(counts[data.rows_of(candidates.rows[keep])].sum())
            found[name] = max(rate, found.get(name, 0.0))
    return found


def _attributes(clause: Clause) -> set[str | None]:
    nodes = (node for literal in clause.literals for node in literal.walk())
    return {node.attr for node in nodes if isinstance(node, ast.Ref | ast.Aggregate)}
