"""The kinds of periods among which matches compete (docs/language.md#the-best-matches).

All that the word behind PER says of a period of the calendar is said here; parser, layout, grammar, days and the limits
of a lake ask this table. Those that are no part of the calendar have a syntax of their own in
``chainlake.cep.language.parsing.ranking``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta


@dataclass(frozen=True)
class Calendar:
    """A period of the calendar of a zone.

    Args:
        days: how many days it is long, at most.
        begin: of a date the first date of the period that it is in.
        after: of the first date of a period that of the next one.
    """

    days: int
    begin: Callable[[date], date]
    after: Callable[[date], date]


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


#: By their words; None: the period is no part of the calendar.
PERIODS: dict[str, Calendar | None] = {
    "DAY": Calendar(1, lambda day: day, lambda day: day + timedelta(days=1)),
    "WEEK": Calendar(7, _monday, lambda day: day + timedelta(days=7)),
    "MONTH": Calendar(31, lambda day: day.replace(day=1), _next_month),
    "ALL": None,
    "BUCKET": None,
    "HOP": None,
}
