"""The gate of ``alerts.threshold``: keys, owned days, alternating signals, and means on the right side.

A threshold monitor's row of ``models.metrics`` passes the gate of the models.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.quality.gates.models import ROOM, Gate, bounds, day_text
from chainlake.schemas.models import ALERT_KINDS, ALERTS


def alerts_measures(staged: pa.Table, threshold: float | Mapping[str, float]) -> pa.Table:
    """``staged`` rows of alerts.threshold with the columns that the suite tests; unchanged if a column is missing."""
    if not set(ALERTS.column_names) <= set(staged.column_names):
        return staged
    rows = staged.sort_by("ts")
    kinds = rows["kind"].to_pylist()
    alternates = [None if i == 0 else kind != kinds[i - 1] for i, kind in enumerate(kinds)]
    (level,) = bounds([""], threshold)
    fits = [_fits(kind, mean, level) for kind, mean in zip(kinds, rows["mean"].to_pylist(), strict=True)]
    return (
        rows.append_column("owned_day", day_text(pc.cast(rows["ts"], pa.date32(), safe=False)))
        .append_column("alternates", pa.array(alternates, pa.bool_()))
        .append_column("mean_fits", pa.array(fits, pa.bool_()))
    )


def _fits(kind: str, mean: float | None, level: float | None) -> bool | None:
    if mean is None:
        return None
    if level is None:
        return False
    room = ROOM * abs(level)
    return mean < level + room if kind == "below" else mean >= level - room


ALERTS_GATE = Gate("alerts_threshold", ALERTS, alerts_measures, ("owned_day", "alternates", "mean_fits"), ALERT_KINDS)
