"""What a model or a monitor found over files, as columns and rows to print: a form for each kind's table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from chainlake.cli.tables import local_text
from chainlake.schemas.models import ALERTS, CHANGES, FAULT_SCORES, LEARNERS, ZONE_EVENTS
from chainlake.schemas.table import Table

#: The column that says whether a machine is flagged.
_FLAGGED = "flagged"
#: Names of columns, and their rows.
Printed = tuple[list[str], Sequence[Sequence[Any]]]


def printed_findings(table: Table, found: pa.Table, zone: ZoneInfo | None) -> Printed:
    """The rows of a kind's table for a reader.

    Args:
        table: that of the kind.
        found: rows of it.
        zone: whose local times are shown beside UTC; None: no local times.
    """
    return PRINTED[table.path_name](found.to_pylist(), zone)


def flagged_only(printed: Printed) -> tuple[Printed, int]:
    """Without rows of machines that are not flagged, and columns that say nothing then; and how many rows are left out.

    Args:
        printed: the rows of any kind's table.
    """
    columns, rows = printed
    if _FLAGGED not in columns:
        return printed, 0
    at = columns.index(_FLAGGED)
    kept = [row for row in rows if row[at]]
    filled = [n for n in range(len(columns)) if not kept or any(row[n] not in (None, "") for row in kept)]
    shown = [n for n in filled if n != at]
    return ([columns[n] for n in shown], [[row[n] for n in shown] for row in kept]), len(rows) - len(kept)


def _timed(row: dict[str, Any], zone: ZoneInfo | None) -> list[Any]:
    return [row["ts"], *([] if zone is None else [local_text(row["ts"], zone)])]


def _head(zone: ZoneInfo | None, *names: str) -> list[str]:
    return ["ts", *([] if zone is None else ["local"]), *names]


def _changes(found: list[dict[str, Any]], zone: ZoneInfo | None) -> Printed:
    """Changes, each coefficient before and after."""
    features = list(dict.fromkeys(one["feature"] for row in found for one in row["beta_after"] or ()))
    names = [name for feature in features for name in (f"{feature} before", feature)]
    rows = []
    for row in found:
        before, after = _by_feature(row["beta_before"]), _by_feature(row["beta_after"])
        values = [side.get(feature) for feature in features for side in (before, after)]
        rows.append([*_timed(row, zone), row["group_id"], row["kind"], row["error_before"], *values])
    return _head(zone, "group", "kind", "error", *names), rows


def _alerts(found: list[dict[str, Any]], zone: ZoneInfo | None) -> Printed:
    """Alerts of a threshold monitor."""
    rows = [[*_timed(row, zone), row["kind"], row["mean"], row["n_collected"]] for row in found]
    return _head(zone, "kind", "mean", "sensors heard"), rows


def _zone_events(found: list[dict[str, Any]], zone: ZoneInfo | None) -> Printed:
    """Reports of nodes and crossings of the region's border, with the mean."""
    features = list(dict.fromkeys(one["feature"] for row in found for one in row["mean"] or ()))
    rows = []
    for row in found:
        mean = _by_feature(row["mean"])
        cells = [row["kind"], row["collected"], _listed(row["violators"]), _listed(row["facets"]), row["excess"]]
        rows.append([*_timed(row, zone), row["group_id"], *cells, *(mean.get(feature) for feature in features)])
    names = [f"mean {feature}" for feature in features]
    return _head(zone, "group", "kind", "nodes heard", "outside their zone", "beyond", "by", *names), rows


def _learners(found: list[dict[str, Any]], zone: ZoneInfo | None) -> Printed:
    """Losses of each learner and day, and the weights at its end; how often they synchronised is in the metrics."""
    mine = [row for row in found if row["kind"] == "day"]
    features = list(dict.fromkeys(one["feature"] for row in mine for one in row["weights"] or ()))
    sums = ("rounds", "loss", "loss_alone", "loss_static", "errors")
    rows = []
    for row in mine:
        weights = _by_feature(row["weights"])
        cells = [row["event_date"], row["group_id"], row["learner"], *(row[name] for name in sums)]
        rows.append([*cells, *(weights.get(feature) for feature in features)])
    return ["day", "group", "learner", "rounds", "loss", "never sharing", "always sharing", "errors", *features], rows


def _scores(found: list[dict[str, Any]], zone: ZoneInfo | None) -> Printed:
    """Machines of each day, the least p first, with the counters that carry it."""
    rows = []
    for row in sorted(found, key=lambda row: (row["day"], row["group_id"], row["p"], row["machine"])):
        first = row["first_flagged"]
        at = None if first is None else first if zone is None else local_text(first, zone)
        counters = [f"{one['feature']} {one['value']:+.2f}" for one in row["top_counters"]]
        rows.append([row["day"], row["group_id"], row["machine"], row["p"], row["flagged"], at, _listed(counters)])
    return ["day", "group", "machine", "p", _FLAGGED, "first flagged", "counters"], rows


def _by_feature(values: Iterable[dict[str, Any]] | None) -> dict[str, float]:
    return {one["feature"]: one["value"] for one in values or ()}


def _listed(values: Iterable[str] | None) -> str | None:
    return None if values is None else ", ".join(values)


PRINTED: dict[str, Callable[[list[dict[str, Any]], ZoneInfo | None], Printed]] = {
    CHANGES.path_name: _changes,
    ALERTS.path_name: _alerts,
    ZONE_EVENTS.path_name: _zone_events,
    LEARNERS.path_name: _learners,
    FAULT_SCORES.path_name: _scores,
}
