"""What other values of a setting would have found and sent, for all kinds but linear models (for those: `tuning`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import pyarrow as pa

from chainlake.model_change.days.definitions import Config, kind_of
from chainlake.model_change.days.replay import GroupRun, run_days


@dataclass(frozen=True)
class Trial:
    """What one value of the setting gave.

    Args:
        value: the value.
        rounds: number of rounds used, over all groups.
        up, down: messages from nodes and to them.
        normalized_up: messages up per node and round; None for a kind that saves no messages.
        max_error: the largest error, if the kind has errors.
        figures: the kind's own figures.
    """

    value: Any
    rounds: int
    up: int
    down: int
    normalized_up: float | None
    max_error: float | None
    figures: dict[str, float]


def trials(
    config: Config, reduced: pa.Table, days: tuple[date, date], knob: str, values: Sequence[Any]
) -> Iterator[Trial]:
    """Run a definition over days from its start, once for each value.

    Args:
        config: the definition; its first day is the first of ``days``.
        reduced: the rounds of the days, from `reduce.reduce_rows`.
        days: the first day, and the day after the last.
        knob: name of the setting, one of the kind's knobs.
        values: values to try, as the knob reads them.
    """
    kind = kind_of(config)
    for value in values:
        tried = replace(config, start=days[0], **{kind.knobs[knob].attribute: value})
        gave = [run_days(GroupRun(tried, group, *days), reduced, every_state=False) for group in tried.groups]
        metrics = [row for one in gave for row in one.metrics]
        readings = sum(row["rounds"] * len(tried.groups[row["group_id"]]) for row in metrics)
        up = sum(row.get("reports_up") or 0 for row in metrics)
        down = sum(row.get("polls_down") or 0 for row in metrics)
        errors = [error for row in metrics if (error := row.get("max_error")) is not None]
        sends = any(row.get("reports_up") is not None for row in metrics)
        yield Trial(
            value,
            sum(row["rounds"] for row in metrics),
            up,
            down,
            up / readings if sends and readings else None,
            max(errors, default=None),
            kind.figures([row for one in gave for row in one.found]),
        )
