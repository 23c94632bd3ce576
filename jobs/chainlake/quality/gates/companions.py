"""The gates for what the other kinds of models publish: zone events, learners and fault scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.quality.gates.alerts import ALERTS_GATE
from chainlake.quality.gates.models import CHANGES_GATE, ROOM, Gate, bounds, day_text
from chainlake.schemas.models import FAULT_SCORES, LEARNER_KINDS, LEARNERS, ZONE_EVENTS, ZONE_KINDS

Bound = float | Mapping[str, float]


def zone_measures(staged: pa.Table, bound: Bound) -> pa.Table:
    """``staged`` rows of models.zone_events with the columns that the suite tests; unchanged if a column is missing."""
    del bound
    if not set(ZONE_EVENTS.column_names) <= set(staged.column_names):
        return staged
    rows = staged.sort_by([("group_id", "ascending"), ("ts", "ascending")])
    last: dict[str, str] = {}
    alternates: list[bool | None] = []
    fits: list[bool] = []
    for row in rows.select(["group_id", "kind", "violators", "excess", "zones", "collected"]).to_pylist():
        kind, group = row["kind"], row["group_id"]
        crossing = kind in ("outside", "inside")
        alternates.append(last.get(group) != kind if crossing and group in last else None)
        if crossing:
            last[group] = kind
        fits.append(_zone_fits(row))
    return (
        _dated(rows)
        .append_column("alternates", pa.array(alternates, pa.bool_()))
        .append_column("told_fits", pa.array(fits, pa.bool_()))
    )


def _zone_fits(row: Mapping[str, Any]) -> bool:
    """Whether a row fits its kind: which nodes left and how far, how many were collected, what their zones are now."""
    by_report = row["kind"] in ("balanced", "outside")
    if bool(row["violators"]) != by_report or (row["excess"] is not None and row["excess"] > 0) != by_report:
        return False
    if (row["zones"] is None) != (row["kind"] == "outside"):
        return False
    collected = row["collected"]
    if row["kind"] == "design":
        return collected is None
    return collected is not None and collected >= len(row["violators"] or ())


def learner_measures(staged: pa.Table, bound: Bound) -> pa.Table:
    """``staged`` rows of models.learners with the columns that the suite tests; unchanged if a column is missing."""
    if not set(LEARNERS.column_names) <= set(staged.column_names):
        return staged
    radii = bounds(staged["group_id"].to_pylist(), bound)
    apart = staged["divergence"].to_pylist()
    holds = [None if d is None else r is not None and d <= r * (1 + ROOM) for d, r in zip(apart, radii, strict=True)]
    losses = [pc.fill_null(pc.cast(staged[name], pa.float64()), 0.0) for name in _SUMS]
    return (
        _dated(staged)
        .append_column("least_sum", pc.min_element_wise(*losses))
        .append_column("guarantee_holds", pa.array(holds, pa.bool_()))
    )


def score_measures(staged: pa.Table, bound: Bound) -> pa.Table:
    """``staged`` rows of models.fault_scores with the columns that the suite tests; unchanged if one is missing."""
    if not set(FAULT_SCORES.column_names) <= set(staged.column_names):
        return staged
    alphas = bounds(staged["group_id"].to_pylist(), bound)
    flags = zip(staged["p"].to_pylist(), staged["flagged"].to_pylist(), alphas, strict=True)
    fits = [p is not None and alpha is not None and (p < alpha) == flagged for p, flagged, alpha in flags]
    return staged.append_column("owned_day", day_text(staged["day"])).append_column(
        "flag_fits", pa.array(fits, pa.bool_())
    )


def _dated(rows: pa.Table) -> pa.Table:
    day = pc.cast(rows["ts"], pa.date32(), safe=False)
    return rows.append_column("owned_day", day_text(day)).append_column("day_fits", pc.equal(rows["event_date"], day))


_SUMS = ("loss", "loss_alone", "loss_static", "errors", "divergence", "rounds")

#: The gates by the table of a kind.
GATES = {
    gate.table.path_name: gate
    for gate in (
        CHANGES_GATE,
        ALERTS_GATE,
        Gate("models_zone_events", ZONE_EVENTS, zone_measures,
             ("owned_day", "day_fits", "alternates", "told_fits"), ZONE_KINDS),
        Gate("models_learners", LEARNERS, learner_measures,
             ("owned_day", "day_fits", "least_sum", "guarantee_holds"), LEARNER_KINDS),
        Gate("models_fault_scores", FAULT_SCORES, score_measures, ("owned_day", "flag_fits")),
    )
}  # fmt: skip
