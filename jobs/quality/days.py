"""One bad day must not hold back the good ones: a suite runs on all days at once and, only if it fails, on each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date

from jobs.quality.audit import AuditResult


def span(days: Sequence[date]) -> str:
    """Sorted days in a few words."""
    return str(days[0]) if len(days) == 1 else f"{days[0]} to {days[-1]}"


def per_day(
    days: Iterable[date], whole: AuditResult, one: Callable[[date], AuditResult], undated: Collection[str]
) -> dict[date, str | None]:
    """Which of ``days`` may be published (design §7).

    Args:
        whole: result of the suite on everything that was staged.
        one: runs the suite on the rows of one day; called only if ``whole`` failed.
        undated: columns whose failure says that rows belong to no owned day. Such rows cast doubt on the whole
            computation, so every day fails.

    Returns:
        day → ``None`` if it passed, else one line saying what is broken.
    """
    days = sorted(days)
    if whole.success:
        return dict.fromkeys(days)
    if len(days) == 1 or any(failure.column in undated for failure in whole.failures):
        return dict.fromkeys(days, whole.reason)
    outcome = {day: one(day).reason for day in days}
    if not any(outcome.values()):
        return dict.fromkeys(days, whole.reason)
    return outcome
