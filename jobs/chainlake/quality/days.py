"""Runs a suite on all days at once and, only if it fails, on each day, so that a bad day does not hold back others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import date

from chainlake.quality.audit import AuditResult


def span(days: Sequence[date]) -> str:
    """A short text for sorted days."""
    return str(days[0]) if len(days) == 1 else f"{days[0]} to {days[-1]}"


def per_day(
    days: Sequence[date], run: Callable[[date | None, bool], AuditResult], undated: Collection[str]
) -> dict[date, str | None]:
    """Which of ``days`` may be published.

    Args:
        days: the owned days, sorted.
        run: runs the suite on the rows of one day, or on all rows for ``None``; the second argument says whether
            counts and example rows are wanted.
        undated: columns whose failure means that rows belong to no owned day. Such rows cast doubt on the whole
            computation, so every day fails.

    Returns:
        day → ``None`` if it passed, else one line that says what is broken.
    """
    whole = run(None, len(days) == 1)
    if whole.success or len(days) == 1:
        return dict.fromkeys(days, whole.reason)
    if not any(failure.column in undated for failure in whole.failures):
        outcome = {day: run(day, True).reason for day in days}
        if any(outcome.values()):
            return outcome
    return dict.fromkeys(days, run(None, True).reason)
