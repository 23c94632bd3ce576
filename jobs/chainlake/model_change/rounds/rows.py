"""The rows that a day of a monitor produces: dictionaries whose keys and value types mypy knows.

``schemas/models.py`` says what each column means, and a test compares the two. A column that can be null may be absent
from a row, and is then null.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import NamedTuple, NotRequired, TypedDict

from chainlake.schemas.models import AlertKind, ChangeKind, LearnerKind, ZoneKind


class Coefficient(TypedDict):
    """A number that belongs to a named feature."""

    feature: str
    value: float


class Zone(TypedDict):
    """The zone of a node; ``coverage``: the share of its past vectors inside, if the zone was designed from history."""

    node: str
    coverage: float | None
    levels: list[float]


class ChangeRow(TypedDict):
    """A row of ``models.changes``."""

    model: str
    group_id: str
    ts: datetime
    kind: ChangeKind
    round: int
    violators: NotRequired[Sequence[str] | None]
    max_value: NotRequired[float | None]
    error_before: NotRequired[float | None]
    exceeded: NotRequired[bool | None]
    beta_before: NotRequired[Sequence[Coefficient] | None]
    beta_after: NotRequired[Sequence[Coefficient] | None]
    rounds_since_previous: NotRequired[int | None]
    event_date: date


class AlertRow(TypedDict):
    """A row of ``alerts.threshold``."""

    monitor: str
    ts: datetime
    kind: AlertKind
    mean: NotRequired[float | None]
    n_collected: int


class ZoneRow(TypedDict):
    """A row of ``models.zone_events``."""

    model: str
    group_id: str
    ts: datetime
    kind: ZoneKind
    round: int
    violators: NotRequired[Sequence[str] | None]
    collected: NotRequired[int | None]
    facets: NotRequired[Sequence[str] | None]
    excess: NotRequired[float | None]
    mean: NotRequired[Sequence[Coefficient] | None]
    zones: NotRequired[Sequence[Zone] | None]
    event_date: date


class LearnerRow(TypedDict):
    """A row of ``models.learners``."""

    model: str
    group_id: str
    ts: datetime
    kind: LearnerKind
    learner: str
    round: int
    violator: NotRequired[bool | None]
    weights: NotRequired[Sequence[Coefficient] | None]
    divergence: NotRequired[float | None]
    rounds: NotRequired[int | None]
    loss: NotRequired[float | None]
    loss_alone: NotRequired[float | None]
    loss_static: NotRequired[float | None]
    errors: NotRequired[int | None]
    event_date: date


class FaultRow(TypedDict):
    """A row of ``models.fault_scores``."""

    model: str
    group_id: str
    day: date
    machine: str
    rounds: int
    v_norm: float
    gamma: float
    p: float
    flagged: bool
    first_flagged: NotRequired[datetime | None]
    top_counters: NotRequired[Sequence[Coefficient] | None]
    p_sketch: NotRequired[float | None]
    resyncs: NotRequired[int | None]


class MetricFigures(TypedDict, total=False):
    """Columns of ``models.metrics`` that only some kinds of monitor fill."""

    syncs: int | None
    changes: int | None
    bytes: int | None
    max_error: float | None
    r2: float | None


class MetricRow(MetricFigures):
    """A row of ``models.metrics``."""

    model: str
    group_id: str
    day: date
    rounds: int
    rounds_skipped: int
    reports_up: NotRequired[int | None]
    polls_down: NotRequired[int | None]
    normalized_up: NotRequired[float | None]
    normalized_all: NotRequired[float | None]
    per_T: NotRequired[int | None]
    per_T_mono: NotRequired[int | None]
    carried_share: NotRequired[float | None]


#: A row of a kind's table.
FindingRow = ChangeRow | AlertRow | ZoneRow | LearnerRow | FaultRow


class DayRows(NamedTuple):
    """What a day gives.

    Args:
        found: rows of the kind's table.
        metrics: the row of ``models.metrics``; None if the day had no usable round.
    """

    found: Sequence[FindingRow]
    metrics: MetricRow | None
