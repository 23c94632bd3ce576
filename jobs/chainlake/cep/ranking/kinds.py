"""The kinds of periods in which matches compete (docs/language.md#the-best-matches).

Everything about a period of the calendar is said here: parser, layout, grammar, days and the limits of a lake ask this
table. Periods that are not of the calendar have their own syntax in ``chainlake.cep.language.parsing.ranking``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta


@dataclass(frozen=True)
class Calendar:
    """A period of the calendar of a zone.

    Args:
        days: how many days it has at most.
        begin: gives, for a date, the first date of the period that holds it.
        after: gives, for the first date of a period, the first date of the next one.
    """

    days: int
    begin: Callable[[date], date]
    after: Callable[[date], date]


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


#: Periods by the word after PER; None for those that are not of the calendar.
PERIODS: dict[str, Calendar | None] = {
    "DAY": Calendar(1, lambda day: day, lambda day: day + timedelta(days=1)),
    "WEEK": Calendar(7, _monday, lambda day: day + timedelta(days=7)),
    "MONTH": Calendar(31, lambda day: day.replace(day=1), _next_month),
    "ALL": None,
    "BUCKET": None,
    "HOP": None,
}
