"""One model and some days that are computed in one go."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from chainlake.catalog.models import LoadedModel
from chainlake.days import Days
from chainlake.schemas.ops_rows import ComputingStep

STEP: ComputingStep = "monitor"


@dataclass(frozen=True)
class Replay:
    """One model and some of its days, to be computed in one go.

    Args:
        model: the model.
        days: consecutive days; those before the model's start are published empty.
        target: the first of them that is to do; those before it are there because no state is kept between.
        state: digest of the state at the end of the day before the first.
        snapshots: that state per group; empty to begin anew.
        fingerprints: of every day.
    """

    model: LoadedModel
    days: Days
    target: date
    state: str
    snapshots: dict[str, str]
    fingerprints: dict[date, str]
