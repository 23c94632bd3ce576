"""Gate of ``models.changes`` and ``models.metrics``: keys, owned days, counts and the guarantee (design §7).

Both are small, a row per change and a row per group and day, and are held as Arrow tables: no Spark here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.quality.audit import Audit, AuditResult
from jobs.quality.days import per_day, span
from jobs.quality.frames import nullable
from schemas.models import CHANGES, KINDS, METRICS
from schemas.table import Table

#: Bounds are compared with this relative room, as the monitor compares them (spec model-monitoring.md).
ROOM = 1e-9

_COUNTS = (
    "rounds", "rounds_skipped", "syncs", "changes", "reports_up", "polls_down", "normalized_up", "normalized_all",
    "bytes", "max_error", "per_T", "per_T_mono",
)  # fmt: skip
_CHANGES_MEASURES = ("owned_day", "day_fits", "exceeded_fits")
METRICS_MEASURES = ("owned_day", "least_count", "guarantee_holds")
#: A failure of these means rows that belong to no day of the run.
_UNDATED = ("owned_day", "ts", "day")


def _bounds(groups: pa.ChunkedArray, eps: float | Mapping[str, float]) -> list[float | None]:
    """eps of each row's group, ``None`` where it is not known."""
    names = groups.to_pylist()
    return [eps.get(name) for name in names] if isinstance(eps, Mapping) else [float(eps)] * len(names)


def _exceeded_fits(exceeded: bool | None, error: float | None, bound: float | None) -> bool | None:
    """Whether ``exceeded`` says rightly that ``error`` is above ``bound``; ``None`` if one of them is not known."""
    if exceeded is None or error is None or bound is None:
        return None
    if not error <= bound * (1 + ROOM):  # NaN is above everything
        return exceeded
    return not exceeded if error < bound * (1 - ROOM) else True


def _guarantee_holds(error: float | None, bound: float | None) -> bool:
    return error is None or (bound is not None and error <= bound * (1 + ROOM))


def day_text(days: pa.ChunkedArray) -> pa.ChunkedArray:
    """UTC days as texts."""
    return pc.cast(pc.cast(days, pa.date32()), pa.string())


def changes_measures(staged: pa.Table, eps: float | Mapping[str, float]) -> pa.Table:
    """``staged`` rows of models.changes with what the suite tests; as they are if a column is missing."""
    if not set(CHANGES.column_names) <= set(staged.column_names):
        return staged
    columns = (staged["exceeded"].to_pylist(), staged["error_before"].to_pylist(), _bounds(staged["group_id"], eps))
    fits = [_exceeded_fits(*row) for row in zip(*columns, strict=True)]
    day = pc.cast(staged["ts"], pa.date32())
    return (
        staged.append_column("owned_day", day_text(day))
        .append_column("day_fits", pc.equal(staged["event_date"], day))
        .append_column("exceeded_fits", pa.array(fits, pa.bool_()))
    )


def metrics_measures(staged: pa.Table, eps: float | Mapping[str, float]) -> pa.Table:
    """``staged`` rows of models.metrics with what the suite tests; as they are if a column is missing."""
    if not set(METRICS.column_names) <= set(staged.column_names):
        return staged
    counts = pc.min_element_wise(*(pc.cast(staged[name], pa.float64()) for name in _COUNTS))
    columns = (staged["max_error"].to_pylist(), _bounds(staged["group_id"], eps))
    holds = [_guarantee_holds(*row) for row in zip(*columns, strict=True)]
    return (
        staged.append_column("owned_day", day_text(staged["day"]))
        .append_column("least_count", counts)
        .append_column("guarantee_holds", pa.array(holds, pa.bool_()))
    )


def audit_models(
    audit: Audit,
    model: str,
    changes: pa.Table,
    metrics: pa.Table,
    days: Iterable[date],
    eps: float | Mapping[str, float],
) -> dict[date, str | None]:
    """Which days of a model's staged output may be published.

    State carries from day to day, so whoever publishes must stop at the first day that failed (design §4, Models).

    Args:
        audit: the application's audit.
        model: name of the model; every row must be its.
        changes: staged rows of ``models.changes``.
        metrics: staged rows of ``models.metrics``.
        days: the UTC days that the run owns.
        eps: bound on the error after resolution, in the unit of ``max_error``; one number, or one per group.

    Returns:
        day → ``None`` if it passed both suites, else one line naming the broken expectation with an example row.
    """
    owned = sorted(days)
    outcome: dict[date, str | None] = dict.fromkeys(owned)
    for template, table, rows, added in (
        ("models_changes", CHANGES, changes_measures(changes, eps), _CHANGES_MEASURES),
        ("models_metrics", METRICS, metrics_measures(metrics, eps), METRICS_MEASURES),
    ):
        for day, reason in audit_table(audit, template, table, rows, model, owned, added, KINDS).items():
            outcome[day] = outcome[day] or reason
    return outcome


def audit_table(
    audit: Audit,
    template: str,
    table: Table,
    rows: pa.Table,
    model: str,
    owned: list[date],
    added: Sequence[str],
    kinds: Sequence[str],
) -> dict[date, str | None]:
    """Run one suite on the rows of one table, on each day by itself if it fails on all.

    Args:
        audit: the application's audit.
        template: the suite's file in ``expectations/``.
        table: the table that the rows are for.
        rows: staged rows with the columns ``added``.
        model: name of the model or monitor.
        owned: the UTC days that the run owns, sorted.
        added: measures that the suite tests.
        kinds: values that the column ``kind`` may have.

    Returns:
        day → ``None`` if it passed, else one line naming the broken expectation with an example row.
    """
    params: dict[str, Any] = {
        "model": model,
        "columns": [*table.column_names, *added],
        "kinds": list(kinds),
        "days": [day.isoformat() for day in owned],
    }
    frame = nullable(rows)

    def run(day: date | None, details: bool) -> AuditResult:
        part = frame if day is None else frame[frame["owned_day"] == str(day)]
        label = f"{table.path_name} of {model} of {day or span(owned)}"
        return audit.run(template, part, params, label, key=table.key, details=details)

    return per_day(owned, run, _UNDATED)
