"""The gates for what models publish: keys, owned days, counts and the guarantee.

Both tables are small (a row per change, and a row per group and day) and are held as Arrow tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.quality.audit import Audit, AuditResult
from chainlake.quality.days import per_day, span
from chainlake.quality.frames import nullable
from chainlake.quality.templates import instantiate
from chainlake.quality.verdict import Verdict
from chainlake.schemas.models import CHANGES, KINDS, METRICS
from chainlake.schemas.table import Table

#: Bounds are compared with this relative tolerance, like in the monitor.
ROOM = 1e-9

_COUNTS = (
    "rounds", "rounds_skipped", "syncs", "changes", "reports_up", "polls_down", "normalized_up", "normalized_all",
    "bytes", "max_error", "per_T", "per_T_mono",
)  # fmt: skip
#: A failure in one of these columns means that rows belong to no day of the run.
_UNDATED = ("owned_day", "ts", "day")


def bounds(groups: Sequence[str], eps: float | Mapping[str, float]) -> list[float | None]:
    """The bound of each group; ``None`` where it is not known."""
    return [eps.get(name) for name in groups] if isinstance(eps, Mapping) else [float(eps)] * len(groups)


def _exceeded_fits(exceeded: bool | None, error: float | None, bound: float | None) -> bool | None:
    """Whether ``exceeded`` is right about ``error`` being above ``bound``; ``None`` if one of them is not known."""
    if exceeded is None or error is None or bound is None:
        return None
    if not error <= bound * (1 + ROOM):  # NaN is above everything
        return exceeded
    return not exceeded if error < bound * (1 - ROOM) else True


def _guarantee_holds(error: float | None, bound: float | None) -> bool:
    return error is None or (bound is not None and error <= bound * (1 + ROOM))


@dataclass(frozen=True)
class Gate:
    """A suite and what it tests.

    Args:
        template: name of its file in ``expectations/``.
        table: the table for which the rows are meant.
        measures: staged rows and their bound → the rows with the columns ``added``.
        added: names of measures that the suite tests.
        kinds: values that the column ``kind`` may have.
    """

    template: str
    table: Table
    measures: Callable[[pa.Table, Any], pa.Table]
    added: tuple[str, ...]
    kinds: tuple[str, ...] = ()

    def suite(self, models: Sequence[str], title: str, owned: Sequence[date]) -> dict[str, Any]:
        """The suite, from the models to which rows must belong, a name for the suite, and the days."""
        params = {
            "model": title,
            "models": list(models),
            "columns": [*self.table.column_names, *self.added],
            "kinds": list(self.kinds),
            "days": [day.isoformat() for day in owned],
        }
        return instantiate(self.template, params)


def day_text(days: pa.ChunkedArray) -> pa.ChunkedArray:
    """UTC days as text."""
    return pc.cast(pc.cast(days, pa.date32()), pa.string())


def changes_measures(staged: pa.Table, eps: float | Mapping[str, float]) -> pa.Table:
    """``staged`` rows of models.changes with the columns that the suite tests; unchanged if a column is missing."""
    if not set(CHANGES.column_names) <= set(staged.column_names):
        return staged
    held = bounds(staged["group_id"].to_pylist(), eps)
    columns = (staged["exceeded"].to_pylist(), staged["error_before"].to_pylist(), held)
    fits = [_exceeded_fits(*row) for row in zip(*columns, strict=True)]
    day = pc.cast(staged["ts"], pa.date32())
    return (
        staged.append_column("owned_day", day_text(day))
        .append_column("day_fits", pc.equal(staged["event_date"], day))
        .append_column("exceeded_fits", pa.array(fits, pa.bool_()))
    )


def metrics_measures(staged: pa.Table, eps: float | Mapping[str, float]) -> pa.Table:
    """``staged`` rows of models.metrics with the columns that the suite tests; unchanged if a column is missing."""
    if not set(METRICS.column_names) <= set(staged.column_names):
        return staged
    counts = pc.min_element_wise(*(pc.cast(staged[name], pa.float64()) for name in _COUNTS))
    columns = (staged["max_error"].to_pylist(), bounds(staged["group_id"].to_pylist(), eps))
    holds = [_guarantee_holds(*row) for row in zip(*columns, strict=True)]
    return (
        staged.append_column("owned_day", day_text(staged["day"]))
        .append_column("least_count", counts)
        .append_column("guarantee_holds", pa.array(holds, pa.bool_()))
    )


CHANGES_GATE = Gate("models_changes", CHANGES, changes_measures, ("owned_day", "day_fits", "exceeded_fits"), KINDS)
METRICS_GATE = Gate("models_metrics", METRICS, metrics_measures, ("owned_day", "least_count", "guarantee_holds"))


@dataclass(frozen=True)
class Gated:
    """The staged output of a model or monitor.

    Args:
        name: the model, to which every row must belong.
        found: rows of its kind's table.
        metrics: rows of ``models.metrics``.
        bound: the bound that they are compared with, such as eps; one number, or one per group.
    """

    name: str
    found: pa.Table
    metrics: pa.Table
    bound: Any


def audit_models(audit: Audit, gate: Gate, staged: Gated, days: Iterable[date]) -> Verdict:
    """Which days of a model's staged output may be published: those that pass both suites.

    State is carried from day to day, so publishing must stop at the first day that failed.

    Args:
        audit: the application's audit.
        gate: the gate of the table of the model's kind.
        staged: the model's staged output.
        days: the UTC days that the run owns.
    """
    owned = sorted(days)
    found = audit_table(audit, gate, gate.measures(staged.found, staged.bound), staged.name, owned)
    measured = metrics_measures(staged.metrics, staged.bound)
    return found & audit_table(audit, METRICS_GATE, measured, staged.name, owned)


def audit_together(audit: Audit, gate: Gate, staged: Sequence[Gated], days: Iterable[date]) -> bool:
    """Whether everything that several models staged may be published.

    One suite per table runs over all models, at the cost of a single model's. A negative answer does not say which
    model failed.

    Args:
        audit: the application's audit.
        gate: the gate of the table in which all of them publish, besides ``models.metrics``.
        staged: the staged output of each model.
        days: the UTC days that the run owns, the same for all.
    """
    owned = sorted(days)
    for one in staged:
        for rows, column in ((one.found, gate.table.key[0]), (one.metrics, METRICS.key[0])):
            if not set(rows[column].to_pylist()) <= {one.name}:
                return False
    names = [one.name for one in staged]
    found = pa.concat_tables([gate.measures(one.found, one.bound) for one in staged])
    metrics = pa.concat_tables([metrics_measures(one.metrics, one.bound) for one in staged])
    label = f"{len(names)} models of {span(owned)}"
    return all(
        audit.run(
            its.suite(names, f"{len(names)} models", owned),
            nullable(rows),
            f"{its.table.path_name} of {label}",
            key=its.table.key,
            details=False,
        ).success
        for its, rows in ((gate, found), (METRICS_GATE, metrics))
    )


def audit_table(audit: Audit, gate: Gate, rows: pa.Table, model: str, owned: list[date]) -> Verdict:
    """Run a suite on the rows of a table, and on each day by itself if it fails for all.

    Args:
        audit: the application's audit.
        gate: the suite and its table.
        rows: staged rows with the gate's measures.
        model: name of the model or monitor.
        owned: the UTC days that the run owns, sorted.
    """
    suite = gate.suite([model], model, owned)
    frame = nullable(rows)

    def run(day: date | None, details: bool) -> AuditResult:
        part = frame if day is None else frame[frame["owned_day"] == str(day)]
        label = f"{gate.table.path_name} of {model} of {day or span(owned)}"
        return audit.run(suite, part, label, key=gate.table.key, details=details)

    return Verdict(per_day(owned, run, _UNDATED))
