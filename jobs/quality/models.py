"""Gate of ``models.changes`` and ``models.metrics``: keys, owned days, counts and the guarantee (design §7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from jobs.quality.audit import Audit, AuditResult
from jobs.quality.days import per_day, span
from schemas.models import CHANGES, KINDS, METRICS
from schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Bounds are compared with this relative room, as the monitor compares them (spec model-monitoring.md).
ROOM = 1e-9

_COUNTS = (
    "rounds", "rounds_skipped", "syncs", "changes", "reports_up", "polls_down", "normalized_up", "normalized_all",
    "bytes", "max_error", "per_T", "per_T_mono",
)  # fmt: skip
_CHANGES_MEASURES = ("owned_day", "day_fits", "exceeded_fits")
_METRICS_MEASURES = ("owned_day", "least_count", "guarantee_holds")
#: A failure of these means rows that belong to no day of the run.
_UNDATED = ("owned_day", "ts", "day")


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _bound(eps: float | Mapping[str, float]) -> str:
    """Spark SQL: eps of the row's group, null where it is not known."""
    if not isinstance(eps, Mapping):
        return f"cast({float(eps)!r} AS double)"
    pairs = "".join(f"WHEN {_literal(group)} THEN cast({float(value)!r} AS double) " for group, value in eps.items())
    return f"CASE group_id {pairs}END" if pairs else "cast(NULL AS double)"


def changes_measures(staged: DataFrame, eps: float | Mapping[str, float]) -> DataFrame:
    """``staged`` rows of models.changes with what the suite tests; as they are if a column is missing."""
    if not set(CHANGES.column_names) <= set(staged.columns):
        return staged
    bound = _bound(eps)
    return staged.selectExpr(
        "*",
        "cast(to_date(ts) AS string) AS owned_day",
        "event_date = to_date(ts) AS day_fits",
        f"CASE WHEN exceeded IS NULL OR error_before IS NULL OR {bound} IS NULL THEN NULL"
        f" WHEN error_before > {bound} * {1 + ROOM!r} THEN exceeded"
        f" WHEN error_before < {bound} * {1 - ROOM!r} THEN NOT exceeded ELSE true END AS exceeded_fits",
    )


def metrics_measures(staged: DataFrame, eps: float | Mapping[str, float]) -> DataFrame:
    """``staged`` rows of models.metrics with what the suite tests; as they are if a column is missing."""
    if not set(METRICS.column_names) <= set(staged.columns):
        return staged
    counts = ", ".join(f"cast({name} AS double)" for name in _COUNTS)
    return staged.selectExpr(
        "*",
        "cast(day AS string) AS owned_day",
        f"least({counts}) AS least_count",
        f"max_error IS NULL OR coalesce(max_error <= {_bound(eps)} * {1 + ROOM!r}, false) AS guarantee_holds",
    )


def audit_models(
    audit: Audit,
    model: str,
    changes: DataFrame,
    metrics: DataFrame,
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
        ("models_metrics", METRICS, metrics_measures(metrics, eps), _METRICS_MEASURES),
    ):
        for day, reason in _table(audit, template, table, rows, model, owned, added).items():
            outcome[day] = outcome[day] or reason
    return outcome


def _table(
    audit: Audit, template: str, table: Table, rows: DataFrame, model: str, owned: list[date], added: Sequence[str]
) -> dict[date, str | None]:
    params: dict[str, Any] = {
        "model": model,
        "columns": [*table.column_names, *added],
        "kinds": list(KINDS),
        "days": [day.isoformat() for day in owned],
    }
    measured = rows.persist()

    def run(day: date | None, details: bool) -> AuditResult:
        part = measured if day is None else measured.where(f"owned_day = '{day}'")
        label = f"{table.path_name} of {model} of {day or span(owned)}"
        return audit.run(template, part, params, label, key=table.key, details=details)

    try:
        return per_day(owned, run, _UNDATED)
    finally:
        measured.unpersist()
