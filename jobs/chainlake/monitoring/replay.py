"""A model and some of its days, which are computed together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from chainlake.catalog.models import LoadedModel
from chainlake.days import Days
from chainlake.schemas.ops_rows import ComputingStep

STEP: ComputingStep = "monitor"


@dataclass(frozen=True)
class Replay:
    """A model and some of its days, to be computed in one go.

    Args:
        model: the model.
        days: consecutive days; those before the model's start are published empty.
        target: the first of them that is to do; earlier ones are included because no state is kept after them.
        state: digest of the state at the end of the day before the first.
        snapshots: that state, by group; empty to begin from the start.
        fingerprints: the fingerprint of every day's input.
    """

    model: LoadedModel
    days: Days
    target: date
    state: str
    snapshots: dict[str, str]
    fingerprints: dict[date, str]
