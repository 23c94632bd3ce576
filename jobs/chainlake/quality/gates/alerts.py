"""Gate of ``alerts.threshold``: keys, owned days, signals that alternate, and means on the right side.

A threshold monitor's row of ``models.metrics`` passes the gate of the models.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.quality.audit import Audit
from chainlake.quality.gates.models import METRICS_GATE, ROOM, Gate, audit_table, day_text, metrics_measures
from chainlake.quality.verdict import Verdict
from chainlake.schemas.models import ALERT_KINDS, ALERTS


def alerts_measures(staged: pa.Table, threshold: float) -> pa.Table:
    """``staged`` rows of alerts.threshold with what the suite tests; as they are if a column is missing."""
    if not set(ALERTS.column_names) <= set(staged.column_names):
        return staged
    rows = staged.sort_by("ts")
    kinds = rows["kind"].to_pylist()
    alternates = [None if i == 0 else kind != kinds[i - 1] for i, kind in enumerate(kinds)]
    room = ROOM * abs(threshold)
    fits = [
        None if mean is None else mean < threshold + room if kind == "below" else mean >= threshold - room
        for kind, mean in zip(kinds, rows["mean"].to_pylist(), strict=True)
    ]
    return (
        rows.append_column("owned_day", day_text(pc.cast(rows["ts"], pa.date32(), safe=False)))
        .append_column("alternates", pa.array(alternates, pa.bool_()))
        .append_column("mean_fits", pa.array(fits, pa.bool_()))
    )


ALERTS_GATE = Gate("alerts_threshold", ALERTS, alerts_measures, ("owned_day", "alternates", "mean_fits"), ALERT_KINDS)


def audit_alerts(
    audit: Audit, monitor: str, alerts: pa.Table, metrics: pa.Table, days: Iterable[date], threshold: float
) -> Verdict:
    """Which days of a threshold monitor's staged output may be published: those that pass both suites.

    Args:
        audit: the application's audit.
        monitor: name of the monitor; every row must be its.
        alerts: staged rows of ``alerts.threshold``.
        metrics: staged rows of ``models.metrics``.
        days: the UTC days that the run owns.
        threshold: the mean that the monitor watches for.
    """
    owned = sorted(days)
    found = audit_table(audit, ALERTS_GATE, alerts_measures(alerts, threshold), monitor, owned)
    return found & audit_table(audit, METRICS_GATE, metrics_measures(metrics, threshold), monitor, owned)
