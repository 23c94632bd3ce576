"""The values of a pattern's measures for its matches (docs/semantics.md#measures)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from chainlake.cep.conditions.blocks import Bindings
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.pattern import Pattern
from chainlake.cep.values.values import NULL, Value, as_float, not_null
from chainlake.schemas.table import TIMESTAMP

#: Microseconds per second; durations are written in seconds.
_SECOND = 1_000_000


def measured(pattern: Pattern, branch: int, found: Bindings, scan: Scan) -> dict[str, pa.Array]:
    """The measures of some matches, and the values by which they are ranked.

    Args:
        pattern: the pattern.
        branch: the number of the branch that found them.
        found: the matches, bound to positions among the candidates.
        scan: the scan in which they were found.

    Returns:
        by name of the measure, its values in the type of its column; where only the values can tell the type of
        numbers, they are whole numbers if all are.
    """
    view = found.view(scan.data, scan.candidates)
    doubt = scan.data.calls is not None and scan.data.calls.doubt
    nodes = {measure.name: measure.values[branch] for measure in pattern.extras.values}
    return {
        # What is in doubt is found again, and a function must not be asked about events that are no match.
        name: as_arrow(NULL if doubt and node.heavy else view.value(node), found.n, scan, pattern.strict)
        for name, node in nodes.items()
    }


def as_arrow(value: Value, n: int, scan: Scan, strict: bool) -> pa.Array:
    """``n`` values of a scan as an Arrow column."""
    if value.kind == "null":
        return pa.nulls(n)
    known = np.broadcast_to(np.asarray(not_null(value), bool), (n,))
    lacking = ~known
    if value.kind == "string":
        words = np.array([*scan.data.vocabulary, ""], object)
        codes = np.broadcast_to(np.asarray(value.values, np.int64), (n,))
        return pa.array(words[np.where(known, codes, len(words) - 1)], pa.string(), mask=lacking)
    if value.kind == "duration" or value.kind == "number" and not _fits_whole(value):
        numbers = np.broadcast_to(np.asarray(as_float(value), np.float64), (n,))
        scale = _SECOND if value.kind == "duration" and strict else 1
        return pa.array(numbers / scale, pa.float64(), mask=lacking)
    whole = np.broadcast_to(np.asarray(value.values), (n,))
    if value.kind == "time":
        return pa.array(whole.astype(np.int64), pa.int64(), mask=lacking).cast(TIMESTAMP)
    return pa.array(whole, mask=lacking)


def _fits_whole(value: Value) -> bool:
    """Whether numbers are 64-bit whole numbers."""
    if isinstance(value.values, np.ndarray):
        return bool(value.values.dtype.kind == "i")
    return isinstance(value.values, int) and -(2**63) <= value.values < 2**63
